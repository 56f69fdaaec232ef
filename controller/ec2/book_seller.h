// Sells from a book of blocks: an Ec2Service between EC2's API and the owner of the book.
//
// A view answers searches and lists: a moment of the book and the fleet that any thread may read.
// Orders go to the owner of the book.
//
// A caller sees the blocks of his own namespace. Every caller sees the nodes, by their names, as
// the instances of DescribeInstanceTopology. A zone's id is its nodes' label, or is formed from the
// zone's name where the nodes have no such label.
//
// Scope: translation. The book has the rules.
//
// Thread safety: any thread, if the given functions may be called from any.

#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/ec2/book_values.h"
#include "controller/ec2/service.h"
#include "controller/model/cluster.h"
#include "controller/reserve/book.h"
#include "controller/reserve/offering.h"
#include "controller/reserve/time_profile.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::ec2 {

// One moment.
struct BookView {
  BlockBook::Blocks blocks;
  WallTime now;  // the book's time: never goes back with a clock
  TimeProfile profile;
  PriceList prices;
  OfferingKey offering_key = {};
  std::shared_ptr<const QuotaTable> quotas = nullptr;  // null: no quotas
  FindHost find_host;
  ClusterView cluster;  // null: no nodes
};

// The owner of the book, as the seller needs it.
struct BookOwner {
  // Shows at least the results of earlier purchase and extend calls; null while the fleet is not
  // known.
  std::function<std::shared_ptr<const BookView>()> view;
  // BlockBook's Purchase and Extend, at the present time; both answer when the change cannot be
  // lost.
  std::function<absl::StatusOr<std::shared_ptr<const Block>>(const PurchaseOrder&)> purchase;
  std::function<absl::StatusOr<std::shared_ptr<const Block>>(const ExtensionOrder&)> extend;
  // Changes the tags of a block's CapacityBlock; answers when the change cannot be lost and the
  // view shows it.
  std::function<absl::Status(const Block&, const TagChange&)> change_tags = {};
};

class BookSeller final : public Ec2Service {
 public:
  // `clock` must outlive the BookSeller.
  BookSeller(BookOwner owner, const Clock& clock) : owner_(std::move(owner)), clock_(clock) {}

  absl::StatusOr<std::vector<Ec2Offering>> FindOfferings(const Caller& caller,
                                                         const OfferingSearch& search) override;
  absl::StatusOr<BlockPurchased> PurchaseBlock(const Caller& caller,
                                               const BlockPurchase& purchase) override;
  absl::StatusOr<std::vector<ExtensionOffering>> FindExtensionOfferings(
      const Caller& caller, const ExtensionSearch& search) override;
  absl::StatusOr<std::vector<Extension>> PurchaseExtension(
      const Caller& caller, const ExtensionPurchase& purchase) override;
  absl::Status VisitBlocks(const Caller& caller, const Selection& selection,
                           const Visit<Ec2Block>& visit) override;
  absl::Status VisitBlockStatuses(const Caller& caller, const Selection& selection,
                                  const Visit<BlockStatus>& visit) override;
  absl::Status VisitReservations(const Caller& caller, const Selection& selection,
                                 const Visit<Reservation>& visit) override;
  absl::Status VisitInstances(const Caller& caller, const Selection& selection,
                              const Visit<InstanceTopology>& visit) override;
  absl::Status VisitExtensions(const Caller& caller, const Selection& selection,
                               const Visit<Extension>& visit) override;
  absl::Status VisitReservationTopology(const Caller& caller, const Selection& selection,
                                        const Visit<ReservationTopology>& visit) override;
  absl::StatusOr<std::vector<OfferedType>> FindOfferedTypes(const Caller& caller) override;
  absl::Status ChangeTags(const Caller& caller, const std::vector<std::string>& reservations,
                          const TagChange& change) override;

 private:
  absl::StatusOr<std::shared_ptr<const BookView>> View() const;

  WallTime NowOf(const BookView& view) const { return std::max(clock_.WallNow(), view.now); }

  // The row with the id of its zone.
  template <typename T>
  T WithZoneId(const BookView& view, T row) const {
    row.availability_zone_id = ZoneIdOf(view, row.availability_zone);
    return row;
  }
  std::string ZoneIdOf(const BookView& view, const std::string& zone) const;

  const BookOwner owner_;
  const Clock& clock_;
  mutable Mutex mutex_;
  // By zones that some node has been in: a zone keeps its id.
  mutable std::map<std::string, std::string> zone_ids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller::ec2
