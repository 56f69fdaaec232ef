// One real object of each kind, with the fields that our own code reads.
//
// Scope: type_swap_test.cc. Thread safety: constants.

#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace tahoma::controller::apiserver {

struct TypedObject {
  const char* name;  // of the test
  std::string collection;
  const char* text;  // JSON

  friend void PrintTo(const TypedObject& object, std::ostream* out) { *out << object.name; }
};

inline const std::string kDefaultSpace = "/api/v1/namespaces/default/";
inline const std::string kResourceSpace = "/apis/resource.k8s.io/v1/";
inline const std::string kClaimTemplatePath =
    kResourceSpace + "namespaces/default/resourceclaimtemplates";

inline constexpr char kClaimTemplate[] = R"({
  "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
  "metadata": {"name": "chips", "annotations": {"a": "b"}},
  "spec": {
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {"devices": {
      "requests": [{"name": "chips", "exactly": {
        "deviceClassName": "neuron.aws.com", "allocationMode": "ExactCount", "count": 2,
        "selectors": [{"cel": {"expression": "true"}}]}}],
      "constraints": [{"requests": ["chips"], "matchAttribute": "tahoma.dev/x"}],
      "config": [{"requests": ["chips"], "opaque": {
        "driver": "neuron.aws.com", "parameters": {"apiVersion": "neuron.aws.com/v1",
                                                   "kind": "NeuronConfig"}}}]}}}})";

inline constexpr char kSwapPod[] = R"({
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {
    "name": "base", "generateName": "b-", "labels": {"a": "b"}, "annotations": {"c": "d"},
    "finalizers": ["tahoma.dev/hold"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u",
                         "controller": true, "blockOwnerDeletion": true}]},
  "spec": {
    "schedulerName": "tahoma", "nodeName": "n1", "priority": 0,
    "terminationGracePeriodSeconds": 3,
    "nodeSelector": {"a": "b"},
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
      "nodeSelectorTerms": [{"matchExpressions": [
        {"key": "k", "operator": "In", "values": ["v"]}]}]}}},
    "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
    "resourceClaims": [{"name": "chips", "resourceClaimTemplateName": "chips"}],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    "containers": [{
      "name": "main", "image": "train:1", "command": ["run"],
      "env": [{"name": "A", "value": "1"}],
      "ports": [{"containerPort": 80, "protocol": "TCP"}],
      "volumeMounts": [{"name": "v", "mountPath": "/v"}],
      "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"},
                    "claims": [{"name": "chips"}]}}]},
  "status": {"phase": "Running", "podIP": "10.0.0.1",
    "conditions": [{"type": "Ready", "status": "True"}],
    "resourceClaimStatuses": [{"name": "chips", "resourceClaimName": "c"}],
    "containerStatuses": [{"name": "main", "ready": true, "restartCount": 1, "image": "i",
      "imageID": "x", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}})";

inline constexpr char kSwapNode[] = R"({
  "apiVersion": "v1", "kind": "Node",
  "metadata": {"name": "base", "labels": {"kubernetes.io/role": "w"}},
  "spec": {"unschedulable": false,
           "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
  "status": {"capacity": {"cpu": "4"},
    "conditions": [{"type": "Ready", "status": "True"}],
    "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
    "nodeInfo": {"kubeletVersion": "v1", "osImage": "os"},
    "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}})";

inline constexpr char kSwapClaim[] = R"({
  "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
  "metadata": {"name": "base", "annotations": {"resource.kubernetes.io/pod-claim-name": "c"},
    "finalizers": ["resource.kubernetes.io/delete-protection"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
  "spec": {"devices": {
    "requests": [
      {"name": "a", "exactly": {"deviceClassName": "neuron.aws.com", "allocationMode": "All",
        "adminAccess": false, "tolerations": [{"key": "k", "operator": "Exists"}],
        "capacity": {"requests": {"hbm": "1Gi"}}}},
      {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "neuron.aws.com",
        "count": 1, "selectors": [{"cel": {"expression": "true"}}]}]}],
    "constraints": [{"requests": ["a"], "distinctAttribute": "tahoma.dev/x"}]}},
  "status": {
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    "allocation": {
      "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["n"]}]}]},
      "devices": {
        "results": [{"request": "a", "driver": "neuron.aws.com", "pool": "n", "device": "d",
          "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute",
                           "tolerationSeconds": 5}]}],
        "config": [{"source": "FromClaim", "requests": ["a"], "opaque": {
          "driver": "neuron.aws.com", "parameters": {"kind": "NeuronConfig"}}}]}}}})";

