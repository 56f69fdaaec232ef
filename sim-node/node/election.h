// The UltraServer election of one trn2u node, as its driver runs it: which nodes work together.
//
//   Election election({.serial = 0x10, .boot = 1});
//   election.Start(now);                                  // all devices are reset
//   for (const Election::Outgoing& out : election.Take()) Send(out.side, out.notice);
//   election.OnNotice(now, CableSide::kLeft, notice);     // and OnTick, once a second
//   ClassFilesOf(election.result()).node_id_4;            // "busy", then "0"
//
// A node reads its neighbours' registers over its left cable (same rack) and its right cable (other
// rack). Here the registers are one Notice, sent whole, which the neighbour keeps: any order, loss
// or repetition of notices is harmless, the newest counts. Both cables are tried first (four nodes,
// X4), then the right one alone, then the left one alone (the "lame duck" elections, two nodes),
// and then the node stays alone. In each attempt a node reads its neighbours' serial numbers, shows
// them, checks in the neighbours' copies that the cables close a ring, declares itself ready, and
// is done when its neighbours are ready too. The lowest serial is node 0 and names the server; its
// left neighbour is 1, the diagonal 2, its right neighbour 3; in a pair the other node is 1.
//
// An attempt fails when a cable of it is down or leads to the wrong place, when the neighbour is in
// a later attempt, or when its time is over: 600 s from the election's begin, and at least 120 s
// for every further attempt. Each node decides for itself, right before left. So a broken left
// cable leaves two pairs on the right cables; a broken right cable leaves one pair on the other
// right cable, and the two nodes at its ends alone, because their left neighbours are taken.
//
// The rules are the driver's (docs/reference/trainium2.md#ultraserver-election). Where the driver
// leaves something open, or reads with DMA and here messages are sent, the rule is:
// - Elections are numbered. A node joins a neighbour's newer election, if its cores are idle;
//   otherwise it keeps its result, says so, and begins a new election when they are. A node that
//   has just begun and meets a neighbour further on begins the next election, once, so that whoever
//   comes late is taken in.
// - A cable is up when both of its ends are, and a node tells its neighbour of its end. A cable
//   that breaks or is repaired begins an election, at once or when the cores are idle.
// - Nobody can agree for certain over cables that lose everything (two generals): a node that is
//   done and later hears that its partner gave up in the same election gives up that attempt, too.
// - After a failed election ultraserver_mode is "4" as in the driver, because X1 is always there;
//   while the election runs the server ids are zero. Both cables to one node (the driver's
//   left == right) make a pair that has X2H and X2V.
//
// Scope: state and rules. No I/O, no clock: time is virtual and comes in with each call.
//
// Thread safety: none; the owner locks.

#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/driver/ultraserver_mode.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

// The driver's userver_etimeout, and what each further attempt has at least.
inline constexpr VirtualDuration kElectionTimeout = std::chrono::seconds(600);
inline constexpr VirtualDuration kAttemptExtension = std::chrono::seconds(120);
// A node that is not finished shows its notice this often, a finished one more rarely.
inline constexpr VirtualDuration kNoticePeriod = std::chrono::seconds(1);
inline constexpr VirtualDuration kFinishedNoticePeriod = std::chrono::seconds(60);

using hw::UltraServerMode;

enum class ElectionState : std::uint8_t {
  kNotStarted,
  kInProgress,
  kUltraServer,
  kFailed,
  kSingleNode,  // mode X1 was chosen
};
// "not-started", "in-progress", "ultraserver", "failed", "single-node".
std::string_view StateName(ElectionState state);

enum class CableSide : std::uint8_t { kLeft, kRight };
inline constexpr std::array kCableSides = {CableSide::kLeft, CableSide::kRight};
constexpr std::size_t SideIndex(CableSide side) { return static_cast<std::size_t>(side); }
constexpr CableSide OppositeSide(CableSide side) {
  return side == CableSide::kLeft ? CableSide::kRight : CableSide::kLeft;
}
std::string_view SideName(CableSide side);  // "left", "right"

// The attempts, in the order in which they are made.
enum class ElectionAttempt : std::uint8_t { kBoth, kRight, kLeft, kAlone };
enum class ElectionStage : std::uint8_t { kReading, kReady, kDone };

// The state that a node sends its neighbours.
struct Notice {
  std::uint64_t boot = 0;      // of the node's start; grows from one to the next
  std::uint64_t sequence = 0;  // of the notice since then
  std::uint64_t round = 0;     // of the election
  std::uint64_t serial = 0;
  ElectionAttempt attempt = ElectionAttempt::kBoth;
  ElectionStage stage = ElectionStage::kReading;
  std::array<std::uint64_t, 2> heard{};  // serials read over the left and right cable; 0: none
  bool in_use = false;
  bool cable_up = true;  // the sender's end of the cable that this goes along
  friend bool operator==(const Notice&, const Notice&) = default;
};

