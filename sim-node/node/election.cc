#include "sim-node/node/election.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::array<std::string_view, 5> kStateNames = {"not-started", "in-progress",
                                                         "ultraserver", "failed", "single-node"};
constexpr std::array<std::string_view, 3> kAttemptNames = {"both cables", "right cable alone",
                                                           "left cable alone"};

ElectionAttempt After(ElectionAttempt attempt) {
  return static_cast<ElectionAttempt>(static_cast<int>(attempt) + 1);
}

bool UsesCable(ElectionAttempt attempt, CableSide side) {
  return attempt == ElectionAttempt::kBoth ||
         attempt == (side == CableSide::kLeft ? ElectionAttempt::kLeft : ElectionAttempt::kRight);
}

// Whether the node has read the serial number of every neighbour in its attempt.
bool HasReadAll(const Notice& notice) {
  return std::all_of(kCableSides.begin(), kCableSides.end(), [&](CableSide side) {
    return !UsesCable(notice.attempt, side) || notice.heard[SideIndex(side)] != 0;
  });
}

bool Contains(const std::vector<UltraServerMode>& modes, UltraServerMode mode) {
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

}  // namespace

std::string_view StateName(ElectionState state) {
  return kStateNames[static_cast<std::size_t>(state)];
}

std::string_view SideName(CableSide side) { return side == CableSide::kLeft ? "left" : "right"; }

ClassFiles ClassFilesOf(const ElectionResult& result) {
  ClassFiles files;
  if (result.running()) {
    files.ultraserver_mode = files.node_id_2 = files.node_id_4 = "busy";
    return files;
  }
  for (const UltraServerMode mode : result.modes) {
    files.ultraserver_mode += files.ultraserver_mode.empty() ? "" : ",";
    files.ultraserver_mode += std::to_string(static_cast<int>(mode));
  }
  if (result.node_count == 4) {
    files.node_id_4 = std::to_string(result.node_id);
    files.server_id_4 = fmt::format("{:016x}", result.server_id);
    // Pairs over the left cables: {0, 1} and {2, 3}. The second pair needs a server id of its own.
    files.node_id_2 = std::to_string(result.node_id % 2);
    files.server_id_2 = fmt::format("{:016x}", result.server_id - (result.node_id >= 2 ? 1 : 0));
  }
  if (result.node_count == 2) {
    files.node_id_2 = std::to_string(result.node_id);
    files.server_id_2 = fmt::format("{:016x}", result.server_id);
  }
  return files;
}

Election::Election(Options options) : options_(options) { TAHOMA_CHECK(options_.serial != 0); }

bool Election::IsUp(CableSide side) const {
  const std::optional<Notice>& known = neighbours_[SideIndex(side)];
  return up_[SideIndex(side)] && (!known || known->cable_up);
}

bool Election::Uses(CableSide side) const { return UsesCable(attempt_, side); }

const Notice* Election::Present(CableSide side) const {
  const std::optional<Notice>& notice = neighbours_[SideIndex(side)];
  return notice && notice->round == round_ ? &*notice : nullptr;
}

const Notice* Election::Matching(CableSide side) const {
  const Notice* notice = Present(side);
  return notice != nullptr && notice->attempt == attempt_ ? notice : nullptr;
}

void Election::Start(VirtualTime now) {
  started_ = true;
  Begin(now, newest_round_ + 1);
}

absl::Status Election::Elect(VirtualTime now) {
  if (!started_) return FailedPrecondition("not all devices have been reset");
  if (in_use_) {
    return FailedPrecondition(
        "cores of this node are in use; an UltraServer election needs all of them idle");
  }
  if (finished()) Begin(now, newest_round_ + 1);
  return absl::OkStatus();
}

void Election::OnCable(VirtualTime now, CableSide side, bool up) {
  if (up_[SideIndex(side)] == up) return;
  up_[SideIndex(side)] = up;
  Repeat(side);
  if (started_) BeginWhenIdle(now, newest_round_ + 1);
}

