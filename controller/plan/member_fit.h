// Fits one pod on one node: what its containers need, and its claims.
//
// First, each request in turn takes the chips whose loss hurts other gangs least, for every
// combination of attribute values and of alternatives, up to kTriesMax. Where requests compete for
// devices this may fail although the pod fits: then Fit tries every assignment, as kube-scheduler
// does, up to kStepsMax.
//
// Thread safety: one thread.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/plan/chip_choice.h"
#include "controller/plan/decision.h"
#include "controller/plan/eligibility.h"
#include "controller/plan/other_devices.h"
#include "controller/plan/request.h"

namespace tahoma::controller {

// The bit of a chip in the mask of its node's chips.
inline std::uint16_t BitOf(int chip) { return static_cast<std::uint16_t>(1U << chip); }

// The free devices of a node.
struct Room {
  const Node* node = nullptr;
  std::uint16_t chips = 0;  // wholly free, including tainted chips that some request may tolerate
  std::uint16_t unhealthy = 0;  // the tainted ones of `chips`
  std::array<std::uint8_t, kChipsPerNode> busy_cores{};
  std::array<std::uint8_t, kChipsPerNode> lnc{};
  torus::LinkMask down;  // in the node's own 4x4
  // How many nodes of the UltraServer may work with this node for a claim that asks for an
  // UltraServer mode (1, 2 and 4 as bits): the elected sizes or, on a node in use, the sizes of the
  // chosen mode.
  std::uint8_t server_sizes = 0b111;
  bool repaired = false;  // as if the node were ready and its chips were not tainted as unhealthy
  std::shared_ptr<const kube::NodeUse> use;  // what pods need of the node already; nullptr: nothing
  // Devices of other drivers in use; nullptr: none.
  std::shared_ptr<const std::vector<HeldOther>> others;
};

Room RoomOf(const NodeState& state);

// Returns why the node has too little for the pod beside pods with that use (nullptr: no pods):
// "Insufficient cpu"; "" when the node has enough.
std::string LacksFor(const MemberSpec& pod, const Node& node, const kube::NodeUse* use);
// Returns the use of a node with the pod beside the others.
std::shared_ptr<const kube::NodeUse> UseBeside(const MemberSpec& pod,
                                               const std::shared_ptr<const kube::NodeUse>& use);

struct MemberFit {
  std::vector<ClaimPlacement> claims;
  std::vector<allocate::Given> given;  // by claim, of claims that ask for other devices, too
  Room left;
};

class MemberFitter {
 public:
  // How many combinations Fit tries before giving up on a node: far more than usual claims make of
  // 16 values per attribute.
  static constexpr int kTriesMax = 2000;
  // How many devices Fit tries one by one, on one node and for one gang.
  static constexpr int kStepsMax = 5000;
  static constexpr int kStepsPerDecision = 100000;

  MemberFitter(Eligibility& eligibility, const ChipChoice& choice)
      : eligibility_(eligibility), choice_(choice) {}

  // Returns the member's claims on that room, or nullopt. For a repaired room the caller has
  // checked that the node would admit the pod.
  std::optional<MemberFit> Fit(const CompiledMember& member, const Room& room);
  // Starts a gang's own count of steps.
  void StartDecision() {
    steps_left_ = kStepsPerDecision;
    gave_up_ = false;
    others_.StartDecision();
  }
  // Returns whether the room's node has what the pod needs beside devices.
  bool HasEnough(const MemberSpec& pod, const Room& room);
  // Returns whether, since the last call, HasEnough has answered no, or devices of other drivers
  // were missing.
  bool DrainLacked() { return std::exchange(lacked_, false); }
  // Returns whether, since StartDecision, the steps ended before every assignment was tried.
  bool gave_up() const { return gave_up_ || others_.gave_up(); }

  // The claims of several members on one node, by member, and the room that is left.
  struct JointFit {
    std::vector<std::vector<ClaimPlacement>> claims;
    Room left;
  };
  // Fits the members on that room together: with `fill`, so that they take all chips of the room.
  // The caller has checked that the node admits each member. Returns nullopt when no assignment
  // exists or, with gave_up(), none was found within the steps.
  std::optional<JointFit> FitTogether(std::span<const CompiledMember* const> members,
                                      const Room& room, bool fill);

  // The fewest and the most whole chips that a member may take, over its alternatives.
  struct ChipRange {
    int least = 0;
    int most = 0;
  };
  // Returns nullopt when some request has no alternative that selects enough devices of the node.
  std::optional<ChipRange> ChipsOn(const CompiledMember& member, const Node& node);

