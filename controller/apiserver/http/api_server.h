// The standalone Kubernetes API server as plain function calls: no sockets, no threads of its own.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto server, ApiServer::Open(store, clock, {.seed = seed}));
//   TAHOMA_RETURN_IF_ERROR(server->InstallCrd(yaml_text));
//   rest::Response answer = server->Handle(request);       // or answer.source: a watch, a log
//
// Programs in the same process call it through InProcessTransport, all others through HttpFront.
//
// Scope: /api, /apis, /openapi, /version and the probes, as in Kubernetes 1.36. HttpFront checks
// the callers.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/access/account_tokens.h"
#include "controller/apiserver/discovery/openapi.h"
#include "controller/apiserver/http/account_callers.h"
#include "controller/apiserver/http/bounds.h"
#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/schema/kind.h"
#include "controller/apiserver/storage/object_store.h"
#include "controller/apiserver/verbs/watch_stream.h"
#include "controller/apiserver/webhooks/webhooks.h"
#include "controller/store/store.h"
#include "lib/base/byte_budget.h"
#include "lib/base/clock.h"
#include "lib/rest/message.h"
#include "lib/rest/probes.h"

namespace tahoma::controller::apiserver {

class ApiServer {
 public:
  struct Options {
    std::uint64_t seed = 1;  // of uids and generated names
    // Reaches a node's pod runner for logs; without it logs are answered with 500.
    NodeFetch node_fetch = nullptr;
    // The same for exec, attach and portforward.
    NodeTunnel node_tunnel = nullptr;
    // Asks admission webhooks; without it requests that need one fail.
    WebhookCall webhook_call = nullptr;
    // Makes and reads the tokens of service accounts; without it there are none: a TokenRequest is
    // answered with 500.
    std::shared_ptr<const AccountTokens> account_tokens = nullptr;
    ObjectStore::Options objects = {};
    // The most memory of answers to callers outside this process that wait to be read.
    std::size_t answer_bytes = kAnswerBytesMost;
    // Called for every mistake of our own (the request is answered with 500) and for every request
    // that exceeded its processor budget.
    std::function<void(const std::string& line)> log = nullptr;
  };

  // Reads all objects, installs the kinds of stored CRDs and creates the namespaces and priority
  // classes of every cluster. `store` and `clock` must outlive the server.
  static absl::StatusOr<std::unique_ptr<ApiServer>> Open(Store& store, const Clock& clock,
                                                         Options options);

  // Handles any request, and never fails. Errors are answers; an exception becomes a 500 and a log
  // line; an exceeded ProcessorBudget of the caller becomes 413, with nothing changed. A response
  // with a source reads from this server and must end before the server. With a flight, a create,
  // an update, a patch or a binding is answered before the disk has it: the answer holds if the
  // flight lands well; otherwise ResponseOf the flight's failure is the answer.
  rest::Response Handle(const rest::Request& request, CommitsInFlight* flight = nullptr);
  // Handles a request of a caller that may read slowly, or not at all. Large answers are sources
  // with a Content-Length that share stored text; 429 when answers that wait for such callers take
  // too much memory (Options::answer_bytes).
  rest::Response HandleFromOutside(const rest::Request& request);

  // Opens a watch request's stream, for readers of its events; ResponseOf makes an answer of an
  // error.
  absl::StatusOr<std::shared_ptr<WatchStream>> OpenWatch(const rest::Request& request);

  // Says whose service account's token this is (account_callers.h). kUnauthenticated for any other.
  absl::StatusOr<AccountCaller> AccountOf(std::string_view token,
                                          const std::vector<std::string>& audiences) const;

  // Creates or updates the CustomResourceDefinition in a YAML or JSON text.
  absl::Status InstallCrd(std::string_view text);

  // The probes, for here and for HTTP; the checks of /readyz are componentstatuses, too.
  const std::shared_ptr<rest::Probes>& probes() const { return probes_; }

  // The guard that explains why a CapacityBlock may not be deleted; without one its status decides.
  DeletionGuard& deletion_guard() { return guard_; }

  // Ends the waiting of all watches, for shutdown.
  void StopWatches() { objects_->StopWaiting(); }

  const ObjectStore& objects() const { return *objects_; }
  const Clock& clock() const { return context_.clock; }
  // The kinds served now.
  std::shared_ptr<const KindTable> Kinds() const { return kinds_.Snapshot(); }

 private:
  ApiServer(std::unique_ptr<ObjectStore> objects, const Clock& clock, Options options);
  absl::Status LoadKinds();
  absl::Status CreateFirst(std::string_view path, const Json& object);
  absl::Status CreateFirstObjects();
  // How a request is served: of whom, and for whom.
  struct Terms {
    CommitsInFlight* flight = nullptr;
    ByteBudget* answers = nullptr;
    bool own = false;  // see ApiRequest
  };
  rest::Response Answer(const rest::Request& request, const Terms& terms);
  absl::StatusOr<rest::Response> Dispatch(const rest::Request& request, const Terms& terms);
  void LogFailure(const rest::Request& request, std::string_view what) const;
  // Returns the 500 for an exception while `request` was served.
  rest::Response Failed(const rest::Request& request, std::string_view what) const;
  // Returns a source that ends the stream instead of throwing.
  rest::StreamSource Guarded(const rest::Request& request, rest::StreamSource source) const;
  absl::StatusOr<rest::Response> ServeRoot(const rest::Request& request, const KindTable& kinds,
                                           bool from_outside);
  absl::StatusOr<rest::Response> ServeOpenApi(const rest::Request& request, const KindTable& kinds,
                                              bool from_outside);

  std::unique_ptr<ObjectStore> objects_;
  KindRegistry kinds_;
  IdSource ids_;
  const std::shared_ptr<rest::Probes> probes_ = std::make_shared<rest::Probes>();
  DeletionGuard guard_;
  Webhooks webhooks_;
  OpenApiCache open_api_;
  const std::shared_ptr<const AccountTokens> account_tokens_;
  const std::function<void(const std::string& line)> log_;
  ByteBudget answers_;
  const ApiContext context_;
};

}  // namespace tahoma::controller::apiserver
