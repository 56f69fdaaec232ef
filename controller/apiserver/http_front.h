// The API server behind HTTP: who may listen where, and who may call.
//
//   HttpFront front(*server, {.address = "127.0.0.1:8001"}, metrics);
//   TAHOMA_RETURN_IF_ERROR(front.Start());
//
// Without a token or client CA everybody who can connect may do everything, so only loopback
// addresses are accepted then. Elsewhere a certificate and a token (or client certificates) are
// required.
//
// Thread safety: Start and Stop from one thread; the rest from any.

#pragma once

#include <absl/status/status.h>

#include <string>
#include <utility>

#include "controller/apiserver/api_server.h"
#include "lib/rest/metrics.h"
#include "lib/rest/server.h"

namespace tahoma::controller {

struct HttpFrontOptions {
  std::string address = "127.0.0.1:0";
  rest::TlsOptions tls = {};
  std::string bearer_token = {};
};

class HttpFront {
 public:
  // `server` and `metrics` must outlive the front.
  HttpFront(ApiServer& server, HttpFrontOptions options, rest::Metrics& metrics);
  ~HttpFront() { Stop(); }

  // Whether Start would succeed now: kPermissionDenied when the address is reachable from outside
  // and callers could not be told apart; otherwise as rest::Server::Check.
  static absl::Status Check(const HttpFrontOptions& options);
  absl::Status Start();
  // A line of /livez or /readyz (lib/rest/probes.h).
  void AddCheck(rest::Probes::Kind kind, std::string name, rest::Probes::Check check) {
    http_.AddCheck(kind, std::move(name), std::move(check));
  }
  // Ends watches, then the server.
  void Stop();

  std::string address() const { return http_.address(); }
  std::string url() const { return http_.url(); }

 private:
  ApiServer& server_;
  const HttpFrontOptions options_;
  rest::Server http_;
};

}  // namespace tahoma::controller