  // A member's demand on a node on which everything is free.
  struct Demand {
    int chips = 0;                    // whole chips
    int cores = 0;                    // logical cores, of the largest request for cores
    bool lnc1 = false, lnc2 = false;  // selected sizes of logical cores

    friend auto operator<=>(const Demand&, const Demand&) = default;
  };
  // Returns the member's demand on an empty node; nullopt when its requests do not select enough
  // devices there. `error` receives a selector's error.
  std::optional<Demand> DemandOn(const CompiledMember& member, const Node& node,
                                 absl::Status& error);
  // Returns whether the demand may differ between nodes of the node's family.
  bool ReadsOwn(const CompiledMember& member, const Node& node);
  // Returns whether nodes of one family, all of them free, may differ in whether the member fits.
  bool FitReadsOwn(const CompiledMember& member, const Node& node);

 private:
  // A request being fitted: its alternative, and its candidate devices.
  struct Pick {
    const CompiledRequest* request;
    const CompiledAlternative* alternative;
    DeviceKind kind;
    std::size_t selected;                // before taints and constraints
    std::vector<std::uint16_t> devices;  // candidates
    std::vector<std::uint16_t> taken;
  };

  std::optional<MemberFit> FitDevices(const CompiledMember& member, const Room& room);
  bool FitClaims(const CompiledMember& member, std::size_t index, const Room& room,
                 MemberFit& into);
  bool ChooseAlternatives(const CompiledMember& member, std::size_t index, const Room& room,
                          std::vector<Pick>& picks, MemberFit& into);
  bool Constrain(const CompiledMember& member, std::size_t index, const Room& room,
                 std::vector<Pick> picks, std::size_t constraint, MemberFit& into);
  std::optional<Pick> Open(const CompiledRequest& request, const CompiledAlternative& alternative,
                           const Room& room);
  bool TakeAll(const CompiledClaim& claim, std::vector<Pick>& picks, Room& room) const;
  bool Take(Pick& pick, Room& room) const;
  bool TakeChips(Pick& pick, Room& room) const;
  bool TakeNode(Pick& pick, Room& room) const;
  bool TakeCores(Pick& pick, Room& room) const;
  void DropTakenValues(const CompiledClaim& claim, const std::vector<Pick>& picks, Pick& pick,
                       const Room& room) const;
  static void Write(const CompiledClaim& claim, const std::vector<Pick>& picks, const Node& node,
                    MemberFit& into);
  static void AddGiven(const CompiledClaim& claim, const std::vector<Pick>& picks, const Node& node,
                       MemberFit& into);
  // Adds devices of other drivers to the claims, which have their chips. Returns false, and changes
  // nothing, where the node lacks devices.
  bool FitOthers(const CompiledMember& member, MemberFit& fit);

  // Tries every assignment; in member_fit_exact.cc.
  struct Exact;
  std::optional<MemberFit> FitExactly(const CompiledMember& member, const Room& room, bool fill,
                                      bool joint = false);
  std::optional<MemberFit> FitAdmitted(const CompiledMember& member, const Room& room);
  bool Prepare(Exact& exact);
  bool Finish(Exact& exact);
  static bool MayMatch(const Exact& exact, std::size_t claim, const Pick& pick);
  static bool IsBound(const CompiledClaim& claim, const Pick& pick);
  std::uint16_t ChipsLeft(Exact& exact, std::size_t at);
  const std::vector<std::string>& ClassesOf(Exact& exact, std::size_t at);
  static void Describe(const CompiledClaim& claim, const Pick& pick, const Node& node,
                       std::vector<std::string>& of_chips);
  void SortByClass(Exact& exact, std::size_t at, Pick& pick);
  bool LikeAnEarlier(Exact& exact, std::size_t at, const Pick& pick,
                     std::span<const std::size_t> tried, std::size_t next);
  bool NextRequest(Exact& exact, std::size_t at);
  bool NextDevice(Exact& exact, std::size_t at, std::size_t from);
  std::optional<JointFit> FitInOrder(std::span<const CompiledMember* const> members,
                                     const Room& room);

  std::optional<Demand> RequestDemand(const CompiledRequest& request, const Node& node,
                                      absl::Status& error);

  Eligibility& eligibility_;
  const ChipChoice& choice_;
  OtherDevices others_;
  int tries_ = 0;
  int steps_left_ = kStepsPerDecision;
  bool gave_up_ = false;
  bool lacked_ = false;
};

bool IsAll(const DeviceRequest& request);
// Returns whether nobody holds the device's hardware and, for a logical core, whether its size fits
// the size in use on its chip.
bool IsFree(const Room& room, const DeviceRole& role);

}  // namespace tahoma::controller
