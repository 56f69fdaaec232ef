#include "controller/core/facts/asked_gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "controller/model/inventory.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// The chips that AWS's DeviceClass selects.
constexpr const char* kChipSelector =
    "device.driver == \"neuron.aws.com\" && device.attributes[\"neuron.aws.com\"].resourceType == "
    "\"neuron_device\"";

int PodsOfBox(const GangRequest& request, const torus::Shape& box) {
  // A pod lies within one node: one layer of the box in the rotation that has the fewest.
  if (!request.shape.empty()) return box.Sorted().extent(torus::Axis::kX);
  return std::max(1, box.chip_count() / kChipsPerNode);
}

MemberSpec MemberOf(const GangKey& gang, int number, int chips) {
  MemberSpec member;
  const std::string name = fmt::format("{}-{}", gang.name, number);
  member.pod = {gang.ns, name};
  member.uid = name;
  ClaimSpec claim;
  claim.key = {gang.ns, name};
  claim.uid = name;
  DeviceRequest chips_wanted;
  chips_wanted.device_class = std::string(kNeuronDriver);
  chips_wanted.class_selectors = {kChipSelector};
  chips_wanted.count = chips;
  claim.requests.push_back({.name = "chips", .alternatives = {std::move(chips_wanted)}});
  member.claims.push_back(std::move(claim));
  return member;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const GangSpec>> GangOfRequest(GangRequest request,
                                                              const GangKey& key,
                                                              const std::string& block) {
  if (request.shape.empty() && !request.chips) {
    return InvalidArgument("shape or chips must say what is wanted");
  }
  const bool counted = request.members > 0;
  // The rules are told of a number of pods that fits every request.
  GangRequest checked = request;
  if (!counted)
    checked.members = request.slices * std::max<std::int64_t>(1, request.chips.value_or(0) / 64);
  if (const auto faults = FaultsOf(checked); !faults.empty()) {
    return InvalidArgument("{}", Describe(faults));
  }
  const GangBoxes boxes = BoxesOf(checked);
  const torus::Shape& box = boxes.shapes.front();
  const std::int64_t count = request.slices * boxes.per_slice;
  if (!counted) request.members = count * PodsOfBox(request, box);
  if (const auto faults = FaultsOf(request); !faults.empty()) {
    return InvalidArgument("{}", Describe(faults));
  }
  const std::int64_t chips = count * box.chip_count();
  if (chips % request.members != 0) {
    return InvalidArgument("members {}: must divide the {} chips", request.members, chips);
  }
  auto gang = std::make_shared<GangSpec>();
  gang->key = key;
  gang->uid = key.name;
  gang->shape_text = request.shape;
  gang->chips = request.chips;
  gang->slices = static_cast<int>(request.slices);
  gang->max_runtime = ParseRuntime(request.max_runtime);
  gang->block = block;
  for (int i = 0; i < request.members; ++i) {
    gang->members.push_back(MemberOf(key, i, static_cast<int>(chips / request.members)));
  }
  return gang;
}

}  // namespace tahoma::controller
