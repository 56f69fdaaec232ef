// One emulated instance: its chips, their faults, and the claims on their cores.
//
//   absl::StatusOr<Instance> node = Instance::Create({.type = type, .name = "node-0"}, tokens);
//   absl::StatusOr<std::string> token = node->ApplyClaim({.claim_uid = uid, .chips = {0, 1}});
//   node->FindClaim(*token);                  // what its bearer may see
//   node->BreakChip(3, ChipFault::kHbmUncorrectable);
//   node->SetLinkLoss(5, port, 10'000);       // 1 % of its packets
//
// Every change that the node's plugin must publish raises the generation; a refused operation
// changes nothing.
//
// Scope: state and rules. Sockets are sim-node/serve, the traffic on links is emulator/link. A link
// is broken at both ends when both chips are here; the far end of a Z link belongs to its own node.
//
// Thread safety: none; the owner locks.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/hw/catalogue.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/link/port.h"
#include "sim-node/emulator/link/torus_links.h"
#include "sim-node/node/election.h"

namespace tahoma::sim {

// Claims are held per physical core at the finest, so more can never be disjoint.
inline constexpr std::size_t kMaxHeldClaims = 128;

// The error classes for which AWS replaces an instance (aws-neuron-sdk
// src/k8/neuron-problem-detector: four permanent rules on NEURON_HW_ERR=<class>); their chips go on
// passing on what others send. A dead chip does nothing at all: its links carry nothing.
enum class ChipFault : std::uint8_t {
  kSramUncorrectable,
  kNcUncorrectable,
  kHbmUncorrectable,
  kDma,
  kDead,
};
// "sram-uncorrectable", "nc-uncorrectable", "hbm-uncorrectable", "dma", "dead": values of a device
// taint.
std::string_view FaultName(ChipFault fault);
absl::StatusOr<ChipFault> ParseFault(std::string_view text);
// "SRAM_UNCORRECTABLE_ERROR" and so on, as in the driver's kernel log; empty for a dead chip, which
// reports nothing.
std::string_view FaultClass(ChipFault fault);

struct UltraServerPlace {
  std::string id{};
  int node_id = 0;  // 0 to 3: coordinate z
};

struct ChipState {
  std::optional<ChipFault> fault{};
  // The rate of each port's link, in thousandths: 1000 is healthy, 0 down. A port without a link
  // stays 1000.
  std::array<std::uint16_t, kPorts> link_permille = {1000, 1000, 1000, 1000, 1000, 1000};
  std::array<std::uint32_t, kPorts> link_loss_ppm{};
  std::array<Flapping, kPorts> link_flapping{};
  bool efa_up = true;
  friend bool operator==(const ChipState&, const ChipState&) = default;
};

// Some logical cores of one chip, under the claim's LNC.
struct CoresOfChip {
  int chip = 0;
  std::vector<int> cores{};
};

struct HeldClaim {
  std::string claim_uid{};
  std::string name_space{};
  std::string name{};
  int lnc = 2;
  std::vector<int> chips{};          // held whole
  std::vector<CoresOfChip> cores{};  // held in part
  int ultra_server_mode = 0;         // 1, 2 or 4 when the claim asked for it

  // The chips it touches, ascending, each once.
  std::vector<int> TouchedChips() const;
};

// Every call gives 128 bits that nobody can guess.
using TokenSource = std::function<std::array<std::uint64_t, 2>()>;

class Instance {
 public:
  struct Options {
    const hw::InstanceType* type = nullptr;
    std::string name{};
    std::optional<UltraServerPlace> ultra_server{};
    std::vector<std::string> network_layers{};
    std::string capacity_block_id{};
  };

  // kInvalidArgument: no type, a place in an UltraServer for a type that forms none, a node id
  // outside 0 to 3, other than zero or three network layers.
  static absl::StatusOr<Instance> Create(Options options, TokenSource tokens);

