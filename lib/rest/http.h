// Serves a request of a connection: asks the gate, calls the handler, and sends its answer or
// stream.
//
// An exception of a handler, a gate or a stream's source becomes a 500, or the end of the stream;
// the thread and the next request go on.
//
// Scope: answers. lib/rest/server.cc gives connections their threads.
//
// Thread safety: Serve from many threads, each with a connection of its own.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lib/rest/connection.h"
#include "lib/rest/message.h"
#include "lib/rest/metrics.h"
#include "lib/rest/server.h"

namespace tahoma::rest {

class Http {
 public:
  using Answer = std::function<Response(Request& request)>;

  // `gate` is asked before a body is read, `answer` when the request is whole.
  Http(const ServerOptions& options, Metrics& metrics, Gate gate, Answer answer);

  // Serves a ready connection: asks the gate and lets the body come, or answers. Bytes that do not
  // fit into the socket stay with the connection; a stream keeps this thread until the stream's
  // end.
  void Serve(Connection& connection);
  // Answers in a handler's place, and closes.
  void Refuse(Connection& connection, int status, std::string_view detail);
  // Returns the bytes of a refusal, for a client whose connection is not taken.
  std::string Refusal(int status, std::string_view detail) const;
  // Ends each stream when the stream is served next.
  void EndStreams() { ending_ = true; }

 private:
  std::optional<Response> Guarded(const Request& request,
                                  const std::function<std::optional<Response>()>& call) const;
  Response ProblemOf(int status, std::string_view detail) const;
  void Finish(Connection& connection, Response answer, bool keep);
  void Stream(Connection& connection, Response answer, bool keep);
  void Upgrade(Connection& connection, Response answer);
  // False when the stream did not end in order.
  bool Feed(Connection& connection, const StreamSource& source, bool chunked);
  void Log(const Request& request, std::string_view what) const;
  void Count(int status);

  static constexpr int kFirstStatus = 100;
  static constexpr std::size_t kStatuses = 500;

  const ServerOptions& options_;
  Metrics& metrics_;
  const Gate gate_;
  const Answer answer_;
  Gauge& streams_;
  Histogram& seconds_;
  // The counter of each status, from kFirstStatus on; null before the first answer with the status.
  std::array<std::atomic<Counter*>, kStatuses> answered_{};
  std::atomic<int> open_streams_ = 0;
  std::atomic<bool> ending_ = false;
};

}  // namespace tahoma::rest
