#include "lib/kube/list_watch.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/url.h"

namespace tahoma::kube {
namespace {

using json = Json;
using Type = WatchEvent::Type;

constexpr std::chrono::seconds kLongestRetryAfter{60};

// A Status after which watching from the same version cannot work: it is too old, or the server
// has not come so far, as one that is behind, or that was restored from a backup.
bool IsPlaceLost(const json& status) {
  const json* code = ValueAt(status, {"code"});
  const std::string_view reason = StringAt(status, {"reason"});
  if (reason == "Expired" || reason == "Gone" || (code != nullptr && *code == 410)) return true;
  const json* causes = ValueAt(status, {"details", "causes"});
  return causes != nullptr && causes->is_array() &&
         std::any_of(causes->begin(), causes->end(), [](const json& cause) {
           return StringAt(cause, {"reason"}) == "ResourceVersionTooLarge";
         });
}

}  // namespace

bool WatchCache::Store(const json& object, bool listed) {
  const ObjectKey key = KeyOf(object);
  const std::string_view version = ResourceVersionOf(object);
  const std::string uid(UidOf(object));
  if (key.name.empty() || version.empty()) return false;
  const auto [at, is_new] = known_.try_emplace(key);
  Known& known = at->second;
  known.generation = generation_;
  if (!is_new && !listed && IsOlderVersion(version, known.resource_version)) return true;
  if (!is_new && !listed && known.uid == uid && known.resource_version == version) return true;
  Type type = is_new ? Type::kAdded : Type::kModified;
  if (!is_new && known.uid != uid) {
    // Deleted and made again while nobody watched.
    sink_({.type = Type::kDeleted, .key = key, .uid = known.uid, .object = nullptr});
    type = Type::kAdded;
  }
  known.uid = uid;
  known.resource_version = version;
  sink_({.type = type, .key = key, .uid = uid, .object = &object});
  return true;
}

bool WatchCache::Remove(const json& object) {
  const ObjectKey key = KeyOf(object);
  if (key.name.empty()) return false;
  const auto at = known_.find(key);
  if (at == known_.end()) return true;
  const std::string uid = at->second.uid;
  // The delete of a predecessor; that of the known object itself is final, whatever its version.
  const bool is_other = uid != UidOf(object);
  if (is_other && IsOlderVersion(ResourceVersionOf(object), at->second.resource_version)) {
    return true;
  }
  known_.erase(at);
  sink_({.type = Type::kDeleted, .key = key, .uid = uid, .object = &object});
  return true;
}

void WatchCache::RemoveUnlisted() {
  std::vector<std::pair<ObjectKey, std::string>> gone;
  for (const auto& [key, known] : known_) {
    if (known.generation != generation_) gone.emplace_back(key, known.uid);
  }
  for (const auto& [key, uid] : gone) {
    known_.erase(key);
    sink_({.type = Type::kDeleted, .key = key, .uid = uid, .object = nullptr});
  }
}

absl::StatusOr<std::string> WatchCache::AddPage(const json& page) {
  const json* items = ValueAt(page, {"items"});
  const std::string version(StringAt(page, {"metadata", "resourceVersion"}));
  // Go servers write an empty list as null.
  const bool is_list = items != nullptr && (items->is_array() || items->is_null());
  if (!is_list || version.empty()) return Unavailable("the answer is not a list");
  switch (newest_.Admit(version)) {
    case NewestVersion::Verdict::kTake:
      break;
    case NewestVersion::Verdict::kRefuse:
      return Unavailable("the list is of version {}, older than {}, which was seen", version,
                         newest_.version());
    case NewestVersion::Verdict::kHistoryLost:
      for (auto& [key, known] : known_) known.resource_version.clear();
  }
  for (const json& item : *items) {
    if (!Store(item, true))
      return Unavailable("an item of the list has no name or resourceVersion");
  }
  std::string next(StringAt(page, {"metadata", "continue"}));
  if (!next.empty()) return next;
  RemoveUnlisted();
  resource_version_ = version;
  sink_({.type = Type::kSynced});
  return next;
}

WatchCache::Next WatchCache::AddLine(std::string_view line) {
  const json event = json::parse(line, nullptr, false);
  const json* object = ValueAt(event, {"object"});
  const std::string_view type = StringAt(event, {"type"});
  if (object == nullptr || !object->is_object()) return Next::kListAgain;
  if (type == "ERROR") return IsPlaceLost(*object) ? Next::kListAgain : Next::kWatchAgain;
  const std::string version(ResourceVersionOf(*object));
  if (version.empty()) return Next::kListAgain;
  bool understood = true;
  if (type == "ADDED" || type == "MODIFIED") {
    understood = Store(*object, false);
  } else if (type == "DELETED") {
    understood = Remove(*object);
  } else if (type != "BOOKMARK") {
    understood = false;
  }
  if (!understood) return Next::kListAgain;
  if (!IsOlderVersion(version, resource_version_)) resource_version_ = version;
  newest_.See(version);
  return Next::kContinue;
}

Reflector::Reflector(Transport& transport, Sleeper& sleeper, Rng rng, ReflectorOptions options,
                     WatchSink sink)
    : transport_(transport),
      sleeper_(sleeper),
      rng_(rng),
      options_(std::move(options)),
      cache_([this, sink = std::move(sink)](const WatchEvent& event) {
        sink(event);
        if (event.type == Type::kSynced) synced_ = true;
      }) {}

void Reflector::Start() {
  TAHOMA_CHECK(!thread_.joinable());
  thread_ = std::thread([this] { Loop(); });
}

void Reflector::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Reflector::Loop() {
  for (int fruitless = 0; !stopping_;) {
    events_ = 0;
    const absl::Status status = RunOnce();
    // A list alone is no success: a server whose watches end at once would be listed for ever.
    fruitless = events_ > 0 ? 0 : fruitless + 1;
    std::chrono::nanoseconds pause = Backoff(options_.backoff, fruitless + 1, rng_);
    const std::optional<ApiError> error = ApiErrorOf(status);
    if (error && error->retry_after) {
      pause = std::max<std::chrono::nanoseconds>(
          pause, std::min<std::chrono::nanoseconds>(*error->retry_after, kLongestRetryAfter));
    }
    if (stopping_ || !sleeper_.Sleep(pause)) return;
  }
}

absl::Status Reflector::RunOnce() {
  if (cache_.resource_version().empty()) TAHOMA_RETURN_IF_ERROR(ListAll());
  return stopping_ ? absl::OkStatus() : WatchFrom();
}

absl::Status Reflector::ListAll() {
  // Retries are this class's own: a list that fails half way begins anew.
  Client client(transport_, sleeper_, Rng(rng_.Next()), {.attempts = 1});
  ListOptions list{.ns = options_.ns,
                   .label_selector = options_.label_selector,
                   .field_selector = options_.field_selector,
                   .limit = in_pages_ ? options_.page_size : 0};
  cache_.BeginList();
  do {
    const absl::StatusOr<json> page = client.List(options_.resource, list);
    // Pages that expire before the last one came would do so again.
    if (absl::IsOutOfRange(page.status()) && !list.continue_token.empty()) in_pages_ = false;
    TAHOMA_RETURN_IF_ERROR(page.status());
    TAHOMA_ASSIGN_OR_RETURN(list.continue_token, cache_.AddPage(*page));
  } while (!list.continue_token.empty() && !stopping_);
  in_pages_ = true;
  return absl::OkStatus();
}

absl::Status Reflector::WatchFrom() {
  const auto base = static_cast<std::uint64_t>(options_.watch_timeout.count());
  Query query{{"watch", "true"},
              {"allowWatchBookmarks", "true"},
              {"resourceVersion", cache_.resource_version()},
              {"timeoutSeconds", std::to_string(base + rng_.Below(base + 1))}};
  if (!options_.label_selector.empty())
    query.emplace_back("labelSelector", options_.label_selector);
  if (!options_.field_selector.empty())
    query.emplace_back("fieldSelector", options_.field_selector);
  WatchCache::Next next = WatchCache::Next::kContinue;
  bool silent = true;
  const absl::StatusOr<Response> ended = transport_.Stream(
      {.method = "GET",
       .target = options_.resource.CollectionPath(options_.ns) + "?" + EncodeQuery(query),
       .headers = {{"Accept", "application/json"}}},
      [&](std::string_view line) {
        if (!line.empty()) next = cache_.AddLine(line);
        silent = silent && line.empty();
        if (next == WatchCache::Next::kContinue) ++events_;
        return next == WatchCache::Next::kContinue && !stopping_;
      },
      options_.idle_timeout);
  // Another server, or one that was restored, may answer next; and one that was restored to before
  // this place may be silent instead of refusing it.
  const bool is_doubtful = !ended.ok() || (ended->status == 200 && silent);
  if (next == WatchCache::Next::kListAgain || is_doubtful) cache_.ForgetPlace();
  if (!ended.ok()) return ended.status();
  if (ended->status != 200) {
    const json status = json::parse(ended->body, nullptr, false);
    if (ended->status == 410 || IsPlaceLost(status)) cache_.ForgetPlace();
    return ToStatus(*ended);
  }
  if (next == WatchCache::Next::kWatchAgain) return Unavailable("the server broke the watch off");
  return absl::OkStatus();
}

}  // namespace tahoma::kube
