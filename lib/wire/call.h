// Calls over the wire: one frame in each direction with the same id.
//
//   Client client("unix:/run/tahoma/node.sock");
//   absl::StatusOr<Reply> reply = client.Call({.method = "devices", .params = params}, 5s);
//
// A failed call carries the server's Status as it was: code and message.
//
// Scope: the envelope. The methods and their parameters are messages.h; docs/formats/wire.md lists
// them all.
//
// Thread safety: a Client may be used from any thread; calls wait for one another.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lib/base/mutex.h"
#include "lib/wire/frame.h"
#include "lib/wire/socket.h"

namespace tahoma::wire {

struct Request {
  std::string method = {};    // 1 to 64 characters
  std::string params = "{}";  // a JSON object
  std::string payload = {};   // raw bytes
  // At a server: false once the caller has closed its connection. Empty: nobody can tell.
  std::function<bool()> wanted = nullptr;
};

struct Reply {
  std::string result = "{}";  // a JSON object
  std::string payload = {};   // raw bytes
};

// A request with the id its reply must carry.
struct NumberedRequest {
  std::uint64_t id = 0;
  Request request;
};

absl::StatusOr<Frame> EncodeRequest(std::uint64_t id, const Request& request);
absl::StatusOr<NumberedRequest> DecodeRequest(Frame frame);
absl::StatusOr<Frame> EncodeReply(std::uint64_t id, absl::StatusOr<Reply> reply);
// Returns the server's reply or error to call `id`. kInternal when the frame answers another call,
// kInvalidArgument when it is no reply.
absl::StatusOr<Reply> DecodeReply(std::uint64_t id, Frame frame);

// Makes one call on a connection that carries only calls, one at a time. When no reply comes within
// `timeout` (kDeadlineExceeded) or the reply is to another call (kInternal), the connection is shut
// down: a late reply would be taken for that of the next call.
absl::StatusOr<Reply> Call(Connection& connection, std::uint64_t id, const Request& request,
                           std::chrono::milliseconds timeout);

// Dials at the first call, and again at the first call after a failure.
class Client {
 public:
  explicit Client(std::string address) : address_(std::move(address)) {}

  // kUnavailable when the server cannot be reached, or when the connection broke during the call:
  // the server may then have carried it out. A kept connection that the server has closed in the
  // meantime is replaced before the call.
  absl::StatusOr<Reply> Call(const Request& request, std::chrono::milliseconds timeout);

  // Makes the call that is running and all later ones fail with kUnavailable.
  void Close();

  const std::string& address() const { return address_; }

 private:
  absl::StatusOr<std::shared_ptr<Connection>> Connected(std::chrono::milliseconds timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_mutex_);

  const std::string address_;
  Mutex call_mutex_;  // one call at a time; locked before mutex_
  std::uint64_t last_id_ ABSL_GUARDED_BY(call_mutex_) = 0;
  Mutex mutex_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma::wire
