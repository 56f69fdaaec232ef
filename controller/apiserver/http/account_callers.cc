#include "controller/apiserver/http/account_callers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "controller/access/access_table.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

// An object in deletion counts as long, as for kube-apiserver: its end must be seen everywhere.
constexpr std::chrono::seconds kAfterDeletion{60};

bool HasEnded(const Json& object, WallTime now) {
  const std::string deleted = TextAt(MetadataOf(object), "deletionTimestamp");
  if (deleted.empty()) return false;
  const absl::StatusOr<WallTime> when = ParseTime(deleted);
  return !when.ok() || *when < now - kAfterDeletion;
}

// Returns the reason against a token of this account.
absl::Status CheckAccount(const AccountClaims& claims, const ObjectStore& objects, WallTime now) {
  const ObjectPtr account =
      objects.Get({"", "serviceaccounts"}, ObjectKey(claims.name_space, claims.account.name));
  if (account == nullptr) {
    return Unauthenticated("serviceaccounts \"{}\" not found", claims.account.name);
  }
  if (HasEnded(*account->body, now)) {
    return Unauthenticated("service account {}/{} has been deleted", claims.name_space,
                           claims.account.name);
  }
  const std::string uid = TextAt(MetadataOf(*account->body), "uid");
  if (uid != claims.account.uid) {
    return Unauthenticated("service account UID ({}) does not match claim ({})", uid,
                           claims.account.uid);
  }
  return absl::OkStatus();
}

// Returns the reason against a token that ends with such an object.
absl::Status CheckBound(const ObjectStore& objects, const ResourceName& resource,
                        std::string_view what, std::string_view name_space,
                        const std::optional<ClaimedObject>& bound, WallTime now) {
  if (!bound) return absl::OkStatus();
  const ObjectPtr object = objects.Get(resource, ObjectKey(name_space, bound->name));
  if (object == nullptr || HasEnded(*object->body, now)) {
    return Unauthenticated("service account token has been invalidated");
  }
  const std::string uid = TextAt(MetadataOf(*object->body), "uid");
  if (uid == bound->uid) return absl::OkStatus();
  return Unauthenticated("{} UID ({}) does not match service account {} ref claim ({})", what, uid,
                         what, bound->uid);
}

rest::Identity UserOfClaims(const AccountClaims& claims) {
  rest::Identity user{
      .name = fmt::format("{}{}:{}", kAccountPrefix, claims.name_space, claims.account.name),
      .groups = {std::string(kAccountsGroup),
                 fmt::format("{}:{}", kAccountsGroup, claims.name_space),
                 std::string(kAuthenticatedGroup)},
      .uid = claims.account.uid};
  const auto add = [&](std::string_view key, std::string value) {
    user.extra.emplace_back(fmt::format("authentication.kubernetes.io/{}", key),
                            std::vector<std::string>{std::move(value)});
  };
  add("credential-id", "JTI=" + claims.id);
  if (claims.node) {
    add("node-name", claims.node->name);
    if (!claims.node->uid.empty()) add("node-uid", claims.node->uid);
  }
  if (claims.pod) {
    add("pod-name", claims.pod->name);
    add("pod-uid", claims.pod->uid);
  }
  return user;
}

// As Go's %q writes a list of texts.
std::string Quoted(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "\"" : " \"") + text + "\"";
  return "[" + all + "]";
}

}  // namespace

std::vector<std::string> OwnAudiences() { return {std::string(kAccountIssuer)}; }

absl::StatusOr<AccountCaller> CallerOf(std::string_view token,
                                       const std::vector<std::string>& audiences,
                                       const AccountTokens& tokens, const ObjectStore& objects,
                                       WallTime now) {
  TAHOMA_ASSIGN_OR_RETURN(const AccountClaims claims, tokens.Read(token));
  AccountCaller caller{.user = {}, .audiences = {}};
  std::ranges::copy_if(claims.audiences, std::back_inserter(caller.audiences),
                       [&](const std::string& audience) {
                         return std::ranges::find(audiences, audience) != audiences.end();
                       });
  if (caller.audiences.empty()) {
    return Unauthenticated("token audiences {} is invalid for the target audiences {}",
                           Quoted(claims.audiences), Quoted(audiences));
  }
  TAHOMA_RETURN_IF_ERROR(CheckTimes(claims, now));
  TAHOMA_RETURN_IF_ERROR(CheckAccount(claims, objects, now));
  TAHOMA_RETURN_IF_ERROR(
      CheckBound(objects, {"", "pods"}, "pod", claims.name_space, claims.pod, now));
  TAHOMA_RETURN_IF_ERROR(
      CheckBound(objects, {"", "secrets"}, "secret", claims.name_space, claims.secret, now));
  if (!claims.pod) {
    TAHOMA_RETURN_IF_ERROR(CheckBound(objects, {"", "nodes"}, "node", "", claims.node, now));
  }
  caller.user = UserOfClaims(claims);
  return caller;
}

}  // namespace tahoma::controller::apiserver
