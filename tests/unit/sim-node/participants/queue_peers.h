// Participants in threads of a process, joined by queues.

#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "sim-node/participants/participant.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim::testing {

// All queues between some participants. Can lose a participant, or forge its messages.
class Exchange {
 public:
  void Put(int from, int to, PeerMessage message) {
    const std::lock_guard lock(mutex_);
    if (tamper) tamper(from, to, message);
    queues_[{from, to}].push_back(std::move(message));
    changed_.notify_all();
  }
  absl::StatusOr<PeerMessage> Take(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{from, to}];
    changed_.wait(lock, [&] { return !queue.empty() || gone_.contains(from); });
    if (queue.empty()) return Aborted("rank {} is gone", from);
    PeerMessage message = std::move(queue.front());
    queue.pop_front();
    return message;
  }
  void Lose(int rank) {
    const std::lock_guard lock(mutex_);
    gone_.insert(rank);
    changed_.notify_all();
  }

  std::function<void(int from, int to, PeerMessage&)> tamper;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<PeerMessage>> queues_;
  std::set<int> gone_;
};

class QueuePeer final : public Peer {
 public:
  QueuePeer(Exchange& exchange, int self) : exchange_(exchange), self_(self) {}
  absl::Status Send(int rank, PeerMessage message) override {
    exchange_.Put(self_, rank, std::move(message));
    return absl::OkStatus();
  }
  absl::StatusOr<PeerMessage> Receive(int rank) override { return exchange_.Take(rank, self_); }

 private:
  Exchange& exchange_;
  const int self_;
};

using Pods = std::vector<std::vector<Member>>;

// Four pods with a whole instance each.
inline Pods WholeUltraServer(int ranks_per_chip) {
  Pods pods;
  for (int z = 0; z < 4; ++z) pods.push_back(MembersOf(0xffffull << (16 * z), ranks_per_chip));
  return pods;
}

// Runs `specs` in sequence on every participant; a participant that fails leaves.
inline std::vector<std::vector<absl::StatusOr<RunResult>>> RunAll(
    const Pods& pods, const std::vector<std::vector<RunSpec>>& specs,
    const std::vector<std::vector<NodeLinks>>& views, Exchange& exchange,
    const Fabric& fabric = Fabric(UltraServer())) {
  std::vector<std::vector<absl::StatusOr<RunResult>>> results(pods.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < pods.size(); ++rank) {
    threads.emplace_back([&, rank] {
      QueuePeer peer(exchange, static_cast<int>(rank));
      Participant self(fabric, pods, static_cast<int>(rank), peer);
      for (const RunSpec& spec : specs[rank]) {
        results[rank].push_back(self.Run(spec, views[rank]));
        if (!results[rank].back().ok()) break;
      }
      exchange.Lose(static_cast<int>(rank));
    });
  }
  threads.clear();
  return results;
}

}  // namespace tahoma::sim::testing
