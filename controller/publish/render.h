// Writes of the core as requests to a Kubernetes API server, and its answers as results.
//
// Claims are changed by JSON merge patches whose metadata carries uid and resourceVersion: the
// server refuses a patch with 409 when either does not match (apimachinery: a patch that sets
// resourceVersion is a precondition). Under the same precondition, the status of a claim without an
// allocation is replaced. Pods are bound by a Binding with the pod's uid.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "controller/core/writes/api_write.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// How the allocation of a claim is written: by replacing its status, or by patching it.
enum class AllocateBy : std::uint8_t { kUpdate, kPatch };

// Renders writes of every kind but kEvent.
kube::Request Render(const ApiWrite& write, AllocateBy by = AllocateBy::kUpdate);

// The event as a new object, and as a patch of the existing object. EventName gives the name.
kube::Request RenderEvent(const EventNote& event, const std::string& name, int count);
kube::Request RenderEventRepeat(const EventNote& event, const std::string& name, int count);
// Returns equal names for events that say the same about the same object.
std::string EventName(const EventNote& event);

// Returns the result of a write whose status the object shows already: nothing need be sent.
// nullopt when this is not known.
std::optional<ApiResult> ResultIfShown(const ApiWrite& write, const kube::Request& request);

ApiResult ReadAnswer(const ApiWrite& write, const absl::StatusOr<kube::Response>& answer);

}  // namespace tahoma::controller
