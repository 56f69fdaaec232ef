// Participant::Access: the lists go to all participants, all agree that every access may happen,
// and the bytes go from the owners of the sources to the owners of the targets.

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/participants/participant.h"

namespace tahoma::sim {
namespace {

// Steps of the operation's chunks.
constexpr std::uint32_t kLists = 0, kVerdicts = 1, kBytes = 2;

// A letter for the code and the message; empty for OK.
std::string VerdictText(const absl::Status& status) {
  if (status.ok()) return "";
  const char letter = absl::IsOutOfRange(status)          ? 'o'
                      : absl::IsResourceExhausted(status) ? 'r'
                                                          : 'p';
  return letter + std::string(Message(status));
}

absl::Status VerdictOf(std::string_view text) {
  if (text.empty()) return absl::OkStatus();
  const std::string_view why = text.substr(1);
  if (text[0] == 'o') return OutOfRange("{}", why);
  if (text[0] == 'r') return ResourceExhausted("{}", why);
  return PermissionDenied("{}", why);
}

// Returns the place with the chip's number as a claim's memory counts chips.
MemoryPlace InDomain(MemoryPlace place) {
  place.chip = Fabric::LocalOf(place.chip);
  return place;
}

}  // namespace

absl::StatusOr<AccessResult> Participant::Access(const AccessSpec& spec, ClaimMemory& memory,
                                                 std::vector<NodeLinks> views) {
  operation_ = next_operation_++;
  TAHOMA_RETURN_IF_ERROR(Open(
      spec.move ? "memory accesses that move bytes" : "memory accesses that take time", views));
  TAHOMA_ASSIGN_OR_RETURN(const LinkOutlook outlook,
                          LinkOutlook::Of(healthy_, std::move(views), now_));
  TAHOMA_RETURN_IF_ERROR(outlook.CheckAlive(members_));
  TAHOMA_ASSIGN_OR_RETURN(Batch batch, Gather(spec));
  TAHOMA_RETURN_IF_ERROR(CheckBatch(batch));
  TAHOMA_ASSIGN_OR_RETURN(
      batch.times, TimeAccesses(batch.accesses, outlook.fabric(), CrossedChips(outlook.fabric())));
  TAHOMA_RETURN_IF_ERROR(CheckClock(batch.times.end.time_since_epoch(), 1));
  TAHOMA_RETURN_IF_ERROR(Agree(batch, spec, memory));
  if (spec.move) TAHOMA_RETURN_IF_ERROR(MoveMemory(batch, memory));
  TAHOMA_RETURN_IF_ERROR(Close(0).status());
  AccessResult result;
  for (std::size_t i = 0; i < batch.accesses.size(); ++i) {
    if (batch.asker[i] != rank_) continue;
    result.times.push_back(batch.times.ends[i].time_since_epoch());
    result.hops.push_back(batch.times.hops[i]);
  }
  result.time = batch.times.end.time_since_epoch();
  result.loads = Own(batch.times.loads);
  now_ += result.time;
  result.end = now_;
  return result;
}

std::vector<torus::ChipMask> Participant::CrossedChips(const Fabric& fabric) const {
  std::vector<torus::ChipMask> gang(static_cast<std::size_t>(fabric.domain_count()));
  for (const Member& member : members_) {
    gang[static_cast<std::size_t>(Fabric::DomainOf(member.chip))] |=
        MaskOf(Fabric::LocalOf(member.chip));
  }
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    torus::ChipMask& own = gang[static_cast<std::size_t>(domain)];
    if (!fabric.domain(domain).IsConnected(own)) own = kAllChips;
  }
  return gang;
}

absl::StatusOr<std::vector<std::string>> Participant::Exchange(std::uint32_t step,
                                                               const std::string& text) {
  const int pods = static_cast<int>(pods_.size());
  for (int rank = 0; rank < pods; ++rank) {
    if (rank == rank_) continue;
    TAHOMA_RETURN_IF_ERROR(peer_.Send(rank, Chunk{.operation = operation_,
                                                  .step = step,
                                                  .departure = now_,
                                                  .arrival = now_,
                                                  .payload = text}));
  }
  std::vector<std::string> texts;
  for (int rank = 0; rank < pods; ++rank) {
    if (rank == rank_) {
      texts.push_back(text);
      continue;
    }
    TAHOMA_ASSIGN_OR_RETURN(Chunk chunk, ReceiveChunk(rank));
    if (chunk.step != step) {
      return Internal("rank {} is at step {} of operation {}; expected {}", rank, chunk.step,
                      operation_, step);
    }
    texts.push_back(std::move(chunk.payload));
  }
  return texts;
}

absl::StatusOr<Participant::Batch> Participant::Gather(const AccessSpec& spec) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::string> lists,
                          Exchange(kLists, AccessesText(spec.accesses)));
  Batch batch;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    auto accesses = ParseAccesses(lists[rank]);
    if (!accesses.ok()) return Internal("rank {}: {}", rank, Message(accesses.status()));
    for (const MemoryAccess& access : *accesses) {
      batch.accesses.push_back(access);
      batch.asker.push_back(static_cast<int>(rank));
    }
  }
  return batch;
}