void Election::OnNotice(VirtualTime now, CableSide side, const Notice& notice) {
  std::optional<Notice>& known = neighbours_[SideIndex(side)];
  const auto age = [](const Notice& n) { return std::tie(n.boot, n.sequence); };
  if (known && age(*known) >= age(notice)) return;
  const bool was_up = IsUp(side);
  known = notice;
  newest_round_ = std::max(newest_round_, notice.round);
  if (!started_) return;
  if (IsUp(side) != was_up) BeginWhenIdle(now, std::max(notice.round, round_ + 1));
  if (!IsUp(side)) return;
  Follow(now, notice);
  const bool behind = notice.stage != ElectionStage::kDone || notice.round < round_;
  if (finished() && behind) Repeat(side);
  Advance(now);
}

// Joins the neighbour's election if the neighbour's round is newer. A fresh node that meets an
// election which is done or goes on without it would be left out, so it begins the next round.
void Election::Follow(VirtualTime now, const Notice& notice) {
  if (notice.round < round_) return;
  const bool missed =
      notice.stage == ElectionStage::kDone || notice.attempt != ElectionAttempt::kBoth;
  if (std::exchange(fresh_, false) && missed) {
    BeginWhenIdle(now, newest_round_ + 1);
  } else if (notice.round > round_) {
    BeginWhenIdle(now, notice.round);
  }
}

void Election::OnTick(VirtualTime now) {
  if (!started_) return;
  if (now >= next_notice_) {
    SendToAll();
    next_notice_ = now + (finished() ? kFinishedNoticePeriod : kNoticePeriod);
  }
  Advance(now);
}

void Election::SetCoresInUse(VirtualTime now, bool in_use) {
  if (in_use_ == in_use) return;
  in_use_ = in_use;
  SendToAll();
  if (!in_use_) {
    mode_ = UltraServerMode::kUnset;
    if (wanted_) return Begin(now, newest_round_ + 1);
  }
  Advance(now);
}

absl::Status Election::SetMode(UltraServerMode mode) {
  const ElectionResult now = result();
  if (!started_ || !finished()) {
    return FailedPrecondition("the UltraServer election is not over: {}", now.reason);
  }
  if (!Contains(now.modes, mode)) {
    return FailedPrecondition("UltraServer mode {} is not possible here; ultraserver_mode is {}{}",
                              ModeName(mode), ClassFilesOf(now).ultraserver_mode,
                              now.reason.empty() ? "" : ": " + now.reason);
  }
  if (in_use_ && mode != mode_) {
    return FailedPrecondition(
        "cores of this node are in use; its UltraServer mode stays {} until all are released",
        ModeName(mode_));
  }
  mode_ = mode;
  return absl::OkStatus();
}

std::vector<Election::Outgoing> Election::DrainNotices() {
  std::vector<Outgoing> all;
  const std::array<bool, 2> send = std::exchange(send_, {});
  if (!started_) return all;
  const Notice notice{.boot = options_.boot,
                      .sequence = ++sequence_,
                      .round = round_,
                      .serial = options_.serial,
                      .attempt = attempt_,
                      .stage = stage_,
                      .heard = heard_,
                      .in_use = in_use_};
  for (const CableSide side : kCableSides) {
    if (!send[SideIndex(side)]) continue;
    all.push_back({.side = side, .notice = notice});
    all.back().notice.cable_up = up_[SideIndex(side)];
  }
  return all;
}

void Election::Begin(VirtualTime now, std::uint64_t round) {
  wanted_ = false;
  mode_ = UltraServerMode::kUnset;
  round_ = round;
  newest_round_ = std::max(newest_round_, round);
  attempt_ = ElectionAttempt::kBoth;
  stage_ = ElectionStage::kReading;
  heard_ = {};
  failures_.clear();
  deadline_ = now + options_.timeout;
  next_notice_ = now + kNoticePeriod;
  SendToAll();
  Advance(now);
}

