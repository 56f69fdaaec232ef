// Requests about Capacity Blocks by objects of their own. Their CustomResourceDefinitions say the
// same, in CEL.

#include <fmt/format.h>

#include <string_view>

#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

// What kube-apiserver 1.36 says of an object that breaks a rule in CEL: its value is left out.
Cause BrokenRule(std::string_view message) {
  return {"FieldValueInvalid", fmt::format("Invalid value: {}", message), "spec"};
}

// Adds unless exactly one of the two fields is there.
void CheckEither(const Json& spec, const char* one, const char* other, Causes& causes) {
  if (ValueAt(spec, {one}).is_null() != ValueAt(spec, {other}).is_null()) return;
  causes.push_back(BrokenRule(fmt::format("must have either {} or {}", one, other)));
}

}  // namespace

void CheckExtension(const Json& extension, Causes& causes) {
  const Json& spec = ValueAt(extension, {"spec"});
  CheckEither(spec, "capacityBlockName", "capacityReservationId", causes);
  CheckEither(spec, "capacityBlockExtensionOfferingId", "capacityBlockExtensionDurationHours",
              causes);
}

void CheckSearch(const Json& object, Causes& causes) {
  const Json& spec = ValueAt(object, {"spec"});
  CheckEither(spec, "instanceType", "ultraserverType", causes);
  CheckEither(spec, "instanceCount", "ultraserverCount", causes);
}

void CheckSeries(const Json& series, Causes& causes) {
  const Json& spec = ValueAt(series, {"spec"});
  const bool named = !ValueAt(spec, {"capacityBlockOfferingIds"}).is_null();
  const bool searched = !ValueAt(spec, {"capacityDurationHours"}).is_null() &&
                        !ValueAt(spec, {"occurrences"}).is_null();
  if (named == searched) {
    causes.push_back(
        BrokenRule("must have either capacityBlockOfferingIds, or capacityDurationHours and "
                   "occurrences"));
  }
  if (!named) CheckSearch(series, causes);
}

}  // namespace tahoma::controller::apiserver
