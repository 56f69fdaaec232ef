#include "controller/plan/request.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "controller/model/gang_rules.h"
#include "controller/plan/other_devices.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/driver/device_config.h"

namespace tahoma::controller {
namespace {

// Bounds of the caches between calls; a cache at its bound is emptied.
constexpr std::size_t kSelectorsMax = 8192;
constexpr std::size_t kGangsMax = 1 << 17;

bool NamesRequest(const std::vector<std::string>& names, const std::string& request,
                  const std::string& result) {
  if (names.empty()) return true;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name == request || name == result; });
}

absl::Status CompileShape(const GangSpec& spec, CompiledGang& gang) {
  const GangRequest request{.members = static_cast<std::int64_t>(spec.members.size()),
                            .shape = spec.shape_text,
                            .chips = spec.chips,
                            .slices = spec.slices};
  const std::vector<GangFault> faults = FaultsOf(request);
  if (!faults.empty()) return InvalidArgument("{}", Describe(faults));
  GangBoxes boxes = BoxesOf(request);
  gang.shapes = std::move(boxes.shapes);
  gang.shape_given = !spec.shape_text.empty();
  gang.boxes_per_slice = boxes.per_slice;
  gang.boxes = spec.slices * boxes.per_slice;
  return absl::OkStatus();
}

// Separates the parts of a text: no name or value contains it.
constexpr char kMark = '\x1f';

std::string ClaimText(const ClaimSpec& claim) {
  std::string text = "{";
  for (const ClaimRequest& request : claim.requests) {
    for (const DeviceRequest& r : request.alternatives) {
      text += fmt::format("{}/{}:{}:{}:{}:{}:[{}][{}]", request.name, r.name, r.device_class,
                          static_cast<int>(r.mode), r.count, r.admin_access,
                          fmt::join(r.class_selectors, "\x1f"), fmt::join(r.selectors, "\x1f"));
      for (const Toleration& t : r.tolerations) text += TextOf(t);
      for (const kube::CapacityRequest& one : r.capacities) {
        text += fmt::format("{}={},", one.name, one.amount.ToString());
      }
    }
  }
  for (const Constraint& c : claim.constraints) {
    text += fmt::format("{}{}[{}]", c.distinct, c.attribute, fmt::join(c.requests, ","));
  }
  for (const DeviceConfig& c : claim.configs) {
    text += fmt::format("{}{}[{}]", c.driver, c.parameters, fmt::join(c.requests, ","));
  }
  return text + "}";
}

// Returns a member's request as text, without the names of its pod and claims.
std::string NeedsText(const kube::PodNeeds& needs) {
  std::string text;
  for (const auto& [resource, amount] : needs.amounts) {
    text += fmt::format("{}={},", resource, amount);
  }
  for (const kube::HostPort& port : needs.ports) {
    text += fmt::format("{}/{}:{},", port.protocol, port.ip, port.port);
  }
  return text + fmt::format("{}", fmt::join(needs.claimed, ","));
}

std::string MemberText(const CompiledMember& member) {
  std::string text = TextOf(member.spec->node) + kMark + member.pinned_node + kMark;
  text += fmt::format("{}", fmt::join(member.beside, ","));
  if (member.spec->needs != nullptr) text += kMark + NeedsText(*member.spec->needs);
  for (const CompiledClaim& claim : member.claims) text += ClaimText(*claim.spec);
  return text;
}

// Compiles a claim that members share once, for the first such member; later members are placed
// beside the first.
absl::Status ShareClaims(CompiledGang& gang) {
  absl::flat_hash_map<std::string, std::size_t> owners;
  const std::size_t per_box = gang.shapes.empty() ? gang.members.size() : gang.members_per_box();
  for (std::size_t i = 0; i < gang.members.size(); ++i) {
    CompiledMember& member = gang.members[i];
    for (const ClaimSpec& claim : member.spec->claims) {
      if (claim.allocated_node && claim.allocated_node->empty()) continue;
      const auto [at, added] = owners.emplace(claim.uid, i);
      const std::size_t owner = at->second;
      if (added || owner == i) continue;
      if (owner / per_box != i / per_box) {
        return InvalidArgument("pods {} and {} share claim {}, but are in different boxes",
                               ToString(gang.members[owner].spec->pod), ToString(member.spec->pod),
                               ToString(claim.key));
      }
      if (!claim.allocated_node) member.beside.push_back(owner);
      std::erase_if(member.claims, [&](const auto& one) { return one.spec->uid == claim.uid; });
      std::erase(member.kept, claim.uid);
    }
  }
  return absl::OkStatus();
}