  // The token that opens the claim's devices; the same one again when the claim is already held
  // with the same content. `token` is set when the plugin tells a new sim-node of a claim whose
  // containers have that token already. kAlreadyExists: another claim holds a core of it, or shares
  // a chip under another LNC, or the same claim holds something else. kFailedPrecondition: a chip
  // of it is broken, or the UltraServer mode that it asks for is not possible now: an election
  // runs, none was elected for so many nodes, or cores are in use in another mode (a claim with a
  // token keeps what it had). kInvalidArgument: no such chip or core, nothing asked for, a token
  // that is not 32 lower-case hex digits or another claim's.
  absl::StatusOr<std::string> ApplyClaim(HeldClaim claim, std::string token = {});
  // Releasing an unknown claim changes nothing.
  void ReleaseClaim(std::string_view claim_uid);
  // kPermissionDenied unless `token` belongs to a claim that is held now.
  absl::StatusOr<const HeldClaim*> FindClaim(std::string_view token) const;
  std::vector<const HeldClaim*> claims() const;  // by claim uid

  // kInvalidArgument when there is no such chip. Breaking a broken chip replaces the reason.
  absl::Status BreakChip(int chip, ChipFault fault);
  absl::Status RepairChip(int chip);
  // Sets the rate of both directions of the cable, as far as its ends are chips of this instance.
  // kInvalidArgument: no such chip, no link at that port, a value out of its range
  // (sim-node/emulator/link/torus_links.h).
  absl::Status SetLink(int chip, Port port, std::uint16_t permille);
  absl::Status SetLinkLoss(int chip, Port port, std::uint32_t loss_ppm);
  // Flapping{} ends it.
  absl::Status SetLinkFlapping(int chip, Port port, const Flapping& flapping);
  // Undoes all of these.
  absl::Status RepairLink(int chip, Port port);
  // Sets the chip's EFA NIC up or down. kInvalidArgument when there is no such chip.
  absl::Status SetEfa(int chip, bool up);

  // Sets the state of the UltraServer election; absent until one is started. The generation stays
  // when only the reason differs, which no plugin publishes.
  void SetElection(ElectionResult result);
  const std::optional<ElectionResult>& election() const { return election_; }

  const Options& options() const { return options_; }
  const hw::InstanceType& type() const { return *options_.type; }
  int chip_count() const { return static_cast<int>(chips_.size()); }
  const ChipState& chip(int index) const { return chips_[static_cast<std::size_t>(index)]; }
  // LNC of the claims on a chip, 0 while nobody holds any of it.
  int lnc(int chip) const;
  // Whether a cable is plugged into that port at all.
  bool HasLink(Port port) const;
  // The rate of a link, in thousandths: 0 when the chip at either end is dead, as far as it belongs
  // to this instance.
  std::uint16_t LinkPermille(int chip, Port port) const;
  // Whether work may rely on it: neither down nor flapping.
  bool IsLinkDependable(int chip, Port port) const;
  std::uint64_t generation() const { return generation_; }

 private:
  using CoreMask = std::uint8_t;  // physical cores of one chip

  struct Held {
    HeldClaim claim;
    std::string token;
    std::vector<CoreMask> masks;  // by chip
  };

  Instance(Options options, TokenSource tokens);

  absl::Status CheckChip(int chip) const;
  // The chip at the other end, if it is one of this instance.
  std::optional<int> Behind(int chip, Port port) const;
  // Calls change(chip, port) for both ends of the cable.
  absl::Status ChangeLink(int chip, Port port,
                          const std::function<void(ChipState&, std::size_t port)>& change);
  absl::Status CheckToken(const std::string& token) const;
  absl::StatusOr<std::vector<CoreMask>> MasksOf(const HeldClaim& claim) const;
  absl::Status CheckMode(const HeldClaim& claim) const;
  absl::Status CheckFree(const HeldClaim& claim, const std::vector<CoreMask>& masks) const;

  Options options_;
  TokenSource tokens_;
  std::vector<ChipState> chips_;
  absl::flat_hash_map<std::string, Held> held_;             // by claim uid
  absl::flat_hash_map<std::string, std::string> by_token_;  // token -> claim uid
  std::optional<ElectionResult> election_;
  std::uint64_t generation_ = 1;
};

}  // namespace tahoma::sim
