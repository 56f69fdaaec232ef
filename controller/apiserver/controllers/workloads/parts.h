// Helps the decisions about all kinds of workload: pods made from templates, the states of pods,
// adoption, conditions.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/controllers/workloads/workloads.h"

namespace tahoma::controller::apiserver {

// The most pods that one decision makes or deletes, as in Kubernetes.
inline constexpr std::size_t kBurst = 500;

// The integer member, or `otherwise` without one.
std::int64_t IntOr(const Json& object, std::string_view field, std::int64_t otherwise);
// Resolves a number or a percentage of `total` ("25%").
std::int64_t Scaled(const Json& value, std::int64_t total, bool round_up);

// Returns whether a pod has neither ended nor is being deleted.
bool IsActive(const Json& pod);
// Returns whether a pod is being deleted and has not ended yet.
bool IsTerminating(const Json& pod);
bool HasPhase(const Json& pod, std::string_view phase);
// Returns the condition of the type; null without one.
const Json& ConditionOf(const Json& object, std::string_view type);
bool IsTrue(const Json& object, std::string_view condition);
WallTime TimeOf(const Json& object, std::string_view field, WallTime otherwise);
// Returns when an active pod is available, which may be later than now; nullopt when it is not
// ready.
std::optional<WallTime> AvailableAt(const Json& pod, std::int64_t min_ready_seconds, WallTime now);
// Returns when a finished pod's last container ended.
WallTime EndOf(const Json& pod, WallTime now);
// Orders pods by which is the least loss: unbound before bound, not ready before ready, the later
// before the earlier.
bool GoesFirst(const Json& pod, const Json& other);

// Sets a condition. lastTransitionTime stays while the status stays.
void SetCondition(Json& status, std::string_view type, bool value, std::string_view reason,
                  std::string_view message, WallTime now);

// Returns whether metav1.LabelSelector `selector` matches the object's labels. An empty selector
// matches everything, null nothing.
bool Selects(const Json& selector, const Json& object);

Json OwnerReferenceTo(const Json& owner, const char* api_version, const char* kind);
// Returns a pod of a template, without a name, that `owner` controls.
Json PodOf(const Json& owner, const char* api_version, const char* kind, const Json& pod_template);

// Returns the children that the owner controls, after it has adopted those without a controller and
// let go those that its selector no longer matches; writes for both go to `writes`.
Bodies Claimed(const Json& owner, const char* api_version, const char* kind, const Json& selector,
               const Bodies& children, const kube::Resource& resource, std::vector<Write>& writes);

// Returns a short name for a value, of letters that make no words.
std::string HashName(const Json& value, std::int64_t collisions);

std::shared_ptr<const Json> Shared(Json object);
void CreatePod(Json pod, Decision& decision, const char* event = "Created pod: {}");
void DeletePod(const Json& pod, Decision& decision, const char* event = "Deleted pod: {}");
// Adds a write of the status when it differs from the object's.
void WriteStatus(const kube::Resource& resource, const Json& object, Json status,
                 Decision& decision);
// Asks for a decision at the time, unless an earlier one is asked for.
void Wake(Decision& decision, WallTime when);

}  // namespace tahoma::controller::apiserver
