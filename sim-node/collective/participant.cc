#include "sim-node/collective/participant.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// `held` is what the fullest participant needs for buffers.
absl::Status CheckSpec(const RunSpec& spec, std::uint64_t held) {
  if (spec.request.bytes == 0 || spec.request.bytes > kMaxRequestBytes) {
    return InvalidArgument("a buffer has {} bytes; expected 1 to {}", spec.request.bytes,
                           kMaxRequestBytes);
  }
  if (spec.check && held > kMaxBufferBytes) {
    return ResourceExhausted(
        "the buffers of one participant take {} bytes, it may hold {}; ask for less or without a "
        "check",
        held, kMaxBufferBytes);
  }
  if (spec.warmup < 0 || spec.iterations < 1 || spec.warmup > kMaxRepeats ||
      spec.iterations > kMaxRepeats) {
    return InvalidArgument("{} + {} repetitions; expected 0 and 1 to {}", spec.warmup,
                           spec.iterations, kMaxRepeats);
  }
  return absl::OkStatus();
}

// The message as a T of operation `operation`.
template <typename T>
absl::StatusOr<T> Expect(absl::StatusOr<PeerMessage> message, int rank, std::uint64_t operation) {
  if (!message.ok()) return message.status();
  T* found = std::get_if<T>(&*message);
  if (found == nullptr || found->operation != operation) {
    return Internal("rank {} sent a message out of order in operation {}", rank, operation);
  }
  return std::move(*found);
}

}  // namespace

struct Participant::Buffers {
  std::vector<std::vector<std::byte>> storage;
  std::vector<std::span<std::byte>> of_chip;  // empty for chips of others

  std::span<std::byte> of(torus::ChipIndex chip) const {
    return of_chip.at(static_cast<std::size_t>(chip.value()));
  }
};

std::string RunSpec::ToString() const {
  return fmt::format("{} of {} bytes {} {}, {} + {} times{}{}", Name(request.operation),
                     request.bytes, Name(request.type), Name(op), warmup, iterations,
                     check ? fmt::format(", checked with seed {}", seed) : "",
                     mode == PlanMode::kBest ? "" : fmt::format(", in mode {}", Name(mode)));
}

Participant::Participant(TorusLinks links, std::vector<std::vector<Member>> pods, int rank,
                         Peer& peer)
    : Participant(Fabric(std::move(links)), std::move(pods), rank, peer) {}

Participant::Participant(Fabric fabric, std::vector<std::vector<Member>> pods, int rank, Peer& peer)
    : healthy_(std::move(fabric)),
      pods_(std::move(pods)),
      rank_(rank),
      peer_(peer),
      owner_(static_cast<std::size_t>(healthy_.unit_count() * Fabric::kChipsPerUnit), -1) {
  TAHOMA_CHECK(rank >= 0 && static_cast<std::size_t>(rank) < pods_.size());
  for (std::size_t pod = 0; pod < pods_.size(); ++pod) {
    for (const Member& member : pods_[pod]) {
      members_.push_back(member);
      total_ranks_ += member.ranks;
      owner_.at(static_cast<std::size_t>(member.chip.value())) = static_cast<int>(pod);
    }
  }
}

absl::StatusOr<RunResult> Participant::Run(const RunSpec& spec, std::vector<NodeLinks> views) {
  operation_ = next_operation_++;
  TAHOMA_RETURN_IF_ERROR(Open(spec.ToString(), views));
  TAHOMA_RETURN_IF_ERROR(CheckSpec(spec, FullestPod(spec.request)));
  TAHOMA_ASSIGN_OR_RETURN(const LinkOutlook outlook,
                          LinkOutlook::Of(healthy_, std::move(views), now_));
  TAHOMA_RETURN_IF_ERROR(outlook.CheckAlive(members_));
  TAHOMA_ASSIGN_OR_RETURN(Plan plan, PlanOnFabric(spec.request, members_, outlook.fabric(),
                                                  {.options = {.mode = spec.mode}}));
  if (!outlook.IsSteady()) {
    TAHOMA_ASSIGN_OR_RETURN(plan.times, outlook.TimesOf(plan.schedule));
  }
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkLoad> loads, LoadsOf(plan, outlook.fabric()));
  std::uint64_t wrong = 0;
  if (spec.check) {
    TAHOMA_ASSIGN_OR_RETURN(wrong, MoveData(spec, plan));
  }
  TAHOMA_ASSIGN_OR_RETURN(wrong, Close(wrong));
  const VirtualDuration time = plan.times.end - plan.times.start;
  now_ += time * (spec.warmup + spec.iterations);
  return RunResult{.algorithm = plan.algorithm,
                   .time = time,
                   .end = now_,
                   .ranks = total_ranks_,
                   .chips = static_cast<int>(members_.size()),
                   .wrong_elements = wrong,
                   .loads = Own(loads)};
}

