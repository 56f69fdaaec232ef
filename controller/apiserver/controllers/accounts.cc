// The service account "default" of each namespace, as kube-controller-manager makes it: pods that
// name no account have this one.

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"
#include "lib/kube/requests.h"

namespace tahoma::controller::apiserver {
namespace {

const ResourceName kAccountResource = {"", "serviceaccounts"};
constexpr const char* kDefaultAccount = "default";

}  // namespace

void Controllers::QueueForAccounts(const ResourceName& resource, const std::string& key,
                                   const Json* previous, const Json* object, WallTime now) {
  const kube::ObjectKey names = NamesOf(key);
  if (resource == kNamespaceResource && object != nullptr && previous == nullptr) {
    queue_.Add({Task::kAccount, names.name}, now);
  }
  if (resource == kAccountResource && object == nullptr && names.name == kDefaultAccount) {
    queue_.Add({Task::kAccount, names.ns}, now);
  }
}

Outcome Controllers::KeepAccount(const std::string& name_space) {
  const ObjectPtr home = objects_.Get(kNamespaceResource, ObjectKey("", name_space));
  if (home == nullptr || IsBeingDeleted(*home->body) ||
      objects_.Get(kAccountResource, ObjectKey(name_space, kDefaultAccount)) != nullptr) {
    return Outcome::kDone;
  }
  Json account = {{"apiVersion", "v1"},
                  {"kind", "ServiceAccount"},
                  {"metadata", {{"name", kDefaultAccount}, {"namespace", name_space}}}};
  return Send(kube::CreateRequest(Served(kAccountResource), name_space, std::move(account)));
}

}  // namespace tahoma::controller::apiserver
