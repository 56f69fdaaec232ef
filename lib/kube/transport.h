// Reaches a Kubernetes API server: a request and its answer, or a stream of lines.
//
//   absl::StatusOr<Response> got =
//       transport.Send({.method = "GET", .target = "/api/v1/nodes?limit=500"});
//   if (got.ok() && got->status == 404) …       // an HTTP error is an answer, not a failed Status
//
// Implementations: HttpTransport (a server at an address), the standalone API server called in the
// same process without sockets, and the simulator's, which loses and delays.
//
// Scope: bytes. Objects, retries and caches are built on it in this library.
//
// Thread safety: Send and Stream may be called from any thread at the same time.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::kube {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method = "GET";
  std::string target = {};  // path and query, percent-encoded: "/api/v1/pods?labelSelector=a%3Db"
  Headers headers = {};
  std::string body = {};
  // The value of the body, instead of `body`: a server in this process need not parse the text.
  std::shared_ptr<const tahoma::Json> parsed = {};

  // Returns the body as sent.
  std::string Text() const;
};

struct Response {
  int status = 0;
  Headers headers = {};
  std::string body = {};
  // The value of `body`, from a server in this process, which may leave the text empty.
  std::shared_ptr<const tahoma::Json> parsed = {};

  // Returns the body as a value; a discarded value (nlohmann's) when the body is not JSON.
  std::shared_ptr<const tahoma::Json> Json() const;

  // Returns the first header of the name, compared without case; empty without such a header.
  std::string_view header(std::string_view name) const;
};

// Receives the lines of a stream, without their newline. Returning false ends the stream.
using LineSink = std::function<bool(std::string_view line)>;

// Receives the events of a watch: "ADDED" and the object, which lives during the call; or "ERROR"
// and a Status. Returning false ends the watch.
using EventSink = std::function<bool(std::string_view type, const tahoma::Json& object)>;

class Transport {
 public:
  virtual ~Transport() = default;

  // Waits for the whole answer. kUnavailable when no answer came (refused, reset, half a message),
  // kDeadlineExceeded when it took too long; the request may or may not have been carried out.
  virtual absl::StatusOr<Response> Send(const Request& request) = 0;

  // Sends independent requests; returns the answers in the same order. The requests go one after
  // the other, except to a server in the same process: there they wait for the disk together.
  virtual std::vector<absl::StatusOr<Response>> SendAll(const std::vector<Request>& requests);

  // Sends a request for a watch or `logs -f`. Returns the answer's head; with status 200 the body
  // went to `sink` line by line, otherwise the body is in Response::body. Ends when the server ends
  // the stream, `sink` returns false, or nothing arrived for `idle_timeout`.
  virtual absl::StatusOr<Response> Stream(const Request& request, const LineSink& sink,
                                          std::chrono::milliseconds idle_timeout) = 0;

  // As Stream for a watch, event by event. A line that is no event is given as "" and null. A
  // server in the same process hands its objects over without a text.
  virtual absl::StatusOr<Response> Watch(const Request& request, const EventSink& sink,
                                         std::chrono::milliseconds idle_timeout);
};

}  // namespace tahoma::kube