inline constexpr char kSwapGang[] = R"({
  "apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang",
  "metadata": {"name": "base", "labels": {"a": "b"}, "annotations": {"c": "d"},
    "finalizers": ["tahoma.dev/hold"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
    "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "tahoma.dev/v1alpha1",
      "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
      "fieldsV1": {"f:spec": {"f:members": {}, "k:{\"a\":1}": {}, "v:[1]": {}}}}],
    "creationTimestamp": null, "deletionGracePeriodSeconds": 5, "generation": 3},
  "spec": {"members": 4, "slices": 2, "chips": 16, "priority": 5, "maxRuntime": "90m"},
  "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True",
    "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})";

inline constexpr char kSwapLease[] = R"({
  "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "base"},
  "spec": {"holderIdentity": "h", "leaseDurationSeconds": 15, "leaseTransitions": 1,
           "renewTime": "2026-01-01T00:00:00.000000Z"}})";

inline constexpr char kSwapEvent[] = R"({
  "apiVersion": "v1", "kind": "Event", "metadata": {"name": "base"},
  "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p", "fieldPath": "f"},
  "type": "Normal", "reason": "R", "message": "m", "count": 2,
  "firstTimestamp": "2026-01-01T00:00:00Z", "eventTime": "2026-01-01T00:00:00.000000Z",
  "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"},
  "source": {"component": "c", "host": "h"}})";

inline constexpr char kSwapSecret[] = R"({
  "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "base"}, "type": "Opaque",
  "immutable": false, "data": {"a": "Yg=="}, "stringData": {"c": "d"}})";

inline constexpr char kSwapMap[] = R"({
  "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "base"},
  "immutable": false, "data": {"a": "b"}, "binaryData": {"c": "Yg=="}})";

inline constexpr char kSwapSpace[] = R"({
  "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "base", "labels": {"a": "b"}},
  "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})";

inline constexpr char kSwapCrd[] = R"({
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "things.example.com"},
  "spec": {
    "group": "example.com", "scope": "Namespaced",
    "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["t"]},
    "versions": [{"name": "v1", "served": true, "storage": true,
      "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
        "required": ["n"], "properties": {
          "n": {"type": "integer", "minimum": 1, "default": 2},
          "list": {"type": "array", "x-kubernetes-list-type": "map",
                   "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object",
                     "properties": {"name": {"type": "string", "pattern": "^a", "enum": ["a"]}}}},
          "map": {"type": "object", "additionalProperties": {"type": "string"}}}}}}},
      "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n",
                                               "statusReplicasPath": ".status.n"}},
      "selectableFields": [{"jsonPath": ".spec.n"}],
      "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n",
                                    "priority": 1}]}],
    "conversion": {"strategy": "None"}}})";

inline constexpr char kSwapClass[] = R"({
  "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "base"},
  "spec": {"selectors": [{"cel": {"expression": "true"}}],
    "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"kind": "K"}}}]}})";

inline constexpr char kSwapSlice[] = R"({
  "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "base"},
  "spec": {"driver": "neuron.aws.com", "nodeName": "n",
    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
    "devices": [{"name": "d",
      "attributes": {"x": {"int": 1}, "v": {"version": "1.0.0"}, "b": {"bool": true}},
      "capacity": {"hbm": {"value": "96Gi"}},
      "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}],
      "taints": [{"key": "k", "value": "v", "effect": "NoExecute",
                  "timeAdded": "2026-01-01T00:00:00Z"}]}]}})";

inline constexpr char kSwapVolume[] = R"({
  "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "base"},
  "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
    "csi": {"driver": "d", "volumeHandle": "h"}, "claimRef": {"namespace": "n", "name": "c"},
    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
      {"key": "k", "operator": "In", "values": ["v"]}]}]}}}})";

inline constexpr char kSwapVolumeClaim[] = R"({
  "apiVersion": "v1", "kind": "PersistentVolumeClaim",
  "metadata": {"name": "base", "annotations": {"volume.kubernetes.io/selected-node": "n"}},
  "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "s", "volumeName": "v",
    "resources": {"requests": {"storage": "1Gi"}}},
  "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}})";