void Election::BeginWhenIdle(VirtualTime now, std::uint64_t round) {
  if (in_use_) {
    wanted_ = true;
  } else {
    Begin(now, round);
  }
}

void Election::Advance(VirtualTime now) {
  while (started_ && Step(now)) {
  }
}

// True when something has changed.
bool Election::Step(VirtualTime now) {
  if (attempt_ == ElectionAttempt::kAlone) return false;
  if (in_use_ && stage_ == ElectionStage::kReading) {
    // Reading takes the DMA engines of all devices.
    if (now < deadline_) return false;
    wanted_ = true;
    GiveUp(now, "cores of this node are in use", ElectionAttempt::kAlone);
    return true;
  }
  const std::string why = WhyFailed(now);
  if (!why.empty()) {
    if (in_use_ && finished()) {
      wanted_ = true;  // nothing changes under running programs
      return false;
    }
    GiveUp(now, why, After(attempt_));
    return true;
  }
  if (stage_ == ElectionStage::kReading) {
    const bool news = ReadSerials();
    if (!RingSeen()) return news;
    if (attempt_ == ElectionAttempt::kBoth) diagonal_ = Matching(CableSide::kLeft)->heard[1];
    stage_ = ElectionStage::kReady;
  } else if (stage_ == ElectionStage::kReady && NeighboursReady()) {
    stage_ = ElectionStage::kDone;
  } else {
    return false;
  }
  SendToAll();
  return true;
}

// The first reason against the present attempt; empty while there is none.
std::string Election::WhyFailed(VirtualTime now) const {
  for (const CableSide side : kCableSides) {
    if (!Uses(side)) continue;
    if (std::string why = WhyFailed(side); !why.empty()) return why;
  }
  const Notice* left = Matching(CableSide::kLeft);
  const Notice* right = Matching(CableSide::kRight);
  if (attempt_ == ElectionAttempt::kBoth && left != nullptr && right != nullptr &&
      HasReadAll(*left) && HasReadAll(*right) && left->heard[1] != right->heard[0]) {
    return "the cables close no ring of four";
  }
  if (!finished() && now >= deadline_) return "its time is over: " + Waiting();
  return {};
}

std::string Election::WhyFailed(CableSide side) const {
  const std::string_view name = SideName(side);
  if (!IsUp(side)) return fmt::format("the {} cable is down", name);
  const Notice* neighbour = Present(side);
  if (neighbour == nullptr) return {};
  if (neighbour->serial == options_.serial) {
    return fmt::format("the {} neighbour has our own serial number", name);
  }
  if (neighbour->attempt > attempt_) {
    return fmt::format("the {} neighbour has given up this attempt", name);
  }
  if (neighbour->attempt < attempt_) {
    const bool taken = attempt_ == ElectionAttempt::kLeft &&
                       neighbour->attempt == ElectionAttempt::kRight &&
                       neighbour->stage == ElectionStage::kDone;
    return taken ? fmt::format("the {} neighbour works with its other one", name) : "";
  }
  if (HasReadAll(*neighbour) && neighbour->heard[SideIndex(side)] != options_.serial) {
    return fmt::format("the {} cable leads to the other side of node {:016x}", name,
                       neighbour->serial);
  }
  return {};
}

std::string Election::Waiting() const {
  if (in_use_) return "cores of this node are in use";
  std::string list;
  for (const CableSide side : kCableSides) {
    if (!Uses(side)) continue;
    const Notice* match = Matching(side);
    if (match != nullptr && match->stage != ElectionStage::kReading) continue;
    const std::optional<Notice>& known = neighbours_[SideIndex(side)];
    list += fmt::format("{}the {} neighbour ", list.empty() ? "" : ", ", SideName(side));
    if (known && known->in_use) {
      list += "has cores in use";
    } else if (Present(side) == nullptr) {
      list += "does not take part";
    } else {
      list += "is not ready";
    }
  }
  return list;
}

