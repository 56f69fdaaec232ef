// Devices of other drivers than AWS's, in claims of a pod that is tried on a node.
//
// Chips are chosen first, by member_fit.h; the other devices are chosen beside them, as Kubernetes'
// allocator does (controller/allocate). Devices whose driver wants to be asked before a pod is
// bound (bindingConditions) are not given.
//
// Thread safety: one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controller/allocate/wanted.h"
#include "controller/model/claim.h"
#include "controller/model/inventory.h"
#include "controller/model/node_offers.h"

namespace tahoma::controller {

// Compiles the requests of a claim that are for other drivers' devices, with the claim's
// constraints. Errors: those of allocate::Compile.
absl::StatusOr<allocate::WantedPtr> CompileOthers(const ClaimSpec& claim,
                                                  std::span<const ClaimRequest* const> requests);

// Returns why the node has too few devices for the claims, whichever they are and whoever holds
// chips: "without devices of dra.net", "Insufficient devices of dra.net"; "" where there may be
// enough. `in_use`: nullptr when nothing is.
std::string LacksOthersFor(std::span<const allocate::WantedPtr> claims, const Node& node,
                           const std::vector<HeldOther>* in_use);

class OtherDevices {
 public:
  // How many times an allocator is asked for one gang: some 20 µs each.
  static constexpr int kTriesPerDecision = 4000;

  void StartDecision() {
    unpacked_.clear();
    tries_left_ = kTriesPerDecision;
    gave_up_ = false;
  }
  // Returns whether, since StartDecision, the tries have ended before an answer was known.
  bool gave_up() const { return gave_up_; }

  // Returns an allocation for each claim, of other drivers' devices alone; nullopt where the node
  // has none. `given`: the chips of each claim, in the same order.
  std::optional<std::vector<Allocation>> Fit(std::span<const allocate::WantedPtr> claims,
                                             std::span<const allocate::Given> given,
                                             const Node& node,
                                             const std::vector<HeldOther>* in_use);

 private:
  struct Unpacked {
    std::shared_ptr<const NodeOffers> offers;  // kept alive: the pointer is the key
    std::vector<kube::ResourceSlice> slices;
  };
  static constexpr std::size_t kUnpackedMost = 1024;

  const std::vector<kube::ResourceSlice>& SlicesOf(const Node& node);

  absl::flat_hash_map<const NodeOffers*, Unpacked> unpacked_;
  int tries_left_ = kTriesPerDecision;
  bool gave_up_ = false;
};

}  // namespace tahoma::controller
