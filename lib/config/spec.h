// The options of a program: each is declared once, and read from a YAML file and from flags.
//
//   struct Options {
//     std::string listen_address = "127.0.0.1:8001";
//     std::int64_t workers = 4;
//     std::vector<Peer> peers;
//   };
//
//   Options options;
//   config::Spec spec({.program = "controller", .kind = "ControllerConfig",
//                      .summary = "Schedules gangs."});
//   spec.String("listenAddress", &options.listen_address, "where the API is served");
//   spec.Int("workers", &options.workers, {.min = 1, .max = 64}, "threads that answer requests");
//   spec.List<Peer>("peers", &options.peers, "the other nodes", [](config::Fields& f, Peer& peer) {
//     f.Int("nodeId", &peer.node_id, {.min = 0, .max = 3}, "its place");
//     f.String("address", &peer.address, "where it listens");
//   });
//
// The value that a variable has when it is declared is the option's default. A key becomes a flag
// by writing it in lower case with dashes (listenAddress -> --listen-address); a key inside a
// section follows a point (ultraServer: {id: …} -> --ultra-server.id). The flag of a list or a map
// may be repeated: the parts are put together.
//
// Scope: declarations and single values; lib/config/parse.h reads files and command lines.
//
// Thread safety: none; a program declares and parses once, at its start.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/config/value.h"

namespace tahoma::config {

struct IntRange {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};
struct NumberRange {
  double min = 0;
  double max = std::numeric_limits<double>::max();
};
struct DurationRange {
  std::chrono::nanoseconds min = std::chrono::nanoseconds(0);
  std::chrono::nanoseconds max = std::chrono::hours(24 * 366);
};

// The origin of a value, for messages.
struct Where {
  std::string source;  // a file's name, or empty for a flag
  std::string path;    // "peers[1].address", or "--peers"

  // "FILE:LINE: PATH: what", or "PATH: what" for a flag.
  absl::Status Error(const Value& value, std::string_view what) const;
  Where Below(std::string_view key) const;
  Where At(std::size_t index) const;
};

class Fields;

enum class FlagForm { kText, kBool, kWords, kPairs, kYaml, kNone };

struct Field {
  std::string key;
  std::string kind;  // "integer 1 to 64"
  std::string description;
  std::string default_text;
  std::vector<std::string> choices;  // the only texts that are right; empty: others are too
  FlagForm form = FlagForm::kText;
  std::function<absl::Status(const Value&, const Where&)> set;
  std::shared_ptr<Fields> section;  // the fields below, for a section
  bool gone = false;                // refused, and not shown
};

class Fields {
 public:
  Fields& Bool(std::string key, bool* value, std::string description);

  // With `choices`, any other text is an error.
  Fields& String(std::string key, std::string* value, std::string description,
                 std::vector<std::string> choices = {});

  // Decimal integers, also with a unit of lib/config/size.h: "64M", "64Mi", "1GiB".
  template <std::integral T>
  Fields& Int(const std::string& key, T* value, IntRange range, const std::string& description) {
    return AddInt(
        key, static_cast<std::int64_t>(*value),
        [value](std::int64_t v) { *value = static_cast<T>(v); }, Narrow<T>(range), description);
  }

  Fields& Number(std::string key, double* value, NumberRange range, std::string description);

  Fields& Duration(std::string key, std::chrono::nanoseconds* value, DurationRange range,
                   std::string description);

  // A list of words; as a flag "a,b,c".
  Fields& Strings(std::string key, std::vector<std::string>* value, std::string description,
                  std::vector<std::string> choices = {});

  // Words by word; as a flag "a=1,b=2".
  Fields& Map(std::string key, std::map<std::string, std::string>* value, std::string description);

  // A key that there was once: giving it is an error that says what is so now, and to remove it.
  Fields& Gone(std::string key, std::string what_is_so);

  // Keys inside a key; each gets its own flag.
  Fields& Section(std::string key, std::string description,
                  const std::function<void(Fields&)>& declare);

