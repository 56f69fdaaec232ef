#include "sim-node/participants/participant.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/domains/bound_over_domains.h"
#include "sim-node/emulator/collective/plan/bound.h"

namespace tahoma::sim {
namespace {

// `held` is what the fullest participant needs for buffers.
// `held`: of the participant with the most.
absl::Status CheckBuffers(std::uint64_t held) {
  if (held <= kMaxBufferBytes) return absl::OkStatus();
  return ResourceExhausted(
      "the buffers of one participant take {} bytes, it may hold {}; ask for less or without a "
      "check",
      held, kMaxBufferBytes);
}

absl::Status CheckSpec(const RunSpec& spec) {
  if (spec.request.bytes == 0 || spec.request.bytes > kMaxRequestBytes) {
    return InvalidArgument("a buffer has {} bytes; expected 1 to {}", spec.request.bytes,
                           kMaxRequestBytes);
  }
  if (spec.warmup < 0 || spec.iterations < 1 || spec.warmup > kMaxRepeats ||
      spec.iterations > kMaxRepeats) {
    return InvalidArgument("{} + {} repetitions; expected 0 and 1 to {}", spec.warmup,
                           spec.iterations, kMaxRepeats);
  }
  return absl::OkStatus();
}

int RanksOf(const Part& part) {
  int ranks = 0;
  for (const Member& member : part.members) ranks += member.ranks;
  return ranks;
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
  const std::string checked = !check ? ""
                              : ones ? ", checked with ones"
                                     : fmt::format(", checked with seed {}", seed);
  return fmt::format("{} of {} bytes {} {}, {} + {} times{}{}", Name(request.operation),
                     request.bytes, Name(request.type), Name(op), warmup, iterations, checked,
                     division.ToString());
}

Participant::Participant(TorusLinks links, std::vector<std::vector<Member>> pods, int rank,
                         Peer& peer)
    : Participant(Fabric(std::move(links)), std::move(pods), rank, peer) {}

Participant::Participant(Fabric fabric, std::vector<std::vector<Member>> pods, int rank, Peer& peer)
    : healthy_(std::move(fabric)),
      pods_(std::move(pods)),
      rank_(rank),
      peer_(peer),
      owner_(static_cast<std::size_t>(healthy_.domain_count() * Fabric::kChipsPerDomain), -1) {
  TAHOMA_CHECK(rank >= 0 && static_cast<std::size_t>(rank) < pods_.size());
  for (std::size_t pod = 0; pod < pods_.size(); ++pod) {
    for (const Member& member : pods_[pod]) {
      members_.push_back(member);
      total_ranks_ += member.ranks;
      owner_.at(static_cast<std::size_t>(member.chip.value())) = static_cast<int>(pod);
    }
  }
}

absl::StatusOr<std::vector<Participant::PlannedPart>> Participant::PlanParts(
    const RunSpec& spec, std::vector<Part> parts, const LinkOutlook& outlook) const {
  std::vector<PlannedPart> planned;
  std::vector<const Schedule*> schedules;
  planned.reserve(parts.size());
  std::size_t first_step = 0;
  for (Part& part : parts) {
    PlannedPart& one = planned.emplace_back();
    one.part = std::move(part);
    one.seed = spec.seed + planned.size() - 1;  // another's data is wrong data
    one.first_step = first_step;
    TAHOMA_ASSIGN_OR_RETURN(one.plan,
                            PlanOnFabric(one.part.request, one.part.members, outlook.fabric()));
    first_step += one.plan.schedule.scheduled_count();
    schedules.push_back(&one.plan.schedule);
  }
  if (planned.size() == 1 && outlook.IsSteady()) return planned;
  TAHOMA_ASSIGN_OR_RETURN(std::vector<ScheduleTimes> times, outlook.TimesOf(schedules));
  for (std::size_t i = 0; i < planned.size(); ++i) planned[i].plan.times = std::move(times[i]);
  return planned;
}

std::optional<VirtualDuration> Participant::BoundOf(const std::vector<PlannedPart>& planned,
                                                    const Fabric& fabric) {
  VirtualDuration most{};
  for (const PlannedPart& one : planned) {
    const Request& request = one.part.request;
    if (request.blocks != nullptr) return std::nullopt;
    std::set<int> domains;
    for (const Member& member : one.part.members) domains.insert(Fabric::DomainOf(member.chip));
    std::optional<VirtualDuration> bound;
    if (domains.size() > 1) {
      bound = LowerBoundOnFabric(request, one.part.members, fabric);
    } else {
      std::vector<Member> local = one.part.members;
      for (Member& member : local) member.chip = Fabric::LocalOf(member.chip);
      bound = LowerBound(request, local, fabric.domain(*domains.begin()));
    }
    if (!bound) return std::nullopt;
    most = std::max(most, *bound);
  }
  return most;
}

absl::StatusOr<RunResult> Participant::Run(const RunSpec& spec, std::vector<NodeLinks> views) {
  operation_ = next_operation_++;
  TAHOMA_RETURN_IF_ERROR(Open(spec.ToString(), views));
  TAHOMA_ASSIGN_OR_RETURN(std::vector<Part> parts, PartsOf(spec.request, spec.division, members_));
  TAHOMA_RETURN_IF_ERROR(CheckSpec(spec));
  for (const Part& part : parts) {
    if (spec.check) TAHOMA_RETURN_IF_ERROR(CheckBuffers(FullestPod(part, 0)));
  }
  if (spec.check && spec.ones) {
    TAHOMA_RETURN_IF_ERROR(TestPattern::OnesFit(spec.request, spec.op, RanksOf(parts[0])));
  }
  TAHOMA_ASSIGN_OR_RETURN(const LinkOutlook outlook,
                          LinkOutlook::Of(healthy_, std::move(views), now_));
  TAHOMA_RETURN_IF_ERROR(outlook.CheckAlive(members_));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<PlannedPart> planned,
                          PlanParts(spec, std::move(parts), outlook));
  std::vector<const Plan*> plans;
  VirtualDuration time{};
  for (const PlannedPart& one : planned) {
    if (spec.check) {
      const std::uint64_t relayed = one.plan.schedule.relay_bytes;
      TAHOMA_RETURN_IF_ERROR(CheckBuffers(FullestPod(one.part, relayed)));
    }
    plans.push_back(&one.plan);
    time = std::max<VirtualDuration>(time, one.plan.times.end - one.plan.times.start);
  }
  TAHOMA_RETURN_IF_ERROR(CheckClock(time, spec.warmup + spec.iterations));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkLoad> loads, LoadsOf(plans, outlook.fabric()));
  std::uint64_t wrong = 0;
  for (const PlannedPart& one : planned) {
    if (!spec.check) break;
    TAHOMA_ASSIGN_OR_RETURN(const std::uint64_t more, MoveData(spec, one));
    wrong += more;
  }
  TAHOMA_ASSIGN_OR_RETURN(wrong, Close(wrong));
  now_ += time * (spec.warmup + spec.iterations);
  return RunResult{.algorithm = planned[0].plan.algorithm,
                   .time = time,
                   .end = now_,
                   .ranks = total_ranks_,
                   .chips = static_cast<int>(members_.size()),
                   .wrong_elements = wrong,
                   .bound = BoundOf(planned, outlook.fabric()),
                   .loads = Own(loads)};
}

