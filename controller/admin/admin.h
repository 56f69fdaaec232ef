// The routes of the admin API that show the fleet and the gangs on it, read from snapshots.
//
// docs/formats/admin-api.md describes every route and field.
//
// Scope: reading.
//
// Thread safety: any thread.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/admin/route_table.h"
#include "controller/admin/schema.h"
#include "controller/core/snapshot.h"
#include "lib/base/json_fwd.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

// Why a gang waits, or where it is: part of two answers.
std::vector<Field> GangStateFields();
nlohmann::ordered_json GangStateRow(const GangView& gang);
// Returns the gang, or else the pod, that the path names; nullptr when there is none.
std::shared_ptr<const GangView> FindGang(const Snapshot& snapshot, const rest::Request& request);
rest::Response UnknownGang(const rest::Request& request);

class Admin {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  explicit Admin(TakeSnapshot take) : take_(std::move(take)) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

  rest::Response Topology(const rest::Request& request) const;
  rest::Response Nodes(const rest::Request& request) const;
  rest::Response Gangs(const rest::Request& request) const;
  rest::Response Gang(const rest::Request& request) const;

 private:
  const TakeSnapshot take_;
};

}  // namespace tahoma::controller
