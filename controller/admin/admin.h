// The REST admin API: the controller's view and decisions, read from snapshots.
//
//   Admin admin([&] { return loop.snapshot(); });  // of a CoreLoop
//   admin.AddRoutes(server);                       // GET /v1/topology, /v1/gangs, /v1/why/…
//
// docs/formats/admin-api.md describes every route and field.
//
// Scope: reading. Intents go through the Kubernetes API.
//
// Thread safety: any thread.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/ledger/snapshot.h"
#include "lib/rest/message.h"
#include "lib/rest/server.h"

namespace tahoma::controller {

class Admin {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  explicit Admin(TakeSnapshot take) : take_(std::move(take)) {}

  // Before the server starts; `this` must outlive the server.
  void AddRoutes(rest::Server& server);

  rest::Response Topology(const rest::Request& request) const;
  rest::Response Nodes(const rest::Request& request) const;
  rest::Response Gangs(const rest::Request& request) const;
  rest::Response Gang(const rest::Request& request) const;
  rest::Response Why(const rest::Request& request) const;

 private:
  const TakeSnapshot take_;
};

}  // namespace tahoma::controller
