#include "dra-plugin/slices/api_call.h"

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"
#include "lib/kube/url.h"

namespace tahoma::dra {
using json = Json;

absl::StatusOr<json> CallApi(kube::Transport& transport, const kube::Request& request) {
  TAHOMA_ASSIGN_OR_RETURN(const kube::Response response, transport.Send(request));
  if (response.status < 200 || response.status >= 300) {
    return Annotate(kube::ToStatus(response),
                    fmt::format("{} {}: HTTP {}", request.method, request.target, response.status));
  }
  json body = json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (body.is_object()) return body;
  return Unavailable("{} {}: the answer is no JSON object", request.method, request.target);
}

absl::StatusOr<std::string> ApiClaimSource::Get(const std::string& name_space,
                                                const std::string& name) {
  TAHOMA_ASSIGN_OR_RETURN(
      const json claim,
      CallApi(transport_,
              {.method = "GET",
               .target = fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}",
                                     kube::PercentEncode(name_space), kube::PercentEncode(name))}));
  return claim.dump();
}

}  // namespace tahoma::dra
