#include "controller/admin/answer.h"

#include <string>

#include "controller/reserve/refusal.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

std::string Written(const nlohmann::ordered_json& body) {
  return body.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

rest::Response Answer(int status, const nlohmann::ordered_json& body) {
  return rest::Response::Json(status, Written(body));
}

rest::Response Refused(const absl::Status& status) {
  rest::Response problem = rest::Response::FromStatus(status);
  if (!IsRefusal(status)) return problem;
  nlohmann::ordered_json body = nlohmann::ordered_json::parse(problem.body);
  body["code"] = Ec2CodeOf(status);
  problem.body = Written(body);
  return problem;
}

}  // namespace tahoma::controller
