// Configuration files and command lines: whatever the text, an answer; an error of a file names it.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma;

struct Peer {
  int node_id = 0;
  std::string address;
};

// One option of every kind.
struct Options {
  bool flag = false;
  std::string text;
  std::string choice = "a";
  int number = 1;
  double rate = 0.5;
  std::chrono::nanoseconds wait = std::chrono::seconds(1);
  std::vector<std::string> words;
  std::map<std::string, std::string> pairs;
  std::string id;
  std::vector<Peer> peers;
  std::map<std::string, Peer> by_name;
};

config::Spec Declare(Options& options) {
  const auto peer = [](config::Fields& fields, Peer& one) {
    fields.Int("nodeId", &one.node_id, {.min = 0, .max = 3}, "its place");
    fields.String("address", &one.address, "where it listens");
  };
  config::Spec spec({.program = "fuzz", .kind = "FuzzConfig", .summary = "None."});
  spec.Bool("flag", &options.flag, "yes or no");
  spec.String("text", &options.text, "anything");
  spec.String("choice", &options.choice, "a or b", {"a", "b"});
  spec.Int("number", &options.number, {.min = 1, .max = 64}, "a count");
  spec.Number("rate", &options.rate, {.min = 0, .max = 1}, "a share");
  spec.Duration("wait", &options.wait, {.max = std::chrono::hours(1)}, "a time");
  spec.Strings("words", &options.words, "some words");
  spec.Map("pairs", &options.pairs, "some pairs");
  spec.Section("section", "inside",
               [&](config::Fields& fields) { fields.String("id", &options.id, "a name"); });
  spec.List<Peer>("peers", &options.peers, "others", peer);
  spec.MapOf<Peer>("byName", &options.by_name, "others by name", peer);
  return spec;
}

void CheckBounds(const Options& options) {
  TAHOMA_CHECK(options.number >= 1 && options.number <= 64);
  TAHOMA_CHECK(options.rate >= 0 && options.rate <= 1);
  TAHOMA_CHECK(options.choice == "a" || options.choice == "b");
  TAHOMA_CHECK(options.wait.count() >= 0 && options.wait <= std::chrono::hours(1));
  for (const Peer& peer : options.peers) TAHOMA_CHECK(peer.node_id >= 0 && peer.node_id <= 3);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string head = "apiVersion: tahoma.dev/v1alpha1\nkind: FuzzConfig\n";
  return {head + "flag: true\ntext: \"a b\"\nchoice: b\nnumber: 8\nrate: 0.25\nwait: 1m30s\n",
          head + "words: [a, b]\npairs: {a: 1, b: x}\nsection:\n  id: us-1\n",
          head + "peers:\n- {nodeId: 1, address: \"a:1\"}\n- nodeId: 2\nbyName: {x: {nodeId: 3}}\n",
          head + "numbr: 1\n",
          "--flag --text=x --number 2Ki --wait 5s --words a,b --pairs a=1,b=2 --section.id us",
          "--peers [{nodeId: 1}] --by-name {x: {address: a}} --rate 1e-3 --help",
          "--config /nonexistent --unknown -h"};
}

void FuzzOne(std::string_view input) {
  {
    Options options;
    const absl::Status read = config::ParseFile(input, "file.yaml", Declare(options));
    if (read.ok()) CheckBounds(options);
    TAHOMA_CHECK(read.ok() || Message(read).starts_with("file.yaml:"));
  }
  std::vector<std::string> words;
  while (!input.empty()) {
    const std::size_t space = input.find(' ');
    words.emplace_back(input.substr(0, space));
    if (words.back().starts_with("--config")) words.pop_back();  // would read what is there
    input.remove_prefix(space == std::string_view::npos ? input.size() : space + 1);
  }
  Options options;
  if (config::ParseArguments(words, Declare(options)).ok()) CheckBounds(options);
}