void Election::GiveUp(VirtualTime now, const std::string& why, ElectionAttempt next) {
  failures_.push_back(
      fmt::format("{}: {}", kAttemptNames[static_cast<std::size_t>(attempt_)], why));
  attempt_ = next;
  stage_ = ElectionStage::kReading;
  heard_ = {};
  deadline_ = std::max(deadline_, now + std::min(kAttemptExtension, options_.timeout));
  next_notice_ = now + kNoticePeriod;
  if (attempt_ == ElectionAttempt::kAlone) {
    stage_ = ElectionStage::kDone;
    fresh_ = false;
  }
  SendToAll();
}

// True when a serial number is new.
bool Election::ReadSerials() {
  bool news = false;
  for (const CableSide side : kCableSides) {
    const Notice* neighbour = Matching(side);
    if (!Uses(side) || neighbour == nullptr) continue;
    std::uint64_t& heard = heard_[SideIndex(side)];
    news = news || heard != neighbour->serial;
    heard = neighbour->serial;
  }
  if (news) SendToAll();
  return news;
}

// Whether every neighbour has read its cables; then the diagonal is known. WhyFailed checks that
// the cables lead to the right places.
bool Election::RingSeen() const {
  return std::all_of(kCableSides.begin(), kCableSides.end(), [&](CableSide side) {
    const Notice* neighbour = Matching(side);
    return !Uses(side) || (neighbour != nullptr && HasReadAll(*neighbour));
  });
}

bool Election::NeighboursReady() const {
  return std::all_of(kCableSides.begin(), kCableSides.end(), [&](CableSide side) {
    const Notice* neighbour = Matching(side);
    return !Uses(side) || (neighbour != nullptr && neighbour->stage != ElectionStage::kReading);
  });
}

ElectionResult Election::result() const {
  ElectionResult result;
  if (!started_) return result;
  if (!finished()) {
    result.state = ElectionState::kInProgress;
    result.reason = Waiting();
    return result;
  }
  result.state = ElectionState::kFailed;
  if (attempt_ != ElectionAttempt::kAlone) {
    result.state = ElectionState::kUltraServer;
    FillPlace(result);
  }
  result.modes = Modes(result);
  result.mode = mode_;
  if (mode_ == UltraServerMode::kX1) result.state = ElectionState::kSingleNode;
  result.reason = fmt::format("{}", fmt::join(failures_, "; "));
  if (wanted_) {
    result.reason += result.reason.empty() ? "" : "; ";
    result.reason += "a new election waits until all cores are idle";
  }
  return result;
}

// The node's id, among how many, and the server's name.
void Election::FillPlace(ElectionResult& result) const {
  const std::uint64_t self = options_.serial;
  const auto [left, right] = heard_;
  for (const CableSide side : kCableSides) result.cables[SideIndex(side)] = Uses(side);
  if (attempt_ != ElectionAttempt::kBoth || left == right) {
    const std::uint64_t other = Uses(CableSide::kLeft) ? left : right;
    result.node_count = 2;
    result.node_id = self < other ? 0 : 1;
    result.server_id = std::min(self, other);
    return;
  }
  // Nodes are ordered by serial: the lowest sees us as itself, its left neighbour, its diagonal or
  // its right neighbour.
  const std::array<std::uint64_t, 4> as = {self, left, diagonal_, right};
  const auto* lowest = std::min_element(as.begin(), as.end());
  result.node_count = 4;
  result.node_id = static_cast<int>(lowest - as.begin());
  result.server_id = *lowest;
}

std::vector<UltraServerMode> Election::Modes(const ElectionResult& result) const {
  std::vector<UltraServerMode> modes;
  const bool pair = result.node_count == 2;
  if (result.node_count == 4) modes.push_back(UltraServerMode::kX4);
  if (pair && result.cables[SideIndex(CableSide::kRight)]) modes.push_back(UltraServerMode::kX2H);
  if (result.cables[SideIndex(CableSide::kLeft)]) modes.push_back(UltraServerMode::kX2V);
  modes.push_back(UltraServerMode::kX1);
  return modes;
}

}  // namespace tahoma::sim
