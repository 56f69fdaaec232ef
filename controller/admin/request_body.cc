#include "controller/admin/request_body.h"

#include <utility>

#include "lib/base/json.h"
#include "lib/base/json_reader.h"
#include "lib/base/status.h"

namespace tahoma::controller {

absl::StatusOr<Json> ReadBody(std::string_view text) {
  auto read = ReadBoundedJson(
      text, {.depth = kAdminBodyDepthMost, .values = kAdminBodyValuesMost, .duplicates = 1});
  if (absl::IsResourceExhausted(read.status())) {
    return InvalidArgument("the body is refused: {}", Message(read.status()));
  }
  if (!read.ok()) return InvalidArgument("the body is not JSON");
  if (!read->duplicates.empty()) {
    return InvalidArgument("the body has the key \"{}\" twice", read->duplicates.front());
  }
  return *std::move(read->value);
}

}  // namespace tahoma::controller
