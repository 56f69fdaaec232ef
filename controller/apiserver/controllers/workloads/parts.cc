#include "controller/apiserver/controllers/workloads/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/selector_text.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {

std::int64_t IntOr(const Json& object, std::string_view field, std::int64_t otherwise) {
  const Json& value = ValueAt(object, {field});
  return value.is_number_integer() ? value.get<std::int64_t>() : otherwise;
}

std::int64_t Scaled(const Json& value, std::int64_t total, bool round_up) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_string()) return 0;
  const auto& text = value.get_ref<const std::string&>();
  std::int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  return (percent * total + (round_up ? 99 : 0)) / 100;
}

bool HasPhase(const Json& pod, std::string_view phase) {
  return kube::StringAt(pod, {"status", "phase"}) == phase;
}

namespace {

bool HasEnded(const Json& pod) { return HasPhase(pod, "Succeeded") || HasPhase(pod, "Failed"); }

}  // namespace

bool IsActive(const Json& pod) { return !HasEnded(pod) && !kube::IsBeingDeleted(pod); }
bool IsTerminating(const Json& pod) { return !HasEnded(pod) && kube::IsBeingDeleted(pod); }

const Json& ConditionOf(const Json& object, std::string_view type) {
  static const Json kNone;
  for (const Json& condition : kube::ListAt(object, {"status", "conditions"})) {
    if (kube::StringAt(condition, {"type"}) == type) return condition;
  }
  return kNone;
}

bool IsTrue(const Json& object, std::string_view condition) {
  return kube::StringAt(ConditionOf(object, condition), {"status"}) == "True";
}

WallTime TimeOf(const Json& object, std::string_view field, WallTime otherwise) {
  return ParseTime(kube::StringAt(object, {field})).value_or(otherwise);
}

std::optional<WallTime> AvailableAt(const Json& pod, std::int64_t min_ready_seconds, WallTime now) {
  if (!IsActive(pod) || !IsTrue(pod, "Ready")) return std::nullopt;
  if (min_ready_seconds == 0) return now;
  return TimeOf(ConditionOf(pod, "Ready"), "lastTransitionTime", now) +
         std::chrono::seconds(min_ready_seconds);
}

WallTime EndOf(const Json& pod, WallTime now) {
  std::optional<WallTime> end;
  for (const Json& container : kube::ListAt(pod, {"status", "containerStatuses"})) {
    const auto ended = ParseTime(kube::StringAt(container, {"state", "terminated", "finishedAt"}));
    if (ended.ok()) end = std::max(end.value_or(*ended), *ended);
  }
  if (end) return *end;
  const auto ready = ParseTime(kube::StringAt(ConditionOf(pod, "Ready"), {"lastTransitionTime"}));
  if (ready.ok()) return *ready;
  return TimeOf(ValueAt(pod, {"metadata"}), "creationTimestamp", now);
}

bool GoesFirst(const Json& pod, const Json& other) {
  const auto rank = [](const Json& one) {
    std::int64_t cost = 0;
    if (const auto text = kube::AnnotationOf(one, "controller.kubernetes.io/pod-deletion-cost")) {
      std::from_chars(text->data(), text->data() + text->size(), cost);
    }
    const int phase = HasPhase(one, "Running") ? 2 : HasPhase(one, "Unknown") ? 1 : 0;
    return std::tuple(!kube::StringAt(one, {"spec", "nodeName"}).empty(), phase,
                      IsTrue(one, "Ready"), cost);
  };
  const auto mine = rank(pod);
  const auto theirs = rank(other);
  if (mine != theirs) return mine < theirs;
  const auto made = kube::StringAt(pod, {"metadata", "creationTimestamp"});
  const auto other_made = kube::StringAt(other, {"metadata", "creationTimestamp"});
  return made != other_made ? made > other_made : kube::NameOf(pod) > kube::NameOf(other);
}

void SetCondition(Json& status, std::string_view type, bool value, std::string_view reason,
                  std::string_view message, WallTime now) {
  const char* text = value ? "True" : "False";
  Json next = {{"type", type}, {"status", text}, {"lastTransitionTime", FormatTime(now)}};
  if (!reason.empty()) next["reason"] = reason;
  if (!message.empty()) next["message"] = message;
  Json conditions = Json::array();
  bool found = false;
  for (const Json& condition : kube::ListAt(status, {"conditions"})) {
    if (kube::StringAt(condition, {"type"}) != type) {
      conditions.push_back(condition);
      continue;
    }
    found = true;
    Json changed = condition;
    if (kube::StringAt(condition, {"status"}) != text) {
      changed["lastTransitionTime"] = FormatTime(now);
    }
    for (const char* field : {"status", "reason", "message"}) {
      if (next.contains(field)) changed[field] = next[field];
    }
    conditions.push_back(std::move(changed));
  }
  if (!found) conditions.push_back(std::move(next));
  status["conditions"] = std::move(conditions);
}

