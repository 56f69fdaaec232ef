// Kubernetes' admission of volumes (plugins DefaultStorageClass, StorageObjectInUseProtection):
// claims get the default class, claims and volumes the finalizers that keep them while in use.
//
// Scope: new objects. The controllers remove the finalizers.
//
// Thread safety: from any thread.

#pragma once

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/schema/kind.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// Does nothing to other kinds.
void AdmitVolumes(const ApiContext& context, const Kind& kind, Json& object);

}  // namespace tahoma::controller::apiserver
