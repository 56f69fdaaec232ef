#include "controller/model/node_offers.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller {
namespace {

using Rest = OfferedSlice::Rest;

// Returns whether no device has details, or consumes counters.
bool IsNothing(const Rest& rest) {
  const kube::DeviceDetails none;
  return rest.shared_counters.empty() &&
         std::ranges::all_of(rest.consumes, [](const auto& sets) { return sets.empty(); }) &&
         std::ranges::all_of(rest.details, [&](const auto& details) { return details == none; });
}

}  // namespace

OfferedSlicePtr SlicePacker::Pack(kube::ResourceSlice slice) {
  auto made = std::make_shared<OfferedSlice>();
  made->count = slice.devices.size();
  made->shares = std::ranges::any_of(
      slice.devices, [](const Device& device) { return device.allow_multiple_allocations; });
  auto packed = inventory_.Pack(slice.devices);
  if (packed) {
    made->packed = *std::move(packed);
  } else {
    made->plain = std::exchange(slice.devices, {});
  }
  Rest rest{.shared_counters = std::exchange(slice.shared_counters, {}),
            .consumes = std::exchange(slice.consumes, {}),
            .details = std::exchange(slice.details, {})};
  slice.devices = {};
  made->head = std::move(slice);
  if (IsNothing(rest)) return made;
  std::erase_if(rests_, [](const auto& known) { return known.expired(); });
  for (const auto& known : rests_) {
    auto alive = known.lock();
    if (alive != nullptr && *alive == rest) made->rest = std::move(alive);
  }
  if (made->rest != nullptr) return made;
  made->rest = std::make_shared<const Rest>(std::move(rest));
  if (rests_.size() == kRestsMost) rests_.erase(rests_.begin());
  rests_.push_back(made->rest);
  return made;
}

std::size_t NodeOffers::CountOf(std::string_view driver) const {
  std::size_t count = 0;
  for (const OfferedSlicePtr& slice : slices_) {
    if (slice->head.driver == driver) count += slice->count;
  }
  return count;
}

bool NodeOffers::Shares(std::string_view driver) const {
  return std::ranges::any_of(slices_, [&](const OfferedSlicePtr& slice) {
    return slice->shares && slice->head.driver == driver;
  });
}

std::vector<kube::ResourceSlice> NodeOffers::Unpack() const {
  std::vector<kube::ResourceSlice> slices;
  for (const OfferedSlicePtr& offered : slices_) {
    kube::ResourceSlice& slice = slices.emplace_back(offered->head);
    slice.devices = offered->plain;
    if (offered->packed.family != nullptr) offered->packed.AppendTo(slice.devices);
    if (offered->rest != nullptr) {
      slice.shared_counters = offered->rest->shared_counters;
      slice.consumes = offered->rest->consumes;
      slice.details = offered->rest->details;
    }
    slice.details.resize(slice.devices.size());
    slice.consumes.resize(slice.devices.size());
  }
  return slices;
}

bool IsSameDevice(const HeldOther& a, const HeldOther& b) {
  return !a.share && !b.share && a.driver == b.driver && a.pool == b.pool && a.device == b.device;
}

std::vector<HeldOther> HeldOthers(const kube::Allocation& allocation) {
  std::vector<HeldOther> held;
  for (std::size_t i = 0; i < allocation.results.size(); ++i) {
    const kube::DeviceResult& result = allocation.results[i];
    if (result.driver == kNeuronDriver || result.admin_access) continue;
    HeldOther& one = held.emplace_back(
        HeldOther{.driver = result.driver, .pool = result.pool, .device = result.device});
    const auto details = std::ranges::find(allocation.details, i, &kube::ResultDetails::result);
    if (details == allocation.details.end()) continue;
    one.share = !details->share_id.empty();
    one.consumed = details->consumed;
  }
  return held;
}

}  // namespace tahoma::controller
