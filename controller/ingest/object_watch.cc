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

std::string NameKey(const json& metadata) {
  return metadata.value("namespace", "") + "/" + metadata.at("name").get<std::string>();
}

}  // namespace

ObjectWatch::ObjectWatch(kube::Transport& transport, Target target, Handlers handlers)
    : transport_(transport), target_(std::move(target)), handlers_(std::move(handlers)) {}

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
      if (const json* older = FirstOlder(page.at("items"))) {
        LoseHistory(fmt::format("{} is of version {}, older than what was seen",
                                NameKey(older->at("metadata")),
                                older->at("metadata").value("resourceVersion", "")));
      }
  }
  return absl::OkStatus();
}

// What was seen of an object was no later than the list, and of the object nothing came since.
const json* ObjectWatch::FirstOlder(const json& items) const {
  for (const json& item : items) {
    const json& metadata = item.at("metadata");
    const auto known = known_.find(NameKey(metadata));
    if (known == known_.end()) continue;
    if (kube::IsOlderVersion(metadata.value("resourceVersion", ""), known->second.version)) {
      return &item;
    }
  }
  return nullptr;
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
      const std::string key = NameKey(metadata);
      if (!IsOutdated(key, version, metadata.value("uid", ""))) Forget(key);
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
  const json& metadata = object.at("metadata");
  const std::string key = NameKey(metadata);
  const std::string uid = metadata.value("uid", "");
  const std::string version = metadata.value("resourceVersion", "");
  const bool wanted = !handlers_.wanted || handlers_.wanted(object);
  const auto known = known_.find(key);
  if (known != known_.end()) {
    if (!listed && kube::IsOlderVersion(version, known->second.version)) return;
    // Another uid: deleted and made again while nobody watched.
    if (!wanted || known->second.uid != uid) Forget(key);
  }
  if (!wanted) return;
  known_[key] = {uid, version, lists_};
  handlers_.seen(object);
}

void ObjectWatch::Forget(const std::string& key) {
  const auto known = known_.extract(key);
  if (known.empty()) return;
  const std::size_t slash = key.find('/');
  handlers_.gone(key.substr(0, slash), key.substr(slash + 1), known.mapped().uid);
}

}  // namespace tahoma::controller
