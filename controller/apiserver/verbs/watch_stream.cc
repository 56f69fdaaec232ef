#include "controller/apiserver/verbs/watch_stream.h"

#include <algorithm>
#include <utility>

#include "controller/apiserver/request/status_error.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

// The text handed over at once; its last line may make it twice as much. A slow reader makes us
// hold no more.
constexpr std::size_t kBytesPerRead = 32UL << 10U;
constexpr std::chrono::seconds kBookmarkEvery{60};

}  // namespace

// The receiver of the events, in their order.
class WatchStream::Output {
 public:
  virtual ~Output() = default;
  virtual void Added(const ObjectPtr& object) = 0;
  // `use_previous`: the object has left the selection and is sent in its previous state.
  virtual void Changed(const Event& event, Event::Type type, bool use_previous) = 0;
  virtual void Mark(const Json& bookmark) = 0;
  virtual void Fail(const Json& status) = 0;
  virtual bool full() const = 0;
};

class WatchStream::TextOutput final : public Output {
 public:
  explicit TextOutput(WatchStream& watch) : watch_(watch), out_(watch.pending_) {}

  void Added(const ObjectPtr& object) override {
    Pieces line = watch_.form_.AddedLine(*watch_.kind_, object, IsFirst(), watch_.clock_.WallNow());
    // A short line is given whole.
    if (line.size() < kBytesPerRead) return out_.Add(std::move(line).Text());
    out_.Append(std::move(line));
  }
  void Changed(const Event& event, Event::Type type, bool use_previous) override {
    auto line = watch_.form_.Line(*watch_.kind_, event, type, use_previous, IsFirst(),
                                  watch_.clock_.WallNow());
    const std::string_view text = *line;
    out_.Share(std::move(line), text);
  }
  void Mark(const Json& bookmark) override {
    out_.Add(
        watch_.form_.BookmarkLine(*watch_.kind_, bookmark, IsFirst(), watch_.clock_.WallNow()));
  }
  void Fail(const Json& status) override { out_.Add(watch_.form_.ErrorLine(status)); }
  bool full() const override { return out_.size() >= kBytesPerRead; }

 private:
  bool IsFirst() { return std::exchange(watch_.first_line_, false); }

  WatchStream& watch_;
  Pieces& out_;
};

class WatchStream::ObjectOutput final : public Output {
 public:
  ObjectOutput(const Kind& kind, const kube::EventSink& sink) : kind_(kind), sink_(sink) {}

  void Added(const ObjectPtr& object) override { TellVersion("ADDED", *object->body, nullptr); }
  void Changed(const Event& event, Event::Type type, bool use_previous) override {
    TellVersion(EventTypeName(type), use_previous ? *event.previous->body : *event.object->body,
                use_previous ? &event : nullptr);
  }
  void Mark(const Json& bookmark) override { Tell("BOOKMARK", bookmark); }
  void Fail(const Json& status) override { Tell("ERROR", status); }
  bool full() const override { return enough_; }

 private:
  void Tell(std::string_view type, const Json& object) {
    enough_ = enough_ || !sink_(type, object);
  }
  // Sends the object under the watched version's name, and with the version of the removing event.
  void TellVersion(std::string_view type, const Json& body, const Event* taken_by) {
    if (taken_by == nullptr && body.at("apiVersion") == kind_.api_version()) {
      return Tell(type, body);
    }
    Json told = body;
    told["apiVersion"] = kind_.api_version();
    if (taken_by != nullptr) {
      told["metadata"]["resourceVersion"] = std::to_string(taken_by->version());
    }
    Tell(type, told);
  }

  const Kind& kind_;
  const kube::EventSink& sink_;
  bool enough_ = false;
};

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
      answers_(request.answers),
      initial_(std::move(start.initial)),
      initial_hold_(std::move(start.hold)),
      position_(start.version),
      next_bookmark_(clock.MonotonicNow() + kBookmarkEvery) {}

bool WatchStream::Read(std::string& out, std::chrono::milliseconds wait) {
  if (pending_.empty() && !over_) {
    TextOutput text(*this);
    over_ = !ReadInto(text, wait) || !MakeRoomForPending();
  }
  pending_.DrainInto(out, kBytesPerRead);
  if (pending_.empty()) pending_hold_.reset();
  return !over_ || !pending_.empty();
}

// Text up to this size is small even for many slow readers, and needs no room.
bool WatchStream::MakeRoomForPending() {
  const std::size_t bytes = pending_.own_bytes();
  if (answers_ == nullptr || bytes <= 2 * kBytesPerRead) return true;
  pending_hold_ = answers_->Acquire(bytes);
  if (pending_hold_ == nullptr) pending_ = Pieces();
  return pending_hold_ != nullptr;
}

bool WatchStream::ReadEvents(const kube::EventSink& sink, std::chrono::milliseconds wait) {
  ObjectOutput objects(*kind_, sink);
  return ReadInto(objects, wait) && !objects.full();
}

bool WatchStream::ReadInto(Output& out, std::chrono::milliseconds wait) {
  if (!initial_done_) {
    SendInitial(out);
    return true;
  }
  const MonotonicTime now = clock_.MonotonicNow();
  if (now >= deadline_) return false;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - now);
  const absl::StatusOr<ObjectStore::Batch> batch =
      objects_.Next(resource_, position_, kWatchEventsPerRead,
                    std::min(wait, left + std::chrono::milliseconds(1)));
  if (!batch.ok()) {
    out.Fail(StatusObject(ExpiredError(
        fmt::format("too old resource version: {} ({})", position_, objects_.version()))));
    return false;
  }
  for (const EventPtr& event : batch->events) {
    Send(*event, out);
    position_ = event->version();
    if (out.full()) return true;
  }
  position_ = std::max(position_, batch->version);
  if (bookmarks_ && clock_.MonotonicNow() >= next_bookmark_) {
    out.Mark(Bookmark(false));
    next_bookmark_ = clock_.MonotonicNow() + kBookmarkEvery;
  }
  return true;
}

void WatchStream::SendInitial(Output& out) {
  while (initial_sent_ < initial_.size() && !out.full()) {
    out.Added(initial_[initial_sent_]);
    initial_[initial_sent_++].reset();
  }
  if (initial_sent_ < initial_.size()) return;
  initial_done_ = true;
  initial_ = {};
  initial_hold_.reset();
  if (end_bookmark_) out.Mark(Bookmark(true));
}

void WatchStream::Send(const Event& event, Output& out) {
  const std::string_view key = event.object->key;
  if (!key.starts_with(key_prefix_)) return;
  const bool is = event.type != Event::Type::kDeleted && selection_.Matches(*event.object->body);
  const bool was = event.previous != nullptr && selection_.Matches(*event.previous->body);
  if (!is && !was) return;
  const Event::Type type = is && was ? Event::Type::kModified
                           : is      ? Event::Type::kAdded
                                     : Event::Type::kDeleted;
  // An object that leaves the selection is sent in its last selected state.
  const bool use_previous = type == Event::Type::kDeleted && event.type != Event::Type::kDeleted;
  out.Changed(event, type, use_previous);
}

Json WatchStream::Bookmark(bool initial_end) const {
  Json object = {{"kind", kind_->kind},
                 {"apiVersion", kind_->api_version()},
                 {"metadata", {{"resourceVersion", std::to_string(position_)}}}};
  if (initial_end) {
    object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  }
  return object;
}

}  // namespace tahoma::controller::apiserver