std::vector<LinkLoad> Participant::Own(const std::vector<LinkLoad>& loads) const {
  std::vector<LinkLoad> own;
  for (LinkLoad load : loads) {
    const auto place = healthy_.Find(load.link);
    TAHOMA_CHECK(place.ok());  // they are the fabric's
    const auto chip = static_cast<int>(place->link / kPorts);
    if (OwnerOf(Fabric::ChipOf(place->island, chip)) != rank_) continue;
    load.link = place->link;
    own.push_back(load);
  }
  return own;
}

std::uint64_t Participant::FullestPod(const Request& request) const {
  std::uint64_t most = 0;
  for (const std::vector<Member>& pod : pods_) {
    std::uint64_t held = 0;
    for (const Member& member : pod) held += ChipBufferBytes(request, member.ranks);
    most = std::max(most, held);
  }
  return most;
}

// Tells the others and adds what they know to `views`; moves the clock to the latest of all.
absl::Status Participant::Open(const std::string& spec, std::vector<NodeLinks>& views) {
  const Opening own{.operation = operation_, .spec = spec, .ready = now_, .views = views};
  const int pods = static_cast<int>(pods_.size());
  for (int rank = 0; rank < pods; ++rank) {
    if (rank != rank_) TAHOMA_RETURN_IF_ERROR(peer_.Send(rank, own));
  }
  absl::Status differs;
  for (int rank = 0; rank < pods; ++rank) {
    if (rank == rank_) continue;
    TAHOMA_ASSIGN_OR_RETURN(Opening theirs, Expect<Opening>(peer_.Receive(rank), rank, operation_));
    if (theirs.spec != own.spec && differs.ok()) {
      differs = InvalidArgument("rank {} asks for {}, rank {} for {}", rank_, own.spec, rank,
                                theirs.spec);
    }
    now_ = std::max(now_, theirs.ready);
    views.insert(views.end(), theirs.views.begin(), theirs.views.end());
  }
  return differs;
}

absl::StatusOr<std::uint64_t> Participant::MoveData(const RunSpec& spec, const Plan& plan) {
  const TestPattern pattern(spec.request, spec.op, total_ranks_, spec.seed, plan.sources);
  Buffers buffers;
  buffers.of_chip.resize(owner_.size());
  int first = 0;
  std::vector<std::pair<torus::ChipIndex, RankRange>> own;
  for (const Member& member : members_) {
    const RankRange range{.first = first, .count = member.ranks};
    first += member.ranks;
    if (OwnerOf(member.chip) != rank_) continue;
    own.emplace_back(member.chip, range);
    const std::uint64_t bytes = ChipBufferBytes(spec.request, member.ranks);
    std::vector<std::byte>& memory =
        buffers.storage.emplace_back(bytes + plan.schedule.relay_bytes);
    buffers.of_chip.at(static_cast<std::size_t>(member.chip.value())) = memory;
    pattern.FillChip(range, std::span(memory).first(bytes));
  }
  for (std::size_t step = 0; step < plan.schedule.turn_count(); ++step) {
    TAHOMA_RETURN_IF_ERROR(RunStep(plan, step, spec, buffers));
  }
  const std::vector<std::byte> expected = pattern.Expected();
  std::uint64_t wrong = 0;
  for (const auto& [chip, range] : own) {
    const std::uint64_t bytes = ChipBufferBytes(spec.request, range.count);
    wrong += pattern.CountWrong(range, buffers.of(chip).first(bytes), expected);
  }
  return wrong;
}