// Returns the fewest devices that the claim may get; All takes at least one.
std::int64_t FewestDevices(const ClaimSpec& claim) {
  std::int64_t sum = 0;
  for (const ClaimRequest& request : claim.requests) {
    std::int64_t fewest = allocate::kResultsMost;
    for (const DeviceRequest& one : request.alternatives) {
      fewest = std::min(fewest, one.mode == AllocationMode::kAll ? 1 : one.count);
    }
    sum += fewest;
  }
  return sum;
}

SelectorSet::Pin PinOf(const kube::RequiredAttribute& required) {
  SelectorSet::Pin pin{.attribute = {required.domain, required.id}, .values = {}};
  for (const kube::CelValue& value : required.values) {
    if (const auto* text = value.As<std::string>()) pin.values.emplace_back(*text);
    if (const auto* number = value.As<std::int64_t>()) pin.values.emplace_back(*number);
    if (const auto* flag = value.As<bool>()) pin.values.emplace_back(*flag);
  }
  TAHOMA_CHECK(pin.values.size() == required.values.size());  // else the pin would exclude too much
  return pin;
}

bool IsPlainNeuron(const DeviceConfig& config) { return config.driver == kNeuronDriver; }

}  // namespace

bool SelectorSet::MayRead(std::string_view id) const {
  return std::any_of(selectors.begin(), selectors.end(),
                     [id](const auto& selector) { return selector->MayRead(id); });
}

bool CompiledConstraint::Covers(const std::string& request, const std::string& result) const {
  return NamesRequest(spec->requests, request, result);
}

std::string CompiledGang::Describe() const {
  if (shapes.empty()) {
    return members.size() == 1
               ? "the devices of its claims"
               : fmt::format("the devices of the claims of {} pods", members.size());
  }
  const std::string one =
      shape_given ? shapes.front().ToString() : fmt::format("a box of {}", chips_per_box());
  const std::string chips = fmt::format(" = {} chips of one topology domain", chips_per_box());
  if (boxes == 1) return one + chips;
  return fmt::format("{} times {}{}", boxes, one, chips);
}

absl::StatusOr<std::shared_ptr<const kube::DeviceSelector>> Compiler::Selector(
    const std::string& source) {
  if (const auto found = selectors_.find(source); found != selectors_.end()) return found->second;
  if (selectors_.size() >= kSelectorsMax) selectors_.clear();
  auto compiled = kube::DeviceSelector::Compile(source);
  using Shared = absl::StatusOr<std::shared_ptr<const kube::DeviceSelector>>;
  const Shared shared =
      compiled.ok() ? Shared(std::make_shared<const kube::DeviceSelector>(*std::move(compiled)))
                    : Shared(compiled.status());
  selectors_.emplace(source, shared);
  return shared;
}

absl::StatusOr<std::shared_ptr<const SelectorSet>> Compiler::Select(const DeviceRequest& spec) {
  std::string key;
  for (const auto* sources : {&spec.class_selectors, &spec.selectors}) {
    for (const std::string& source : *sources) key += source + '\0';
  }
  if (const auto found = sets_.find(key); found != sets_.end()) return found->second;
  if (sets_.size() >= kSelectorsMax) sets_.clear();
  SelectorSet set;
  for (const auto* sources : {&spec.class_selectors, &spec.selectors}) {
    for (const std::string& source : *sources) {
      auto selector = Selector(source);
      if (!selector.ok()) {
        return Annotate(selector.status(),
                        fmt::format("{} selector \"{}\"",
                                    sources == &spec.selectors ? "the CEL" : "its class's CEL",
                                    CutUtf8(source, 200)));
      }
      for (const kube::RequiredAttribute& required : (*selector)->Required()) {
        set.pins.push_back(PinOf(required));
      }
      if (set.driver.empty()) set.driver = (*selector)->RequiredDriver();
      set.selectors.push_back(*std::move(selector));
    }
  }
  auto shared = std::make_shared<const SelectorSet>(std::move(set));
  sets_.emplace(std::move(key), shared);
  return shared;
}

