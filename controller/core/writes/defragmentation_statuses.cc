#include "controller/core/writes/defragmentation_statuses.h"

namespace tahoma::controller {

void DefragmentationStatuses::Flush(const Now& now) {
  statuses_.Flush(now, [this](const std::string& name, const auto& entry) {
    return writes_.Add(DefragmentationStatusWrite{.name = name,
                                                  .uid = entry.uid,
                                                  .base_version = entry.seen.resource_version,
                                                  .shown = entry.seen.digest,
                                                  .status = entry.sent});
  });
}

}  // namespace tahoma::controller
