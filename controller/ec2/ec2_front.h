// EC2's API of the controller: sells from the core's book of Capacity Blocks.
//
//   const auto take = [&] { return loop.snapshot(); };
//   const auto order = [&](auto one) { return loop.Order(std::move(one)); };
//   const ec2::Ec2Options options{.keys = callers->access_keys(), .audit = sink};
//   Ec2Front ec2(take, order, transport, options, clock, block_clock);
//   ec2.AddTo(server, gate);           // beside the admin API, whose gate that is
//
// Thread safety: AddTo before the server starts; everything else is done by its threads.

#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "controller/core/snapshot.h"
#include "controller/ec2/block_tags.h"
#include "controller/ec2/book_seller.h"
#include "controller/ec2/ec2_api.h"
#include "controller/reserve/book.h"
#include "lib/base/clock.h"
#include "lib/rest/server.h"

namespace tahoma::controller {

class Ec2Front {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;
  using SendOrder = std::function<absl::StatusOr<std::shared_ptr<const Block>>(
      std::variant<PurchaseOrder, ExtensionOrder>)>;

  // `objects` is where CapacityBlocks are, whose tags it changes. `clock`, for signatures, and
  // `block_clock`, by which blocks are sold, must outlive it, as `objects` must.
  Ec2Front(const TakeSnapshot& take, const SendOrder& order, kube::Transport& objects,
           ec2::Ec2Options options, const Clock& clock, const Clock& block_clock);
  Ec2Front(const Ec2Front&) = delete;
  Ec2Front& operator=(const Ec2Front&) = delete;

  // Adds the routes, and sets the server's gate: `other`, but for requests that are signed with an
  // access key. This object must outlive the server.
  void AddTo(rest::Server& server, rest::Gate other);

 private:
  BlockTags tags_;
  ec2::BookSeller seller_;
  ec2::Ec2Api api_;
};

}  // namespace tahoma::controller
