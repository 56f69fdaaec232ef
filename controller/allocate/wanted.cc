#include "controller/allocate/wanted.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::controller::allocate {
namespace {

void AddSelectors(const std::vector<std::string>& sources, std::string_view where,
                  std::vector<CompiledSelector>& selectors) {
  for (const std::string& source : sources) {
    selectors.push_back(
        {.selector = kube::DeviceSelector::Compile(source), .where = std::string(where)});
  }
}

absl::StatusOr<Alternative> CompileAlternative(const UnallocatedClaim& claim,
                                               const kube::DeviceRequest& spec, std::string name,
                                               ClassLookup classes, const Features& features) {
  if (!spec.capacities.empty() && !features.consumable_capacity) {
    return InvalidArgument("asks for capacity, and consumable capacity is switched off");
  }
  for (const kube::CapacityRequest& one : spec.capacities) {
    if (one.amount.Sign() < 0) return InvalidArgument("asks for less than nothing of {}", one.name);
  }
  if (spec.admin_access && !features.admin_access) {
    return InvalidArgument("asks for admin access, and admin access is switched off");
  }
  if (spec.device_class.empty()) return InvalidArgument("names no device class");
  const kube::DeviceClass* device_class = classes(spec.device_class);
  if (device_class == nullptr) {
    return NotFound("DeviceClass \"{}\" does not exist", spec.device_class);
  }
  if (spec.mode == kube::AllocationMode::kExactCount && spec.count < 1) {
    return InvalidArgument("asks for {} devices; at least 1 is possible", spec.count);
  }
  Alternative made;
  made.spec = &spec;
  made.name = std::move(name);
  made.class_name = device_class->name;
  made.class_configs = device_class->configs;
  AddSelectors(device_class->selectors, fmt::format("DeviceClass \"{}\"", device_class->name),
               made.selectors);
  AddSelectors(spec.selectors, fmt::format("claim {}", claim.name), made.selectors);
  return made;
}

std::int64_t LeastOf(const WantedRequest& request) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Alternative& one : request.alternatives) {
    least = std::min(least, one.spec->mode == kube::AllocationMode::kAll ? 0 : one.spec->count);
  }
  return std::min(least, kResultsMost + 1);
}

}  // namespace

absl::StatusOr<WantedClaim> Compile(UnallocatedClaim claim, ClassLookup classes,
                                    const Features& features) {
  WantedClaim made;
  made.claim = std::move(claim);
  std::int64_t least = 0;
  for (const kube::ClaimRequest& request : made.claim.spec.requests) {
    WantedRequest& added = made.requests.emplace_back();
    added.name = request.name;
    const auto where = [&] {
      return fmt::format("claim {}, request {}", made.claim.name, added.name);
    };
    if (request.first_available && !features.prioritized_list) {
      return InvalidArgument("{} has alternatives, and firstAvailable is switched off", where());
    }
    for (const kube::DeviceRequest& spec : request.alternatives) {
      std::string name =
          request.first_available ? fmt::format("{}/{}", request.name, spec.name) : request.name;
      auto one = CompileAlternative(made.claim, spec, std::move(name), classes, features);
      if (!one.ok()) return Annotate(one.status(), where());
      added.alternatives.push_back(*std::move(one));
    }
    added.least = LeastOf(added);
    least += added.least;
  }
  if (least > kResultsMost) {
    return InvalidArgument("claim {} asks for more than {} devices", made.claim.name, kResultsMost);
  }
  return made;
}

bool Names(const std::vector<std::string>& requests, const WantedRequest& request,
           const Alternative& alternative) {
  return requests.empty() || std::ranges::any_of(requests, [&](const std::string& name) {
           return name == request.name || name == alternative.name;
         });
}

}  // namespace tahoma::controller::allocate
