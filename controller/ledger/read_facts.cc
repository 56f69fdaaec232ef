#include "controller/ingest/parse.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "controller/ingest/parse_claim.h"
#include "controller/model/gang_rules.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using internal::Member;
using internal::Text;
using json = Json;

// Runs `parse` and makes one Status of whatever the JSON library throws.
template <typename F>
auto Guard(std::string_view kind, const json& object, F&& parse)
    -> absl::StatusOr<decltype(parse())> {
  try {
    return parse();
  } catch (const std::exception& e) {
    const json& name = Member(Member(object, "metadata"), "name");
    return InvalidArgument("{} {}: {}", kind,
                           name.is_string() ? name.get<std::string>() : "without a name", e.what());
  }
}

template <typename KeyType>
KeyType ParseKey(const json& metadata) {
  return {Text(metadata, "namespace"), metadata.at("name").get<std::string>()};
}

WallTime Created(const json& metadata) {
  const auto time = ParseTime(Text(metadata, "creationTimestamp"));
  return time.ok() ? *time : WallTime{};
}

bool IsDeleting(const json& metadata) { return !Member(metadata, "deletionTimestamp").is_null(); }

std::string Annotation(const json& metadata, const char* name) {
  return Text(Member(metadata, "annotations"), name);
}

std::uint32_t Number(const std::string& text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

NodeRequirement ParseRequirement(const json& expression, bool field) {
  NodeRequirement parsed;
  parsed.key = Text(expression, "key");
  parsed.field = field;
  const std::string op = Text(expression, "operator");
  parsed.op = op == "NotIn"          ? NodeOperator::kNotIn
              : op == "Exists"       ? NodeOperator::kExists
              : op == "DoesNotExist" ? NodeOperator::kDoesNotExist
              : op == "Gt"           ? NodeOperator::kGt
              : op == "Lt"           ? NodeOperator::kLt
                                     : NodeOperator::kIn;
  for (const json& value : Member(expression, "values")) parsed.values.push_back(value);
  return parsed;
}

NodeDemand ParseDemand(const json& spec) {
  NodeDemand demand;
  for (const auto& [key, value] : Member(spec, "nodeSelector").items()) {
    demand.all.push_back({.key = key, .op = NodeOperator::kIn, .values = {value}, .field = false});
  }
  const json& affinity = Member(Member(spec, "affinity"), "nodeAffinity");
  const json& required = Member(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  for (const json& term : Member(required, "nodeSelectorTerms")) {
    std::vector<NodeRequirement>& added = demand.any_term.emplace_back();
    for (const json& one : Member(term, "matchExpressions")) {
      added.push_back(ParseRequirement(one, false));
    }
    for (const json& one : Member(term, "matchFields")) {
      added.push_back(ParseRequirement(one, true));
    }
  }
  for (const json& toleration : Member(spec, "tolerations")) {
    demand.tolerations.push_back(internal::ParseToleration(toleration));
  }
  return demand;
}

std::vector<PodClaim> ParsePodClaims(const json& object) {
  const json& statuses = Member(Member(object, "status"), "resourceClaimStatuses");
  std::vector<PodClaim> claims;
  for (const json& entry : Member(Member(object, "spec"), "resourceClaims")) {
    PodClaim& claim = claims.emplace_back();
    claim.entry = Text(entry, "name");
    claim.claim = Text(entry, "resourceClaimName");
    if (!claim.claim.empty()) continue;
    for (const json& status : statuses) {
      if (Text(status, "name") != claim.entry) continue;
      claim.claim = Text(status, "resourceClaimName");
      claim.none = claim.claim.empty();
    }
  }
  return claims;
}

std::string UnschedulableMessage(const json& status) {
  for (const json& condition : Member(status, "conditions")) {
    if (Text(condition, "type") == "PodScheduled" && Text(condition, "status") == "False") {
      return Text(condition, "message");
    }
  }
  return "";
}

PodFact MakePod(const json& object) {
  const json& metadata = object.at("metadata");
  const json& spec = Member(object, "spec");
  const json& status = Member(object, "status");
  PodFact pod;
  pod.key = ParseKey<PodKey>(metadata);
  pod.uid = Text(metadata, "uid");
  pod.resource_version = Text(metadata, "resourceVersion");
  pod.gang = Text(Member(metadata, "labels"), "tahoma.dev/gang");
  pod.node = Text(spec, "nodeName");
  pod.deleting = IsDeleting(metadata);
  const std::string phase = Text(status, "phase");
  pod.succeeded = phase == "Succeeded";
  pod.finished = pod.succeeded || phase == "Failed";
  pod.gated = !Member(spec, "schedulingGates").empty();
  pod.created = Created(metadata);
  if (const json& priority = Member(spec, "priority"); !priority.is_null()) {
    pod.priority = priority.get<std::int32_t>();
  }
  pod.demand = ParseDemand(spec);
  pod.claims = ParsePodClaims(object);
  pod.bound_gang_uid = Annotation(metadata, "tahoma.dev/gang-uid");
  pod.bound_rank = Number(Annotation(metadata, "tahoma.dev/rank"));
  pod.bound_slice = Number(Annotation(metadata, "tahoma.dev/slice"));
  pod.bound_placement = Annotation(metadata, "tahoma.dev/placement");
  pod.unschedulable_message = UnschedulableMessage(status);
  return pod;
}

ClaimFact MakeClaimState(const json& object) {
  const json& metadata = object.at("metadata");
  const json& status = Member(object, "status");
  ClaimFact claim;
  claim.key = ParseKey<ClaimKey>(metadata);
  claim.uid = Text(metadata, "uid");
  claim.resource_version = Text(metadata, "resourceVersion");
  claim.deleting = IsDeleting(metadata);
  for (const json& finalizer : Member(metadata, "finalizers")) {
    if (finalizer == kProtectionFinalizer) {
      claim.protected_by_finalizer = true;
    } else {
      claim.other_finalizers.push_back(finalizer);
    }
  }
  for (const json& held : Member(status, "reservedFor")) {
    claim.reserved_for.push_back(
        {Text(held, "apiGroup"), Text(held, "resource"), Text(held, "name"), Text(held, "uid")});
  }
  if (const json& allocation = Member(status, "allocation"); allocation.is_object()) {
    claim.allocation = std::make_shared<const Allocation>(internal::ParseAllocation(allocation));
  }
  return claim;
}

GangFact MakeGang(const json& object) {
  const json& metadata = object.at("metadata");
  const json& spec = Member(object, "spec");
  GangFact gang;
  gang.key = ParseKey<GangKey>(metadata);
  gang.uid = Text(metadata, "uid");
  gang.resource_version = Text(metadata, "resourceVersion");
  gang.deleting = IsDeleting(metadata);
  gang.created = Created(metadata);
  gang.generation = metadata.value("generation", std::int64_t{0});
  gang.members = spec.value("members", 1);
  gang.shape = Text(spec, "shape");
  if (const json& chips = Member(spec, "chips"); !chips.is_null()) {
    gang.chips = chips.get<std::int64_t>();
  }
  gang.slices = spec.value("slices", 1);
  if (const std::string queue = Text(spec, "queue"); !queue.empty()) gang.queue = queue;
  gang.priority = spec.value("priority", 0);
  if (const std::string runtime = Text(spec, "maxRuntime"); !runtime.empty()) {
    gang.max_runtime = ParseRuntime(runtime);
  }
  gang.spec_error = Describe(FaultsOf({.members = gang.members,
                                       .shape = gang.shape,
                                       .chips = gang.chips,
                                       .slices = gang.slices,
                                       .max_runtime = Text(spec, "maxRuntime")}));
  return gang;
}

std::vector<Attribute> ParseAttributes(const json& attributes, const std::string& driver) {
  std::vector<Attribute> parsed;
  for (const auto& [name, value] : attributes.items()) {
    Attribute added{.name = ParseQualifiedName(name, driver), .value = false};
    if (const json& text = Member(value, "string"); text.is_string()) {
      added.value = text.get<std::string>();
    } else if (const json& number = Member(value, "int"); number.is_number_integer()) {
      added.value = number.get<std::int64_t>();
    } else if (const json& version = Member(value, "version"); version.is_string()) {
      added.value = Version{version.get<std::string>()};
    } else if (const json& flag = Member(value, "bool"); flag.is_boolean()) {
      added.value = flag.get<bool>();
    } else {
      continue;  // a list: selectors that read it find nothing
    }
    parsed.push_back(std::move(added));
  }
  return parsed;
}

Device ParseDevice(const json& object, const std::string& driver) {
  Device device;
  device.name = object.at("name").get<std::string>();
  device.attributes = ParseAttributes(Member(object, "attributes"), driver);
  for (const auto& [name, capacity] : Member(object, "capacity").items()) {
    const json& value = Member(capacity, "value");
    device.capacities.push_back(
        {.name = ParseQualifiedName(name, driver),
         .quantity = value.is_string() ? value.get<std::string>() : value.dump()});
  }
  for (const json& taint : Member(object, "taints")) {
    device.taints.push_back({.key = Text(taint, "key"),
                             .value = Text(taint, "value"),
                             .effect = internal::ParseEffect(Text(taint, "effect"))});
  }
  if (const json& many = Member(object, "allowMultipleAllocations"); many.is_boolean()) {
    device.allow_multiple_allocations = many.get<bool>();
  }
  return device;
}

}  // namespace

bool IsFor(const std::vector<std::string>& scheduler_names, const json& pod) {
  const json& name = Member(Member(pod, "spec"), "schedulerName");
  return name.is_string() &&
         std::find(scheduler_names.begin(), scheduler_names.end(), name) != scheduler_names.end();
}

absl::StatusOr<std::shared_ptr<const PodFact>> ParsePod(const json& object) {
  return Guard("pod", object, [&] { return std::make_shared<const PodFact>(MakePod(object)); });
}

absl::StatusOr<std::shared_ptr<const ClaimFact>> ParseClaimState(const json& object) {
  return Guard("claim", object,
               [&] { return std::make_shared<const ClaimFact>(MakeClaimState(object)); });
}

absl::StatusOr<std::shared_ptr<const ClaimFact>> ParseClaim(const json& object) {
  return Guard("claim", object, [&] {
    ClaimFact claim = MakeClaimState(object);
    try {
      claim.spec =
          std::make_shared<const ClaimSpec>(internal::ParseClaimSpec(Member(object, "spec")));
    } catch (const std::exception& e) {
      claim.spec_error = e.what();
    }
    return std::shared_ptr<const ClaimFact>(std::make_shared<ClaimFact>(std::move(claim)));
  });
}

absl::StatusOr<std::shared_ptr<const GangFact>> ParseGang(const json& object) {
  return Guard("gang", object, [&] { return std::make_shared<const GangFact>(MakeGang(object)); });
}

absl::StatusOr<std::shared_ptr<const ClassFact>> ParseDeviceClass(const json& object) {
  return Guard("device class", object, [&] {
    ClassFact parsed;
    parsed.name = object.at("metadata").at("name").get<std::string>();
    const json& spec = Member(object, "spec");
    parsed.selectors = internal::CelSelectors(Member(spec, "selectors"));
    parsed.configs = internal::Configs(Member(spec, "config"), ConfigSource::kClass);
    return std::shared_ptr<const ClassFact>(std::make_shared<ClassFact>(std::move(parsed)));
  });
}

absl::StatusOr<NodeObject> ParseNode(const json& object) {
  return Guard("node", object, [&] {
    NodeObject node;
    const json& metadata = object.at("metadata");
    const json& spec = Member(object, "spec");
    node.name = metadata.at("name").get<std::string>();
    for (const auto& [key, value] : Member(metadata, "labels").items()) {
      node.labels.emplace_back(key, value.get<std::string>());
    }
    std::sort(node.labels.begin(), node.labels.end());
    for (const json& taint : Member(spec, "taints")) {
      node.taints.push_back({.key = Text(taint, "key"),
                             .value = Text(taint, "value"),
                             .effect = internal::ParseEffect(Text(taint, "effect"))});
    }
    const json& cordoned = Member(spec, "unschedulable");
    node.schedulable = !(cordoned.is_boolean() && cordoned.get<bool>());
    for (const json& condition : Member(Member(object, "status"), "conditions")) {
      if (Text(condition, "type") == "Ready" && Text(condition, "status") != "True") {
        node.ready = false;
      }
    }
    return node;
  });
}

absl::StatusOr<SliceObject> ParseSlice(const json& object) {
  return Guard("slice", object, [&] {
    SliceObject slice;
    slice.name = object.at("metadata").at("name").get<std::string>();
    const json& spec = object.at("spec");
    slice.driver = Text(spec, "driver");
    slice.node = Text(spec, "nodeName");
    const json& pool = Member(spec, "pool");
    slice.pool = Text(pool, "name");
    slice.generation = pool.value("generation", std::int64_t{0});
    slice.slices_in_pool = pool.value("resourceSliceCount", std::int64_t{1});
    for (const json& device : Member(spec, "devices")) {
      slice.devices.push_back(ParseDevice(device, slice.driver));
    }
    return slice;
  });
}

}  // namespace tahoma::controller
