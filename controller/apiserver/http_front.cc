#include "controller/apiserver/http_front.h"

#include <optional>
#include <utility>

#include "controller/apiserver/decode_body.h"
#include "controller/apiserver/status_error.h"
#include "lib/base/status.h"
#include "lib/rest/bearer.h"
#include "lib/rest/loopback.h"

namespace tahoma::controller {
namespace {

// The Status-shaped 401, or nothing when the caller may go on.
std::optional<rest::Response> Authenticate(const HttpFrontOptions& options,
                                           const rest::Request& head) {
  const bool open = options.bearer_token.empty() && options.tls.client_ca_file.empty();
  if (open || head.client) return std::nullopt;
  const auto given = rest::BearerToken(head.header("Authorization"));
  if (given && rest::EqualSecrets(*given, options.bearer_token)) return std::nullopt;
  return ResponseOf(UnauthorizedError());
}

absl::Status CheckWhoMayCall(const HttpFrontOptions& options) {
  const bool tls = !options.tls.cert_file.empty();
  const bool known = !options.bearer_token.empty() || !options.tls.client_ca_file.empty();
  if (rest::IsLoopback(options.address) || (tls && known)) return absl::OkStatus();
  return PermissionDenied(
      "the Kubernetes API at {} would be open to everybody who can reach it; give it a "
      "certificate (tlsCertFile, tlsKeyFile) and a token (tokenFile) or a client CA "
      "(clientCaFile), or listen on 127.0.0.1",
      options.address);
}

rest::ServerOptions ServerOptionsOf(const HttpFrontOptions& options) {
  rest::ServerOptions server;
  server.address = options.address;
  server.tls = options.tls;
  server.max_body_bytes = kBodyBytesMax;
  return server;
}

}  // namespace

HttpFront::HttpFront(ApiServer& server, HttpFrontOptions options, rest::Metrics& metrics)
    : server_(server), options_(std::move(options)), http_(ServerOptionsOf(options_), metrics) {
  http_.SetGate([this](rest::Request& head) { return Authenticate(options_, head); });
  http_.Raw([this](const rest::Request& request) { return server_.Handle(request); });
}

absl::Status HttpFront::Check(const HttpFrontOptions& options) {
  TAHOMA_RETURN_IF_ERROR(CheckWhoMayCall(options));
  return rest::Server::Check(ServerOptionsOf(options));
}

absl::Status HttpFront::Start() {
  TAHOMA_RETURN_IF_ERROR(CheckWhoMayCall(options_));
  return http_.Start();
}

void HttpFront::Stop() {
  server_.StopWatches();
  http_.Stop();
}

}  // namespace tahoma::controller
