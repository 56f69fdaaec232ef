// The seller of capacity as EC2's actions see it. An implementation has the rules and the records.
//
// A refusal has a code of EC2's (Refused of controller/ec2/error.h), and its message names legal
// values.
//
// Scope: the interface. Callers have checked the form of requests, the caller's identity and his
// rights; callers apply filters and pages.
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
  std::string name;  // of the access key's entry, or of the identity that the server's gate noted
  std::string name_space;  // the owner of purchases
  std::string account;     // 12 digits: the owner, as EC2 shows it
  bool may_buy = true;
};

struct Selection {
  std::vector<std::string> ids = {};  // empty: all; sorted, without repetition
  std::string after = {};             // only rows whose key is greater
};

// Gets a row and its key; returns false to end the visit.
template <typename T>
using Visit = std::function<bool(std::string_view key, const T& row)>;

class Ec2Service {
 public:
  virtual ~Ec2Service() = default;

  virtual absl::StatusOr<std::vector<Ec2Offering>> FindOfferings(const Caller& caller,
                                                                 const OfferingSearch& search) = 0;
  // Answers only once the purchase cannot be lost. A repeated client token of the same account gets
  // the first answer again if the request is the same, otherwise IdempotentParameterMismatch.
  virtual absl::StatusOr<BlockPurchased> PurchaseBlock(const Caller& caller,
                                                       const BlockPurchase& purchase) = 0;
  virtual absl::StatusOr<std::vector<ExtensionOffering>> FindExtensionOfferings(
      const Caller& caller, const ExtensionSearch& search) = 0;
  // As PurchaseBlock.
  virtual absl::StatusOr<std::vector<Extension>> PurchaseExtension(
      const Caller& caller, const ExtensionPurchase& purchase) = 0;

  // Lists the rows that the caller may see, in the order of keys; a row's key is its id. Leaves out
  // selected ids that are not known.
  virtual absl::Status VisitBlocks(const Caller& caller, const Selection& selection,
                                   const Visit<Ec2Block>& visit) = 0;
  virtual absl::Status VisitBlockStatuses(const Caller& caller, const Selection& selection,
                                          const Visit<BlockStatus>& visit) = 0;
  virtual absl::Status VisitReservations(const Caller& caller, const Selection& selection,
                                         const Visit<Reservation>& visit) = 0;
  virtual absl::Status VisitInstances(const Caller& caller, const Selection& selection,
                                      const Visit<InstanceTopology>& visit) = 0;
  // The selected ids are reservations'. An unknown reservation is refused with
  // InvalidCapacityReservationId.NotFound. Keys are any text that orders the rows.
  virtual absl::Status VisitExtensions(const Caller& caller, const Selection& selection,
                                       const Visit<Extension>& visit) = 0;
  // The selected ids are reservations', as in VisitExtensions. A reservation of several
  // UltraServers has a row for each.
  virtual absl::Status VisitReservationTopology(const Caller& caller, const Selection& selection,
                                                const Visit<ReservationTopology>& visit) = 0;
  // Returns the types of the fleet, sorted and without repetition.
  virtual absl::StatusOr<std::vector<OfferedType>> FindOfferedTypes(const Caller& caller) = 0;
  // Changes the tags of the caller's reservations, one after the other; each change is atomic.
  // Answers only once the changes cannot be lost and the lists above show them.
  virtual absl::Status ChangeTags(const Caller& caller,
                                  const std::vector<std::string>& reservations,
                                  const TagChange& change) = 0;
};

}  // namespace tahoma::controller::ec2
