"""The paths, content types and manifests that the cases of conformance.py share."""

NS = "/api/v1/namespaces/default"
DRA = "/apis/resource.k8s.io/v1"
GANGS = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs"
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"}

POD = {
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "c0", "labels": {"app": "c", "tier": "a"}},
    "spec": {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0,
             "containers": [{"name": "main", "image": "tahoma.dev/workload:v1", "command": ["sleep", "1"],
                             "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]},
}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"a": "1", "b": "2"}}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "cl"},
    "spec": {"devices": {"requests": [{"name": "n", "exactly": {"deviceClassName": "neuron.aws.com"}}]}},
}
GANG = {"apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang", "metadata": {"name": "g"},
        "spec": {"members": 4, "shape": "4x4x4"}}


def case(name, method, path, body=None, **rest):
    return {"name": name, "method": method, "path": path, "body": body, **rest}


def renamed(manifest, name, **spec):
    return {**manifest, "metadata": {**manifest["metadata"], "name": name}, "spec": {**manifest["spec"], **spec}}


# Ages differ by the moment; descriptions are in our own words.
CELLS = ["rows.cells", "columnDefinitions.description"]
# The test's real server runs without the ServiceAccount admission, which names "default" in a cluster.
SERVICE_ACCOUNT = ["spec.serviceAccount", "spec.serviceAccountName"]
