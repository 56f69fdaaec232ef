// The REST routes of Capacity Blocks: search offerings, buy, extend, look.
//
// Names and values are EC2's (docs/formats/admin-api.md#capacity-blocks). A refusal is a problem
// whose `code` is EC2's.
//
// Scope: requests to searches and orders. What is for sale is decided by reserve/search.h, what is
// sold by reserve/book.h.
//
// Thread safety: any thread.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include "controller/admin/route_table.h"
#include "controller/core/snapshot.h"
#include "controller/reserve/book.h"
#include "lib/base/clock.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

class BlockRoutes {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;
  using SendOrder = std::function<absl::StatusOr<std::shared_ptr<const Block>>(
      std::variant<PurchaseOrder, ExtensionOrder>)>;

  // `clock` must outlive it.
  BlockRoutes(TakeSnapshot take, SendOrder order, const Clock& clock)
      : take_(std::move(take)), order_(std::move(order)), clock_(clock) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

  rest::Response Offerings(const rest::Request& request) const;
  rest::Response List(const rest::Request& request) const;
  rest::Response Show(const rest::Request& request) const;
  rest::Response Buy(const rest::Request& request) const;
  rest::Response ExtensionOfferings(const rest::Request& request) const;
  rest::Response Usage(const rest::Request& request) const;
  rest::Response Extend(const rest::Request& request) const;

 private:
  void AddReadingRoutes(RouteTable& routes);
  // Returns the answer about the block that the path names; a problem when it was not bought.
  rest::Response WithBlock(
      const rest::Request& request,
      absl::FunctionRef<rest::Response(const Snapshot&, const Block&)> answer) const;

  const TakeSnapshot take_;
  const SendOrder order_;
  const Clock& clock_;
};

}  // namespace tahoma::controller