struct ElectionResult {
  ElectionState state = ElectionState::kNotStarted;
  int node_count = 0;                    // 4 or 2 with an UltraServer
  int node_id = -1;                      // among them
  std::uint64_t server_id = 0;           // serial of node 0
  std::array<bool, 2> cables{};          // left, right: those that join them
  std::vector<UltraServerMode> modes{};  // that may be chosen
  UltraServerMode mode = UltraServerMode::kUnset;
  std::string reason{};  // what is waited for, or why it is no server of four

  // Whether an election runs: nothing is elected, or not yet again.
  bool running() const {
    return state == ElectionState::kNotStarted || state == ElectionState::kInProgress;
  }
  friend bool operator==(const ElectionResult&, const ElectionResult&) = default;
};

// /sys/class/neuron_device/*, without the newline. As it stands: a node that takes part in no
// election.
struct ClassFiles {
  std::string ultraserver_mode{};
  std::string node_id_2 = "-1";
  std::string node_id_4 = "-1";
  std::string server_id_2 = "0000000000000000";
  std::string server_id_4 = "0000000000000000";
  friend bool operator==(const ClassFiles&, const ClassFiles&) = default;
};
ClassFiles ClassFilesOf(const ElectionResult& result);

class Election {
 public:
  struct Options {
    std::uint64_t serial = 1;  // of device 0; not zero, different on every node
    std::uint64_t boot = 1;    // greater than at the node's last start
    VirtualDuration timeout = kElectionTimeout;
  };
  struct Outgoing {
    CableSide side = CableSide::kLeft;
    Notice notice{};
  };

  explicit Election(Options options);

  // All devices have been reset: the first election begins, or an on-going one anew. With cores in
  // use it waits for them, and fails when its time is over.
  void Start(VirtualTime now);
  // An election on demand. kFailedPrecondition before Start and while cores are in use; one that is
  // in progress goes on.
  absl::Status Elect(VirtualTime now);
  // This node's end of a cable; up until told otherwise.
  void OnCable(VirtualTime now, CableSide side, bool up);
  void OnNotice(VirtualTime now, CableSide side, const Notice& notice);
  void OnTick(VirtualTime now);
  // When the last core is released, the mode is unset and an election that waits begins.
  void SetCoresInUse(VirtualTime now, bool in_use);
  // kFailedPrecondition while an election runs, for a mode that the result does not allow, and for
  // another mode than the present one (none is one, too) while cores are in use.
  absl::Status SetMode(UltraServerMode mode);
  // The next Take tells that neighbour everything: it may have missed what was sent.
  void Repeat(CableSide side) { send_[SideIndex(side)] = true; }
  // Drops that neighbour's last notice; it will send a new one, perhaps as another node.
  void Forget(CableSide side) { neighbours_[SideIndex(side)].reset(); }

  // Returns the notices to send now; each neighbour gets the newest only.
  std::vector<Outgoing> Take();

  ElectionResult result() const;

 private:
  bool IsUp(CableSide side) const;  // at both ends, as far as is known
  bool Uses(CableSide side) const;
  bool finished() const { return stage_ == ElectionStage::kDone; }
  // The neighbour's notice when it belongs to this election, or even to this attempt of it.
  const Notice* Present(CableSide side) const;
  const Notice* Matching(CableSide side) const;

  void Begin(VirtualTime now, std::uint64_t round);
  void BeginWhenIdle(VirtualTime now, std::uint64_t round);
  void Follow(VirtualTime now, const Notice& notice);
  void Advance(VirtualTime now);
  bool Step(VirtualTime now);
  std::string WhyFailed(VirtualTime now) const;
  std::string WhyFailed(CableSide side) const;
  std::string Waiting() const;
  void GiveUp(VirtualTime now, const std::string& why, ElectionAttempt next);
  bool ReadSerials();
  bool RingSeen() const;
  bool NeighboursReady() const;
  void SendToAll() { send_ = {true, true}; }
  void TakePlace(ElectionResult& result) const;
  std::vector<UltraServerMode> Modes(const ElectionResult& result) const;

  const Options options_;
  bool started_ = false;
  bool fresh_ = true;  // has heard of no election that may still be its own
  bool in_use_ = false;
  bool wanted_ = false;  // an election, as soon as the cores are idle
  UltraServerMode mode_ = UltraServerMode::kUnset;
  std::array<bool, 2> up_ = {true, true};

  std::uint64_t round_ = 0;
  std::uint64_t newest_round_ = 0;  // of all that were heard of
  ElectionAttempt attempt_ = ElectionAttempt::kBoth;
  ElectionStage stage_ = ElectionStage::kReading;
  std::array<std::uint64_t, 2> heard_{};
  std::uint64_t diagonal_ = 0;  // the left neighbour's right one
  VirtualTime deadline_{};
  std::vector<std::string> failures_;  // of this election's attempts

  std::array<std::optional<Notice>, 2> neighbours_;  // the newest, by side
  std::uint64_t sequence_ = 0;
  VirtualTime next_notice_{};
  std::array<bool, 2> send_{};
};

}  // namespace tahoma::sim
