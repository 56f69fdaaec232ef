#include "sim-node/participants/remote_memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/emulator/chip/dma.h"
#include "sim-node/emulator/link/max_min.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

constexpr std::size_t kChips = 64;

// The resources that flows share, numbered behind the links: each memory's two halves, each core's
// engines, and for every access the engines that its packets keep busy.
class Resources {
 public:
  Resources(const TorusLinks& links, std::size_t accesses)
      : first_(links.id_count()),
        cores_(static_cast<std::size_t>(links.chip().physical_cores)),
        capacities_(links.capacities().begin(), links.capacities().end()) {
    const hw::DmaModel& dma = links.chip().dma;
    capacities_.resize(first_ + 2 * kChips,
                       static_cast<std::uint64_t>(links.chip().hbm_bytes_per_second) / 2);
    capacities_.resize(capacities_.size() + kChips * cores_,
                       DmaEngineRate(dma) * static_cast<std::uint64_t>(dma.engines_of_core));
    own_ = capacities_.size();
    capacities_.resize(own_ + accesses);
  }

  LinkId HbmReads(ChipIndex chip) const { return Id(first_ + Place(chip)); }
  LinkId HbmWrites(ChipIndex chip) const { return Id(first_ + kChips + Place(chip)); }
  // The engines of the core that serves the chip's access of this number.
  LinkId Engines(ChipIndex chip, std::size_t access) const {
    return Id(first_ + 2 * kChips + Place(chip) * cores_ + access % cores_);
  }
  LinkId OwnRate(std::size_t access, std::uint64_t rate) {
    capacities_[own_ + access] = rate;
    return Id(own_ + access);
  }
  std::span<const std::uint64_t> capacities() const { return capacities_; }

 private:
  static std::size_t Place(ChipIndex chip) { return static_cast<std::size_t>(chip.value()); }
  static LinkId Id(std::size_t id) { return static_cast<LinkId>(id); }

  const std::size_t first_;
  const std::size_t cores_;  // of a chip
  std::size_t own_ = 0;
  std::vector<std::uint64_t> capacities_;
};

struct Moving {
  VirtualTime start;
  std::vector<LinkId> path;
  Wide left = 0;  // 10^-12 bytes
  VirtualTime end{};
};

VirtualDuration TimeLeft(Wide left, std::uint64_t rate) {
  TAHOMA_CHECK(rate > 0);
  return VirtualDuration(static_cast<VirtualDuration::rep>((left + rate - 1) / rate));
}

// Lets all flows run to their ends: from one start or end to the next the rates stay.
void RunToTheEnd(std::vector<Moving>& flows, std::span<const std::uint64_t> capacities) {
  VirtualTime now{};
  while (true) {
    std::vector<Moving*> active;
    std::vector<std::span<const LinkId>> paths;
    VirtualTime next = VirtualTime::max();
    for (Moving& flow : flows) {
      if (flow.left == 0) continue;
      if (flow.start > now) {
        next = std::min(next, flow.start);
        continue;
      }
      active.push_back(&flow);
      paths.emplace_back(flow.path);
    }
    if (active.empty() && next == VirtualTime::max()) return;
    const std::vector<std::uint64_t> rates = MaxMinRates(paths, capacities);
    for (std::size_t i = 0; i < active.size(); ++i) {
      next = std::min(next, now + TimeLeft(active[i]->left, rates[i]));
    }
    const auto elapsed = static_cast<Wide>((next - now).count());
    now = next;
    for (std::size_t i = 0; i < active.size(); ++i) {
      active[i]->left -= std::min(active[i]->left, elapsed * rates[i]);
      if (active[i]->left == 0) active[i]->end = now;
    }
  }
}

absl::Status CheckBatch(std::span<const MemoryAccess> batch, const TorusLinks& links) {
  if (batch.size() > kMaxBatchAccesses) {
    return InvalidArgument("{} accesses at once; expected at most {}", batch.size(),
                           kMaxBatchAccesses);
  }
  for (const MemoryAccess& access : batch) {
    if (access.bytes == 0) return InvalidArgument("an access moves no bytes");
    for (const ChipIndex chip : {access.local.chip, access.remote.chip}) {
      if (chip.value() < links.torus().chip_count()) continue;
      return InvalidArgument("chip {} is not in a torus of {}", chip.value(),
                             links.torus().ToString());
    }
  }
  return absl::OkStatus();
}

// Words of a line, parted by single spaces.
class Words {
 public:
  explicit Words(std::string_view line) : left_(line) {}
  std::string_view Next() {
    const std::size_t end = std::min(left_.find(' '), left_.size());
    const std::string_view word = left_.substr(0, end);
    left_.remove_prefix(std::min(end + 1, left_.size()));
    return word;
  }
  template <typename Number>
  bool Read(Number& number) {
    const std::string_view word = Next();
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && end == word.data() + word.size() && !word.empty();
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
};

bool ReadAccess(std::string_view line, MemoryAccess& access) {
  Words words(line);
  const std::string_view kind = words.Next();
  access.kind = kind == "read" ? AccessKind::kRead : AccessKind::kWrite;
  std::uint16_t local = 0;
  std::uint16_t remote = 0;
  const bool read = (kind == "read" || kind == "write") && words.Read(local) &&
                    words.Read(access.local.address) && words.Read(remote) &&
                    words.Read(access.remote.address) && words.Read(access.bytes) && words.empty();
  access.local.chip = ChipIndex(local);
  access.remote.chip = ChipIndex(remote);
  return read;
}

// `batch` in its order, as `flows` have ended; the first of a flow's path are its links.
std::vector<LinkLoad> LoadsOf(std::span<const MemoryAccess> batch, const std::vector<Moving>& flows,
                              std::span<const int> hops) {
  struct Use {
    std::uint64_t bytes = 0;
    VirtualTime begin = VirtualTime::max();
    VirtualTime end{};
  };
  std::map<LinkId, Use> uses;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    for (std::size_t hop = 0; hop < static_cast<std::size_t>(hops[i]); ++hop) {
      Use& use = uses[flows[i].path[hop]];
      use.bytes += batch[i].bytes;
      use.begin = std::min(use.begin, flows[i].start);
      use.end = std::max(use.end, flows[i].end);
    }
  }
  std::vector<LinkLoad> loads;
  for (auto& [link, use] : uses) {
    loads.push_back({.link = link, .bytes = use.bytes, .busy = use.end - use.begin});
  }
  return loads;
}

}  // namespace

