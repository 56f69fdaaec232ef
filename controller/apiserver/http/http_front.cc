#include "controller/apiserver/http/http_front.h"

#include <algorithm>
#include <utility>

#include "controller/apiserver/http/access_review.h"
#include "controller/apiserver/request/decode_body.h"
#include "controller/apiserver/request/representation.h"
#include "controller/apiserver/request/status_error.h"
#include "lib/base/check.h"
#include "lib/base/loopback.h"
#include "lib/base/status.h"
#include "lib/rest/bearer.h"
#include "lib/rest/websocket.h"

namespace tahoma::controller::apiserver {
namespace {

// Returns the request without its body, for the repeated authorization of a watch that may last
// hours.
rest::Request HeadOf(const rest::Request& request) {
  rest::Request head = request;
  head.body.clear();
  head.parsed = nullptr;
  return head;
}

// Whether the answer is all at hand, not a stream that may last hours.
bool HasLength(const rest::Response& answer) {
  return std::ranges::any_of(answer.headers,
                             [](const auto& header) { return header.first == "Content-Length"; });
}

std::shared_ptr<const AccessControl> OpenToAll() {
  auto table = AccessTable::Make({}, false);
  TAHOMA_CHECK_OK(table.status());
  return std::make_shared<const AccessControl>(*std::move(table));
}

absl::Status CheckWhoMayCall(const HttpFrontOptions& options) {
  const bool tls = !options.tls.cert_file.empty();
  const bool known = options.access != nullptr && !options.access->table()->open();
  if (IsLoopback(options.address) || (tls && known)) return absl::OkStatus();
  return PermissionDenied(
      "the Kubernetes API at {} would be open to everybody who can reach it; give it a "
      "certificate (tlsCertFile, tlsKeyFile) and tokens (tokenFile, identityFile) or a client CA "
      "(clientCaFile), or listen on 127.0.0.1",
      options.address);
}

// Empty: Kubernetes has no reason for that code, and kubectl prints the message alone.
std::string_view ReasonOf(int code) {
  switch (code) {
    case 400:
      return "BadRequest";
    case 403:
      return "Forbidden";
    case 413:
      return "RequestEntityTooLarge";
    case 415:
      return "UnsupportedMediaType";
    case 429:
      return "TooManyRequests";
    case 503:
      return "ServiceUnavailable";
    default:
      return "";
  }
}

// The Status of what the HTTP server refuses before the API is asked.
rest::Response RefusalOf(int code, std::string_view detail) {
  if (code == 500) return ResponseOf(Internal("{}", detail));
  return ResponseOf(GenericError(code, ReasonOf(code), detail));
}

rest::ServerOptions ServerOptionsOf(const HttpFrontOptions& options,
                                    std::shared_ptr<rest::Probes> probes = {}) {
  rest::ServerOptions server;
  server.probes = std::move(probes);
  server.address = options.address;
  server.tls = options.tls;
  server.max_body_bytes = kBodyBytesMax;
  server.max_buffered_bytes = kRequestBytesMost;
  server.max_buffered_bytes_per_client = kRequestBytesMost / 4 * 3;
  server.allowed_hosts = options.allowed_hosts;
  server.problem = RefusalOf;
  server.log = options.log;
  return server;
}

}  // namespace

HttpFront::HttpFront(ApiServer& server, HttpFrontOptions options, rest::Metrics& metrics)
    : server_(server),
      options_(std::move(options)),
      access_(options_.access != nullptr ? options_.access : OpenToAll()),
      view_(server.objects()),
      auditor_(options_.audit, server.clock(), options_.seed),
      bodies_(options_.decoded_bytes),
      http_(ServerOptionsOf(options_, server.probes()), metrics) {
  http_.SetGate([this](rest::Request& head) { return Admit(head); });
  http_.Raw([this](const rest::Request& request) { return Handle(request); });
}

std::shared_ptr<const rest::Identity> HttpFront::CallerOf(const rest::Request& head,
                                                          const AccessTable& table) const {
  if (auto known = table.Authenticate(head); known != nullptr || head.client) return known;
  const auto token = rest::BearerToken(head.header("Authorization"));
  if (!token) return nullptr;
  auto account = server_.AccountOf(*token, OwnAudiences());
  if (!account.ok()) return nullptr;
  return std::make_shared<const rest::Identity>(std::move(account->user));
}

std::optional<rest::Response> HttpFront::Admit(rest::Request& head) {
  const auto table = access_->table();
  head.identity = CallerOf(head, *table);
  if (head.identity == nullptr) {
    return rest::AskingForToken(AsAccepted(head, ResponseOf(UnauthorizedError())));
  }
  auto other = ImpersonationOf(head.headers);
  if (!other.ok()) return AsAccepted(head, ResponseOf(other.status()));
  if (*other) {
    if (auto refusal = RefuseActing(head, *head.identity, **other, *table)) return refusal;
    (*other)->user.behind = head.identity;
    head.identity = std::make_shared<const rest::Identity>(std::move((*other)->user));
  } else if (table->open()) {
    return std::nullopt;
  }
  const Attributes wanted = AttributesOf(head);
  if (table->Authorize(*head.identity, wanted, view_).allowed) return std::nullopt;
  return Denied(head, *head.identity, wanted);
}

std::optional<rest::Response> HttpFront::RefuseActing(const rest::Request& head,
                                                      const rest::Identity& caller,
                                                      const Impersonation& other,
                                                      const AccessTable& table) {
  for (const Attributes& right : other.rights) {
    if (!table.Authorize(caller, right, view_).allowed) return Denied(head, caller, right);
  }
  return std::nullopt;
}

rest::Response HttpFront::Denied(const rest::Request& head, const rest::Identity& user,
                                 const Attributes& denied) {
  rest::Response refusal =
      AsAccepted(head, ResponseOf(AccessDeniedError(denied.group, denied.resource, denied.name,
                                                    DenialOf(user, denied))));
  const Attributes wanted = AttributesOf(head);
  if (IsAudited(wanted)) auditor_.Record(head, wanted, {}, refusal, auditor_.Now());
  return refusal;
}

std::optional<rest::Response> HttpFront::RefuseNow(const rest::Request& request,
                                                   const Attributes& wanted,
                                                   const AccessTable& table,
                                                   AccessDecision& decision) {
  const rest::Identity& user = *request.identity;
  if (user.behind != nullptr) {
    const auto other = ImpersonationOf(request.headers);
    TAHOMA_CHECK(other.ok() && *other);  // as at the gate
    if (auto refusal = RefuseActing(request, *user.behind, **other, table)) return refusal;
  }
  decision = table.Authorize(user, wanted, view_);
  if (!decision.allowed) return Denied(request, user, wanted);
  return std::nullopt;
}

rest::Response HttpFront::Handle(const rest::Request& request) {
  const ProcessorBudget budget(options_.processor_limit, options_.processor_time);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  // A client of a pod changes things, though a WebSocket begins with GET.
  if (reads && !rest::AsksUpgrade(request, "websocket")) {
    return Rechecked(request, server_.HandleFromOutside(request));
  }
  return Rechecked(request, Change(request));
}

// Ends a stream, or a connection that has left HTTP, when the caller has lost the permission.
rest::Response HttpFront::Rechecked(const rest::Request& request, rest::Response response) {
  if ((!response.source || HasLength(response)) && !response.upgrade) return response;
  auto permitted = [this, head = HeadOf(request), version = access_->version()]() mutable {
    const std::uint64_t now = access_->version();
    return std::exchange(version, now) == now || !Admit(head);
  };
  if (response.upgrade) {
    response.upgrade = [step = std::move(response.upgrade), permitted](
                           rest::Upgraded& peer, std::chrono::milliseconds wait) mutable {
      return permitted() && step(peer, wait);
    };
  } else {
    response.source = [source = std::move(response.source), permitted](
                          std::string& out, std::chrono::milliseconds wait) mutable {
      return permitted() && source(out, wait);
    };
  }
  return response;
}

rest::Response HttpFront::Change(const rest::Request& request) {
  const WallTime received = auditor_.Now();
  const auto table = access_->table();
  const Attributes wanted = AttributesOf(request);
  AccessDecision decision;
  if (auto refusal = RefuseNow(request, wanted, *table, decision)) return *std::move(refusal);
  const ByteBudget::Hold room = bodies_.Acquire(DecodedBytes(request));
  if (room == nullptr) {
    return AsAccepted(
        request, ResponseOf(ResourceExhausted("too many bodies are being worked on; try again")));
  }
  const auto account = [this](std::string_view token, const std::vector<std::string>& audiences) {
    return server_.AccountOf(token, audiences);
  };
  if (auto review = ServeAccessReview(request, wanted, *table, view_, account)) {
    return AsAccepted(request, *std::move(review));
  }
  if (!IsAudited(wanted)) return server_.HandleFromOutside(request);
  if (!auditor_.MayChange()) {
    return ResponseOf(Unavailable("the audit file cannot be written; nothing is changed"));
  }
  rest::Response response = server_.HandleFromOutside(request);
  const std::string id = auditor_.Record(request, wanted, decision, response, received);
  if (!id.empty()) response.headers.emplace_back("Audit-Id", id);
  return response;
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

}  // namespace tahoma::controller::apiserver
