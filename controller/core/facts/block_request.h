// What people ask about Capacity Blocks by objects of their own: extensions, quotas, series and
// waitlist entries. And what is shown of it in the status of these objects.
//
//   const RequestKey key{RequestKind::kExtension, "team-a", "a-day-more"};
//   ResourceOf(key.kind).plural;                       // "capacityblockextensions"
//   const RequestStatus status{.state = "payment-pending", .result = ExtensionResult{…}};
//   IsSettled(status);                                 // it is not carried out again
//
// Scope: values. read_request.h parses them, block_requests.h carries them out, and
// publish/render_request.h writes the status.
//
// Thread safety: values.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "controller/reserve/block.h"
#include "controller/reserve/quota.h"
#include "controller/reserve/search.h"
#include "lib/base/clock.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

// In the order in which a step looks at them.
enum class RequestKind : std::uint8_t { kQuota, kExtension, kSeries, kWaitlistEntry };
inline constexpr RequestKind kRequestKinds[] = {RequestKind::kQuota, RequestKind::kExtension,
                                                RequestKind::kSeries, RequestKind::kWaitlistEntry};

const kube::Resource& ResourceOf(RequestKind kind);
// Returns the kind's name: "CapacityBlockExtension".
std::string_view KindName(RequestKind kind);

struct RequestKey {
  RequestKind kind = RequestKind::kExtension;
  std::string ns;  // empty for kinds of the cluster
  std::string name;

  friend auto operator<=>(const RequestKey&, const RequestKey&) = default;

  template <typename H>
  friend H AbslHashValue(H h, const RequestKey& key) {
    return H::combine(std::move(h), key.kind, key.ns, key.name);
  }
};

// An extension of one block: of that name in the same namespace, or of that reservation.
struct ExtensionRequest {
  std::string block = {};
  std::string reservation = {};
  std::string offering_id = {};            // either an offering that a search has answered with …
  std::optional<std::int64_t> hours = {};  // … or so many hours more, at the price of now
  std::string token = {};

  friend bool operator==(const ExtensionRequest&, const ExtensionRequest&) = default;
};

// The quota of the namespace that has the object's name.
using QuotaRequest = Quota;

// So many blocks of the same length, a number of weeks apart, or those of some offerings, such as
// the segments of one: all of them or none.
struct SeriesRequest {
  std::vector<std::string> offering_ids = {};  // empty: found by the query
  OfferingQuery query = {};                    // of each; its earliest start is that of the first
  int every_weeks = 1;
  int occurrences = 2;  // as many as there are offerings, where these are named
  std::string platform = "Linux/UNIX";
  Tags tags = {};
};

// A search that is repeated until it finds something.
struct WaitlistRequest {
  OfferingQuery query = {};
  std::optional<Money> fee_most = {};  // of the block
  bool buy = true;                     // or only say that there is something
  std::string block = {};              // the name of the block that is bought
  std::string platform = "Linux/UNIX";
  Tags tags = {};
};

// ---- What is shown -----------------------------------------------------------------------------

struct ExtensionResult {
  std::string block = {};
  std::string reservation = {};
  std::string offering_id = {};
  std::string instance_type = {};
  int instances = 0;
  std::string zone = {};
  std::int64_t hours = 0;
  WallTime purchased = {};
  WallTime start = {};
  WallTime end = {};
  Money fee = {};

  friend bool operator==(const ExtensionResult&, const ExtensionResult&) = default;
};

// A block that a request has bought.
struct BoughtBlock {
  std::string name = {};
  std::string reservation = {};
  WallTime start = {};
  WallTime end = {};
  Money fee = {};
  std::string record = {};  // the journal's entry, hexadecimal, until the block's object has it

  friend bool operator==(const BoughtBlock&, const BoughtBlock&) = default;
};

struct SeriesResult {
  std::vector<BoughtBlock> blocks = {};
  Money fee = {};  // of all of them

  friend bool operator==(const SeriesResult&, const SeriesResult&) = default;
};

struct WaitlistResult {
  std::string offering_id = {};
  std::optional<BoughtBlock> block = {};  // nullopt: it was not to be bought

  friend bool operator==(const WaitlistResult&, const WaitlistResult&) = default;
};

using RequestResult =
    std::variant<std::monostate, ExtensionResult, QuotaUse, SeriesResult, WaitlistResult>;

struct RequestStatus {
  std::int64_t generation = 0;  // of the spec that was looked at
  std::string state = {};       // a word of the kind's page; empty when it was refused
  std::string reason = {};      // EC2's code, when it was refused
  std::string message = {};
  WallTime since = {};  // when state or reason last changed, in whole seconds
  RequestResult result = {};

  friend bool operator==(const RequestStatus&, const RequestStatus&) = default;
};

// A waitlist entry that nothing was found for yet.
inline constexpr std::string_view kWaiting = "waiting";

// Returns whether the status says that the request was carried out or refused.
inline bool IsSettled(const RequestStatus& status) {
  return (!status.state.empty() && status.state != kWaiting) || !status.reason.empty();
}

// What follows from a look at a request.
struct RequestAnswer {
  std::optional<RequestStatus> status = {};  // nullopt: as it is shown, or it waits
  std::optional<WallTime> look_again = {};
};

// Returns the status of a request that was refused.
RequestStatus RefusedStatus(const absl::Status& why);
// As much of an amount as is shown.
Money InCents(Money amount);
BoughtBlock BoughtBlockOf(const Block& block);

using RequestSpec = std::variant<ExtensionRequest, QuotaRequest, SeriesRequest, WaitlistRequest>;

// An object, as a watch has seen it.
struct RequestFact {
  RequestKey key = {};
  std::string uid = {};
  std::string resource_version = {};
  std::int64_t generation = 0;
  bool deleting = false;
  WallTime created = {};
  RequestSpec spec = {};
  std::string spec_error = {};               // why the spec cannot be used; empty when it can
  std::optional<RequestStatus> status = {};  // nullopt: it has none
  std::uint64_t shown = 0;                   // the digest of its status
};

inline WallTime InSeconds(WallTime time) { return std::chrono::floor<std::chrono::seconds>(time); }

}  // namespace tahoma::controller