// Checks the lists alone, so every participant finds the same errors.
absl::Status Participant::CheckBatch(const Batch& batch) const {
  std::map<int, std::size_t> listed;
  const auto owner = [&](torus::ChipIndex chip) {
    return static_cast<std::size_t>(chip.value()) < owner_.size() ? OwnerOf(chip) : -1;
  };
  for (std::size_t i = 0; i < batch.accesses.size(); ++i) {
    const MemoryAccess& access = batch.accesses[i];
    const int asker = batch.asker[i];
    const std::size_t number = listed[asker]++;
    if (number == kMaxAccesses) {
      return InvalidArgument("rank {} lists more than {} accesses", asker, kMaxAccesses);
    }
    if (owner(access.local.chip) != asker) {
      return PermissionDenied("access {} of rank {}: chip {} is not its own", number, asker,
                              access.local.chip.value());
    }
    if (owner(access.remote.chip) < 0) {
      return PermissionDenied("access {} of rank {}: chip {} belongs to no rank of the gang",
                              number, asker, access.remote.chip.value());
    }
  }
  return absl::OkStatus();
}

// Every owner checks its own memory; the first refusal speaks for all.
absl::Status Participant::Agree(const Batch& batch, const AccessSpec& spec, ClaimMemory& memory) {
  absl::Status own;
  std::vector<MemoryRange> landings;
  std::uint64_t leaving = 0;
  for (const MemoryAccess& access : batch.accesses) {
    if (OwnerOf(access.source().chip) == rank_) {
      if (own.ok()) own = memory.Check({.at = InDomain(access.source()), .bytes = access.bytes});
      // The sum stops growing beyond the limit, so the sum cannot overflow.
      if (leaving <= kMaxMovedBytes) leaving += std::min(access.bytes, kMaxMovedBytes + 1);
    }
    if (OwnerOf(access.target().chip) != rank_) continue;
    landings.push_back({.at = InDomain(access.target()), .bytes = access.bytes});
    if (own.ok()) own = memory.Check(landings.back());
  }
  if (own.ok() && spec.move && leaving > kMaxMovedBytes) {
    own = ResourceExhausted(
        "more than {} bytes would leave this rank; ask for less or without moving them",
        kMaxMovedBytes);
  }
  if (own.ok() && spec.move) own = memory.Reserve(landings);
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::string> verdicts,
                          Exchange(kVerdicts, VerdictText(own)));
  for (std::size_t rank = 0; rank < verdicts.size(); ++rank) {
    TAHOMA_RETURN_IF_ERROR(
        Annotate(VerdictOf(verdicts[rank]), fmt::format("the memory of rank {}", rank)));
  }
  return absl::OkStatus();
}

absl::Status Participant::MoveMemory(const Batch& batch, ClaimMemory& memory) {
  struct Bundle {
    std::string bytes;
    std::uint64_t expected = 0;
    VirtualTime arrival;
    std::size_t used = 0;
  };
  std::map<int, Bundle> outgoing;  // by rank, this rank included
  std::map<int, Bundle> incoming;
  for (std::size_t i = 0; i < batch.accesses.size(); ++i) {
    const MemoryAccess& access = batch.accesses[i];
    const int from = OwnerOf(access.source().chip);
    const int to = OwnerOf(access.target().chip);
    const VirtualTime arrival = now_ + batch.times.ends[i].time_since_epoch();
    if (from == rank_) {
      TAHOMA_ASSIGN_OR_RETURN(const std::string bytes, memory.Read({.at = InDomain(access.source()),
                                                                    .bytes = access.bytes}));
      outgoing[to].bytes += bytes;
      outgoing[to].arrival = std::max(outgoing[to].arrival, arrival);
    } else if (to == rank_) {
      incoming[from].expected += access.bytes;
      incoming[from].arrival = std::max(incoming[from].arrival, arrival);
    }
  }
  for (const auto& [to, bundle] : outgoing) {
    if (to == rank_) continue;
    for (std::size_t at = 0; at < bundle.bytes.size(); at += kChunkBytes) {
      TAHOMA_RETURN_IF_ERROR(
          peer_.Send(to, Chunk{.operation = operation_,
                               .step = kBytes,
                               .departure = now_,
                               .arrival = bundle.arrival,
                               .payload = bundle.bytes.substr(at, kChunkBytes)}));
    }
  }
  for (auto& [from, bundle] : incoming) {
    TAHOMA_ASSIGN_OR_RETURN(bundle.bytes, ReceiveMemory(from, bundle.expected, bundle.arrival));
  }
  if (outgoing.contains(rank_)) incoming[rank_] = std::move(outgoing[rank_]);
  for (const MemoryAccess& access : batch.accesses) {
    if (OwnerOf(access.target().chip) != rank_) continue;
    Bundle& bundle = incoming[OwnerOf(access.source().chip)];
    TAHOMA_RETURN_IF_ERROR(
        memory.Write(InDomain(access.target()),
                     std::string_view(bundle.bytes).substr(bundle.used, access.bytes)));
    bundle.used += access.bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Participant::ReceiveMemory(int rank, std::uint64_t bytes,
                                                       VirtualTime arrival) {
  std::string received;
  while (received.size() < bytes) {
    TAHOMA_ASSIGN_OR_RETURN(const Chunk chunk, ReceiveChunk(rank));
    if (chunk.step != kBytes || chunk.payload.empty() ||
        chunk.payload.size() > bytes - received.size()) {
      return Internal("rank {} sent {} bytes of step {}; expected at most {} of step {}", rank,
                      chunk.payload.size(), chunk.step, bytes - received.size(), kBytes);
    }
    if (chunk.departure != now_ || chunk.arrival != arrival) {
      return Internal(
          "rank {} has its bytes arrive at {} ps, here it is {} ps: they see different links", rank,
          chunk.arrival.time_since_epoch().count(), arrival.time_since_epoch().count());
    }
    received += chunk.payload;
  }
  return received;
}

}  // namespace tahoma::sim