absl::StatusOr<BatchTimes> TimeAccesses(std::span<const MemoryAccess> batch,
                                        const TorusLinks& links, torus::ChipMask through) {
  TAHOMA_RETURN_IF_ERROR(CheckBatch(batch, links));
  Resources resources(links, batch.size());
  std::array<std::size_t, kChips> asked{};
  std::vector<Moving> flows;
  std::vector<VirtualDuration> latencies;
  BatchTimes times;
  for (const MemoryAccess& access : batch) {
    const ChipIndex from = access.source().chip;
    const ChipIndex to = access.target().chip;
    VirtualTime start(links.chip().dma.start);
    TAHOMA_ASSIGN_OR_RETURN(std::vector<LinkId> path, links.FindRoute(from, to, through));
    if (access.kind == AccessKind::kRead) {
      TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkId> request,
                              links.FindRoute(to, from, through));
      start += links.LatencyOf(request);
    }
    times.hops.push_back(static_cast<int>(path.size()));
    latencies.push_back(links.LatencyOf(path));
    const ChipIndex asker = access.local.chip;
    std::size_t& number = asked.at(static_cast<std::size_t>(asker.value()));
    path.push_back(resources.HbmReads(from));
    path.push_back(resources.HbmWrites(to));
    path.push_back(resources.Engines(asker, number++));
    path.push_back(resources.OwnRate(flows.size(), DmaRate(access.bytes, links.chip().dma)));
    flows.push_back({.start = start,
                     .path = std::move(path),
                     .left = static_cast<Wide>(access.bytes) * kPicosecondsPerSecond});
  }
  RunToTheEnd(flows, resources.capacities());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    times.ends.push_back(flows[i].end + latencies[i]);
    times.end = std::max(times.end, times.ends.back());
  }
  times.loads = LoadsOf(batch, flows, times.hops);
  return times;
}

namespace {

absl::Status CheckDomains(std::span<const MemoryAccess> batch, const Fabric& fabric) {
  for (const MemoryAccess& access : batch) {
    for (const ChipIndex chip : {access.local.chip, access.remote.chip}) {
      if (fabric.Contains(chip)) continue;
      return InvalidArgument("chip {} is not in a fabric of {} domains", chip.value(),
                             fabric.domain_count());
    }
    const DomainChip local = Fabric::Split(access.local.chip);
    const DomainChip remote = Fabric::Split(access.remote.chip);
    if (local.domain == remote.domain) continue;
    return PermissionDenied(
        "chip {} of domain {} shares no memory with chip {} of domain {}: it ends at the "
        "UltraServer",
        local.chip, local.domain, remote.chip, remote.domain);
  }
  return absl::OkStatus();
}

MemoryAccess InDomain(MemoryAccess access) {
  access.local.chip = Fabric::LocalOf(access.local.chip);
  access.remote.chip = Fabric::LocalOf(access.remote.chip);
  return access;
}

}  // namespace

absl::StatusOr<BatchTimes> TimeAccesses(std::span<const MemoryAccess> batch, const Fabric& fabric,
                                        std::span<const torus::ChipMask> through) {
  TAHOMA_RETURN_IF_ERROR(CheckDomains(batch, fabric));
  BatchTimes all{.ends = std::vector<VirtualTime>(batch.size()),
                 .hops = std::vector<int>(batch.size()),
                 .end = {},
                 .loads = {}};
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    std::vector<MemoryAccess> own;
    std::vector<std::size_t> places;  // in the batch
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (Fabric::DomainOf(batch[i].local.chip) != domain) continue;
      own.push_back(InDomain(batch[i]));
      places.push_back(i);
    }
    TAHOMA_ASSIGN_OR_RETURN(
        const BatchTimes times,
        TimeAccesses(own, fabric.domain(domain), through[static_cast<std::size_t>(domain)]));
    for (std::size_t i = 0; i < places.size(); ++i) {
      all.ends[places[i]] = times.ends[i];
      all.hops[places[i]] = times.hops[i];
    }
    all.end = std::max(all.end, times.end);
    for (LinkLoad load : times.loads) {
      load.link = fabric.LinkOf(domain, load.link);
      all.loads.push_back(load);
    }
  }
  return all;
}

std::string AccessesText(std::span<const MemoryAccess> accesses) {
  std::string text;
  for (const MemoryAccess& access : accesses) {
    text += fmt::format("{} {} {} {} {} {}\n", access.kind == AccessKind::kRead ? "read" : "write",
                        access.local.chip.value(), access.local.address, access.remote.chip.value(),
                        access.remote.address, access.bytes);
  }
  return text;
}

absl::StatusOr<std::vector<MemoryAccess>> ParseAccesses(std::string_view text) {
  std::vector<MemoryAccess> accesses;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!ReadAccess(line, accesses.emplace_back())) {
      return InvalidArgument("line {} is no access: \"{}\"", accesses.size(), line.substr(0, 80));
    }
  }
  return accesses;
}

}  // namespace tahoma::sim
