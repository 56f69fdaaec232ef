// The checks that ValidateCreate and ValidateUpdate are made of, one file per group of kinds.
//
// Each appends to a list of causes. Scope: internal to this folder.
//
// Thread safety: pure functions.

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/validation/validation.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// Adds when the two values differ.
void CheckImmutable(std::string field, const Json& old_value, const Json& new_value,
                    Causes& causes);

void CheckMetadata(const Kind& kind, const Json& object, Causes& causes);
void CheckMetadataUpdate(const Json& old_object, const Json& new_object, Causes& causes);

// Whether objects of the kind make pods from a template.
bool IsWorkload(const Kind& kind);
// The defaults of pods that templates have, too.
void DefaultPodTemplate(Json& pod_template);
// The defaults of a workload that depend on other fields.
void DefaultWorkload(const Kind& kind, Json& object);
// Writes the server's own fields into a new workload, or into an updated workload: the first
// status, the selector of a Job, the generation of a DaemonSet's template.
void PrepareNewWorkload(const Kind& kind, Json& object);
void PrepareWorkloadUpdate(const Kind& kind, const Json& before, Json& after);

void CheckPod(const Json& pod, Causes& causes);
void CheckNewPod(const Json& pod, Causes& causes);
void CheckPodUpdate(const Json& old_pod, const Json& new_pod, Causes& causes);
// Checks a write of pods/ephemeralcontainers: such containers are added, never changed or removed.
void CheckEphemeralContainersUpdate(const Json& old_pod, const Json& new_pod, Causes& causes);
// Checks which nodes a pod, a slice, a device or an allocation selects.
void CheckNodeSelector(const Json& selector, const std::string& path, Causes& causes);
// Checks which objects a selector of labels selects.
void CheckLabelSelector(const Json& selector, const std::string& path, Causes& causes);
// `path` is "spec.affinity".
void CheckAffinity(const Json& affinity, const std::string& path, Causes& causes);
// `path` is "spec.topologySpreadConstraints".
void CheckSpreadConstraints(const Json& constraints, const std::string& path, Causes& causes);
// Adds to the label selectors of a new pod's affinity and spread what matchLabelKeys and
// mismatchLabelKeys mean for the pod's labels.
void AddLabelKeys(Json& pod);
void CheckPodStatusUpdate(const Json& old_pod, const Json& new_pod, Causes& causes);
// Checks the data of a ConfigMap or a Secret.
void CheckConfigMap(const Json& map, Causes& causes);
void CheckNode(const Json& node, Causes& causes);
void CheckPriorityClass(const Json& object, Causes& causes);
void CheckPriorityClassUpdate(const Json& before, const Json& after, Causes& causes);
void CheckVolume(const Json& volume, Causes& causes);
void CheckVolumeClaim(const Json& claim, Causes& causes);
void CheckVolumeClaimUpdate(const Json& before, const Json& after, Causes& causes);
void CheckStorageClassUpdate(const Json& before, const Json& after, Causes& causes);
// Checks the webhooks of a configuration of either kind.
void CheckWebhooks(const Json& configuration, Causes& causes);

// `path` is "spec" of a claim and "spec.spec" of a template.
void CheckClaimSpec(const Json& spec, const std::string& path, Causes& causes);
void CheckClaimStatusUpdate(const Json& old_claim, const Json& new_claim, Causes& causes);
void CheckSliceSpec(const Json& spec, Causes& causes);
void CheckSliceUpdate(const Json& old_spec, const Json& new_spec, Causes& causes);
void CheckClassSpec(const Json& spec, Causes& causes);
// The configurations for our driver, by the rules of lib/driver/device_config.h. A cluster has the
// chart's policy device-configs.tahoma.dev for that: Kubernetes knows nothing of drivers. As there,
// a claim or template is asked only when it is made.
void CheckDeviceConfigs(const Json& configs, const std::string& path, Causes& causes);

}  // namespace tahoma::controller::apiserver
