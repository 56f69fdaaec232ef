// Serves the API over HTTP: checks the address, authenticates and authorizes every caller, and
// writes an audit line about every change.
//
//   HttpFront front(*server, {.address = "127.0.0.1:8001", .access = access}, metrics);
//   TAHOMA_RETURN_IF_ERROR(front.Start());
//
// Without tokens or a client CA every client that can connect may do everything: then only loopback
// addresses are accepted. Other addresses need a certificate and tokens (or client certificates).
// A caller with the headers Impersonate-* acts as the user that they name, if both may
// (access/impersonation.h); the audit names both.
// When the identities change, open watches are authorized again within a second, and end when their
// caller has lost the permission.
//
// The memory of all callers together is bounded (bounds.h). A body is decoded only when there is
// room for its values, and after the sender was authorized by the path alone.
//
// Callers in this process (InProcessTransport) are the controller itself: they are not authorized
// or audited, and have no processor or memory budget.
//
// Thread safety: Start and Stop from one thread; all other functions from any.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/access/access_control.h"
#include "controller/access/audit.h"
#include "controller/access/impersonation.h"
#include "controller/apiserver/http/api_server.h"
#include "controller/apiserver/http/bounds.h"
#include "controller/apiserver/http/request_access.h"
#include "lib/base/byte_budget.h"
#include "lib/base/processor_budget.h"
#include "lib/rest/metrics.h"
#include "lib/rest/server.h"

namespace tahoma::controller::apiserver {

struct HttpFrontOptions {
  std::string address = "127.0.0.1:0";
  rest::TlsOptions tls = {};
  std::shared_ptr<const AccessControl> access = {};  // null: open to all who can connect
  AuditSink audit = {};
  // The most memory of bodies and their values, all requests together; beyond it, 429.
  std::size_t decoded_bytes = kDecodedBytesMost;
  std::uint64_t seed = 1;  // of the ids in the audit
  // As rest::ServerOptions has them.
  std::vector<std::string> allowed_hosts = {};
  std::function<void(const std::string& line)> log = {};
  // The most processor time of a request; of a watch, only until it is open.
  std::chrono::nanoseconds processor_limit = std::chrono::seconds(10);
  ProcessorBudget::Now processor_time = ThreadProcessorTime;
};

class HttpFront {
 public:
  // `server` and `metrics` must outlive the front.
  HttpFront(ApiServer& server, HttpFrontOptions options, rest::Metrics& metrics);
  ~HttpFront() { Stop(); }

  // Returns whether Start would succeed now: kPermissionDenied when the address is reachable from
  // outside and callers could not be told apart; otherwise as rest::Server::Check.
  static absl::Status Check(const HttpFrontOptions& options);
  absl::Status Start();
  // Ends watches, then the server.
  void Stop();

  int port() const { return http_.port(); }
  std::string address() const { return http_.address(); }
  std::string url() const { return http_.url(); }

 private:
  // Notes the caller, or the user as whom the caller acts; returns the refusal of a caller who may
  // not go on.
  std::optional<rest::Response> Admit(rest::Request& head);
  // Returns the caller of an identity, or of a service account's token; null for others.
  std::shared_ptr<const rest::Identity> CallerOf(const rest::Request& head,
                                                 const AccessTable& table) const;
  std::optional<rest::Response> RefuseActing(const rest::Request& head,
                                             const rest::Identity& caller,
                                             const Impersonation& other, const AccessTable& table);
  // Decides once more: a permission may have been withdrawn while the body was received.
  std::optional<rest::Response> RefuseNow(const rest::Request& request, const Attributes& wanted,
                                          const AccessTable& table, AccessDecision& decision);
  rest::Response Denied(const rest::Request& head, const rest::Identity& user,
                        const Attributes& denied);
  rest::Response Handle(const rest::Request& request);
  rest::Response Rechecked(const rest::Request& request, rest::Response response);
  rest::Response Change(const rest::Request& request);

  ApiServer& server_;
  const HttpFrontOptions options_;
  const std::shared_ptr<const AccessControl> access_;
  const StoredNodeView view_;
  Auditor auditor_;
  ByteBudget bodies_;
  rest::Server http_;
};

}  // namespace tahoma::controller::apiserver