std::vector<LinkLoad> Participant::Own(const std::vector<LinkLoad>& loads) const {
  std::vector<LinkLoad> own;
  for (LinkLoad load : loads) {
    const auto place = healthy_.Find(load.link);
    TAHOMA_CHECK(place.ok());                                // they are the fabric's
    if (place->island == healthy_.domain_count()) continue;  // NICs and uplinks have no owner
    const auto chip = static_cast<int>(place->link / kPorts);
    if (OwnerOf(Fabric::ChipOf(place->island, chip)) != rank_) continue;
    load.link = place->link;
    own.push_back(load);
  }
  return own;
}

std::uint64_t Participant::FullestPod(const Part& part, std::uint64_t relayed) const {
  std::vector<std::uint64_t> held(pods_.size());
  for (const Member& member : part.members) {
    held.at(static_cast<std::size_t>(OwnerOf(member.chip))) +=
        ChipBufferBytes(part.request, member.ranks) + relayed;
  }
  return *std::ranges::max_element(held);
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

absl::Status Participant::CheckClock(VirtualDuration time, int times) const {
  if (time <= (kLastTime - now_) / times) return absl::OkStatus();
  return OutOfRange("{} times {} ps would end after the last {} ps of the communicator's clock",
                    times, time.count(), kLastTime.time_since_epoch().count());
}

absl::StatusOr<std::uint64_t> Participant::MoveData(const RunSpec& spec,
                                                    const PlannedPart& planned) {
  const Plan& plan = planned.plan;
  const Request& request = planned.part.request;
  const int ranks = RanksOf(planned.part);
  const TestPattern pattern =
      spec.ones ? TestPattern::Ones(request, spec.op, ranks, plan.sources)
                : TestPattern(request, spec.op, ranks, planned.seed, plan.sources);
  Buffers buffers;
  buffers.of_chip.resize(owner_.size());
  int first = 0;
  std::vector<std::pair<torus::ChipIndex, RankRange>> own;
  for (const Member& member : planned.part.members) {
    const RankRange range{.first = first, .count = member.ranks};
    first += member.ranks;
    if (OwnerOf(member.chip) != rank_) continue;
    own.emplace_back(member.chip, range);
    const std::uint64_t bytes = ChipBufferBytes(request, member.ranks);
    std::vector<std::byte>& memory =
        buffers.storage.emplace_back(bytes + plan.schedule.relay_bytes);
    buffers.of_chip.at(static_cast<std::size_t>(member.chip.value())) = memory;
    pattern.FillChip(range, std::span(memory).first(bytes));
  }
  for (std::size_t step = 0; step < plan.schedule.scheduled_count(); ++step) {
    TAHOMA_RETURN_IF_ERROR(RunStep(planned, step, spec, buffers));
  }
  const std::vector<std::byte> expected = pattern.Expected();
  std::uint64_t wrong = 0;
  for (const auto& [chip, range] : own) {
    const std::uint64_t bytes = ChipBufferBytes(request, range.count);
    wrong += pattern.CountWrong(range, buffers.of(chip).first(bytes), expected);
  }
  return wrong;
}

absl::Status Participant::RunStep(const PlannedPart& planned, std::size_t step, const RunSpec& spec,
                                  Buffers& buffers) {
  TAHOMA_RETURN_IF_ERROR(SendStep(planned, step, buffers));
  const Plan& plan = planned.plan;
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
    TAHOMA_ASSIGN_OR_RETURN(received[from], ReceiveFrom(from, planned, step, bytes, arrival[from]));
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

// Sends the data of this participant's chips to each other participant's, in the order of the step.
absl::Status Participant::SendStep(const PlannedPart& planned, std::size_t step,
                                   const Buffers& buffers) {
  const Plan& plan = planned.plan;
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
                  .step = static_cast<std::uint32_t>(planned.first_step + step),
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

absl::StatusOr<std::string> Participant::ReceiveFrom(int rank, const PlannedPart& planned,
                                                     std::size_t index, std::uint64_t bytes,
                                                     VirtualTime arrival) {
  const std::size_t step = planned.first_step + index;
  const VirtualTime departs = now_ + planned.plan.times.steps[index].departure.time_since_epoch();
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
