#include "controller/ctl/promise_list.h"

#include <fmt/format.h>

#include <vector>

#include "controller/ctl/admin_reader.h"
#include "controller/ctl/table.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"
#include "lib/kube/url.h"

namespace tahoma::controller {

absl::StatusOr<Json> ReadPromises(kube::Transport& admin, const std::string& ns) {
  std::string target = "/v1/promises";
  if (!ns.empty()) target += "?" + kube::EncodeQuery({{"namespace", ns}});
  return AskAdmin(admin, {.target = target});
}

std::string StartOf(const Json& promise) {
  const std::string_view from = kube::StringAt(promise, {"from"});
  if (!from.empty()) return std::string(from);
  return kube::StringAt(promise, {"kind"}) == "Preempt" ? "others end" : "as it frees";
}

std::string PlanText(const Json& plan) {
  std::vector<std::vector<std::string>> rows = {
      {"HOLDER", "KIND", "QUEUE", "START", "UNTIL", "PLACE"}};
  for (const Json& promise : kube::ListAt(plan, {"promises"})) {
    const auto cell = [&](const char* field) {
      return std::string(kube::StringAt(promise, {field}));
    };
    rows.push_back({cell("holder"), cell("kind"), cell("queue"), StartOf(promise), cell("until"),
                    cell("place")});
  }
  const std::int64_t without = kube::IntAt(plan, {"waitingWithout"});
  const std::string rest = fmt::format("{} {} without a promise.\n", without,
                                       without == 1 ? "gang waits" : "gangs wait");
  if (rows.size() == 1) return "Nothing is promised. " + rest;
  return TableText(rows) + rest;
}

}  // namespace tahoma::controller
