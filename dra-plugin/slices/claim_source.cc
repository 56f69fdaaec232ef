#include "dra-plugin/slices/claim_source.h"

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"
#include "lib/kube/resource.h"

namespace tahoma::dra {

absl::StatusOr<std::string> ApiClaimSource::Get(const std::string& name_space,
                                                const std::string& name) {
  const kube::ObjectKey key{name_space, name};
  const absl::StatusOr<Json> claim = api_.Get(kube::kResourceClaims, key);
  if (!claim.ok()) {
    return Annotate(claim.status(), fmt::format("reading claim {}", key.ToString()));
  }
  if (!claim->is_object()) {
    return Unavailable("reading claim {}: the answer is no object", key.ToString());
  }
  return kube::JsonText(*claim);
}

}  // namespace tahoma::dra
