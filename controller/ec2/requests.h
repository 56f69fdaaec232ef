// The requests of EC2's Capacity Block actions as values, read from parameters.
//
//   Reader reader(form);
//   const OfferingSearch search = ReadOfferingSearch(reader);
//   TAHOMA_RETURN_IF_ERROR(reader.Finish());          // search is good only if this is OK
//
// Scope: form, and which parameters go together. Which counts, durations and dates may be bought is
// decided by the service that gets these values.
//
// Thread safety: pure functions and plain values.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  std::vector<Tag> tags;
  // The same for all attempts of one purchase; empty: this is the only one. See ReadClientToken.
  std::string client_token;
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
};
ExtensionPurchase ReadExtensionPurchase(Reader& reader);

// One Tag.N, with its bounds.
Tag ReadOneTag(Reader& item);

// TagSpecification.N.Tag.N, for resource type capacity-reservation.
std::vector<Tag> ReadTags(Reader& reader);

// Reads NAME.N as ids, without repetition and in order. `malformed` refuses one that has other than
// letters, digits, '-', '_' and '.'.
std::vector<std::string> ReadIds(Reader& reader, std::string_view name, std::size_t most,
                                 const Ec2Code& malformed);

}  // namespace tahoma::controller::ec2
