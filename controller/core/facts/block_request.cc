#include "controller/core/facts/block_request.h"

#include "controller/reserve/refusal.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {

const kube::Resource& ResourceOf(RequestKind kind) {
  static const kube::Resource extensions{
      .group = "tahoma.dev", .version = "v1alpha1", .plural = "capacityblockextensions"};
  static const kube::Resource quotas{.group = "tahoma.dev",
                                     .version = "v1alpha1",
                                     .plural = "capacityblockquotas",
                                     .namespaced = false};
  static const kube::Resource series{
      .group = "tahoma.dev", .version = "v1alpha1", .plural = "capacityblockseries"};
  static const kube::Resource waitlist{
      .group = "tahoma.dev", .version = "v1alpha1", .plural = "capacityblockwaitlistentries"};
  switch (kind) {
    case RequestKind::kSeries:
      return series;
    case RequestKind::kWaitlistEntry:
      return waitlist;
    case RequestKind::kExtension:
      return extensions;
    case RequestKind::kQuota:
      return quotas;
  }
  TAHOMA_CHECK(false);
  return extensions;
}

std::string_view KindName(RequestKind kind) {
  switch (kind) {
    case RequestKind::kSeries:
      return "CapacityBlockSeries";
    case RequestKind::kWaitlistEntry:
      return "CapacityBlockWaitlistEntry";
    case RequestKind::kExtension:
      return "CapacityBlockExtension";
    case RequestKind::kQuota:
      return "CapacityBlockQuota";
  }
  TAHOMA_CHECK(false);
  return "";
}

RequestStatus RefusedStatus(const absl::Status& why) {
  return {.reason = Ec2CodeOf(why), .message = std::string(Message(why))};
}

Money InCents(Money amount) { return ParseMoney(amount.ToString()).value_or(amount); }

BoughtBlock BoughtBlockOf(const Block& block) {
  return {.name = block.key.name,
          .reservation = block.reservation,
          .start = InSeconds(block.start()),
          .end = block.end,
          .fee = InCents(block.fee())};
}

}  // namespace tahoma::controller
