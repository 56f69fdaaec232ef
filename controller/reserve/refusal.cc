#include "controller/reserve/refusal.h"

#include <absl/strings/cord.h>

namespace tahoma::controller {
namespace {

constexpr char kPayload[] = "tahoma.dev/ec2-code";

}  // namespace

absl::Status RefuseWith(const Ec2Code& code, const std::string& message) {
  absl::Status status(code.status, message);
  status.SetPayload(kPayload, absl::Cord(std::string(code.name)));
  return status;
}

bool IsRefusal(const absl::Status& status) { return status.GetPayload(kPayload).has_value(); }

std::string Ec2CodeOf(const absl::Status& status) {
  const auto code = status.GetPayload(kPayload);
  return code ? std::string(*code) : "InternalError";
}

}  // namespace tahoma::controller
