// Our own kind. In a real cluster the CustomResourceDefinition says the same, in CEL.

#include "controller/apiserver/validation/parts.h"
#include "controller/model/gang_rules.h"
#include "lib/base/json.h"
#include "lib/kube/field.h"

namespace tahoma::controller::apiserver {

void CheckGang(const Json& gang, Causes& causes) {
  // The schema has refused fields of another type already.
  kube::Reading reading(gang);
  const GangRequest request = ParseGangRequest(reading.root().At("spec"));
  for (const GangFault& fault : FaultsOf(request)) {
    causes.push_back(
        Invalid("spec." + fault.field, ValueAt(gang, {"spec", fault.field}), fault.why));
  }
}

}  // namespace tahoma::controller::apiserver
