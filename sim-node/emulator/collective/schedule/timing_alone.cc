#include "sim-node/emulator/collective/schedule/timing_alone.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {
namespace {

constexpr std::size_t kChips = Fabric::kChipsPerDomain;

// All sends of a step between the same two chips.
struct Message {
  std::size_t route = 0;
  std::uint64_t bytes = 0;
};

struct Route {
  std::vector<LinkId> links;
  std::uint64_t rate = 0;  // of the slowest link; 0 without links
  VirtualDuration latency{};
};

// The messages of one step after the other.
class StepMessages {
 public:
  StepMessages(const TorusLinks& links, torus::ChipMask through)
      : links_(links), through_(through), last_use_(links.id_count()) {
    route_of_.fill(kNone);
  }

  // False when two of them have a link in common, or one has no route of the torus.
  bool Take(const Step& step) {
    ++steps_;
    messages_.clear();
    of_send_.clear();
    for (const Send& send : step) {
      if (send.route != 0 || send.mesh != 0) return false;
      if (std::max(send.from.value(), send.to.value()) >= Fabric::kChipsPerDomain) return false;
      const std::size_t pair = static_cast<std::size_t>(send.from.value()) * kChips +
                               static_cast<std::size_t>(send.to.value());
      if (route_of_[pair] == kNone && !AddRoute(send, pair)) return false;
      const std::uint32_t route = route_of_[pair];
      auto& [step_of_message, message] = message_of_[route];
      if (std::exchange(step_of_message, steps_) != steps_) {
        if (!UseLinks(route)) return false;
        message = static_cast<std::uint32_t>(messages_.size());
        messages_.push_back({.route = route});
      }
      messages_[message].bytes += send.bytes;
      of_send_.push_back(message);
    }
    return true;
  }

  const std::vector<Message>& all() const { return messages_; }
  const Route& RouteOf(const Message& message) const { return routes_[message.route]; }
  const std::vector<std::uint32_t>& of_send() const { return of_send_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  bool AddRoute(const Send& send, std::size_t pair) {
    auto found = links_.FindRoute(send.from, send.to, through_);
    if (!found.ok()) return false;
    Route route{.links = *std::move(found)};
    for (const LinkId link : route.links) {
      const std::uint64_t rate = links_.capacity(link);
      route.rate = route.rate == 0 ? rate : std::min(route.rate, rate);
    }
    route.latency = links_.LatencyOf(route.links);
    route_of_[pair] = static_cast<std::uint32_t>(routes_.size());
    routes_.push_back(std::move(route));
    message_of_.emplace_back();
    return true;
  }

  bool UseLinks(std::uint32_t route) {
    return std::ranges::all_of(routes_[route].links, [this](LinkId link) {
      return std::exchange(last_use_[link], steps_) != steps_;
    });
  }

  const TorusLinks& links_;
  const torus::ChipMask through_;
  std::array<std::uint32_t, kChips * kChips> route_of_{};
  std::vector<Route> routes_;
  // By route, the last step that took it, and its message there.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> message_of_;
  std::vector<std::uint64_t> last_use_;  // step, by link
  std::uint64_t steps_ = 0;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> of_send_;
};

// Times one step after the other.
class StepTimer {
 public:
  StepTimer(const Schedule& schedule, const TorusLinks& links, VirtualTime start)
      : schedule_(schedule),
        links_(links),
        messages_(links, schedule.through),
        first_(start + schedule.before),
        links_free_(first_),
        memory_free_(first_) {
    times_.start = start;
    times_.end = first_ + schedule.after;
    times_.steps.reserve(schedule.steps.size());
  }

  // False when the messages of the next step do not have the links for themselves.
  bool Next() {
    const std::size_t index = times_.steps.size();
    if (!messages_.Take(schedule_.steps[index])) return false;
    const StepWork work = index < schedule_.work.size() ? schedule_.work[index] : StepWork{};
    const VirtualTime ready =
        index < schedule_.stripes ? first_ : times_.steps[index - schedule_.stripes].end;
    StepTimes step;
    step.departure = std::max(ready + links_.timing().step + work.start, links_free_);
    step.end = links_free_ = step.departure;
    Send(step);
    if (work.memory > VirtualDuration(0)) {
      memory_free_ = std::max(memory_free_, step.departure) + work.memory;
      step.end = std::max(step.end, memory_free_);
    }
    times_.end = std::max(times_.end, step.end + schedule_.after);
    times_.flows += messages_.all().size();
    times_.steps.push_back(std::move(step));
    return true;
  }

  ScheduleTimes TakeTimes() { return std::move(times_); }

 private:
  void Send(StepTimes& step) {
    arrivals_.clear();
    for (const Message& message : messages_.all()) {
      const Route& route = messages_.RouteOf(message);
      VirtualTime sent = step.departure;
      if (route.rate != 0) sent += TransferTime(message.bytes, route.rate);
      links_free_ = std::max(links_free_, sent);
      arrivals_.push_back(sent + route.latency);
      step.end = std::max(step.end, arrivals_.back());
    }
    step.arrivals.reserve(messages_.of_send().size());
    for (const std::uint32_t message : messages_.of_send()) {
      step.arrivals.push_back(arrivals_[message]);
    }
  }

  const Schedule& schedule_;
  const TorusLinks& links_;
  StepMessages messages_;
  const VirtualTime first_;
  VirtualTime links_free_;
  VirtualTime memory_free_;
  std::vector<VirtualTime> arrivals_;  // of the messages of a step
  ScheduleTimes times_;
};

}  // namespace

std::optional<ScheduleTimes> TimeAlone(const Schedule& schedule, const TorusLinks& links,
                                       VirtualTime start) {
  if (!schedule.scheduled.empty()) return std::nullopt;
  StepTimer timer(schedule, links, start);
  for (std::size_t step = 0; step < schedule.steps.size(); ++step) {
    if (!timer.Next()) return std::nullopt;
  }
  return timer.TakeTimes();
}

}  // namespace tahoma::sim
