// The requests of EC2's Capacity Block actions as values, read from parameters.
//
// Scope: form, and which parameters go together. Which counts, durations and dates may be bought is
// decided by the service that gets these values.
//
// Thread safety: pure functions and plain values.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/ec2/error.h"
#include "controller/ec2/parameters.h"
#include "controller/ec2/values.h"

namespace tahoma::controller::ec2 {

inline constexpr std::size_t kIdsMost = 1000;
inline constexpr std::size_t kTagsMost = 50;
inline constexpr std::size_t kTagKeyCharactersMost = 128;
inline constexpr std::size_t kTagValueCharactersMost = 256;

// DescribeCapacityBlockOfferings: either instances of one of the types, or UltraServers.
struct OfferingSearch {
  std::vector<std::string> instance_types;  // empty: UltraServers; several: any of them
  std::optional<std::int64_t> instance_count;
  std::string ultraserver_type;  // empty: instances
  std::optional<std::int64_t> ultraserver_count;
  std::optional<WallTime> earliest_start;
  std::optional<WallTime> latest_end;
  std::int64_t duration_hours = 0;
  bool all_availability_zones = false;
};
OfferingSearch ReadOfferingSearch(Reader& reader);

// PurchaseCapacityBlock
struct BlockPurchase {
  std::string offering_id;
  std::string instance_platform;
  std::vector<Tag> tags = {};
  // The same for all attempts of one purchase; empty: this is the only one. See ReadClientToken.
  std::string client_token = {};
  std::string signature = {};  // that was verified; empty: there was none
  bool dry_run = false;
};
BlockPurchase ReadBlockPurchase(Reader& reader);

// DescribeCapacityBlockExtensionOfferings
struct ExtensionSearch {
  std::string reservation_id;
  std::int64_t duration_hours = 0;
};
ExtensionSearch ReadExtensionSearch(Reader& reader);

// PurchaseCapacityBlockExtension
struct ExtensionPurchase {
  std::string offering_id;
  std::string reservation_id;
  std::string client_token;
  bool dry_run = false;
};
ExtensionPurchase ReadExtensionPurchase(Reader& reader);

// One Tag.N, with its bounds.
Tag ReadTag(Reader& item);

// TagSpecification.N.Tag.N, for the resource types capacity-reservation and capacity-block.
std::vector<Tag> ReadTags(Reader& reader);

// CapacityReservationId
std::string ReadReservationId(Reader& reader);

// The ids that a list may be asked for: their parameter, their form, and EC2's codes.
struct IdList {
  std::string_view name;
  std::string_view prefix;
  std::string_view kind;  // "capacity reservation", for messages
  Ec2Code malformed;
  Ec2Code unknown;
};
inline constexpr IdList kBlockIds{"CapacityBlockId", "cb-", "capacity block", kBlockMalformed,
                                  kBlockNotFound};
inline constexpr IdList kReservationIds{"CapacityReservationId", "cr-", "capacity reservation",
                                        kReservationMalformed, kReservationNotFound};
// Names of nodes, too.
inline constexpr IdList kInstanceIds{"InstanceId", "i-", "instance", kInstanceMalformed,
                                     kInstanceNotFound};

// Reads NAME.N as ids, without repetition and in order. Refuses MaxResults beside them.
std::vector<std::string> ReadIds(Reader& reader, const IdList& list, std::size_t most);
// Refuses ids of nothing, at least one.
absl::Status UnknownIds(const IdList& list, const std::set<std::string, std::less<>>& missing);

}  // namespace tahoma::controller::ec2
