#include "sim-node/emulator/link/storage.h"

#include <algorithm>
#include <numeric>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

struct Sender {
  std::size_t client = 0;
  std::uint64_t cap = 0;  // the most bytes per second that the client takes
  std::uint64_t rate = 0;
  Wide left = 0;  // 10^-12 bytes
};

// Max-min fair: a sender that needs less than an even share of the rest gets its need. The senders
// are in ascending order of their caps.
void Share(std::uint64_t total, std::vector<Sender>& senders) {
  std::uint64_t left = total;
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const std::uint64_t even = left / (senders.size() - i);
    if (senders[i].cap > even) {
      for (std::size_t rest = i; rest < senders.size(); ++rest) senders[rest].rate = even;
      return;
    }
    senders[i].rate = senders[i].cap;
    left -= senders[i].cap;
  }
}

VirtualDuration TimeLeft(const Sender& sender) {
  TAHOMA_CHECK(sender.rate > 0);  // a system has far more bytes per second than clients
  return VirtualDuration(static_cast<std::int64_t>((sender.left + sender.rate - 1) / sender.rate));
}

}  // namespace

StorageSystem StorageOf(std::uint64_t tebibytes) {
  constexpr std::uint64_t kRatePerTebibyte = 1'000'000'000;
  constexpr std::uint64_t kClientRate = 700'000'000'000 / 8;
  return {.read_rate = tebibytes * kRatePerTebibyte,
          .write_rate = tebibytes * kRatePerTebibyte,
          .client_rate = kClientRate,
          .latency = Microseconds(500.0)};
}

std::vector<VirtualTime> StorageTimes(const StorageSystem& system, StorageAccess access,
                                      std::span<const StorageClient> clients) {
  const std::uint64_t total = access == StorageAccess::kRead ? system.read_rate : system.write_rate;
  std::vector<VirtualTime> done(clients.size());
  std::vector<std::size_t> to_come(clients.size());  // the next to start is the last
  std::iota(to_come.begin(), to_come.end(), std::size_t{0});
  std::stable_sort(to_come.begin(), to_come.end(), [&](std::size_t a, std::size_t b) {
    return clients[a].start > clients[b].start;
  });
  std::vector<Sender> senders;
  VirtualTime now = VirtualTime::min();
  while (!to_come.empty() || !senders.empty()) {
    VirtualTime next = VirtualTime::max();
    if (!to_come.empty()) next = clients[to_come.back()].start;
    for (const Sender& sender : senders) next = std::min(next, now + TimeLeft(sender));
    for (Sender& sender : senders) {
      const auto elapsed = static_cast<Wide>((next - now).count());
      sender.left -= std::min(sender.left, elapsed * sender.rate);
      if (sender.left == 0) done[sender.client] = next + system.latency;
    }
    now = next;
    std::erase_if(senders, [](const Sender& sender) { return sender.left == 0; });
    for (; !to_come.empty() && clients[to_come.back()].start == now; to_come.pop_back()) {
      const StorageClient& client = clients[to_come.back()];
      const Sender sender{.client = to_come.back(),
                          .cap = std::min(client.nic_rate, system.client_rate),
                          .left = static_cast<Wide>(client.bytes) * kPicosecondsPerSecond};
      done[sender.client] = now + system.latency;
      if (client.bytes == 0) continue;
      senders.insert(
          std::upper_bound(senders.begin(), senders.end(), sender,
                           [](const Sender& a, const Sender& b) { return a.cap < b.cap; }),
          sender);
    }
    if (!senders.empty()) Share(total, senders);
  }
  return done;
}

}  // namespace tahoma::sim
