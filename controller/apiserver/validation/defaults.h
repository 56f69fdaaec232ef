// Values that a real API server fills into objects of built-in kinds and that no schema can state,
// and the fields that a request may not set.
//
//   ApplyDefaults(*kind.schema, object);   // schema.h
//   PrepareCreate(kind, now, object);      // status dropped, phase Pending, QoS class, …
//
// Thread safety: pure functions of their arguments.

#pragma once

#include <string_view>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// Defaults that depend on other fields (a container's pull policy on its image tag, requests on
// limits, the service account) or on the time (since when a device has a taint). Idempotent; part
// of every create and update.
void ApplyKindDefaults(const Kind& kind, std::string_view now, Json& object);

// Makes a field of `to` what it is in `from`, or absent.
void CopyField(const Json& from, std::string_view field, Json& to);

// Prepares a create: drops fields that the client may not set (status where it is a subresource)
// and sets the first status (a pod is Pending, a namespace Active and finalized by "kubernetes");
// gives a pod the tolerations of Kubernetes' admission and the terms that its matchLabelKeys mean.
void PrepareCreate(const Kind& kind, std::string_view now, Json& object);

// Prepares an update of the main resource ("") or of a subresource: takes from `old_object` the
// fields that this request may not change. Of "status" that is everything but status, of
// "ephemeralcontainers" everything but a pod's ephemeral containers and metadata, else status.
void PrepareUpdate(const Kind& kind, const Json& old_object, Json& new_object,
                   std::string_view subresource);

// True when metadata.generation must go up: something outside metadata and status differs.
bool SpecChanged(const Kind& kind, const Json& old_object, const Json& new_object);

}  // namespace tahoma::controller::apiserver
