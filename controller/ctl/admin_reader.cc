#include "controller/ctl/admin_reader.h"

#include <string_view>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller {

absl::StatusOr<Json> AskAdmin(kube::Transport& admin, const kube::Request& request) {
  const auto answer = admin.Send(request);
  if (!answer.ok()) return Annotate(answer.status(), "the admin API");
  const auto body = answer->Json();
  if (answer->status == 200 && body->is_object()) return *body;
  const std::string_view detail = kube::StringAt(*body, {"detail"});
  if (detail.empty()) {
    return Unavailable("the admin API answers {} to {} {}; is this its address?", answer->status,
                       request.method, request.target);
  }
  switch (answer->status) {
    case 400:
      return InvalidArgument("{}", detail);
    case 401:
    case 403:
      return PermissionDenied("{}", detail);
    case 404:
      return NotFound("{}", detail);
    default:
      return Unavailable("the admin API answers {} to {} {}: {}", answer->status, request.method,
                         request.target, detail);
  }
}

}  // namespace tahoma::controller
