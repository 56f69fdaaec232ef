// An HTTP server: routes, probes, metrics, authentication, and streams that stay open.
//
//   rest::Metrics metrics;
//   rest::Server server({.address = "127.0.0.1:0"}, metrics);
//   server.Route("GET", "/v1/gangs/{name}", [&](const rest::Request& request) {
//     return rest::Response::Json(200, Show(request.param("name")));
//   });
//   server.Raw(handler);                                         // whatever no route matches
//   TAHOMA_RETURN_IF_ERROR(server.Start());
//   fmt::print("serving on {}\n", server.address());             // the bound port
//
// `/healthz`, `/livez`, `/readyz` (lib/rest/probes.h) and `/metrics` are answered unless a route of
// the same path is given. Errors of routing are RFC 9457 problems.
//
// Threads: one thread receives from all connections and sends the bytes that slow clients left; two
// more do TLS handshakes. A thread of an elastic pool asks the gate when a head has come, and the
// handler when the request is whole, so a client that sends half a request or reads half an answer
// holds no thread. An open stream keeps its thread. Streams can never take the pool's last
// `reserved_threads`; further streams are answered 429 with Retry-After. A reader that is too slow
// is cut after `write_timeout` and delays no other reader. Probes and /metrics have threads of
// their own (docs/design/0009-http-server.md).
//
// Scope: HTTP/1.1. The handlers know the meaning of requests.
//
// Thread safety: Route and Raw before Start; SetReady, address and Stop from any thread after it.
// Handlers are called from many threads at the same time.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/rest/message.h"
#include "lib/rest/metrics.h"
#include "lib/rest/probes.h"

namespace tahoma::rest {

struct TlsOptions {
  std::string cert_file = {};  // PEM, the server's chain; empty: plain HTTP
  std::string key_file = {};
  std::string client_ca_file = {};  // empty: client certificates are not asked for
  // False: a client without a certificate may connect (and has no Request::client).
  bool require_client_certificate = false;
};

struct ServerOptions {
  std::string address = "127.0.0.1:0";  // host:port, [v6]:port; port 0: any
  TlsOptions tls = {};
  std::size_t max_body_bytes = 3 << 20;  // as Kubernetes limits a request
  std::size_t max_header_bytes = 64 << 10;
  // The most bytes of incomplete requests and of unsent answers, for all connections together and
  // for the connections of a client. Beyond a bound the oldest connections are closed.
  std::size_t max_buffered_bytes = 512 << 20;
  std::size_t max_buffered_bytes_per_client = 384 << 20;
  int max_threads = 2048;
  int reserved_threads = 64;
  // At most half the descriptors of the process, even with a larger value.
  int max_connections = 16'384;
  int max_connections_per_client = 0;  // 0: three quarters of max_connections
  std::size_t thread_stack_bytes = 512 << 10;
  // The time for a handshake, a head, and a body's beginning.
  std::chrono::milliseconds request_timeout = std::chrono::seconds(15);
  std::chrono::milliseconds write_timeout = std::chrono::seconds(10);  // without any progress
  // Bytes per second that a body or an answer must move when it takes longer.
  std::size_t least_rate = 32 << 10;
  std::chrono::milliseconds keep_alive = std::chrono::seconds(120);
  // The longest single wait of a stream's source, and so the delay until a lost reader is noticed.
  std::chrono::milliseconds stream_wait = std::chrono::milliseconds(500);
  // The time for running requests to end at Stop; then their connections are cut.
  std::chrono::milliseconds stop_grace = std::chrono::seconds(5);
  // The names under which callers may call, and from which pages may call (lib/rest/site_check.h),
  // beside loopback, the address's own names and the certificate's.
  std::vector<std::string> allowed_hosts = {};
  // The probes /livez and /readyz, shared with other servers; null: the server's own.
  std::shared_ptr<Probes> probes = {};
  // Makes the server's own answers: 400 to bytes other than HTTP, 403, 408, 500.
  std::function<Response(int status, std::string_view detail)> problem = Response::Problem;
  // Gets a line per exception of a handler and per danger at Start. Called from many threads.
  std::function<void(const std::string& line)> log = {};
};

using Handler = std::function<Response(const Request& request)>;
// Returns nothing to go on, or the answer; with an answer the body is not read. A gate sees only
// the head and may write the caller to Request::identity.
using Gate = std::function<std::optional<Response>(Request& head)>;

class Server {
 public:
  // `metrics` must outlive the server.
  Server(ServerOptions options, Metrics& metrics);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // `pattern` is a path with {names} for whole segments: "/v1/gangs/{name}/members". A last
  // "{name...}" takes all remaining segments. HEAD is answered by GET's handler.
  void Route(const std::string& method, const std::string& pattern, Handler handler);
  // Sets the handler of every request without a route, with method and path untouched.
  void Raw(Handler handler);
  // Sets the gate, called before every handler but the probes', when a request's head has come and
  // before its body is received.
  void SetGate(Gate gate);
  // Sets why /readyz fails; empty: only checks decide. The server is ready from the start.
  void SetReady(const std::string& reason_if_not);

  // Whether Start would succeed now; serves no request. For programs that must know before they
  // change anything.
  static absl::Status Check(const ServerOptions& options);
  // Binds and serves on threads of its own. kInvalidArgument for an unusable address or
  // certificate, kUnavailable when the address is in use.
  absl::Status Start();
  // Stops accepting, closes idle connections, tells streams to end and lets running requests end.
  // After `stop_grace` cuts the connections of handlers that still run, which ends their waits for
  // clients. Returns when every handler has returned: a handler that never returns holds Stop for
  // ever, because the handler may use objects that the caller is about to destroy. The destructor
  // calls Stop.
  void Stop();

  int port() const;             // the bound port, after Start
  std::string address() const;  // host:port, after Start
  std::string url() const;      // http(s)://host:port, after Start

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tahoma::rest