inline constexpr char kSwapStorageClass[] = R"({
  "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
  "metadata": {"name": "base",
    "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
  "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true,
  "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]})";

inline constexpr char kSwapDeployment[] = R"({
  "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "base"},
  "spec": {"replicas": 1, "minReadySeconds": 1, "paused": true,
    "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [
      {"key": "a", "operator": "In", "values": ["b"]}]},
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "10%"}},
    "template": {"metadata": {"labels": {"a": "b"}},
      "spec": {"containers": [{"name": "main", "image": "i"}]}}}})";

inline constexpr char kSwapStatefulSet[] = R"({
  "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "base"},
  "spec": {"serviceName": "s", "ordinals": {"start": 1},
    "selector": {"matchLabels": {"a": "b"}},
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
    "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
    "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {
      "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}],
    "template": {"metadata": {"labels": {"a": "b"}},
      "spec": {"containers": [{"name": "main", "image": "i"}]}}}})";

inline constexpr char kSwapDaemonSet[] = R"({
  "apiVersion": "apps/v1", "kind": "DaemonSet",
  "metadata": {"name": "base", "annotations": {"deprecated.daemonset.template.generation": "3"}},
  "spec": {"selector": {"matchLabels": {"a": "b"}},
    "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}},
    "template": {"metadata": {"labels": {"a": "b"}},
      "spec": {"containers": [{"name": "main", "image": "i"}]}}}})";

inline constexpr char kSwapJob[] = R"({
  "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "base"},
  "spec": {"completionMode": "Indexed", "completions": 3, "parallelism": 2, "suspend": true,
    "backoffLimitPerIndex": 1, "maxFailedIndexes": 1, "managedBy": "a.b/c",
    "successPolicy": {"rules": [{"succeededIndexes": "0,2", "succeededCount": 1}]},
    "podFailurePolicy": {"rules": [
      {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}},
      {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never",
      "containers": [{"name": "main", "image": "i"}]}}}})";

inline constexpr char kSwapBudget[] = R"({
  "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "base"},
  "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}},
    "unhealthyPodEvictionPolicy": "AlwaysAllow"}})";

inline constexpr char kSwapEndpoints[] = R"({
  "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "base"},
  "subsets": [{"addresses": [{"ip": "10.0.0.1", "nodeName": "n"}], "ports": [{"port": 80}]}]})";

inline const std::string kAppsSpace = "/apis/apps/v1/namespaces/default/";

inline std::vector<TypedObject> TypedObjects() {
  return {{"Pods", kDefaultSpace + "pods", kSwapPod},
          {"Nodes", "/api/v1/nodes", kSwapNode},
          {"Claims", kResourceSpace + "namespaces/default/resourceclaims", kSwapClaim},
          {"ClaimTemplates", kClaimTemplatePath, kClaimTemplate},
          {"Gangs", "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs", kSwapGang},
          {"Leases", "/apis/coordination.k8s.io/v1/namespaces/default/leases", kSwapLease},
          {"Events", kDefaultSpace + "events", kSwapEvent},
          {"Secrets", kDefaultSpace + "secrets", kSwapSecret},
          {"ConfigMaps", kDefaultSpace + "configmaps", kSwapMap},
          {"Volumes", "/api/v1/persistentvolumes", kSwapVolume},
          {"VolumeClaims", kDefaultSpace + "persistentvolumeclaims", kSwapVolumeClaim},
          {"StorageClasses", "/apis/storage.k8s.io/v1/storageclasses", kSwapStorageClass},
          {"Deployments", kAppsSpace + "deployments", kSwapDeployment},
          {"StatefulSets", kAppsSpace + "statefulsets", kSwapStatefulSet},
          {"DaemonSets", kAppsSpace + "daemonsets", kSwapDaemonSet},
          {"Jobs", "/apis/batch/v1/namespaces/default/jobs", kSwapJob},
          {"Budgets", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", kSwapBudget},
          {"Endpoints", kDefaultSpace + "endpoints", kSwapEndpoints},
          {"Namespaces", "/api/v1/namespaces", kSwapSpace},
          {"Crds", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kSwapCrd},
          {"DeviceClasses", kResourceSpace + "deviceclasses", kSwapClass},
          {"Slices", kResourceSpace + "resourceslices", kSwapSlice}};
}

}  // namespace tahoma::controller::apiserver
