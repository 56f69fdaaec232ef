// The checks of whatever makes pods from a template, and of what goes with it: workloads.cc,
// jobs.cc.
//
// Each appends to a list of causes. Scope: internal to this folder.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "controller/apiserver/schema/causes.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/selector.h"

namespace tahoma::controller::apiserver {

// A label selector as it stands in an object. kInvalidArgument when it cannot be used.
absl::StatusOr<kube::LabelSelector> ReadSelector(const Json& selector);
// Whether an object's selector matches labels; no selector matches none.
bool SelectorMatches(const Json& selector, const Json& labels);

void CheckNotNegative(const Json& value, const std::string& path, Causes& causes);
// `path` is "spec.selector".
void CheckLabelSelector(const Json& selector, const std::string& path, Causes& causes);
// Checks that spec.selector matches the labels of spec.template.
void CheckSelectsTemplate(const Json& spec, Causes& causes);
// Checks spec.template, its types included.
void CheckPodTemplate(const Json& pod_template, Causes& causes);
void CheckSameSelector(const Json& before, const Json& after, Causes& causes);

void CheckDeployment(const Json& object, Causes& causes);
void CheckReplicaSet(const Json& object, Causes& causes);
void CheckStatefulSet(const Json& object, Causes& causes);
void CheckNewStatefulSet(const Json& object, Causes& causes);
void CheckStatefulSetUpdate(const Json& before, const Json& after, Causes& causes);
void CheckDaemonSet(const Json& object, Causes& causes);
void CheckControllerRevision(const Json& object, Causes& causes);
void CheckNewControllerRevision(const Json& object, Causes& causes);
void CheckControllerRevisionUpdate(const Json& before, const Json& after, Causes& causes);
void CheckBudget(const Json& object, Causes& causes);
void CheckEndpoints(const Json& object, Causes& causes);

void CheckDeploymentStatus(const Json& before, const Json& after, Causes& causes);
void CheckReplicaSetStatus(const Json& before, const Json& after, Causes& causes);
void CheckStatefulSetStatus(const Json& before, const Json& after, Causes& causes);
void CheckDaemonSetStatus(const Json& before, const Json& after, Causes& causes);
void CheckBudgetStatus(const Json& before, const Json& after, Causes& causes);

void CheckJob(const Json& object, Causes& causes);
void CheckJobUpdate(const Json& before, const Json& after, Causes& causes);
void CheckJobStatus(const Json& before, const Json& after, Causes& causes);

}  // namespace tahoma::controller::apiserver
