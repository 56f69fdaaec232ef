// The watchdog of FlitNetwork, and the report of a deadlock.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim-node/emulator/flit/network.h"

namespace tahoma::sim {

std::string FlitChannel::ToString() const {
  constexpr int kLinkPorts = static_cast<int>(kPorts);
  if (port >= kLinkPorts)
    return fmt::format("chip {} source {} vc {}", chip, port - kLinkPorts, vc);
  const auto link = static_cast<LinkId>(chip * kLinkPorts + port);
  return fmt::format("{} vc {}", TorusLinks::Name(link), vc);
}

std::string Deadlock::ToString() const {
  std::string text = fmt::format("deadlock in cycle {}: ", cycle);
  for (const FlitChannel& channel : ring) text += channel.ToString() + " waits for ";
  return text + (ring.empty() ? "nothing" : ring.front().ToString());
}

void FlitNetwork::Watch() {
  const auto period = static_cast<std::uint64_t>(config_.watchdog_cycles);
  if (deadlock_ || in_network_ == 0) return;
  const bool stalled = cycle_ - moved_at_ >= period;
  if (!stalled && cycle_ % period != period - 1) return;
  Deadlock found = FindDeadlock();
  if (stalled || !found.waits.empty()) deadlock_ = std::move(found);
}

// Returns the channels that the front flit of an input waits for: the flit's channel, if the
// channel has no free place; or every channel that the flit may get, if all are taken. Returns
// nothing when the flit can move, now or once its link is free.
std::vector<int> FlitNetwork::WaitsFor(const Router& router, const Input& input) const {
  const Output& output = router.outputs.at(input.out_port);
  std::vector<int> vcs;
  if (input.state == Input::State::kActive) {
    if (output.credits.at(input.out_vc) == 0) vcs.push_back(input.out_vc);
  } else if ((input.allowed & output.free_vcs) == 0) {
    for (int vc = 0; vc < config_.vcs; ++vc) {
      if (((unsigned{input.allowed} >> static_cast<unsigned>(vc)) & 1U) != 0) vcs.push_back(vc);
    }
  }
  return vcs;
}

// Removes the channels that can move: a channel that waits for nothing, and a channel that waits
// for another whose far end has a place or can move. The remaining channels wait in circles.
Deadlock FlitNetwork::FindDeadlock() const {
  constexpr std::size_t kInputs = 64;
  const auto full = static_cast<std::uint32_t>(config_.buffer_flits);
  std::vector<bool> stuck(routers_.size() * kInputs);
  for (std::size_t i = 0; i < stuck.size(); ++i) {
    stuck[i] = routers_[i / kInputs].inputs[i % kInputs].count != 0;
  }
  // Looks at the far end of the channel that begins at `port`. A channel into a chip is never
  // stuck, because a chip takes every flit.
  const auto end_is_stuck = [&](std::size_t chip, int port, int vc) {
    if (port >= kLinkPorts) return false;
    const std::size_t there = neighbours_[chip].at(static_cast<std::size_t>(port));
    const auto bit = static_cast<std::size_t>(Bit(port, vc));
    return stuck[there * kInputs + bit] && routers_[there].inputs[bit].count == full;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < stuck.size(); ++i) {
      if (!stuck[i]) continue;
      const Router& router = routers_[i / kInputs];
      const Input& input = router.inputs[i % kInputs];
      const std::vector<int> vcs = WaitsFor(router, input);
      stuck[i] = !vcs.empty() && std::all_of(vcs.begin(), vcs.end(), [&](int vc) {
        return end_is_stuck(i / kInputs, input.out_port, vc);
      });
      changed = changed || !stuck[i];
    }
  }
  Deadlock found;
  found.cycle = cycle_;
  for (std::size_t i = 0; i < stuck.size(); ++i) {
    if (!stuck[i]) continue;
    const int chip = static_cast<int>(i / kInputs);
    const int port = static_cast<int>(i % kInputs) / config_.vcs;
    const Router& router = routers_[i / kInputs];
    const Input& input = router.inputs[i % kInputs];
    const bool from_chip = port >= kLinkPorts;
    // A link that ends here in plus direction begins at the neighbour in minus direction.
    const int sender =
        from_chip ? chip : neighbours_[i / kInputs].at(static_cast<std::size_t>(port ^ 1));
    for (const int vc : WaitsFor(router, input)) {
      found.waits.push_back({.holder = {.chip = sender,
                                        .port = port,
                                        .vc = static_cast<int>(i % kInputs) % config_.vcs},
                             .wanted = {.chip = chip, .port = input.out_port, .vc = vc}});
    }
  }
  std::sort(found.waits.begin(), found.waits.end());
  found.FindRing();
  return found;
}

// Every wanted channel holds others up too, so a walk along the waits returns to a channel.
void Deadlock::FindRing() {
  std::map<FlitChannel, FlitChannel> first_wait;
  for (const Wait& wait : waits) first_wait.try_emplace(wait.holder, wait.wanted);
  if (first_wait.empty()) return;
  std::vector<FlitChannel> path = {first_wait.begin()->first};
  for (;;) {
    const FlitChannel& next = first_wait.at(path.back());
    const auto before = std::find(path.begin(), path.end(), next);
    if (before != path.end()) {
      ring.assign(before, path.end());
      return;
    }
    path.push_back(next);
  }
}

}  // namespace tahoma::sim
