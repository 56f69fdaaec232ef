// Priority classes, with the texts of Kubernetes' pkg/apis/scheduling/validation.

#include <fmt/format.h>

#include <string>

#include "controller/apiserver/schema/priority_classes.h"
#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::string_view kSystemPrefix = "system-";

// Returns why a class with the system's prefix is not the system's; empty when it is.
std::string WhyNotSystem(const Json& object, const std::string& name) {
  const SystemPriorityClass* known = FindSystemPriorityClass(name);
  if (known == nullptr) return fmt::format("{} is not a known system priority class", name);
  if (kube::IntAt(object, {"value"}) != known->value) {
    return fmt::format("value of {} PriorityClass must be {}", name, known->value);
  }
  if (ValueAt(object, {"globalDefault"}) == true) {
    return fmt::format("globalDefault of {} PriorityClass must be false", name);
  }
  return "";
}

}  // namespace

void CheckPriorityClass(const Json& object, Causes& causes) {
  const std::string name = TextAt(object, {"metadata", "name"});
  if (name.starts_with(kSystemPrefix)) {
    const std::string why = WhyNotSystem(object, name);
    if (why.empty()) return;
    causes.push_back(Forbidden("metadata.name",
                               fmt::format("priority class names with '{}' prefix are reserved for "
                                           "system use only. error: {}",
                                           kSystemPrefix, why)));
  } else if (kube::IntAt(object, {"value"}) > kUserPriorityMost) {
    causes.push_back(Forbidden(
        "value",
        fmt::format("maximum allowed value of a user defined priority is {}", kUserPriorityMost)));
  }
}

void CheckPriorityClassUpdate(const Json& before, const Json& after, Causes& causes) {
  if (ValueAt(before, {"value"}) != ValueAt(after, {"value"})) {
    causes.push_back(Forbidden("value", "may not be changed in an update."));
  }
  CheckImmutable("preemptionPolicy", ValueAt(before, {"preemptionPolicy"}),
                 ValueAt(after, {"preemptionPolicy"}), causes);
}

}  // namespace tahoma::controller::apiserver
