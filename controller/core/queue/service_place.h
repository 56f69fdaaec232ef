// The order of service: which of two waiting gangs is planned first.
//
// Thread safety: values.

#pragma once

#include <compare>
#include <cstdint>

#include "controller/core/facts/gang_membership.h"
#include "controller/model/gang.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// A gang's place in the order of service. Those in a Capacity Block come first: only they and
// whoever borrows from it use its hardware. Then higher priority first; of one priority gangs that
// lost a member, then gangs that may not be ended, then the older, then by name.
struct ServicePlace {
  bool in_no_block = true;
  std::int64_t behind = 0;  // the priority, negated
  bool begins = true;       // had no place before
  bool preemptible = false;
  WallTime created;
  GangRef gang;

  friend auto operator<=>(const ServicePlace&, const ServicePlace&) = default;
};
ServicePlace PlaceOf(const GangRef& ref, const GangSpec& spec);

}  // namespace tahoma::controller
