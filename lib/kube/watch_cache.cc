#include "lib/kube/watch_cache.h"

#include <exception>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"

namespace tahoma::kube {
namespace {

using json = Json;

// Returns a text, empty when absent; reports a value of another type in `status`.
std::string TextOf(const json& metadata, std::string_view field, absl::Status& status) {
  const json* const value = FindMember(metadata, field);
  if (value == nullptr || value->is_null()) return "";
  if (value->is_string()) return value->get<std::string>();
  status = InvalidArgument("metadata.{} is not a text", field);
  return "";
}

}  // namespace

WatchCache::Head WatchCache::HeadOf(const json& object) {
  Head head;
  const json* const metadata = FindMember(object, "metadata");
  if (metadata == nullptr) {
    head.status = InvalidArgument("it has no metadata");
    return head;
  }
  ObjectKey key;
  key.name = TextOf(*metadata, "name", head.status);
  key.ns = TextOf(*metadata, "namespace", head.status);
  if (head.status.ok() && key.name.empty()) head.status = InvalidArgument("it has no name");
  if (!head.status.ok()) return head;
  head.key = std::move(key);
  head.uid = TextOf(*metadata, "uid", head.status);
  head.version = TextOf(*metadata, "resourceVersion", head.status);
  return head;
}

absl::StatusOr<std::string> WatchCache::AddPage(const json& page) {
  const json* items = ValueAt(page, {"items"});
  std::string version(StringAt(page, {"metadata", "resourceVersion"}));
  // Go servers write an empty list as null.
  const bool is_list = items != nullptr && (items->is_array() || items->is_null());
  if (!is_list || version.empty()) return Unavailable("the answer is not a list");
  TAHOMA_RETURN_IF_ERROR(Admit(*items, version));
  for (const json& item : *items) See(item, true);
  std::string next(StringAt(page, {"metadata", "continue"}));
  if (!next.empty()) return next;
  RemoveUnlisted();
  resource_version_ = std::move(version);
  handlers_.listed();
  return next;
}

absl::Status WatchCache::Admit(const json& items, const std::string& version) {
  switch (newest_.Admit(version)) {
    case NewestVersion::Verdict::kRefuse:
      return Unavailable("the list is of version {}, older than {}, which was seen", version,
                         newest_.version());
    case NewestVersion::Verdict::kHistoryLost:
      LoseHistory(fmt::format("its lists are of version {}, older than what was seen", version));
      break;
    case NewestVersion::Verdict::kTake:
      if (const auto older = FirstOlder(items)) {
        LoseHistory(fmt::format("{} is of version {}, older than what was seen",
                                older->key.ToString(), older->version));
      }
  }
  return absl::OkStatus();
}

// A new list shows each object at least as new as every state seen before the list began. An object
// from an earlier page of this list proves nothing.
std::optional<WatchCache::Head> WatchCache::FirstOlder(const json& items) const {
  if (list_ == 1) return std::nullopt;  // all that is known is from this list
  for (const json& item : items) {
    Head head = HeadOf(item);
    const auto known = known_.find(head.key);
    if (!head.status.ok() || known == known_.end() || known->second.list == list_) continue;
    if (IsOlderVersion(head.version, known->second.version)) return head;
  }
  return std::nullopt;
}

void WatchCache::LoseHistory(const std::string& why) {
  for (auto& [key, known] : known_) known.version.clear();
  if (handlers_.history_lost) handlers_.history_lost(why);
}

absl::Status WatchCache::AddEvent(std::string_view type, const json& object) {
  if (type == "ERROR") {
    absl::Status error = ErrorOf(object);
    if (IsPlaceLost(error)) ForgetPlace();
    return error;
  }
  const bool is_delete = type == "DELETED";
  const bool is_change = type == "ADDED" || type == "MODIFIED";
  const std::string version(ResourceVersionOf(object));
  if (version.empty() || !(is_change || is_delete || type == "BOOKMARK")) {
    ForgetPlace();
    return Unavailable("a watch event that cannot be read, of type \"{}\"", type);
  }
  if (is_change) See(object, false);
  if (is_delete) Remove(object);
  if (!IsOlderVersion(version, resource_version_)) resource_version_ = version;
  newest_.See(version);
  return absl::OkStatus();
}

bool WatchCache::IsOutdated(const Head& head, const Known& known, bool listed) const {
  const bool is_same = known.uid == head.uid && known.version == head.version;
  if (!listed && is_same) return true;
  // An object listed twice counts in its newer state.
  const bool may_be_past = !listed || known.list == list_;
  return may_be_past && IsOlderVersion(head.version, known.version);
}

void WatchCache::See(const json& object, bool listed) {
  Head head = HeadOf(object);
  const auto known = known_.find(head.key);
  if (!head.status.ok()) {
    if (known != known_.end()) known->second.list = list_;  // the object exists
    return Tell(head.key, head.status);
  }
  const bool wanted = !handlers_.wanted || handlers_.wanted(object);
  if (known != known_.end()) {
    if (IsOutdated(head, known->second, listed)) {
      known->second.list = list_;
      return;
    }
    // Another uid: the object was deleted and made again while nobody watched.
    if (!wanted || known->second.uid != head.uid) Forget(head.key);
  }
  if (!wanted) return;
  known_[head.key] = {
      .uid = std::move(head.uid), .version = std::move(head.version), .list = list_};
  const absl::Status status = Read(object);
  if (!status.ok()) return Tell(head.key, status);
  unreadable_.erase(head.key);
}

void WatchCache::Remove(const json& object) {
  const Head head = HeadOf(object);
  if (!head.status.ok()) return Tell(head.key, head.status);
  const auto known = known_.find(head.key);
  // The event may be the delete of a predecessor. A delete of the known object is final, whatever
  // its version.
  const bool is_past = known != known_.end() && known->second.uid != head.uid &&
                       IsOlderVersion(head.version, known->second.version);
  if (!is_past) Forget(head.key);
}

absl::Status WatchCache::Read(const json& object) const {
  try {
    return handlers_.seen(object);
  } catch (const std::exception& error) {
    return Internal("{}", error.what());  // a bad object must not end the watch of all objects
  }
}

void WatchCache::Tell(const ObjectKey& key, const absl::Status& why) {
  Unreadable& told = unreadable_[key];
  told.list = list_;
  if (told.why == why) return;
  told.why = why;
  if (handlers_.unreadable) handlers_.unreadable(key, why);
}

void WatchCache::RemoveUnlisted() {
  std::vector<ObjectKey> vanished;
  for (const auto& [key, known] : known_) {
    if (known.list != list_) vanished.push_back(key);
  }
  for (const ObjectKey& key : vanished) Forget(key);
  absl::erase_if(unreadable_, [this](const auto& entry) {
    return entry.second.list != list_ && !known_.contains(entry.first);
  });
}

void WatchCache::Forget(const ObjectKey& key) {
  unreadable_.erase(key);
  const auto known = known_.extract(key);
  if (!known.empty()) handlers_.gone(known.key(), known.mapped().uid);
}

}  // namespace tahoma::kube
