#include "dra-plugin/slices/api_call.h"

#include <nlohmann/json.hpp>

#include "lib/base/status.h"
#include "lib/kube/url.h"

namespace tahoma::dra {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxMessage = 2048;

absl::StatusCode CodeOf(int status) {
  switch (status) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return absl::StatusCode::kAborted;
    default:
      return status == 429 || status >= 500 ? absl::StatusCode::kUnavailable
                                            : absl::StatusCode::kUnknown;
  }
}

}  // namespace

absl::StatusOr<json> CallApi(kube::Transport& transport, const kube::Request& request) {
  TAHOMA_ASSIGN_OR_RETURN(const kube::Response response, transport.Send(request));
  json body = json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (response.status >= 200 && response.status < 300) {
    if (body.is_object()) return body;
    return Unavailable("{} {}: the answer is no JSON object", request.method, request.target);
  }
  std::string message;
  if (body.is_object() && body.contains("message") && body["message"].is_string()) {
    message = body["message"].get<std::string>();
  } else {
    message = response.body;
  }
  return absl::Status(CodeOf(response.status),
                      fmt::format("{} {}: HTTP {}: {}", request.method, request.target,
                                  response.status, message.substr(0, kMaxMessage)));
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
