// The objects of EC2's Capacity Block actions, as values with EC2's names.
//
// A text that is empty, and a number or time that is nothing, is left out of the answer. Where EC2
// has an enumeration the texts are its own ("payment-pending"), since they are only passed on and
// compared with filters.
//
// Scope: the wire; the rules of blocks are elsewhere.
//
// Thread safety: plain values.

#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"

namespace tahoma::controller::ec2 {

struct Tag {
  std::string key;
  std::string value;

  bool operator==(const Tag&) const = default;
};

// CapacityBlockOfferingSegment: one part of an offering that has several.
struct OfferingSegment {
  std::string instance_type;
  std::string availability_zone;
  std::string availability_zone_id = {};
  std::int64_t instance_count = 0;
  WallTime start;
  WallTime end;
  std::int64_t duration_hours = 0;
  std::int64_t duration_minutes = 0;  // beyond the hours, 0 to 59
  std::string upfront_fee;
  std::string currency_code = "USD";
  std::string zone_type = "availability-zone";
};

// CapacityBlockOffering
struct Ec2Offering {
  std::string id;
  std::string instance_type;
  std::string availability_zone;
  std::int64_t instance_count = 0;
  WallTime start;
  WallTime end;
  std::int64_t duration_hours = 0;
  std::int64_t duration_minutes = 0;  // beyond the hours, 0 to 59
  std::string upfront_fee;            // decimal: "858.26"
  std::string currency_code = "USD";
  std::string tenancy = "default";
  std::string ultraserver_type = {};
  std::optional<std::int64_t> ultraserver_count = {};
  std::string zone_type = "availability-zone";
  std::vector<OfferingSegment> segments = {};
};

// CapacityBlock
struct Ec2Block {
  std::string id;
  std::string ultraserver_type = {};  // of a block of UltraServers
  std::string availability_zone;
  std::string availability_zone_id = {};
  std::vector<std::string> reservation_ids = {};
  WallTime start;
  WallTime end;
  WallTime created;
  std::string state;
  std::vector<Tag> tags = {};
};

struct Allocation {
  std::string type;  // used, future, cancelling
  std::int64_t count = 0;
};

// CapacityReservation
struct Reservation {
  std::string id;
  std::string owner_id;
  std::string arn;
  std::string availability_zone;
  std::string availability_zone_id = {};
  std::string instance_type;
  std::string instance_platform = "Linux/UNIX";
  std::string tenancy = "default";
  std::int64_t total_instance_count = 0;
  std::int64_t available_instance_count = 0;
  std::string state;
  WallTime start;
  WallTime end;
  std::string end_date_type = "limited";
  std::string instance_match_criteria = "targeted";
  WallTime created;
  std::vector<Tag> tags = {};
  std::vector<Allocation> allocations = {};
  std::string reservation_type = "capacity-block";
  std::string unused_reservation_billing_owner_id = {};
  std::string block_id = {};
};

struct BlockPurchased {
  std::vector<Reservation> reservations;  // the first is also answered alone
  std::vector<Ec2Block> blocks;
};

// CapacityReservationStatus
struct ReservationStatus {
  std::string reservation_id;
  std::int64_t total_capacity = 0;
  std::int64_t available_capacity = 0;
  std::int64_t unavailable_capacity = 0;
};

// CapacityBlockStatus
struct BlockStatus {
  std::string block_id;
  std::string interconnect_status = {};  // of UltraServers: ok, impaired, insufficient-data
  std::int64_t total_capacity = 0;
  std::int64_t available_capacity = 0;
  std::int64_t unavailable_capacity = 0;
  std::vector<ReservationStatus> reservations = {};
};

// CapacityBlockExtensionOffering
struct ExtensionOffering {
  std::string id;
  std::string instance_type;
  std::int64_t instance_count = 0;
  std::string availability_zone;
  std::string availability_zone_id = {};
  WallTime start;            // of the block
  WallTime extension_start;  // the end that the block has now
  WallTime extension_end;
  std::int64_t duration_hours = 0;
  std::string upfront_fee;
  std::string currency_code = "USD";
  std::string tenancy = "default";
  std::string zone_type = "availability-zone";
};

// CapacityBlockExtension
struct Extension {
  std::string reservation_id;
  std::string instance_type;
  std::int64_t instance_count = 0;
  std::string availability_zone;
  std::string availability_zone_id = {};
  std::string offering_id;
  std::int64_t duration_hours = 0;
  std::string status;  // payment-pending, payment-failed, payment-succeeded
  WallTime purchased;
  WallTime start;
  WallTime end;
  std::string upfront_fee;
  std::string currency_code = "USD";
  std::string zone_type = "availability-zone";
};

// InstanceTopology
struct InstanceTopology {
  std::string instance_id;
  std::string instance_type;
  std::string group_name = {};
  std::vector<std::string> network_nodes;  // from the top of the network to the instance
  std::string availability_zone;
  std::string zone_id;
  std::string block_id = {};  // of instances of UltraServers
};

// CapacityReservationTopology: where a reservation is in the network, of an UltraServer alone where
// it has several.
struct ReservationTopology {
  std::string reservation_id;
  std::string block_id = {};  // of UltraServers
  std::string state;
  std::string instance_type;
  std::vector<std::string> network_nodes = {};  // from the top, as far as all of its hosts share
  std::string availability_zone;
  std::string availability_zone_id = {};
};

// An instance type that the fleet has in an availability zone.
struct OfferedType {
  std::string instance_type;
  std::string availability_zone;
  std::string availability_zone_id = {};

  friend auto operator<=>(const OfferedType&, const OfferedType&) = default;
};

}  // namespace tahoma::controller::ec2
