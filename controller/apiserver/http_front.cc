#include "controller/apiserver/http_front.h"

#include <optional>
#include <string_view>
#include <utility>

#include "controller/apiserver/decode_body.h"
#include "controller/apiserver/status_error.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kBearer = "Bearer ";

// In time that does not depend on where the texts differ.
bool EqualSecrets(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned char>(a[i]) ^
        static_cast<unsigned>(static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]));
  }
  return difference == 0;
}

// The Status-shaped 401, or nothing when the caller may go on.
std::optional<rest::Response> Authenticate(const HttpFrontOptions& options,
                                           const rest::Request& request) {
  const bool open = options.bearer_token.empty() && options.tls.client_ca_file.empty();
  if (open || request.client || rest::Probes::IsProbe(request.path)) return std::nullopt;
  const std::string_view given = request.header("Authorization");
  if (!options.bearer_token.empty() && given.starts_with(kBearer) &&
      EqualSecrets(given.substr(kBearer.size()), options.bearer_token)) {
    return std::nullopt;
  }
  return ResponseOf(UnauthorizedError());
}

absl::Status CheckWhoMayCall(const HttpFrontOptions& options) {
  const bool tls = !options.tls.cert_file.empty();
  const bool known = !options.bearer_token.empty() || !options.tls.client_ca_file.empty();
  if (IsLoopback(options.address) || (tls && known)) return absl::OkStatus();
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

bool IsLoopback(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  // A name such as 127.example.com may stand for any address.
  const bool numeric = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "[::1]" || (numeric && host.starts_with("127."));
}

HttpFront::HttpFront(ApiServer& server, HttpFrontOptions options, rest::Metrics& metrics)
    : server_(server), options_(std::move(options)), http_(ServerOptionsOf(options_), metrics) {
  http_.SetGate([this](const rest::Request& request) { return Authenticate(options_, request); });
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
