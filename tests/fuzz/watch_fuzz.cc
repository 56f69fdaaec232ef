// What an API server may answer to list and watch: whatever the lines, the listener's picture is
// consistent. Lines that are lists are pages, all others are lines of a watch.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/list_watch.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma::kube;

// A listener that believes what it is told.
class Listener {
 public:
  void Hear(const WatchEvent& event) {
    if (event.type == WatchEvent::Type::kSynced) return;
    TAHOMA_CHECK(!event.key.name.empty());
    const auto known = uids_.find(event.key);
    switch (event.type) {
      case WatchEvent::Type::kAdded:
        TAHOMA_CHECK(known == uids_.end() && event.object != nullptr);
        uids_[event.key] = event.uid;
        break;
      case WatchEvent::Type::kModified:
        TAHOMA_CHECK(known != uids_.end() && known->second == event.uid && event.object != nullptr);
        break;
      case WatchEvent::Type::kDeleted:
        TAHOMA_CHECK(known != uids_.end() && known->second == event.uid);
        uids_.erase(known);
        break;
      case WatchEvent::Type::kSynced:
        break;
    }
  }
  std::size_t size() const { return uids_.size(); }

 private:
  std::map<ObjectKey, std::string> uids_;
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
          R"({"items":null,"metadata":{"resourceVersion":"1"}})"};
}

void FuzzOne(std::string_view input) {
  Listener listener;
  WatchCache cache([&](const WatchEvent& event) { listener.Hear(event); });
  bool in_list = false;
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(input.size(), line.size() + 1));
    const auto json = tahoma::Json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("items")) {
      if (!in_list) cache.BeginList();
      const auto next = cache.AddPage(json);
      in_list = next.ok() && !next->empty();
      TAHOMA_CHECK(!next.ok() || in_list || !cache.resource_version().empty());
    } else if (cache.AddLine(line) == WatchCache::Next::kListAgain) {
      cache.ForgetPlace();
      in_list = false;
    }
    TAHOMA_CHECK(cache.size() == listener.size());
  }
}
