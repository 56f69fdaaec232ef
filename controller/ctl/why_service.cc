#include "controller/ctl/why_service.h"

#include <fmt/format.h>

#include <string_view>

#include "controller/ctl/admin_reader.h"
#include "controller/ctl/promise_list.h"
#include "controller/ctl/queue_tree.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"
#include "lib/kube/url.h"

namespace tahoma::controller {
namespace {

// Returns "1st", "2nd", "3rd", "4th", "11th".
std::string Ordinal(std::int64_t number) {
  const std::int64_t tens = number / 10 % 10;
  const std::int64_t ones = tens == 1 ? 0 : number % 10;
  return fmt::format("{}{}", number, ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th");
}

// Returns "trn2.48xlarge holds 16, 48 guaranteed, at most 64" for each instance type.
std::string ChipsText(const Json& queue) {
  std::string text;
  for (const std::string& type : QueueTypesOf(queue)) {
    text += fmt::format("; holds {} chips of {}, {} guaranteed", kube::IntAt(queue, {"held", type}),
                        type, kube::IntAt(queue, {"guaranteed", type}));
    if (kube::ValueAt(queue, {"limit", type}) != nullptr) {
      text += fmt::format(", at most {}", kube::IntAt(queue, {"limit", type}));
    }
  }
  return text;
}

std::string QueueLine(const Json& row) {
  const Json* queue = kube::ValueAt(row, {"queue"});
  if (queue == nullptr) return "";
  const std::int64_t place = kube::IntAt(*queue, {"place"});
  const std::string turn = place == 0 ? ""
                                      : fmt::format("{} of {} in turn, ", Ordinal(place),
                                                    kube::IntAt(row, {"siblings"}));
  return fmt::format("  Queue {}: {}{} % of use wanted, {} % used{}\n",
                     kube::StringAt(*queue, {"name"}), turn, kube::IntAt(*queue, {"sharePercent"}),
                     kube::IntAt(*queue, {"usedSharePercent"}), ChipsText(*queue));
}

}  // namespace

absl::StatusOr<Json> ReadService(kube::Transport& admin, const std::string& ns,
                                 const std::string& name) {
  return AskAdmin(
      admin, {.target = "/v1/why/" + kube::PercentEncode(ns) + "/" + kube::PercentEncode(name)});
}

std::string ServiceText(const Json& service) {
  std::string text;
  if (const Json* order = kube::ValueAt(service, {"order"})) {
    text += fmt::format("  {} of {} gangs that wait{}\n", Ordinal(kube::IntAt(*order, {"place"})),
                        kube::IntAt(*order, {"of"}),
                        kube::ListAt(service, {"queues"}).empty() ? "" : " in its queue");
  }
  for (const Json& row : kube::ListAt(service, {"queues"})) text += QueueLine(row);
  if (const Json* promise = kube::ValueAt(service, {"promise"})) {
    text +=
        fmt::format("  Promised: {}, {}\n", kube::StringAt(*promise, {"place"}), StartOf(*promise));
  }
  for (const Json& promise : kube::ListAt(service, {"keptBy"})) {
    text += fmt::format("  Would begin now, but {} is promised to {}, {}\n",
                        kube::StringAt(promise, {"place"}), kube::StringAt(promise, {"holder"}),
                        StartOf(promise));
  }
  return text;
}

Json ServiceJson(const Json& service) {
  Json shown = Json::object();
  for (const char* field : {"order", "queues", "promise", "keptBy"}) {
    if (const Json* value = kube::ValueAt(service, {field})) shown[field] = *value;
  }
  return shown;
}

}  // namespace tahoma::controller
