#include "controller/access/cluster_access.h"

#include <algorithm>
#include <utility>

#include "lib/base/ascii.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/object.h"

namespace tahoma::controller {

ClusterAccess::Verdict ClusterAccess::Ask(std::string_view token, const std::string& address,
                                          const Attributes& wanted) {
  const auto no_answer = [](const absl::Status& why) {
    return Verdict{.reason = fmt::format(
                       "the cluster cannot be asked who calls and what he may: {}", Message(why))};
  };
  const absl::StatusOr<UserOrNobody> user = UserOf(token, address);
  if (!user.ok()) return no_answer(user.status());
  if (*user == nullptr) return {.answer = Answer::kUnknownToken};
  const absl::StatusOr<bool> allowed = MayDo(**user, wanted);
  if (!allowed.ok()) return no_answer(allowed.status());
  return {.answer = *allowed ? Answer::kAllowed : Answer::kForbidden,
          .identity = (*user)->identity};
}

absl::StatusOr<ClusterAccess::UserOrNobody> ClusterAccess::UserOf(std::string_view token,
                                                                  const std::string& address) {
  const Sha256Digest key = Sha256(token);
  if (auto kept = users_.Find(key, clock_.MonotonicNow())) return *std::move(kept);
  const UserOrNobody known = users_.FindOld(key).value_or(nullptr);
  TAHOMA_ASSIGN_OR_RETURN(const ReviewTurns::Turn turn, known != nullptr
                                                            ? known_.Wait(known->identity->name)
                                                            : strangers_.Wait(address));
  // Another caller with the same token may have had the turn before.
  if (auto kept = users_.Find(key, clock_.MonotonicNow())) return *std::move(kept);
  return ReviewToken(token, key);
}

absl::StatusOr<ClusterAccess::UserOrNobody> ClusterAccess::ReviewToken(std::string_view token,
                                                                       const Sha256Digest& key) {
  TAHOMA_ASSIGN_OR_RETURN(const Json status, Review("authentication.k8s.io", "TokenReview",
                                                    {{"token", std::string(token)}}));
  rest::Identity identity{.name = std::string(kube::StringAt(status, {"user", "username"})),
                          .groups = kube::StringsAt(status, {"user", "groups"})};
  if (!kube::BoolAt(status, {"authenticated"}) || identity.name.empty()) {
    users_.Keep(key, nullptr, clock_.MonotonicNow(), false);
    return nullptr;
  }
  Json subject = {{"user", identity.name}};
  for (const char* name : {"uid", "groups", "extra"}) {
    const Json* value = kube::ValueAt(status, {"user", name});
    if (value != nullptr && !value->is_null()) subject[name] = *value;
  }
  UserOrNobody user = std::make_shared<const User>(
      User{.identity = std::make_shared<const rest::Identity>(std::move(identity)),
           .subject = subject.dump()});
  users_.Keep(key, user, clock_.MonotonicNow(), true);
  return user;
}

absl::StatusOr<bool> ClusterAccess::MayDo(const User& user, const Attributes& wanted) {
  Json spec = ParseJson(user.subject);
  spec["nonResourceAttributes"] = {{"path", wanted.path}, {"verb", wanted.verb}};
  const Sha256Digest key = Sha256(spec.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (const auto kept = allowed_.Find(key, clock_.MonotonicNow())) return *kept;
  TAHOMA_ASSIGN_OR_RETURN(const ReviewTurns::Turn turn, known_.Wait(user.identity->name));
  if (const auto kept = allowed_.Find(key, clock_.MonotonicNow())) return *kept;
  TAHOMA_ASSIGN_OR_RETURN(const Json status,
                          Review("authorization.k8s.io", "SubjectAccessReview", std::move(spec)));
  const bool allowed = kube::BoolAt(status, {"allowed"}) && !kube::BoolAt(status, {"denied"});
  allowed_.Keep(key, allowed, clock_.MonotonicNow(), allowed);
  return allowed;
}

absl::StatusOr<Json> ClusterAccess::Review(const std::string& group, const std::string& kind,
                                           Json spec) {
  std::string plural = kind + "s";
  std::ranges::transform(plural, plural.begin(), AsciiLower);
  const Json review = {{"apiVersion", group + "/v1"}, {"kind", kind}, {"spec", std::move(spec)}};
  const absl::StatusOr<kube::Response> answer =
      api_.Send({.method = "POST",
                 .target = "/apis/" + group + "/v1/" + plural,
                 .headers = {{"Content-Type", "application/json"}},
                 .body = review.dump(-1, ' ', false, Json::error_handler_t::replace)});
  if (const absl::Status status = kube::StatusOf(answer); !status.ok()) {
    return Annotate(status, kind);
  }
  const std::shared_ptr<const Json> said = answer->Json();
  const Json* status = kube::ValueAt(*said, {"status"});
  if (status == nullptr || !status->is_object()) {
    return Unavailable("{}: the answer has no status", kind);
  }
  return *status;
}

template <typename T>
std::optional<T> ClusterAccess::Cache<T>::Find(const Sha256Digest& key, MonotonicTime now) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.until <= now) return std::nullopt;
  return found->second.value;
}

template <typename T>
std::optional<T> ClusterAccess::Cache<T>::FindOld(const Sha256Digest& key) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : std::optional(found->second.value);
}

template <typename T>
void ClusterAccess::Cache<T>::Keep(const Sha256Digest& key, T value, MonotonicTime now,
                                   bool granted) {
  const MutexLock lock(mutex_);
  if (entries_.size() >= kEntriesMost && !entries_.contains(key)) {
    absl::erase_if(entries_, [&](const auto& entry) { return entry.second.until <= now; });
  }
  if (entries_.size() >= kEntriesMost && !entries_.contains(key)) {
    entries_.erase(std::ranges::min_element(entries_, {},
                                            [](const auto& entry) { return entry.second.until; }));
  }
  entries_.insert_or_assign(
      key, Entry{.value = std::move(value), .until = now + (granted ? kGrantedFor : kRefusedFor)});
}

}  // namespace tahoma::controller
