// A Kubernetes API server at an address, over HTTP/1.1 with or without TLS.
//
//   absl::StatusOr<std::unique_ptr<HttpTransport>> transport = HttpTransport::Create(
//       {.server = "https://10.0.0.1:6443", .ca_pem = ca, .token_file = "/var/run/…/token"});
//   (*transport)->Send({.method = "GET", .target = "/version"});
//
// Download serves answers that are too large for memory, piece by piece.
//
//   (*transport)->Download({.target = "/logs"}, [&](int code) { status = code; },
//                          [&](std::string_view piece) { return Print(piece); }, 60s);
//
// Connections are kept and used again, at most `max_idle_connections`. A broken answer is
// kUnavailable. A token file is read again when it changes; while the file is empty the last token
// serves.
//
// Scope: bytes to a single server. Proxies and redirects are not followed.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/kube/transport.h"

namespace tahoma::kube {

struct ServerAccess {
  std::string server = {};  // "https://host:port", "http://127.0.0.1:8001"
  std::string ca_pem = {};  // the certificates of the CAs to trust; empty: the machine's
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name = {};  // the name in its certificate; empty: the host
  std::string client_cert_pem = {};  // the client's certificate and key: both or none
  std::string client_key_pem = {};
  std::string token = {};
  std::string token_file = {};  // wins over `token`
  // Act as this user, or as a member of these groups too, if the server lets the caller. Without a
  // user the others are refused.
  std::string impersonate_user = {};
  std::string impersonate_uid = {};
  std::vector<std::string> impersonate_groups = {};
  std::vector<std::pair<std::string, std::vector<std::string>>> impersonate_extra = {};
  std::string default_namespace = "default";
};

struct HttpLimits {
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds request_timeout = std::chrono::seconds(60);  // without any byte
  std::size_t max_body_bytes = 256 << 20;
  std::size_t max_line_bytes = 8 << 20;
  // The most bytes of an answer besides its content: its head, and the lines between chunks.
  std::size_t max_framing_bytes = 1 << 20;
  std::size_t max_idle_connections = 32;
};

// Learns the status of an answer before its content.
using StatusSink = std::function<void(int status)>;
// Receives the content of an answer piece by piece. Returning false ends the answer.
using PieceSink = std::function<bool(std::string_view piece)>;

class HttpTransport final : public Transport {
 public:
  // kInvalidArgument for an address, certificate, key or impersonated name that cannot be used.
  // `warn` gets a line when the token would be sent without TLS to another machine.
  static absl::StatusOr<std::unique_ptr<HttpTransport>> Create(
      ServerAccess access, HttpLimits limits = {},
      const std::function<void(const std::string& line)>& warn = {});
  ~HttpTransport() override;

  absl::StatusOr<Response> Send(const Request& request) override;
  absl::StatusOr<Response> Stream(const Request& request, const LineSink& sink,
                                  std::chrono::milliseconds idle_timeout) override;

  // Sends a request with an answer of any length. With status 200 the content goes to `pieces`, a
  // few KiB at a time, and reading pauses while `pieces` runs; otherwise the content is in
  // Response::body. `status` is called first. kUnavailable when the content breaks off,
  // kDeadlineExceeded when nothing arrived for `idle_timeout`.
  absl::StatusOr<Response> Download(const Request& request, const StatusSink& status,
                                    const PieceSink& pieces,
                                    std::chrono::milliseconds idle_timeout);

  // Ends all requests and streams with kUnavailable, and refuses further requests.
  void Shutdown();

 private:
  class Impl;
  explicit HttpTransport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tahoma::kube
