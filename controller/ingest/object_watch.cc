#include "controller/ingest/object_watch.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"
#include "lib/kube/url.h"

namespace tahoma::controller {
namespace {

using json = Json;

constexpr int kPage = 500;
// The server ends a watch after this long; a connection that died quietly is noticed soon after.
constexpr int kWatchSeconds = 300;
constexpr std::chrono::seconds kIdle{kWatchSeconds + 30};
constexpr std::chrono::milliseconds kWaitFirst{100};
constexpr std::chrono::milliseconds kWaitMost{10'000};
constexpr std::chrono::seconds kNoWait{0};
constexpr std::chrono::seconds kRetryAfterMost{60};

std::chrono::milliseconds RetryAfter(const absl::Status& status) {
  const std::optional<kube::ApiError> error = kube::ApiErrorOf(status);
  return error ? std::min(error->retry_after.value_or(kNoWait), kRetryAfterMost) : kNoWait;
}

// Absent is the empty text; what is none is told to `status`.
std::string TextOf(const json& metadata, std::string_view field, absl::Status& status) {
  const json* const value = FindMember(metadata, field);
  if (value == nullptr || value->is_null()) return "";
  if (value->is_string()) return value->get<std::string>();
  status = InvalidArgument("metadata.{} is not a text", field);
  return "";
}

}  // namespace

ObjectWatch::ObjectWatch(kube::Transport& transport, Target target, Handlers handlers)
    : transport_(transport), target_(std::move(target)), handlers_(std::move(handlers)) {}

ObjectWatch::Head ObjectWatch::HeadOf(const json& object) {
  Head head;
  const json* const metadata = FindMember(object, "metadata");
  if (metadata == nullptr) {
    head.status = InvalidArgument("it has no metadata");
    return head;
  }
  const std::string name = TextOf(*metadata, "name", head.status);
  const std::string name_space = TextOf(*metadata, "namespace", head.status);
  if (head.status.ok() && name.empty()) head.status = InvalidArgument("it has no name");
  if (!head.status.ok()) return head;
  head.key = name_space + "/" + name;
  head.uid = TextOf(*metadata, "uid", head.status);
  head.version = TextOf(*metadata, "resourceVersion", head.status);
  return head;
}

void ObjectWatch::Run(const Wait& wait) {
  std::chrono::milliseconds pause = kWaitFirst;
  while (!stopping_) {
    const bool lists = version_.empty();
    events_ = 0;
    const absl::Status status = Step();
    if (stopping_) return;
    // A list alone is no success: a server whose watches end at once would be listed for ever.
    if (events_ > 0) pause = kWaitFirst;
    const bool is_expected = status.ok() || absl::IsOutOfRange(status);  // 410 ends an old watch
    if (!is_expected) handlers_.failed(Annotate(status, target_.path));
    if (is_expected && (events_ > 0 || (lists && status.ok()))) continue;
    // A server that was restored to before this place may be silent instead of refusing it.
    version_.clear();
    if (!wait(std::max(pause, RetryAfter(status)))) return;
    pause = std::min(pause * 2, kWaitMost);
  }
}

absl::Status ObjectWatch::Step() {
  absl::Status status = version_.empty() ? List() : Watch();
  if (!status.ok()) version_.clear();
  return status;
}

std::string ObjectWatch::Query(std::string_view more) const {
  std::string query = target_.path + "?" + std::string(more);
  if (!target_.field_selector.empty()) {
    query += "&fieldSelector=" + kube::PercentEncode(target_.field_selector);
  }
  return query;
}

absl::Status ObjectWatch::List() {
  ++lists_;
  std::string token;
  std::string version;
  do {
    std::string more = fmt::format("limit={}", in_pages_ ? kPage : 0);
    if (!token.empty()) more += "&continue=" + kube::PercentEncode(token);
    auto answer = transport_.Send({.method = "GET",
                                   .target = Query(more),
                                   .headers = {{"Accept", "application/json"}},
                                   .body = ""});
    if (!answer.ok()) return answer.status();
    // Pages that expire before the last one came would do so again.
    if (answer->status == 410 && !token.empty()) in_pages_ = false;
    if (answer->status != 200) return kube::ToStatus(*answer);
    try {
      const json page = json::parse(answer->body);
      const json& metadata = page.at("metadata");
      version = metadata.at("resourceVersion").get<std::string>();
      TAHOMA_RETURN_IF_ERROR(Admit(page, version));
      for (const json& item : page.at("items")) See(item, true);
      token = metadata.value("continue", "");
    } catch (const std::exception& e) {
      return Internal("a list that cannot be read: {}", e.what());
    }
  } while (!token.empty() && !stopping_);
  std::vector<std::string> vanished;
  for (const auto& [key, known] : known_) {
    if (known.list != lists_) vanished.push_back(key);
  }
  for (const std::string& key : vanished) Forget(key);
  version_ = std::move(version);
  in_pages_ = true;
  handlers_.listed();
  return absl::OkStatus();
}

absl::Status ObjectWatch::Admit(const json& page, const std::string& version) {
  switch (newest_.Admit(version)) {
    case kube::NewestVersion::Verdict::kRefuse:
      return Unavailable("the list is of version {}, older than {}, which was seen", version,
                         newest_.version());
    case kube::NewestVersion::Verdict::kHistoryLost:
      LoseHistory(fmt::format("its lists are of version {}, older than what was seen", version));
      break;
    case kube::NewestVersion::Verdict::kTake:
      if (const auto older = FirstOlder(page.at("items"))) {
        LoseHistory(fmt::format("{} is of version {}, older than what was seen", older->key,
                                older->version));
      }
  }
  return absl::OkStatus();
}

// What was seen of an object was no later than the list, and of the object nothing came since.
std::optional<ObjectWatch::Head> ObjectWatch::FirstOlder(const json& items) const {
  for (const json& item : items) {
    Head head = HeadOf(item);
    const auto known = known_.find(head.key);
    if (!head.status.ok() || known == known_.end()) continue;
    if (kube::IsOlderVersion(head.version, known->second.version)) return head;
  }
  return std::nullopt;
}

void ObjectWatch::LoseHistory(const std::string& why) {
  for (auto& [key, known] : known_) known.version.clear();
  if (handlers_.history_lost) handlers_.history_lost(why);
}

absl::Status ObjectWatch::Watch() {
  absl::Status failure;
  const auto answer = transport_.Watch(
      {.method = "GET",
       .target = Query(
           fmt::format("watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
                       kWatchSeconds, kube::PercentEncode(version_))),
       .headers = {{"Accept", "application/json"}},
       .body = ""},
      [&](std::string_view type, const json& object) {
        return OnEvent(type, object, failure) && !stopping_;
      },
      kIdle);
  if (!failure.ok()) return failure;
  if (!answer.ok()) return answer.status();
  if (answer->status != 200) return kube::ToStatus(*answer);
  return absl::OkStatus();
}

bool ObjectWatch::OnEvent(std::string_view type, const json& object, absl::Status& failure) {
  try {
    if (type == "ERROR") {
      const int code = object.value("code", 0);
      failure = code == 410 ? OutOfRange("the watch expired")
                            : Unavailable("watch error {}: {}", code, object.value("message", ""));
      return false;
    }
    const json& metadata = object.at("metadata");
    const std::string version = metadata.at("resourceVersion");
    if (type == "ADDED" || type == "MODIFIED") {
      See(object, false);
    } else if (type == "DELETED") {
      const Head head = HeadOf(object);
      if (!head.status.ok()) {
        Tell(head.key, head.status);
      } else if (!IsOutdated(head.key, version, head.uid)) {
        Forget(head.key);
      }
    }
    if (!kube::IsOlderVersion(version, version_)) version_ = version;
    newest_.See(version);
    ++events_;
    return true;
  } catch (const std::exception& e) {
    failure = Internal("a watch event that cannot be read: {}", e.what());
    return false;
  }
}

// Whether an event about that uid is of the past of what is known by that name. A delete of the
// known object itself never is: it does not come back.
bool ObjectWatch::IsOutdated(const std::string& key, const std::string& version,
                             const std::string& deleted_uid) const {
  const auto known = known_.find(key);
  return known != known_.end() && known->second.uid != deleted_uid &&
         kube::IsOlderVersion(version, known->second.version);
}

void ObjectWatch::See(const json& object, bool listed) {
  const Head head = HeadOf(object);
  if (!head.status.ok()) {
    if (!head.key.empty()) known_[head.key].list = lists_;  // it is there
    return Tell(head.key, head.status);
  }
  const bool wanted = !handlers_.wanted || handlers_.wanted(object);
  const auto known = known_.find(head.key);
  if (known != known_.end()) {
    if (!listed && kube::IsOlderVersion(head.version, known->second.version)) return;
    // Another uid: deleted and made again while nobody watched.
    if (!wanted || known->second.uid != head.uid) Forget(head.key);
  }
  if (!wanted) return;
  known_[head.key] = {head.uid, head.version, lists_};
  const absl::Status status = handlers_.seen(object);
  if (!status.ok()) return Tell(head.key, status);
  unreadable_.erase(head.key);
}

void ObjectWatch::Tell(const std::string& key, const absl::Status& why) {
  absl::Status& told = unreadable_[key];
  if (told == why) return;
  told = why;
  handlers_.unreadable(key, why);
}

void ObjectWatch::Forget(const std::string& key) {
  unreadable_.erase(key);
  const auto known = known_.extract(key);
  if (known.empty()) return;
  const std::size_t slash = key.find('/');
  handlers_.gone(key.substr(0, slash), key.substr(slash + 1), known.mapped().uid);
}

}  // namespace tahoma::controller
