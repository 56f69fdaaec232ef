#include "controller/apiserver/verbs/priority.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

std::int64_t ValueOf(const Object& priority_class) {
  return kube::IntAt(*priority_class.body, {"value"});
}

// Returns the default class: the lowest when a race has made several, null without a class.
ObjectPtr DefaultClass(const ApiContext& context) {
  ObjectPtr lowest;
  for (const ObjectPtr& one : context.objects.List(kPriorityClasses, "").objects) {
    if (ValueAt(*one->body, {"globalDefault"}) != true) continue;
    if (lowest == nullptr || ValueOf(*one) < ValueOf(*lowest)) lowest = one;
  }
  return lowest;
}

absl::Status AdmitPod(const ApiContext& context, const Kind& kind, Json& pod) {
  if (!ValueAt(pod, {"spec"}).is_object()) return absl::OkStatus();  // validation says so
  const std::string name = TextAt(MetadataOf(pod), "name");
  Json& spec = pod["spec"];
  const std::string wanted = TextAt(spec, "priorityClassName");
  const ObjectPtr found = wanted.empty()
                              ? DefaultClass(context)
                              : context.objects.Get(kPriorityClasses, ObjectKey("", wanted));
  if (!wanted.empty() && found == nullptr) {
    return ForbiddenError(kind, name,
                          fmt::format("no PriorityClass with name {} was found", wanted));
  }
  std::int64_t priority = 0;
  std::string policy = "PreemptLowerPriority";
  if (found != nullptr) {
    priority = ValueOf(*found);
    policy = TextAt(*found->body, "preemptionPolicy");
    spec["priorityClassName"] = TextAt(MetadataOf(*found->body), "name");
  }
  const Json& given = ValueAt(spec, {"priority"});
  if (given.is_number_integer() && given != priority) {
    return ForbiddenError(
        kind, name,
        fmt::format("the integer value of priority ({}) must not be provided in pod spec; priority "
                    "admission controller computed {} from the given PriorityClass name",
                    given.dump(), priority));
  }
  spec["priority"] = priority;
  if (policy.empty()) return absl::OkStatus();
  const std::string given_policy = TextAt(spec, "preemptionPolicy");
  if (!given_policy.empty() && given_policy != policy) {
    return ForbiddenError(
        kind, name,
        fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod spec; "
                    "priority admission controller computed {} from the given PriorityClass name",
                    given_policy, policy));
  }
  spec["preemptionPolicy"] = policy;
  return absl::OkStatus();
}

}  // namespace

absl::Status AdmitPriority(const ApiContext& context, const Kind& kind, Json& object) {
  if (!kind.group.empty() || kind.plural != "pods") return absl::OkStatus();
  return AdmitPod(context, kind, object);
}

absl::Status CheckDefaultClass(const ApiContext& context, const Kind& kind, const Json& object) {
  if (kind.group != kPriorityClasses.group || kind.plural != kPriorityClasses.plural ||
      ValueAt(object, {"globalDefault"}) != true) {
    return absl::OkStatus();
  }
  const ObjectPtr other = DefaultClass(context);
  if (other == nullptr) return absl::OkStatus();
  const std::string name = TextAt(MetadataOf(object), "name");
  const std::string other_name = TextAt(MetadataOf(*other->body), "name");
  if (name == other_name) return absl::OkStatus();
  return ForbiddenError(
      kind, name,
      fmt::format("PriorityClass {} is already marked as default. Only one default can exist",
                  other_name));
}

}  // namespace tahoma::controller::apiserver
