// The messages between sim-node, dra-plugin and workloads: structs and their JSON.
//
//   absl::StatusOr<Inventory> inventory = DecodeInventory(reply->result);
//   Request request = {.method = std::string(kApplyClaim), .params = EncodeClaimGrant(grant)};
//
// Calls on the node socket (docs/formats/wire.md has every field):
//
//   inventory       {}                             -> Inventory
//   watchInventory  {generation, timeoutMs}        -> Inventory, once its generation differs or the
//                                                     time is over (then with the same generation)
//   applyClaim      ApplyParams                    -> {token}; idempotent, refuses overlap
//   releaseClaim    {claimUid}                     -> {}; idempotent
//   listClaims      {}                             -> {claims: [ClaimGrant…]}
//
// Calls of workloads carry "token" in their parameters; sim-node/serve defines them.
//
// Decoders take untrusted text: kInvalidArgument names the field. Unknown fields are ignored.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/driver/ultraserver_mode.h"

namespace tahoma::wire {

inline constexpr std::string_view kInventory = "inventory";
inline constexpr std::string_view kWatchInventory = "watchInventory";
inline constexpr std::string_view kApplyClaim = "applyClaim";
inline constexpr std::string_view kReleaseClaim = "releaseClaim";
inline constexpr std::string_view kListClaims = "listClaims";

inline constexpr int kMaxChips = 16;            // of one instance (trn2.48xlarge)
inline constexpr int kCoresPerChip = 8;         // physical NeuronCores of a Trainium2
inline constexpr std::size_t kTokenBytes = 32;  // hex digits
inline constexpr std::size_t kMaxClaims = 128;  // of one node: one per physical core

// The result of an UltraServer election, as this node knows it.
struct UltraServerElection {
  bool running = false;                                    // no result yet, or a new result is due
  std::vector<hw::UltraServerMode> modes = {};             // modes open to a choice; X1 always
  hw::UltraServerMode mode = hw::UltraServerMode::kUnset;  // chosen, until all cores are released
  // The node's UltraServer of two nodes, and of four: an id of 16 hex digits and the node's place;
  // empty and -1 without an UltraServer.
  std::string server_id_2 = {};
  int node_id_2 = -1;
  std::string server_id_4 = {};
  int node_id_4 = -1;

  bool operator==(const UltraServerElection&) const = default;
};

// The UltraServer an instance belongs to.
struct UltraServer {
  std::string id;   // "us-…"
  int node_id = 0;  // place in the ring, 0 to 3: coordinate z
  int mode = 4;     // the most instances that work together: 1, 2 or 4; 1 while an election runs
  std::optional<UltraServerElection> election = {};  // absent: the node takes part in none

  bool operator==(const UltraServer&) const = default;
};

struct Chip {
  int index = 0;  // N of neuron-device-N
  bool healthy = true;
  std::string reason = {};  // the reason when unhealthy, a taint value such as "hbm-uncorrectable"
  std::vector<std::string> links_down = {};  // any of x+ x- y+ y- z+ z-
  int lnc = 0;                               // LNC of the chip's claims; 0 without a claim
  std::string bdf = {};                      // PCI address, "0000:cc:00.0"
  bool efa_down = false;                     // its NIC

  bool operator==(const Chip&) const = default;
};

struct Inventory {
  std::uint64_t generation = 0;  // grows with every change; starts anew with sim-node
  std::string node_name = {};
  std::string instance_type = {};
  std::optional<UltraServer> ultra_server = {};
  std::vector<std::string> network_layers = {};  // three "nn-…", top first, or none
  std::string capacity_block_id = {};            // empty without one
  std::string driver_version = {};               // four numbers, "2.26.10.0"
  std::string workload_socket = {};  // where containers connect; empty: where the plugin does
  std::vector<Chip> chips = {};      // by index

  bool operator==(const Inventory&) const = default;
};

// Logical cores of a chip, under the grant's LNC.
struct ChipCores {
  int chip = 0;
  std::vector<int> cores = {};  // ascending; 0-7 under LNC 1, 0-3 under LNC 2

  bool operator==(const ChipCores&) const = default;
};

// The chips and cores of a claim on this node.
struct ClaimGrant {
  std::string claim_uid = {};
  std::string name_space = {};  // of the claim
  std::string name = {};
  int lnc = 2;                        // 1 or 2
  std::vector<int> chips = {};        // held whole, ascending
  std::vector<ChipCores> cores = {};  // held in part, by chip; never a chip named above
  int ultra_server_mode = 0;          // 1, 2 or 4 with an UltraServerConfig, else 0

  bool operator==(const ClaimGrant&) const = default;
};

// The physical cores of each chip: bit c is core c. Logical core k under LNC 2 is cores 2k and
// 2k+1.
using CoreMasks = std::array<std::uint8_t, kMaxChips>;
CoreMasks HeldCores(const ClaimGrant& grant);

// Checks that two grants can be held together. kAlreadyExists names chip and claim when both hold
// the same physical core, or share a chip under different LNCs (a chip has a single LNC at a time).
absl::Status CheckDisjoint(const ClaimGrant& held, const ClaimGrant& wanted);

std::string EncodeInventory(const Inventory& inventory);
absl::StatusOr<Inventory> DecodeInventory(std::string_view json);

std::string EncodeClaimGrant(const ClaimGrant& grant);
absl::StatusOr<ClaimGrant> DecodeClaimGrant(std::string_view json);

// A grant. After a restart of sim-node the plugin applies its claims again, each with the token
// that the claim's containers already have.
struct ApplyParams {
  ClaimGrant grant = {};
  std::string token = {};  // empty: sim-node chooses one

  bool operator==(const ApplyParams&) const = default;
};
std::string EncodeApplyParams(const ApplyParams& params);
absl::StatusOr<ApplyParams> DecodeApplyParams(std::string_view json);

std::string EncodeClaimList(const std::vector<ClaimGrant>& grants);
absl::StatusOr<std::vector<ClaimGrant>> DecodeClaimList(std::string_view json);

std::string EncodeToken(std::string_view token);                 // {"token": …}
absl::StatusOr<std::string> DecodeToken(std::string_view json);  // 32 lower-case hex digits

std::string EncodeClaimUid(std::string_view claim_uid);  // {"claimUid": …}
absl::StatusOr<std::string> DecodeClaimUid(std::string_view json);

struct WatchParams {
  std::uint64_t generation = 0;            // the caller's generation
  std::chrono::milliseconds timeout = {};  // at most one minute
};
std::string EncodeWatchParams(const WatchParams& params);
absl::StatusOr<WatchParams> DecodeWatchParams(std::string_view json);

}  // namespace tahoma::wire