absl::StatusOr<CompiledAlternative> Compiler::CompileAlternative(const ClaimSpec& claim,
                                                                 const ClaimRequest& request,
                                                                 const DeviceRequest& spec) {
  CompiledAlternative made;
  made.spec = &spec;
  made.name = spec.name.empty() ? request.name : request.name + "/" + spec.name;
  if (!spec.class_found) return NotFound("DeviceClass \"{}\" does not exist", spec.device_class);
  if (!spec.capacities.empty()) {
    return InvalidArgument(
        "it asks for capacity, but Neuron devices are not divisible by capacity");
  }
  if (spec.mode == AllocationMode::kExactCount &&
      (spec.count < 1 || spec.count > allocate::kResultsMost)) {
    return InvalidArgument("it asks for {} devices; a claim can have 1 to {}", spec.count,
                           allocate::kResultsMost);
  }
  TAHOMA_ASSIGN_OR_RETURN(made.selectors, Select(spec));
  for (const DeviceConfig& config : claim.configs) {
    if (!IsPlainNeuron(config) || !NamesRequest(config.requests, request.name, made.name)) continue;
    const auto parsed = hw::ParseDeviceConfig(config.parameters);
    if (!parsed.ok()) return Annotate(parsed.status(), "its configuration");
    if (const auto* lnc = std::get_if<hw::NeuronConfig>(&*parsed)) {
      made.lnc = lnc->logical_neuron_core;
    } else {
      made.nodes = std::get<hw::UltraServerConfig>(*parsed).ultraserver_mode;
    }
  }
  return made;
}

// Returns whether the request is for devices of another driver than AWS's: a selector of each
// alternative says so.
absl::StatusOr<bool> Compiler::IsForOthers(const ClaimRequest& request) {
  std::size_t others = 0;
  for (const DeviceRequest& alternative : request.alternatives) {
    if (!alternative.class_found) continue;
    TAHOMA_ASSIGN_OR_RETURN(const auto selectors, Select(alternative));
    if (!selectors->driver.empty() && selectors->driver != kNeuronDriver) ++others;
  }
  if (others == 0) return false;
  if (others == request.alternatives.size()) return true;
  return InvalidArgument("its alternatives are of {} and of other drivers: Tahoma places one kind",
                         kNeuronDriver);
}

absl::StatusOr<CompiledRequest> Compiler::CompileRequest(const ClaimSpec& claim,
                                                         const ClaimRequest& request) {
  CompiledRequest compiled;
  compiled.name = request.name;
  for (const DeviceRequest& alternative : request.alternatives) {
    TAHOMA_ASSIGN_OR_RETURN(CompiledAlternative one,
                            CompileAlternative(claim, request, alternative));
    compiled.alternatives.push_back(std::move(one));
  }
  if (compiled.alternatives.empty()) return InvalidArgument("it asks for nothing");
  return compiled;
}