absl::Status Participant::RunStep(const Plan& plan, std::size_t step, const RunSpec& spec,
                                  Buffers& buffers) {
  TAHOMA_RETURN_IF_ERROR(SendStep(plan, step, buffers));
  const StepTimes& times = plan.times.steps[step];
  std::map<int, std::uint64_t> incoming;
  std::map<int, VirtualTime> arrival;
  std::size_t i = 0;
  ForEachSend(plan.schedule, step, [&](const Send& send) {
    const VirtualTime arrives = times.ArrivalOf(i++);
    const int from = OwnerOf(send.from);
    if (OwnerOf(send.to) != rank_ || from == rank_) return;
    incoming[from] += send.bytes;
    arrival[from] = std::max(arrival[from], arrives);
  });
  std::map<int, std::string> received;
  if (plan.schedule.TakesSnapshot(step)) {
    ForEachSend(plan.schedule, step, [&](const Send& send) {
      if (OwnerOf(send.from) != rank_ || OwnerOf(send.to) != rank_) return;
      const auto bytes = buffers.of(send.from).subspan(send.offset, send.bytes);
      received[rank_].append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
  }
  for (const auto& [from, bytes] : incoming) {
    TAHOMA_ASSIGN_OR_RETURN(received[from], ReceiveFrom(from, plan, step, bytes, arrival[from]));
  }
  std::map<int, std::size_t> used;
  ForEachSend(plan.schedule, step, [&](const Send& send) {
    if (OwnerOf(send.to) != rank_) return;
    const int from = OwnerOf(send.from);
    std::span<const std::byte> bytes;
    if (from == rank_ && !plan.schedule.TakesSnapshot(step)) {
      bytes = buffers.of(send.from).subspan(send.offset, send.bytes);
    } else {
      bytes = std::as_bytes(std::span(received[from])).subspan(used[from], send.bytes);
      used[from] += send.bytes;
    }
    Receive(send, spec.request.type, spec.op, buffers.of(send.to), bytes);
  });
  return absl::OkStatus();
}

// What this participant's chips send to each other participant's, in the order of the step.
absl::Status Participant::SendStep(const Plan& plan, std::size_t step, const Buffers& buffers) {
  const StepTimes& times = plan.times.steps[step];
  std::map<int, std::string> payload;
  std::map<int, VirtualTime> arrival;
  std::size_t i = 0;
  ForEachSend(plan.schedule, step, [&](const Send& send) {
    const VirtualTime arrives = times.ArrivalOf(i++);
    const int to = OwnerOf(send.to);
    if (OwnerOf(send.from) != rank_ || to == rank_) return;
    const auto bytes = buffers.of(send.from).subspan(send.offset, send.bytes);
    payload[to].append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    arrival[to] = std::max(arrival[to], arrives);
  });
  for (const auto& [to, bytes] : payload) {
    for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes) {
      Chunk chunk{.operation = operation_,
                  .step = static_cast<std::uint32_t>(step),
                  .departure = now_ + times.departure.time_since_epoch(),
                  .arrival = now_ + arrival[to].time_since_epoch(),
                  .payload = bytes.substr(at, kChunkBytes)};
      TAHOMA_RETURN_IF_ERROR(peer_.Send(to, std::move(chunk)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Chunk> Participant::ReceiveChunk(int rank) {
  return Expect<Chunk>(peer_.Receive(rank), rank, operation_);
}

absl::StatusOr<std::string> Participant::ReceiveFrom(int rank, const Plan& plan, std::size_t step,
                                                     std::uint64_t bytes, VirtualTime arrival) {
  const VirtualTime departs = now_ + plan.times.steps[step].departure.time_since_epoch();
  const VirtualTime arrives = now_ + arrival.time_since_epoch();
  std::string received;
  while (received.size() < bytes) {
    TAHOMA_ASSIGN_OR_RETURN(const Chunk chunk, ReceiveChunk(rank));
    if (chunk.step != step || chunk.payload.empty() ||
        chunk.payload.size() > bytes - received.size()) {
      return Internal("rank {} sent {} bytes of step {}; expected at most {} of step {}", rank,
                      chunk.payload.size(), chunk.step, bytes - received.size(), step);
    }
    if (chunk.departure != departs || chunk.arrival != arrives) {
      return Internal(
          "rank {} has step {} arrive at {} ps, here it is {} ps: they see different links", rank,
          step, chunk.arrival.time_since_epoch().count(), arrives.time_since_epoch().count());
    }
    received += chunk.payload;
  }
  return received;
}

absl::StatusOr<std::uint64_t> Participant::Close(std::uint64_t wrong) {
  const int pods = static_cast<int>(pods_.size());
  for (int rank = 0; rank < pods; ++rank) {
    if (rank == rank_) continue;
    TAHOMA_RETURN_IF_ERROR(
        peer_.Send(rank, Closing{.operation = operation_, .wrong_elements = wrong}));
  }
  std::uint64_t total = wrong;
  for (int rank = 0; rank < pods; ++rank) {
    if (rank == rank_) continue;
    TAHOMA_ASSIGN_OR_RETURN(const Closing theirs,
                            Expect<Closing>(peer_.Receive(rank), rank, operation_));
    total += theirs.wrong_elements;
  }
  return total;
}

}  // namespace tahoma::sim
