#include "controller/plan/other_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "controller/allocate/allocator.h"
#include "lib/base/status.h"
#include "lib/kube/objects/device_class.h"

namespace tahoma::controller {
namespace {

allocate::Features FeaturesOfDecisions() {
  allocate::Features features;
  features.binding_conditions = false;  // no state of a gang's run waits for them
  return features;
}

// Returns the driver whose devices the request needs, and the fewest of them.
std::pair<std::string_view, std::int64_t> NeedOf(const allocate::WantedRequest& request) {
  std::string_view driver;
  for (const allocate::CompiledSelector& one : request.alternatives.front().selectors) {
    if (one.selector.ok() && driver.empty()) driver = one.selector->RequiredDriver();
  }
  const bool same = std::ranges::all_of(request.alternatives, [&](const auto& alternative) {
    return !alternative.spec->admin_access &&
           std::ranges::any_of(alternative.selectors, [&](const auto& one) {
             return one.selector.ok() && one.selector->RequiredDriver() == driver;
           });
  });
  return {same ? driver : std::string_view(), std::max<std::int64_t>(request.least, 1)};
}

allocate::InUse InUseOf(const std::vector<HeldOther>* held) {
  allocate::InUse in_use;
  if (held == nullptr) return in_use;
  for (const HeldOther& one : *held) {
    const allocate::DeviceId id{one.driver, one.pool, one.device};
    if (!one.share) {
      in_use.devices.insert(id);
      continue;
    }
    auto& consumed = in_use.shares[id];
    for (const kube::ConsumedCapacity& part : one.consumed) {
      const auto name = kube::ParseQualifiedName(part.name, one.driver);
      const auto amount = kube::Quantity::Parse(part.quantity);
      if (!amount.ok()) continue;  // says nothing that can be counted
      const auto at =
          std::ranges::find(consumed, name, [](const auto& known) { return known.first; });
      if (at == consumed.end()) {
        consumed.emplace_back(name, *amount);
      } else {
        at->second = at->second + *amount;
      }
    }
  }
  return in_use;
}

}  // namespace

absl::StatusOr<allocate::WantedPtr> CompileOthers(const ClaimSpec& claim,
                                                  std::span<const ClaimRequest* const> requests) {
  allocate::UnallocatedClaim wanted{.name = ToString(claim.key), .uid = claim.uid, .spec = {}};
  wanted.spec.constraints = claim.constraints;
  std::map<std::string, kube::DeviceClass, std::less<>> classes;
  for (const ClaimRequest* request : requests) {
    wanted.spec.requests.push_back(*request);
    for (const DeviceRequest& one : request->alternatives) {
      classes[one.device_class] = {.name = one.device_class,
                                   .selectors = one.class_selectors,
                                   .configs = {},
                                   .extended_resource = {},
                                   .created = {}};
    }
  }
  const auto class_named = [&](std::string_view name) -> const kube::DeviceClass* {
    const auto found = classes.find(name);
    return found == classes.end() ? nullptr : &found->second;
  };
  TAHOMA_ASSIGN_OR_RETURN(allocate::WantedClaim compiled,
                          allocate::Compile(std::move(wanted), class_named, FeaturesOfDecisions()));
  return std::make_shared<const allocate::WantedClaim>(std::move(compiled));
}

std::string LacksOthersFor(std::span<const allocate::WantedPtr> claims, const Node& node,
                           const std::vector<HeldOther>* in_use) {
  std::map<std::string_view, std::int64_t> least;
  for (const allocate::WantedPtr& claim : claims) {
    for (const allocate::WantedRequest& request : claim->requests) {
      const auto [driver, count] = NeedOf(request);
      if (!driver.empty()) least[driver] += count;
    }
  }
  for (const auto& [driver, count] : least) {
    const std::size_t offered = node.others == nullptr ? 0 : node.others->CountOf(driver);
    if (offered == 0) return fmt::format("without devices of {}", driver);
    if (node.others->Shares(driver)) continue;
    auto free = static_cast<std::int64_t>(offered);
    for (std::size_t i = 0; in_use != nullptr && i < in_use->size(); ++i) {
      if ((*in_use)[i].driver == driver) --free;
    }
    if (free < count) return fmt::format("Insufficient devices of {}", driver);
  }
  return "";
}

const std::vector<kube::ResourceSlice>& OtherDevices::SlicesOf(const Node& node) {
  static const std::vector<kube::ResourceSlice> kNone;
  if (node.others == nullptr) return kNone;
  if (const auto found = unpacked_.find(node.others.get()); found != unpacked_.end()) {
    return found->second.slices;
  }
  if (unpacked_.size() >= kUnpackedMost) unpacked_.clear();
  Unpacked& made = unpacked_[node.others.get()];
  made = {.offers = node.others, .slices = node.others->Unpack()};
  return made.slices;
}

std::optional<std::vector<Allocation>> OtherDevices::Fit(
    std::span<const allocate::WantedPtr> claims, std::span<const allocate::Given> given,
    const Node& node, const std::vector<HeldOther>* in_use) {
  if (!LacksOthersFor(claims, node, in_use).empty()) return std::nullopt;
  if (--tries_left_ < 0) {
    gave_up_ = true;
    return std::nullopt;
  }
  std::vector<const kube::ResourceSlice*> slices;
  for (const kube::ResourceSlice& slice : SlicesOf(node)) slices.push_back(&slice);
  const allocate::Allocator allocator({claims.begin(), claims.end()}, FeaturesOfDecisions());
  auto found = allocator.AllocateBeside(given, {.name = node.name, .labels = node.labels}, slices,
                                        InUseOf(in_use));
  // A selector that fails, or a pool that is not whole, concerns this node.
  if (!found.ok()) {
    gave_up_ = gave_up_ || absl::IsResourceExhausted(found.status());
    return std::nullopt;
  }
  return *std::move(found);
}

}  // namespace tahoma::controller
