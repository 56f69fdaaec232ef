#include "controller/publish/render_request.h"

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

using json = Json;

json TextIfAny(const std::string& text) { return text.empty() ? json() : json(text); }
json TimeIfAny(WallTime time) { return time == WallTime{} ? json() : json(FormatTime(time)); }

void AddExtension(json& status, const ExtensionResult& extension) {
  status["capacityBlockName"] = extension.block;
  status["capacityReservationId"] = extension.reservation;
  status["capacityBlockExtensionOfferingId"] = extension.offering_id;
  status["instanceType"] = extension.instance_type;
  status["instanceCount"] = extension.instances;
  status["availabilityZone"] = extension.zone;
  status["capacityBlockExtensionDurationHours"] = extension.hours;
  status["capacityBlockExtensionPurchaseDate"] = FormatTime(extension.purchased);
  status["capacityBlockExtensionStartDate"] = FormatTime(extension.start);
  status["capacityBlockExtensionEndDate"] = FormatTime(extension.end);
  status["upfrontFee"] = extension.fee.ToString();
  status["currencyCode"] = "USD";
}

void AddUse(json& status, const QuotaUse& use) {
  json limits = {{"instances", use.limits.instances},
                 {"averageWindowDays", use.limits.window_days}};
  limits["averageInstances"] = use.limits.average ? json(*use.limits.average) : json();
  status["limits"] = std::move(limits);
  status["instancesToday"] = use.today;
  status["peakInstances"] = use.peak;
  status["peakDate"] = TimeIfAny(use.peak_at);
  status["instanceDays"] = use.instance_days;
}

json BlockJson(const BoughtBlock& block) {
  return {{"capacityBlockName", block.name},
          {"capacityReservationId", block.reservation},
          {"startDate", FormatTime(block.start)},
          {"endDate", FormatTime(block.end)},
          {"upfrontFee", block.fee.ToString()}};
}

void AddSeries(json& status, const SeriesResult& series) {
  json blocks = json::array();
  for (const BoughtBlock& block : series.blocks) {
    blocks.push_back(BlockJson(block));
    if (!block.record.empty()) blocks.back()["record"] = block.record;
  }
  status["capacityBlocks"] = std::move(blocks);
  status["upfrontFee"] = series.fee.ToString();
  status["currencyCode"] = "USD";
}

void AddFound(json& status, const WaitlistResult& found) {
  status["capacityBlockOfferingId"] = found.offering_id;
  if (!found.block) return;
  status.update(BlockJson(*found.block));
  status["currencyCode"] = "USD";
}

// Returns every field that a status of the kind may have, without a value: fields written by other
// clients go.
json Blank(RequestKind kind) {
  json blank = json::object();
  switch (kind) {
    case RequestKind::kQuota:
      AddUse(blank, {});
      break;
    case RequestKind::kExtension:
      AddExtension(blank, {});
      break;
    case RequestKind::kSeries:
      AddSeries(blank, {});
      break;
    case RequestKind::kWaitlistEntry:
      AddFound(blank, {.block = BoughtBlock{}});
      break;
  }
  json nulls = json::object();
  for (const auto& [name, value] : blank.items()) nulls[name] = nullptr;
  return nulls;
}

// The condition of each kind, and the state in which it holds.
std::pair<std::string_view, std::string_view> ConditionOf(RequestKind kind) {
  switch (kind) {
    case RequestKind::kQuota:
      return {"WithinLimits", "WithinLimits"};
    case RequestKind::kExtension:
      return {"PaymentSettled", "payment-succeeded"};
    case RequestKind::kSeries:
      return {"Purchased", "purchased"};
    case RequestKind::kWaitlistEntry:
      return {"Fulfilled", "fulfilled"};
  }
  TAHOMA_CHECK(false);
  return {};
}

// "payment-failed" as a reason: "PaymentFailed".
std::string ReasonOf(const RequestStatus& status) {
  if (!status.reason.empty()) return "Refused";
  std::string reason;
  bool upper = true;
  for (const char c : status.state) {
    if (c != '-') reason += static_cast<char>(upper && c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    upper = c == '-';
  }
  return reason;
}

}  // namespace

json RequestStatusJson(RequestKind kind, const RequestStatus& status) {
  json body = Blank(kind);
  body["observedGeneration"] = status.generation;
  body["state"] = TextIfAny(status.state);
  body["reason"] = TextIfAny(status.reason);
  body["message"] = TextIfAny(status.message);
  if (const auto* extension = std::get_if<ExtensionResult>(&status.result)) {
    AddExtension(body, *extension);
  } else if (const auto* use = std::get_if<QuotaUse>(&status.result)) {
    AddUse(body, *use);
  } else if (const auto* series = std::get_if<SeriesResult>(&status.result)) {
    AddSeries(body, *series);
  } else if (const auto* found = std::get_if<WaitlistResult>(&status.result)) {
    AddFound(body, *found);
  }
  const auto [type, holds] = ConditionOf(kind);
  body["conditions"] = json::array({json{{"type", type},
                                         {"status", status.state == holds ? "True" : "False"},
                                         {"reason", ReasonOf(status)},
                                         {"message", status.message},
                                         {"lastTransitionTime", FormatTime(status.since)}}});
  return body;
}

kube::Request RenderRequestStatus(const RequestStatusWrite& write) {
  return kube::PatchRequest(ResourceOf(write.key.kind), {write.key.ns, write.key.name},
                            kube::PatchType::kMerge,
                            {{"metadata", {{"uid", write.uid}}},
                             {"status", RequestStatusJson(write.key.kind, *write.status)}},
                            {.subresource = "status"});
}

}  // namespace tahoma::controller
