// One open watch.
//
//   auto watch = std::make_shared<WatchStream>(objects, clock, request, form, selection, start);
//   response.source = [watch](std::string& out, std::chrono::milliseconds wait) {
//     return watch->Read(out, wait);
//   };
//
// A watch has no queue: it reads the resource's event log from a position of its own, and ends with
// an ERROR event (410) when the log has dropped that position. Lines are made once and shared;
// readers in this process take the objects themselves (ReadEvents). A slow reader holds at most 64
// KiB of text. Text beyond that needs room in ApiRequest::answers; without room the watch ends.
//
// Thread safety: one reader.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/request/api_request.h"
#include "controller/apiserver/request/pieces.h"
#include "controller/apiserver/request/representation.h"
#include "controller/apiserver/request/selection.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/byte_budget.h"
#include "lib/base/clock.h"
#include "lib/kube/transport.h"

namespace tahoma::controller::apiserver {

// The most events of a read; the selection may take none of them.
inline constexpr std::size_t kWatchEventsPerRead = 256;

class WatchStream {
 public:
  struct Start {
    std::int64_t version = 0;        // events after this
    std::vector<ObjectPtr> initial;  // sent first, as ADDED
    ByteBudget::Hold hold;           // of the initial list, until it is sent
    bool end_bookmark = false;       // then a BOOKMARK with k8s.io/initial-events-end
    bool bookmarks = false;          // a bookmark each minute
    std::chrono::seconds timeout = std::chrono::seconds(1800);
  };

  // `objects` and `clock` must outlive the stream.
  WatchStream(const ObjectStore& objects, const Clock& clock, const ApiRequest& request,
              Representation form, Selection selection, Start start);

  // The media type of Read's bytes.
  std::string_view media_type() const { return form_.stream_type(); }
  // As rest::StreamSource: appends lines to `out`, waiting at most `wait`; false at the end.
  bool Read(std::string& out, std::chrono::milliseconds wait);
  // Gives the same events as whole objects; the stream also ends when `sink` has had enough.
  bool ReadEvents(const kube::EventSink& sink, std::chrono::milliseconds wait);

 private:
  class Output;
  class TextOutput;
  class ObjectOutput;

  bool MakeRoomForPending();
  bool ReadInto(Output& out, std::chrono::milliseconds wait);
  void SendInitial(Output& out);
  void Send(const Event& event, Output& out);
  Json Bookmark(bool initial_end) const;

  const ObjectStore& objects_;
  const Clock& clock_;
  const std::shared_ptr<const KindTable> kinds_;  // keeps kind_ alive
  const Kind* const kind_;
  const ResourceName resource_;
  const std::string key_prefix_;
  const Representation form_;
  const Selection selection_;
  const bool bookmarks_;
  const bool end_bookmark_;
  const MonotonicTime deadline_;
  ByteBudget* const answers_;
  std::vector<ObjectPtr> initial_;
  ByteBudget::Hold initial_hold_;
  std::size_t initial_sent_ = 0;
  bool initial_done_ = false;
  std::int64_t position_;
  MonotonicTime next_bookmark_;
  bool first_line_ = true;
  Pieces pending_;  // text that Read has not returned yet
  ByteBudget::Hold pending_hold_;
  bool over_ = false;
};

}  // namespace tahoma::controller::apiserver
