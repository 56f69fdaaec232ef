// A seller of capacity with a stock known in advance, for tests of EC2's protocol.
//
//   FakeEc2Service service(/*blocks=*/5);
//   service.FindOfferings({}, {.instance_types = {"trn2.48xlarge"}, .duration_hours = 24});
//
// FindOfferings answers each search with `kOffersOfSearch` variants, with ids of cb- and 17 digits.
// Each offering can be bought any number of times. The service lists `blocks` blocks of its own
// beside the bought blocks.
//
// Scope: every field of every answer is filled in some row. The only rule of sale is that a
// duration is whole days.
//
// Thread safety: any thread.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/ec2/error.h"
#include "controller/ec2/service.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::ec2 {

class FakeEc2Service final : public Ec2Service {
 public:
  static constexpr int kOffersOfSearch = 5;
  static constexpr char kSoldOffering[] = "cb-00000000000000000";

  explicit FakeEc2Service(int blocks);

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

  // The last caller and the last calls.
  Caller last_caller() const;
  OfferingSearch last_search() const;
  BlockPurchase last_purchase() const;
  int purchases() const;

 private:
  void Add(int number, const Caller& owner, std::vector<Tag> tags)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Reservation> ReservationNamed(const std::string& id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Caller caller_ ABSL_GUARDED_BY(mutex_);
  OfferingSearch search_ ABSL_GUARDED_BY(mutex_);
  BlockPurchase purchase_ ABSL_GUARDED_BY(mutex_);
  int purchases_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::string> block_of_token_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Ec2Block> blocks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, BlockStatus> statuses_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Reservation> reservations_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, InstanceTopology> instances_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Extension> extensions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller::ec2