  // A list of structs; as a flag inline YAML: '[{nodeId: 1, address: "a:1"}]'. A list that is
  // given replaces the default.
  template <typename T>
  Fields& List(const std::string& key, std::vector<T>* value, const std::string& description,
               std::function<void(Fields&, T&)> declare) {
    return AddStructs(
        key, description, Value::Kind::kList, [value] { value->clear(); },
        [value, declare](const std::string&) {
          Fields fields;
          declare(fields, value->emplace_back());
          return fields;
        },
        SampleKind(declare));
  }

  // Structs by name; as a flag inline YAML.
  template <typename T>
  Fields& MapOf(const std::string& key, std::map<std::string, T>* value,
                const std::string& description, std::function<void(Fields&, T&)> declare) {
    return AddStructs(
        key, description, Value::Kind::kMap, [value] { value->clear(); },
        [value, declare](const std::string& name) {
          Fields fields;
          declare(fields, (*value)[name]);
          return fields;
        },
        SampleKind(declare));
  }

  // Sets every key of the map; an unknown key is an error that names the nearest known one.
  absl::Status Set(const Value& map, const Where& where) const;

  const std::vector<Field>& fields() const { return fields_; }

 private:
  template <typename T>
  static IntRange Narrow(IntRange range) {
    constexpr auto kMax = std::numeric_limits<T>::max();
    if (std::cmp_greater(range.max, kMax)) range.max = static_cast<std::int64_t>(kMax);
    constexpr auto kMin = std::numeric_limits<T>::min();
    if (std::cmp_less(range.min, kMin)) range.min = static_cast<std::int64_t>(kMin);
    return range;
  }
  template <typename T>
  static std::string SampleKind(const std::function<void(Fields&, T&)>& declare) {
    Fields fields;
    T sample{};
    declare(fields, sample);
    return fields.KeyList();
  }

  Field& Add(std::string key, std::string description);
  Fields& AddInt(std::string key, std::int64_t default_value,
                 std::function<void(std::int64_t)> store, IntRange range, std::string description);
  Fields& AddStructs(std::string key, std::string description, Value::Kind kind,
                     std::function<void()> clear,
                     std::function<Fields(const std::string& name)> append,
                     const std::string& keys);
  std::string KeyList() const;

  std::vector<Field> fields_;
};

class Spec : public Fields {
 public:
  struct About {
    std::string program;  // "controller"
    std::string kind;     // the file's kind, "ControllerConfig"; empty: there is no --config
    std::string summary;  // one line for --help
  };
  enum class Need { kRequired, kOptional };
  struct Positional {
    std::string name;
    std::string description;
    Need need;
    std::string* value;
    std::vector<std::string> choices;
  };

  explicit Spec(About about) : about_(std::move(about)) {}

  // A word without dashes, in the order declared: "why NAME". With `choices`, any other text is an
  // error.
  Spec& Word(std::string name, std::string* value, std::string description, Need need,
             std::vector<std::string> choices = {});
  // All words that remain.
  Spec& Words(std::string name, std::vector<std::string>* value, std::string description);
  // A second spelling of a flag, "-n" or "--minbytes", for the key of a declared field.
  Spec& Alias(std::string flag, std::string key);

  const About& about() const { return about_; }
  const std::vector<Positional>& positionals() const { return positionals_; }
  const std::vector<std::pair<std::string, std::string>>& aliases() const { return aliases_; }
  const Positional* rest() const { return rest_ ? rest_.get() : nullptr; }
  std::vector<std::string>* rest_words() const { return rest_words_; }

 private:
  About about_;
  std::vector<Positional> positionals_;
  std::vector<std::pair<std::string, std::string>> aliases_;
  std::shared_ptr<Positional> rest_;
  std::vector<std::string>* rest_words_ = nullptr;
};

// "listenAddress" -> "listen-address"; a run of capitals is one word ("clientCAFile" ->
// "client-ca-file").
std::string FlagName(std::string_view key);

// The candidate nearest to `word` by edit distance, at most a third of its length away; else empty.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tahoma::config
