#include "controller/publish/render_block.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "controller/core/journal/block_record.h"
#include "lib/base/check.h"
#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

using json = Json;

json TimeIfAny(const std::optional<WallTime>& time) {
  return time ? json(FormatTime(*time)) : json();
}

// Returns the word of a value in one of the tables of block.h.
template <typename Enum, std::size_t n>
std::string_view WordOf(const std::array<std::pair<std::string_view, Enum>, n>& words, Enum value) {
  for (const auto& [word, known] : words) {
    if (known == value) return word;
  }
  TAHOMA_CHECK(false);
  return "";
}

json Condition(std::string_view type, bool holds, std::string_view reason, std::string message,
               const std::optional<WallTime>& since) {
  json condition = {{"type", type},
                    {"status", holds ? "True" : "False"},
                    {"reason", reason},
                    {"message", std::move(message)}};
  if (since) condition["lastTransitionTime"] = FormatTime(*since);
  return condition;
}

// The conditions of a block (docs/formats/capacity-blocks.md#conditions).
json Conditions(const Block& block, const BlockView& view) {
  json conditions = json::array();
  conditions.push_back(Condition("Purchased", true, "Purchased", "", block.created));
  const bool failed = block.state == BlockState::kPaymentFailed;
  const bool paid = !failed && block.state != BlockState::kPaymentPending;
  conditions.push_back(
      Condition("PaymentSettled", paid,
                paid     ? "Paid"
                : failed ? "PaymentFailed"
                         : "PaymentPending",
                paid ? "" : fmt::format("must be paid by {}", FormatTime(block.payment.deadline)),
                paid || failed ? block.payment.due() : block.created));
  const bool bound = !block.hosts.empty();
  conditions.push_back(Condition("HardwareBound", bound, bound ? "Bound" : "NotBound",
                                 fmt::format("{}", fmt::join(block.hosts, ", ")),
                                 bound ? block.bound : std::optional(block.created)));
  const bool delivered = IsDelivered(block.state);
  conditions.push_back(Condition("Delivered", delivered,
                                 delivered                             ? "Delivered"
                                 : block.state == BlockState::kExpired ? "Expired"
                                                                       : "NotDelivered",
                                 "", block.delivered));
  conditions.push_back(Condition("Degraded", !block.trouble.empty(),
                                 block.trouble.empty() ? "AllHealthy"
                                 : block.waits()       ? "WaitsForHosts"
                                                       : "HostsFailed",
                                 block.trouble, std::nullopt));
  conditions.push_back(Condition("InterconnectHealthy", view.interconnect == Interconnect::kOk,
                                 view.interconnect == Interconnect::kOk ? "Ok"
                                 : view.interconnect == Interconnect::kImpaired
                                     ? "LinksDown"
                                     : "InsufficientData",
                                 "", std::nullopt));
  const bool draining = delivered && block.warned;
  conditions.push_back(Condition(
      "Draining", draining, draining ? "ReclaimIsNear" : "NotDraining",
      draining ? fmt::format("hardware is taken back from {} on", FormatTime(block.reclaim())) : "",
      draining ? std::optional(WarningOf(block)) : std::nullopt));
  return conditions;
}

json Extensions(const Block& block) {
  json extensions = json::array();
  for (const Extension& extension : block.extensions) {
    extensions.push_back({{"capacityBlockExtensionOfferingId", extension.offering_id},
                          {"capacityBlockExtensionPurchaseDate", FormatTime(extension.purchased)},
                          {"capacityBlockExtensionStartDate", FormatTime(extension.start)},
                          {"capacityBlockExtensionEndDate", FormatTime(extension.end)},
                          {"capacityBlockExtensionStatus", StateName(extension.state)},
                          {"upfrontFee", extension.fee.ToString()}});
  }
  return extensions;
}

json Binding(const Block& block) {
  json cells = json::array();
  for (const CellShare& share : block.cells) {
    cells.push_back({{"cell", share.cell}, {"hosts", share.hosts}});
  }
  return {{"cells", std::move(cells)}, {"hosts", block.hosts}, {"boundAt", TimeIfAny(block.bound)}};
}

// The use of the block's chips, as of the last record (docs/formats/capacity-blocks.md#usage).
json Usage(const Block& block) {
  const ChipTally& sums = block.usage.chip_ms;
  const std::int64_t bought =
      block.chips() * (MillisecondsOf(block.end) - MillisecondsOf(block.start()));
  return {{"asOf", FormatTime(block.usage.as_of)},
          {"chipHours",
           {{"bought", HoursText(bought)},
            {"used", HoursText(sums.used)},
            {"lent", HoursText(sums.lent)},
            {"idle", HoursText(sums.idle)},
            {"lost", HoursText(sums.lost)}}},
          {"utilization", UtilizationText(block.usage)}};
}

