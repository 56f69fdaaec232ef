// EC2's API of the controller: sells from the core's book of Capacity Blocks.
//
//   const auto take = [&] { return loop.snapshot(); };
//   const auto order = [&](auto one) { return loop.Order(std::move(one)); };
//   TAHOMA_ASSIGN_OR_RETURN(const auto ec2,
//                           Ec2Front::Open(options, take, order, sink, clock, log));
//   ec2->AddTo(server, gate);          // beside the admin API, whose gate that is
//
// Thread safety: Open and AddTo before the server starts; everything else is done by its threads.

#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "controller/access/audit.h"
#include "controller/app/options.h"
#include "controller/ec2/book_seller.h"
#include "controller/ec2/ec2_api.h"
#include "controller/ledger/snapshot.h"
#include "controller/reserve/book.h"
#include "lib/base/clock.h"
#include "lib/rest/server.h"

namespace tahoma::controller {

class Ec2Front {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;
  using SendOrder = std::function<absl::StatusOr<std::shared_ptr<const Block>>(
      std::variant<PurchaseOrder, ExtensionOrder>)>;
  using Log = std::function<void(const std::string& line)>;

  // Fails when the access key file is missing, wrong, or open to others. `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<Ec2Front>> Open(const Options& options, TakeSnapshot take,
                                                        SendOrder order, AuditSink audit,
                                                        const Clock& clock, Log log);
  Ec2Front(const Ec2Front&) = delete;
  Ec2Front& operator=(const Ec2Front&) = delete;

  // Adds the routes, and sets the server's gate: `other`, but for requests that are signed with an
  // access key. This object must outlive the server.
  void AddTo(rest::Server& server, rest::Gate other);

 private:
  Ec2Front(ec2::BookOwner owner, ec2::Ec2Options options, const Clock& clock);

  ec2::BookSeller seller_;
  ec2::Ec2Api api_;
};

}  // namespace tahoma::controller
