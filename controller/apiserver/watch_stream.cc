#include "controller/apiserver/watch_stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/apiserver/status_error.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kEventsPerRead = 256;
// Text handed over at once; a slow reader makes us hold no more than this.
constexpr std::size_t kBytesPerRead = 256UL << 10U;
constexpr std::chrono::seconds kBookmarkEvery{60};

}  // namespace

WatchStream::WatchStream(const ObjectStore& objects, const Clock& clock, const ApiRequest& request,
                         Representation form, Selection selection, Start start)
    : objects_(objects),
      clock_(clock),
      kinds_(request.kinds),
      kind_(request.kind),
      resource_(request.resource()),
      key_prefix_(request.key_prefix()),
      form_(form),
      selection_(std::move(selection)),
      bookmarks_(start.bookmarks),
      end_bookmark_(start.end_bookmark),
      deadline_(clock.MonotonicNow() + start.timeout),
      initial_(std::move(start.initial)),
      position_(start.version),
      next_bookmark_(clock.MonotonicNow() + kBookmarkEvery) {}

bool WatchStream::Read(std::string& out, std::chrono::milliseconds wait) {
  if (!initial_done_) {
    SendInitial(out);
    return true;
  }
  const MonotonicTime now = clock_.MonotonicNow();
  if (now >= deadline_) return false;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - now);
  const absl::StatusOr<ObjectStore::Batch> batch = objects_.Next(
      resource_, position_, kEventsPerRead, std::min(wait, left + std::chrono::milliseconds(1)));
  if (!batch.ok()) {
    const nlohmann::json status = StatusObject(ExpiredError(
        fmt::format("too old resource version: {} ({})", position_, objects_.version())));
    out += fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n", status.dump());
    return false;
  }
  for (const EventPtr& event : batch->events) {
    Send(*event, out);
    position_ = event->version();
    if (out.size() >= kBytesPerRead) return true;
  }
  position_ = std::max(position_, batch->version);
  if (bookmarks_ && clock_.MonotonicNow() >= next_bookmark_) {
    out += Bookmark(false);
    next_bookmark_ = clock_.MonotonicNow() + kBookmarkEvery;
  }
  return true;
}

void WatchStream::SendInitial(std::string& out) {
  const WallTime now = clock_.WallNow();
  while (initial_sent_ < initial_.size() && out.size() < kBytesPerRead) {
    out += form_.AddedLine(*kind_, *initial_[initial_sent_], first_line_, now);
    first_line_ = false;
    initial_[initial_sent_++].reset();
  }
  if (initial_sent_ < initial_.size()) return;
  initial_done_ = true;
  initial_ = {};
  if (end_bookmark_) out += Bookmark(true);
}

void WatchStream::Send(const Event& event, std::string& out) {
  const std::string_view key = event.object->key;
  if (!key.starts_with(key_prefix_)) return;
  const bool is = event.type != Event::Type::kDeleted && selection_.Matches(*event.object->body);
  const bool was = event.previous != nullptr && selection_.Matches(*event.previous->body);
  if (!is && !was) return;
  const Event::Type type = is && was ? Event::Type::kModified
                           : is      ? Event::Type::kAdded
                                     : Event::Type::kDeleted;
  // An object that leaves the selection is sent as it was while it belonged to it.
  const bool use_previous = type == Event::Type::kDeleted && event.type != Event::Type::kDeleted;
  out += *form_.Line(*kind_, event, type, use_previous, first_line_, clock_.WallNow());
  first_line_ = false;
}

std::string WatchStream::Bookmark(bool initial_end) const {
  nlohmann::json object = {{"kind", kind_->kind},
                           {"apiVersion", kind_->api_version()},
                           {"metadata", {{"resourceVersion", std::to_string(position_)}}}};
  if (initial_end) {
    object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  }
  return fmt::format("{{\"type\":\"BOOKMARK\",\"object\":{}}}\n", object.dump());
}

}  // namespace tahoma::controller