json BoughtStatus(const Block& block, const BlockView& view) {
  const bool ultra = block.product().ultra_server;
  const int instances = block.bought.instances();
  return {{"capacityBlockIds", block.block_ids},
          {"capacityReservationIds", json::array({block.reservation})},
          {"state", StateName(block.state)},
          {"instanceType", block.product().instance_type},
          {"ultraserverType", ultra ? json(block.product().name) : json()},
          {"count", block.bought.count},
          {"availabilityZone", block.bought.zone},
          {"createDate", FormatTime(block.created)},
          {"startDate", FormatTime(block.start())},
          {"endDate", FormatTime(block.end)},
          {"reclaimDate", FormatTime(block.reclaim())},
          {"upfrontFee", block.fee().ToString()},
          {"currencyCode", "USD"},
          {"totalInstanceCount", instances},
          {"availableInstanceCount", view.available},
          {"capacityBlockStatus",
           {{"interconnectStatus", InterconnectName(view.interconnect)},
            {"totalCapacity", instances},
            {"totalAvailableCapacity", view.available},
            {"totalUnavailableCapacity", view.unavailable}}},
          {"usage", block.usage.total() > 0 ? Usage(block) : json()},
          {"binding", Binding(block)},
          {"extensions", Extensions(block)},
          {"conditions", Conditions(block, view)},
          {"record", Hex(EncodeBlock(block))},
          {"recordVersion", VersionText(block.version)}};
}

// The status of an object whose block was not bought. A former leader may have written a bought
// block's status: the fields are cleared.
json NotBoughtStatus(const BlockView& view) {
  json status = json::object();
  for (const char* field : {"capacityBlockIds",
                            "capacityReservationIds",
                            "state",
                            "instanceType",
                            "ultraserverType",
                            "count",
                            "availabilityZone",
                            "createDate",
                            "startDate",
                            "endDate",
                            "reclaimDate",
                            "upfrontFee",
                            "currencyCode",
                            "totalInstanceCount",
                            "availableInstanceCount",
                            "capacityBlockStatus",
                            "usage",
                            "binding",
                            "extensions",
                            "record",
                            "recordVersion"}) {
    status[field] = nullptr;
  }
  status["conditions"] =
      json::array({Condition("Purchased", false, "Refused",
                             fmt::format("{}: {}", view.refusal, view.message), view.refused_at)});
  return status;
}

}  // namespace

json BlockStatusJson(const BlockView& view) {
  json status = view.block != nullptr ? BoughtStatus(*view.block, view)
                : view.keeps_record   ? json::object()
                                      : NotBoughtStatus(view);
  status["observedGeneration"] = view.generation;
  // Only on a test clock: nobody else is to wonder about it.
  status["timeScale"] = view.time_scale == 1 ? json() : json(view.time_scale);
  status["reason"] = view.refusal.empty() ? json() : json(view.refusal);
  status["message"] = view.message.empty() ? json() : json(view.message);
  return status;
}

kube::Request RenderBlockCreation(const BlockCreation& write) {
  const Block& block = *write.block;
  json tags = json::object();
  for (const auto& [key, value] : block.tags) tags[key] = value;
  json spec = {{"capacityBlockOfferingId", block.offering_id},
               {"instancePlatform", block.platform},
               {"clientToken", block.token},
               {"tags", std::move(tags)},
               {"replacePolicy", WordOf(kReplacePolicies, block.terms.replace)},
               {"bindingMode", WordOf(kBindingModes, block.terms.binding)},
               {"lendIdle", block.terms.lend_idle},
               {"magnetic", block.terms.magnetic}};
  if (!block.terms.access.empty()) spec["access"] = {{"namespaces", block.terms.access}};
  json metadata = {{"name", block.key.name}, {"namespace", block.key.ns}};
  if (HoldsCapacity(block.state)) metadata["finalizers"] = json::array({kNoCancelFinalizer});
  return kube::CreateRequest(kCapacityBlocks, block.key.ns,
                             {{"apiVersion", "tahoma.dev/v1alpha1"},
                              {"kind", "CapacityBlock"},
                              {"metadata", std::move(metadata)},
                              {"spec", std::move(spec)}});
}

kube::Request RenderBlockFinalizer(const BlockFinalizerWrite& write) {
  const BlockFact& base = *write.base;
  json finalizers = json::array();
  for (const std::string& other : base.other_finalizers) finalizers.push_back(other);
  if (write.add) finalizers.push_back(kNoCancelFinalizer);
  return kube::PatchRequest(
      kCapacityBlocks, {base.key.ns, base.key.name}, kube::PatchType::kMerge,
      {{"metadata",
        {{"uid", base.uid},
         {"resourceVersion", base.resource_version},
         {"finalizers", finalizers.empty() ? json() : std::move(finalizers)}}}},
      {});
}

kube::Request RenderBlockStatus(const BlockStatusWrite& write) {
  return kube::PatchRequest(
      kCapacityBlocks, {write.key.ns, write.key.name}, kube::PatchType::kMerge,
      {{"metadata", {{"uid", write.uid}, {"resourceVersion", write.base_version}}},
       {"status", BlockStatusJson(*write.view)}},
      {.subresource = "status"});
}

}  // namespace tahoma::controller
