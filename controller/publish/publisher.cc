#include "controller/publish/publisher.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "lib/base/status.h"
#include "lib/kube/answer.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kBatch = 16;
// How many events' counts are kept; when full, counting begins anew.
constexpr std::size_t kToldMost = 16'384;

ApiResult ReadOrFail(const ApiWrite& write, const absl::StatusOr<kube::Response>& answer) {
  try {
    return ReadAnswer(write, answer);
  } catch (const std::exception& error) {
    return ReadAnswer(write, Internal("the answer could not be read: {}", error.what()));
  }
}

std::vector<absl::StatusOr<kube::Response>> NotSent(std::size_t count) {
  return {count, Unavailable("this controller does not lead")};
}

}  // namespace

Publisher::Publisher(kube::Transport& transport, const Clock& clock,
                     const PublisherOptions& options, Sink sink)
    : transport_(transport),
      clock_(clock),
      options_(options),
      sink_(std::move(sink)),
      queue_(options.queue),
      events_(options.event_queue),
      allocate_by_(options.allocate_by),
      tokens_(options.event_burst),
      refilled_(clock.MonotonicNow()),
      busy_since_(static_cast<std::size_t>(options.threads)) {
  for (auto& since : busy_since_) threads_.emplace_back([this, &since] { Work(since); });
  threads_.emplace_back([this] { WorkOnEvents(); });
}

Publisher::~Publisher() {
  stopping_ = true;
  queue_.Close();
  events_.Close();
  for (std::thread& thread : threads_) thread.join();
}

void Publisher::Publish(std::vector<ApiWrite> writes) {
  for (ApiWrite& write : writes) {
    if (!std::holds_alternative<EventNote>(write.what)) {
      queue_.Push(std::move(write));
    } else if (!events_.TryPush(std::move(write))) {
      ++dropped_;
    }
  }
}

std::chrono::nanoseconds Publisher::LongestWait() const {
  const std::int64_t now = clock_.MonotonicNow().time_since_epoch().count();
  std::int64_t longest = 0;
  for (const auto& busy_since : busy_since_) {
    if (const std::int64_t since = busy_since; since != 0) longest = std::max(longest, now - since);
  }
  return std::chrono::nanoseconds(longest);
}

void Publisher::Work(std::atomic<std::int64_t>& busy_since) {
  for (;;) {
    const std::vector<ApiWrite> writes = queue_.PopAll(options_.together);
    if (writes.empty()) return;
    busy_since = clock_.MonotonicNow().time_since_epoch().count();
    if (!stopping_) SendTogether(writes);
    busy_since = 0;
  }
}

// Sends the writes. An exception in one write must stop neither the other writes nor this thread:
// the write counts as failed, and its run tries again or undoes, as after any failure.
void Publisher::SendTogether(const std::vector<ApiWrite>& writes) {
  std::vector<kube::Request> requests;
  std::vector<const ApiWrite*> sent;
  for (const ApiWrite& write : writes) {
    try {
      kube::Request request = Render(write, allocate_by_);
      if (auto result = ResultIfShown(write, request)) {
        sink_(*std::move(result));
        continue;
      }
      requests.push_back(std::move(request));
      sent.push_back(&write);
    } catch (const std::exception& error) {
      sink_(ReadAnswer(write, Internal("the request could not be made: {}", error.what())));
    }
  }
  std::vector<absl::StatusOr<kube::Response>> answers;
  try {
    answers = MaySend() ? transport_.SendAll(requests) : NotSent(sent.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const bool is_forbidden = answers[i].ok() && answers[i]->status == 403;
      if (is_forbidden && requests[i].method == "PUT") answers[i] = SendAsPatch(*sent[i]);
    }
  } catch (const std::exception& error) {
    answers.assign(sent.size(), Internal("the request could not be sent: {}", error.what()));
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    sink_(ReadOrFail(*sent[i], answers[i]));
  }
}

absl::StatusOr<kube::Response> Publisher::SendAsPatch(const ApiWrite& write) {
  auto answer = transport_.Send(Render(write, AllocateBy::kPatch));
  if (kube::StatusOf(answer).ok()) allocate_by_ = AllocateBy::kPatch;
  return answer;
}

void Publisher::WorkOnEvents() {
  for (;;) {
    const std::vector<ApiWrite> events = events_.PopAll(kBatch);
    if (events.empty()) return;
    for (const ApiWrite& write : events) {
      if (stopping_) break;
      if (!SpendToken() || !MaySend() || !TrySendEvent(std::get<EventNote>(write.what))) ++dropped_;
    }
  }
}

bool Publisher::SpendToken() {
  const MonotonicTime now = clock_.MonotonicNow();
  const std::chrono::duration<double> passed = now - refilled_;
  refilled_ = now;
  tokens_ =
      std::min<double>(options_.event_burst, tokens_ + passed.count() * options_.events_per_second);
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

bool Publisher::TrySendEvent(const EventNote& event) {
  try {
    SendEvent(event);
    return true;
  } catch (const std::exception&) {
    return false;  // one event's mistake must not end the thread
  }
}

// Sends one event, best effort: an event that cannot be written is lost.
void Publisher::SendEvent(const EventNote& event) {
  if (told_.size() >= kToldMost) told_.clear();
  const std::string name = EventName(event);
  int& count = told_[name];
  ++count;
  if (count > 1) {
    const auto answer = transport_.Send(RenderEventRepeat(event, name, count));
    const kube::Outcome outcome = kube::OutcomeOf(kube::StatusOf(answer));
    if (answer.ok() && outcome != kube::Outcome::kNotFound) return;
  }
  const auto answer = transport_.Send(RenderEvent(event, name, count));
  // The event was sent before this program started.
  if (kube::OutcomeOf(kube::StatusOf(answer)) == kube::Outcome::kConflict) {
    count = std::max(count, 2);
    (void)transport_.Send(RenderEventRepeat(event, name, count));
  }
}

}  // namespace tahoma::controller