absl::StatusOr<CompiledClaim> Compiler::CompileClaim(const ClaimSpec& spec) {
  CompiledClaim made;
  made.spec = &spec;
  std::vector<const ClaimRequest*> others;
  for (const ClaimRequest& request : spec.requests) {
    const auto where = [&] {
      return fmt::format("claim {}, request \"{}\"", ToString(spec.key), request.name);
    };
    const absl::StatusOr<bool> is_other = IsForOthers(request);
    if (!is_other.ok()) return Annotate(is_other.status(), where());
    if (*is_other) {
      others.push_back(&request);
      continue;
    }
    auto compiled = CompileRequest(spec, request);
    if (!compiled.ok()) return Annotate(compiled.status(), where());
    made.requests.push_back(*std::move(compiled));
  }
  if (const std::int64_t fewest = FewestDevices(spec); fewest > allocate::kResultsMost) {
    return InvalidArgument("claim {} asks for {} devices; a claim can have 1 to {}",
                           ToString(spec.key), fewest, allocate::kResultsMost);
  }
  for (const Constraint& constraint : spec.constraints) {
    if (constraint.attribute.find('/') == std::string::npos) {
      return InvalidArgument("claim {}: constraint attribute \"{}\" has no domain",
                             ToString(spec.key), constraint.attribute);
    }
    made.constraints.push_back({.attribute = ParseQualifiedName(constraint.attribute, ""),
                                .distinct = constraint.distinct,
                                .spec = &constraint});
  }
  if (others.empty()) return made;
  TAHOMA_ASSIGN_OR_RETURN(made.others, CompileOthers(spec, others));
  return made;
}

absl::Status Compiler::CompileMember(const MemberSpec& spec, CompiledGang& gang) {
  CompiledMember made;
  made.spec = &spec;
  absl::flat_hash_set<std::string_view> seen;
  for (const ClaimSpec& claim : spec.claims) {
    if (!seen.insert(claim.uid).second) continue;  // two entries of the pod, one claim
    if (!claim.allocated_node) {
      TAHOMA_ASSIGN_OR_RETURN(CompiledClaim compiled, CompileClaim(claim));
      made.claims.push_back(std::move(compiled));
      continue;
    }
    if (claim.allocated_node->empty()) continue;
    if (!made.pinned_node.empty() && made.pinned_node != *claim.allocated_node) {
      return InvalidArgument("claims of pod {} are allocated on different nodes, {} and {}",
                             ToString(spec.pod), made.pinned_node, *claim.allocated_node);
    }
    made.pinned_node = *claim.allocated_node;
    made.kept.push_back(claim.uid);
  }
  for (const CompiledClaim& claim : made.claims) {
    for (const CompiledRequest& request : claim.requests) {
      made.chooses = made.chooses || request.alternatives.size() > 1;
      for (const CompiledAlternative& alternative : request.alternatives) {
        made.nodes = std::max(made.nodes, alternative.nodes);
        made.tolerates = made.tolerates || !alternative.spec->tolerations.empty() ||
                         alternative.spec->admin_access;
      }
    }
  }
  gang.members.push_back(std::move(made));
  return absl::OkStatus();
}

std::shared_ptr<const CompiledGang> Compiler::Compile(std::shared_ptr<const GangSpec> spec) {
  if (const auto found = gangs_.find(spec.get()); found != gangs_.end()) return found->second;
  if (gangs_.size() >= kGangsMax) gangs_.clear();
  auto made = std::make_shared<CompiledGang>();
  made->spec = std::move(spec);
  const GangSpec& gang = *made->spec;
  made->valid = CompileShape(gang, *made);
  for (const MemberSpec& member : gang.members) {
    if (made->valid.ok()) made->valid = CompileMember(member, *made);
  }
  if (made->valid.ok()) made->valid = ShareClaims(*made);
  made->signature = fmt::format("{}|{}|{}|{}|{}|{}|", gang.shape_text, gang.chips.value_or(0),
                                gang.slices, gang.max_runtime ? gang.max_runtime->count() : -1,
                                gang.preemptible ? gang.grace.count() : -1, gang.reservation);
  absl::flat_hash_map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < made->members.size(); ++i) {
    const std::string text = MemberText(made->members[i]);
    const auto [at, added] = first.emplace(text, i);
    made->members[i].alike = at->second;
    made->signature += added ? text + "\n" : fmt::format("={}\n", at->second);
  }
  gangs_.emplace(&gang, made);
  return made;
}

}  // namespace tahoma::controller
