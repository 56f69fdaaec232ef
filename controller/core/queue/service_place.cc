#include "controller/core/queue/service_place.h"

namespace tahoma::controller {

ServicePlace PlaceOf(const GangRef& ref, const GangSpec& spec) {
  return {.in_no_block = spec.reservation.empty(),
          .behind = -std::int64_t{spec.priority},
          .begins = !spec.resumes,
          .preemptible = spec.preemptible,
          .created = spec.created,
          .gang = ref};
}

}  // namespace tahoma::controller