bool Selects(const Json& selector, const Json& object) {
  if (!selector.is_object()) return false;
  const auto matcher = LabelSelectorOf(selector);
  return matcher.ok() &&
         matcher->Matches([&](std::string_view key) { return kube::LabelOf(object, key); });
}

Json OwnerReferenceTo(const Json& owner, const char* api_version, const char* kind) {
  return {{"apiVersion", api_version}, {"kind", kind},       {"name", kube::NameOf(owner)},
          {"uid", kube::UidOf(owner)}, {"controller", true}, {"blockOwnerDeletion", true}};
}

Json PodOf(const Json& owner, const char* api_version, const char* kind, const Json& pod_template) {
  Json metadata = Json::object();
  for (const char* field : {"labels", "annotations", "finalizers"}) {
    const Json& given = ValueAt(pod_template, {"metadata", field});
    if (!given.is_null()) metadata[field] = given;
  }
  metadata["namespace"] = kube::NamespaceOf(owner);
  metadata["ownerReferences"] = Json::array({OwnerReferenceTo(owner, api_version, kind)});
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec", ValueAt(pod_template, {"spec"})}};
}

Bodies Claimed(const Json& owner, const char* api_version, const char* kind, const Json& selector,
               const Bodies& children, const kube::Resource& resource, std::vector<Write>& writes) {
  Bodies mine;
  const bool is_leaving = kube::IsBeingDeleted(owner);
  for (const auto& child : children) {
    const auto controller = kube::ControllerOf(*child);
    if (controller) {
      if (controller->uid != kube::UidOf(owner)) continue;
      if (is_leaving || selector.is_null() || Selects(selector, *child)) {
        mine.push_back(child);
        continue;
      }
      Json freed = *child;
      Json others = Json::array();
      for (const Json& reference : kube::ListAt(freed, {"metadata", "ownerReferences"})) {
        if (kube::StringAt(reference, {"uid"}) != controller->uid) others.push_back(reference);
      }
      freed["metadata"]["ownerReferences"] = std::move(others);
      writes.push_back(
          {.verb = Write::Verb::kUpdate, .resource = resource, .object = Shared(freed)});
    } else if (!is_leaving && !kube::IsBeingDeleted(*child) && Selects(selector, *child)) {
      auto adopted = std::make_shared<Json>(*child);
      Json references = kube::ListAt(*child, {"metadata", "ownerReferences"});
      references.push_back(OwnerReferenceTo(owner, api_version, kind));
      (*adopted)["metadata"]["ownerReferences"] = std::move(references);
      writes.push_back(
          {.verb = Write::Verb::kUpdate, .resource = resource, .object = Shared(*adopted)});
      mine.push_back(child);
    }
  }
  return mine;
}

std::string HashName(const Json& value, std::int64_t collisions) {
  // FNV-1a, and the letters that Kubernetes uses for such names.
  std::uint32_t hash = 2166136261U;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  };
  add(value.dump());
  if (collisions > 0) add(fmt::format("{}", collisions));
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string name;
  for (const char digit : fmt::format("{}", hash)) {
    name += kLetters[static_cast<unsigned char>(digit) % kLetters.size()];
  }
  return name;
}

std::shared_ptr<const Json> Shared(Json object) {
  return std::make_shared<const Json>(std::move(object));
}

void CreatePod(Json pod, Decision& decision, const char* event) {
  decision.writes.push_back({.verb = Write::Verb::kCreate,
                             .resource = kube::kPods,
                             .object = Shared(std::move(pod)),
                             .event = event});
}

void DeletePod(const Json& pod, Decision& decision, const char* event) {
  decision.writes.push_back({.verb = Write::Verb::kDelete,
                             .resource = kube::kPods,
                             .object = Shared(pod),
                             .event = event});
}

void WriteStatus(const kube::Resource& resource, const Json& object, Json status,
                 Decision& decision) {
  if (ValueAt(object, {"status"}) == status) return;
  Json changed = object;
  changed["status"] = std::move(status);
  decision.writes.push_back({.verb = Write::Verb::kUpdateStatus,
                             .resource = resource,
                             .object = Shared(std::move(changed))});
}

void Wake(Decision& decision, WallTime when) {
  decision.again = std::min(decision.again.value_or(when), when);
}

}  // namespace tahoma::controller::apiserver
