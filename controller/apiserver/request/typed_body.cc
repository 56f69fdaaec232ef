#include "controller/apiserver/request/typed_body.h"

#include <optional>
#include <string>

#include "controller/apiserver/request/status_error.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {

absl::Status CheckTyped(std::string_view type, const Json& body) {
  const std::optional<std::string> wrong = DecodeError(BuiltInType(type), body);
  if (!wrong) return absl::OkStatus();
  return UndecodableError(type.substr(type.rfind('.') + 1), "v1", *wrong);
}

}  // namespace tahoma::controller::apiserver
