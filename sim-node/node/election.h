// The UltraServer election of a trn2u node, as the node's driver runs it: which nodes work
// together.
//
//   Election election({.serial = 0x10, .boot = 1});
//   election.Start(now);                                  // all devices are reset
//   for (const Election::Outgoing& out : election.DrainNotices()) Send(out.side, out.notice);
//   election.OnNotice(now, CableSide::kLeft, notice);     // and OnTick, once a second
//   ClassFilesOf(election.result()).node_id_4;            // "busy", then "0"
//
// A node reads its neighbours' registers over its left cable (same rack) and its right cable (other
// rack). Here the registers are a Notice, sent whole and kept by the neighbour. Any order, loss or
// repetition of notices is harmless: the newest counts. A node tries both cables first (four nodes,
// X4), then the right cable alone, then the left cable alone (the "lame duck" elections, two
// nodes); then the node stays alone. In each attempt a node reads its neighbours' serial numbers,
// shows the numbers, checks in the neighbours' copies that the cables close a ring, declares itself
// ready, and is done when its neighbours are ready too. The lowest serial is node 0 and names the
// server; its left neighbour is 1, the diagonal 2, its right neighbour 3; in a pair the other node
// is 1.
//
// An attempt fails when one of its cables is down or leads to the wrong place, when the neighbour
// is in a later attempt, or at its deadline: 600 s from the election's begin, and at least 120 s
// for every further attempt. Each node decides for itself, right before left. So a broken left
// cable leaves two pairs on the right cables. A broken right cable leaves a pair on the other right
// cable; the two nodes at the broken cable stay alone, because their left neighbours are taken.
//
// The rules are the driver's (docs/reference/trainium2.md#ultraserver-election). Where the driver
// leaves a case open, or reads with DMA while messages are sent here, these rules hold:
// - Elections are numbered. An idle node joins a neighbour's newer election. A node with cores in
//   use keeps its result, says so, and begins a new election once idle. A fresh node that meets a
//   neighbour further on begins the next election, once: so latecomers are taken in.
// - A cable is up when both of its ends are up, and a node tells its neighbour about its end. When
//   a cable breaks or is repaired, an election begins, at once or when the cores are idle.
// - Over cables that lose everything, nodes cannot agree for certain (two generals). A done node
//   that later hears that its partner gave up in the same election gives up the attempt, too.
// - After a failed election ultraserver_mode is "4" as in the driver, because X1 is always
//   possible; during an election the server ids are zero. Both cables to the same node (the
//   driver's left == right) make a pair with X2H and X2V.
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

// The driver's userver_etimeout, and the least time of each further attempt.
inline constexpr VirtualDuration kElectionTimeout = std::chrono::seconds(600);
inline constexpr VirtualDuration kAttemptExtension = std::chrono::seconds(120);
// The period of a node's notices during an election, and after its end.
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

// The attempts in order.
enum class ElectionAttempt : std::uint8_t { kBoth, kRight, kLeft, kAlone };
enum class ElectionStage : std::uint8_t { kReading, kReady, kDone };

// The state that a node sends its neighbours.
struct Notice {
  std::uint64_t boot = 0;      // of the node's start; grows from start to start
  std::uint64_t sequence = 0;  // of the notice since then
  std::uint64_t round = 0;     // of the election
  std::uint64_t serial = 0;
  ElectionAttempt attempt = ElectionAttempt::kBoth;
  ElectionStage stage = ElectionStage::kReading;
  std::array<std::uint64_t, 2> heard{};  // serials read over the left and right cable; 0: none
  bool in_use = false;
  bool cable_up = true;  // the sender's end of the cable of this notice
  friend bool operator==(const Notice&, const Notice&) = default;
};

struct ElectionResult {
  ElectionState state = ElectionState::kNotStarted;
  int node_count = 0;            // 4 or 2 with an UltraServer
  int node_id = -1;              // in the UltraServer
  std::uint64_t server_id = 0;   // serial of node 0
  std::array<bool, 2> cables{};  // left, right: whether the cable joins the UltraServer's nodes
  std::vector<UltraServerMode> modes{};  // the modes open to SetMode
  UltraServerMode mode = UltraServerMode::kUnset;
  std::string reason{};  // the missing event, or the reason against a server of four

  // Whether an election runs: nothing is elected, or not yet again.
  bool running() const {
    return state == ElectionState::kNotStarted || state == ElectionState::kInProgress;
  }
  friend bool operator==(const ElectionResult&, const ElectionResult&) = default;
};

// /sys/class/neuron_device/*, without the newline. The defaults: a node outside every election.
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

  // Begins after a reset of all devices: the first election, or a running election anew. An
  // election with cores in use waits for idle cores, and fails at its deadline.
  void Start(VirtualTime now);
  // Begins an election on demand. kFailedPrecondition before Start and while cores are in use; a
  // running election goes on.
  absl::Status Elect(VirtualTime now);
  // This node's end of a cable; up until told otherwise.
  void OnCable(VirtualTime now, CableSide side, bool up);
  void OnNotice(VirtualTime now, CableSide side, const Notice& notice);
  void OnTick(VirtualTime now);
  // When the last core is released, the mode is unset and a waiting election begins.
  void SetCoresInUse(VirtualTime now, bool in_use);
  // kFailedPrecondition during an election, for a mode outside the result's modes, and while cores
  // are in use for any other mode than the present mode (kUnset included).
  absl::Status SetMode(UltraServerMode mode);
  // Makes the next DrainNotices send this neighbour the whole state: the neighbour may have missed
  // notices.
  void Repeat(CableSide side) { send_[SideIndex(side)] = true; }
  // Drops the neighbour's last notice: the neighbour will send a new notice, perhaps as another
  // node.
  void Forget(CableSide side) { neighbours_[SideIndex(side)].reset(); }

  // Returns the notices to send now; each neighbour gets the newest only.
  std::vector<Outgoing> DrainNotices();

  ElectionResult result() const;

 private:
  bool IsUp(CableSide side) const;  // at both ends, as far as is known
  bool Uses(CableSide side) const;
  bool finished() const { return stage_ == ElectionStage::kDone; }
  // Return the neighbour's notice if of this election, and if of this attempt.
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
  void FillPlace(ElectionResult& result) const;
  std::vector<UltraServerMode> Modes(const ElectionResult& result) const;

  const Options options_;
  bool started_ = false;
  bool fresh_ = true;  // has heard of no election that may still be its own
  bool in_use_ = false;
  bool wanted_ = false;  // an election, as soon as the cores are idle
  UltraServerMode mode_ = UltraServerMode::kUnset;
  std::array<bool, 2> up_ = {true, true};

  std::uint64_t round_ = 0;
  std::uint64_t newest_round_ = 0;  // the newest election that the node has heard of
  ElectionAttempt attempt_ = ElectionAttempt::kBoth;
  ElectionStage stage_ = ElectionStage::kReading;
  std::array<std::uint64_t, 2> heard_{};
  std::uint64_t diagonal_ = 0;  // the left neighbour's right neighbour
  VirtualTime deadline_{};
  std::vector<std::string> failures_;  // of this election's attempts

  std::array<std::optional<Notice>, 2> neighbours_;  // the newest, by side
  std::uint64_t sequence_ = 0;
  VirtualTime next_notice_{};
  std::array<bool, 2> send_{};
};

}  // namespace tahoma::sim
