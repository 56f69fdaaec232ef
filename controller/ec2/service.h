// The seller of capacity as EC2's actions see it: whoever implements it has the rules and the
// records.
//
// A refusal has a code of EC2's (Refused of controller/ec2/error.h) and says what would be legal.
//
// Scope: the interface. Its callers have checked the form of requests, who calls, and what he may
// do; they apply filters and pages.
//
// Thread safety: all functions may be called from any thread at the same time.

#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/ec2/requests.h"
#include "controller/ec2/tag_change.h"
#include "controller/ec2/values.h"

namespace tahoma::controller::ec2 {

struct Caller {
  std::string name;        // of the access key's entry, or who the server's gate noted
  std::string name_space;  // who owns what is bought
  std::string account;     // 12 digits: the same, as EC2 shows it
  bool may_buy = true;
};

struct Selection {
  std::vector<std::string> ids = {};  // empty: all; sorted, without repetition
  std::string after = {};             // only rows whose key is greater
};

// Gets a row and its key; returns false when it wants no more.
template <typename T>
using Visit = std::function<bool(std::string_view key, const T& row)>;

class Ec2Service {
 public:
  virtual ~Ec2Service() = default;

  virtual absl::StatusOr<std::vector<Offering>> FindOfferings(const Caller& caller,
                                                              const OfferingSearch& search) = 0;
  // Answers only once the purchase cannot be lost. The same client token of the same account with
  // the same request gets the first answer again, with another one IdempotentParameterMismatch.
  virtual absl::StatusOr<BlockPurchased> PurchaseBlock(const Caller& caller,
                                                       const BlockPurchase& purchase) = 0;
  virtual absl::StatusOr<std::vector<ExtensionOffering>> FindExtensionOfferings(
      const Caller& caller, const ExtensionSearch& search) = 0;
  // As PurchaseBlock.
  virtual absl::StatusOr<std::vector<Extension>> PurchaseExtension(
      const Caller& caller, const ExtensionPurchase& purchase) = 0;

  // Lists what the caller may see, in the order of keys, which are the ids of the rows. Ids that
  // are selected and not known are left out.
  virtual absl::Status VisitBlocks(const Caller& caller, const Selection& selection,
                                   const Visit<Block>& visit) = 0;
  virtual absl::Status VisitBlockStatuses(const Caller& caller, const Selection& selection,
                                          const Visit<BlockStatus>& visit) = 0;
  virtual absl::Status VisitReservations(const Caller& caller, const Selection& selection,
                                         const Visit<Reservation>& visit) = 0;
  virtual absl::Status VisitInstances(const Caller& caller, const Selection& selection,
                                      const Visit<InstanceTopology>& visit) = 0;
  // The selected ids are reservations'. A reservation that is not known is refused with
  // InvalidCapacityReservationId.NotFound; keys are any text that orders the rows.
  virtual absl::Status VisitExtensions(const Caller& caller, const Selection& selection,
                                       const Visit<Extension>& visit) = 0;
  // The selected ids are reservations', as those of VisitExtensions. A reservation of several
  // UltraServers has a row for each.
  virtual absl::Status VisitReservationTopology(const Caller& caller, const Selection& selection,
                                                const Visit<ReservationTopology>& visit) = 0;
  // Returns what the fleet has, sorted and without repetition.
  virtual absl::StatusOr<std::vector<OfferedType>> FindOfferedTypes(const Caller& caller) = 0;
  // Changes the tags of the caller's reservations, one after the other; each of them is changed as
  // a whole. Answers only once the changes cannot be lost and the lists above show them.
  virtual absl::Status ChangeTags(const Caller& caller,
                                  const std::vector<std::string>& reservations,
                                  const TagChange& change) = 0;
};

}  // namespace tahoma::controller::ec2
