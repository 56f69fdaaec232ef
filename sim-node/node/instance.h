// An emulated instance: its chips, their faults, and the claims on their cores.
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
// Scope: state and rules. sim-node/serve has the sockets, emulator/link the traffic on links. A
// link is broken at both ends when both chips are here; the far end of a Z link belongs to its own
// node.
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

// A claim holds at least one physical core, so more claims cannot be disjoint.
inline constexpr std::size_t kMaxHeldClaims = 128;

// The error classes for which AWS replaces an instance (aws-neuron-sdk
// src/k8/neuron-problem-detector: four permanent rules on NEURON_HW_ERR=<class>). A chip with such
// an error still passes on other chips' data. A dead chip does nothing: its links carry nothing.
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
// The status of AWS's runtime for a program that runs on the chip, with its number: "NRT_TIMEOUT
// (5)" for a dead chip, which does not answer (docs/tasks/faults.md#a-broken-chip).
std::string_view FaultStatus(ChipFault fault);

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

// Some logical cores of a chip, under the claim's LNC.
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
  int ultra_server_mode = 0;         // 1, 2 or 4 when the claim asked for a mode

  // The chips with cores of the claim, ascending, each once.
  std::vector<int> TouchedChips() const;
  // The claim's cores of a touched chip with `all` logical cores, ascending.
  std::vector<int> CoresOn(int chip, int all) const;
};

// Returns 128 bits that nobody can guess, at every call.
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

  // kInvalidArgument: no type, a place in an UltraServer for a type outside UltraServers, a node id
  // outside 0 to 3, other than zero or three network layers.
  static absl::StatusOr<Instance> Create(Options options, TokenSource tokens);

  // Returns the token that opens the claim's devices; for a claim already held with the same
  // content, the same token. The plugin gives `token` when it tells a new sim-node about a claim
  // whose containers already have the token. kAlreadyExists: another claim holds a core of the
  // claim, or shares a chip under another LNC, or the same claim holds something else.
  // kFailedPrecondition: a chip of the claim is broken, or the claim's UltraServer mode is not
  // possible now: an election runs, no mode was elected for so many nodes, or cores are in use in
  // another mode (a claim with a token keeps its mode). kInvalidArgument: no such chip or core, an
  // empty claim, a token other than 32 lower-case hex digits, or the token of another claim.
  absl::StatusOr<std::string> ApplyClaim(HeldClaim claim, std::string token = {});
  // Releasing an unknown claim changes nothing.
  void ReleaseClaim(std::string_view claim_uid);
  // kPermissionDenied unless `token` belongs to a held claim.
  absl::StatusOr<const HeldClaim*> FindClaim(std::string_view token) const;
  std::vector<const HeldClaim*> claims() const;  // by claim uid

  // kInvalidArgument when there is no such chip. Breaking a broken chip replaces the reason.
  absl::Status BreakChip(int chip, ChipFault fault);
  absl::Status RepairChip(int chip);
  // Sets the rate of both directions of the cable, as far as its ends are chips of this instance.
  // kInvalidArgument: no such chip, no link at the port, a value out of its range
  // (sim-node/emulator/link/torus_links.h).
  absl::Status SetLink(int chip, Port port, std::uint16_t permille);
  absl::Status SetLinkLoss(int chip, Port port, std::uint32_t loss_ppm);
  // Flapping{} ends the flapping.
  absl::Status SetLinkFlapping(int chip, Port port, const Flapping& flapping);
  // Undoes all changes above.
  absl::Status RepairLink(int chip, Port port);
  // Sets the chip's EFA NIC up or down. kInvalidArgument when there is no such chip.
  absl::Status SetEfa(int chip, bool up);

  // Sets the state of the UltraServer election; absent until the first election. The generation
  // stays when only the reason differs, because no plugin publishes the reason.
  void SetElection(ElectionResult result);
  const std::optional<ElectionResult>& election() const { return election_; }

  const Options& options() const { return options_; }
  const hw::InstanceType& type() const { return *options_.type; }
  int chip_count() const { return static_cast<int>(chips_.size()); }
  const ChipState& chip(int index) const { return chips_[static_cast<std::size_t>(index)]; }
  // Returns the LNC of the claims on a chip; 0 for a free chip.
  int lnc(int chip) const;
  // Whether a cable is plugged into the port.
  bool HasLink(Port port) const;
  // Returns the rate of a link, in thousandths: 0 when a chip of this instance at either end is
  // dead.
  std::uint16_t LinkPermille(int chip, Port port) const;
  // Whether work may rely on the link: neither down nor flapping.
  bool IsLinkDependable(int chip, Port port) const;
  std::uint64_t generation() const { return generation_; }

 private:
  using CoreMask = std::uint8_t;  // physical cores of a chip

  struct Held {
    HeldClaim claim;
    std::string token;
    std::vector<CoreMask> masks;  // by chip
  };

  Instance(Options options, TokenSource tokens);

  absl::Status CheckChip(int chip) const;
  // Returns the chip at the other end, if the chip is in this instance.
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
