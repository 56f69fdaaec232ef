// Answers of an API server to list and watch: whatever the answers are, a Reflector's picture is
// consistent, and goes back in time only when the listener was told.
//
// Each line is the answer to a list; the answer to a watch is all lines until an empty line or a
// list. A Status with a code from 300 on is an answer of that HTTP status, and "!" is no answer at
// all.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/reflector.h"
#include "lib/kube/resource_version.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma::kube;

class Script final : public Transport {
 public:
  explicit Script(std::string_view text) : rest_(text) {}
  bool over() const { return rest_.empty(); }

  absl::StatusOr<Response> Send(const Request&) override { return Answer(Take()); }

  absl::StatusOr<Response> Stream(const Request&, const LineSink& sink,
                                  std::chrono::milliseconds) override {
    bool first = true;
    while (!over() && !IsList(Peek())) {
      const std::string_view line = Take();
      if (line.empty()) break;
      if (line == "!") return Answer(line);
      if (first && CodeOf(line) != 200) return Answer(line);
      first = false;
      if (!sink(line)) break;
    }
    return Response{.status = 200};
  }

 private:
  std::string_view Peek() const { return rest_.substr(0, rest_.find('\n')); }
  std::string_view Take() {
    const std::string_view line = Peek();
    rest_.remove_prefix(std::min(rest_.size(), line.size() + 1));
    return line;
  }
  static bool IsList(std::string_view line) {
    const auto json = tahoma::TryParseJson(line);
    return json.is_object() && json.contains("items");
  }
  static int CodeOf(std::string_view line) {
    const auto json = tahoma::TryParseJson(line);
    const tahoma::Json* code = tahoma::FindMember(json, "code");
    if (code == nullptr || !code->is_number_unsigned()) return 200;
    const auto value = code->get<std::uint64_t>();
    return value >= 300 && value < 600 ? static_cast<int>(value) : 200;
  }
  static absl::StatusOr<Response> Answer(std::string_view line) {
    if (line == "!") return tahoma::Unavailable("no answer");
    return Response{.status = CodeOf(line), .body = std::string(line)};
  }

  std::string_view rest_;
};

// Waits for nothing, until there is nothing to wait for.
class TurnSleeper final : public Sleeper {
 public:
  explicit TurnSleeper(std::function<bool()> is_over) : is_over_(std::move(is_over)) {}
  bool Sleep(std::chrono::nanoseconds) override {
    between_turns();
    return !is_over_();
  }
  std::function<void()> between_turns;

 private:
  const std::function<bool()> is_over_;
};

// Believes every event. Cannot read objects named "b…", and does not want objects named "x…".
class Listener {
 public:
  WatchHandlers Handlers() {
    return {
        .wanted = [](const tahoma::Json& object) { return !NameOf(object).starts_with('x'); },
        .seen = [this](const tahoma::Json& object) { return See(object); },
        .gone =
            [this](const ObjectKey& key, const std::string& uid) {
              const auto known = known_.find(key);
              TAHOMA_CHECK(known != known_.end() && known->second.uid == uid);
              known_.erase(known);
            },
        .listed = [] {},
        .unreadable = [](const ObjectKey&, const absl::Status& why) { TAHOMA_CHECK(!why.ok()); },
        .history_lost =
            [this](const std::string&) {
              for (auto& [key, known] : known_) known.version.clear();
            }};
  }
  std::size_t size() const { return known_.size(); }

 private:
  struct Known {
    std::string uid;
    std::string version;
  };

  absl::Status See(const tahoma::Json& object) {
    const ObjectKey key = KeyOf(object);
    TAHOMA_CHECK(!key.name.empty() && !key.name.starts_with('x'));
    const std::string uid(UidOf(object));
    const std::string version(ResourceVersionOf(object));
    const auto [known, is_new] = known_.try_emplace(key, Known{uid, version});
    TAHOMA_CHECK(known->second.uid == uid);
    TAHOMA_CHECK(!IsOlderVersion(version, known->second.version));
    known->second.version = version;
    return key.name.starts_with('b') ? tahoma::InvalidArgument("cannot be read") : absl::OkStatus();
  }

  std::map<ObjectKey, Known> known_;
};

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const auto item = [](const char* name, const char* uid, const char* version) {
    return std::string(R"({"metadata":{"namespace":"default","name":")") + name + R"(","uid":")" +
           uid + R"(","resourceVersion":")" + version + R"("}})";
  };
  const auto page = [](const std::string& items, const char* more) {
    return R"({"items":[)" + items + R"(],"metadata":{"resourceVersion":"9","continue":")" + more +
           R"("}})" + "\n";
  };
  const auto line = [](const char* type, const std::string& object) {
    return std::string(R"({"type":")") + type + R"(","object":)" + object + "}\n";
  };
  return {page(item("a", "1", "1") + "," + item("b", "2", "2"), "") +
              line("ADDED", item("c", "3", "10")) + line("MODIFIED", item("a", "1", "11")) +
              line("DELETED", item("b", "2", "12")) + line("BOOKMARK", item("", "", "13")),
          page(item("a", "1", "1"), "more") + page(item("b", "2", "2"), "") +
              page(item("a", "4", "20"), ""),
          line("ERROR", R"({"code":410,"reason":"Expired"})") + page("", "") +
              line("ADDED", item("a", "1", "1")) + line("ADDED", item("a", "5", "2")),
          R"({"items":null,"metadata":{"resourceVersion":"1"}})",
          page(R"({"metadata":{"name":"a","uid":7,"resourceVersion":"2"}})", "") + "\n" +
              page(item("b", "2", "3"), "") + "\n" + page("", ""),
          page(item("a", "1", "7"), "") + "!\n" + page(item("a", "1", "3"), "") + "\n" +
              line("MODIFIED", item("a", "1", "12")) + R"({"code":503,"reason":"Busy"})" + "\n" +
              line("ERROR", R"({"code":500})") + line("ADDED", item("x", "6", "13"))};
}

void FuzzOne(std::string_view input) {
  Script script(input);
  Listener listener;
  const auto is_over = [&] { return script.over(); };
  TurnSleeper sleeper(is_over);
  Reflector reflector(script, sleeper, tahoma::Rng(1), {.resource = kPods}, listener.Handlers());
  sleeper.between_turns = [&] { TAHOMA_CHECK(reflector.size() == listener.size()); };
  reflector.Run();
  sleeper.between_turns();
}
