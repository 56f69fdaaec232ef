#!/usr/bin/env python3
"""What a node's token may do: each line of the table in docs/security.md, with the requests that try it.

    node_attempts.py                        prints the table
    node_attempts.py --write                puts it into docs/security.md

    made = World("node-a", "node-b", send)  # send(method, path, body) as who may do everything, of the answer the object
    made.create()
    for line in lines(made):
        for attempt in line.attempts:
            method, path, body, media = attempt.request(made)

Two places try every line: the standalone server with the token of role `node`, and kube-apiserver with the chart's policies and
the token of a dra-plugin (tests/integration/node_rights_test.py, tests/cluster/chart_test.py). Writes are dry runs, so the world
stays as it was made. What is allowed is answered with 200 or 201, what is not with 403.
"""

import copy
import json
import pathlib
import sys
from typing import NamedTuple

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/security.md"
BEGIN, END = "<!-- lines: tests/support/node_attempts.py --write -->\n", "<!-- end of lines -->\n"
MERGE, JSON = "application/merge-patch+json", "application/json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
DRIVER = "neuron.aws.com"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PODS = "/api/v1/namespaces/default/pods"
ACCOUNT_TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"
GONE = {"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "00000000-0000-0000-0000-000000000001"}


class World:
    """Two nodes, and of each a slice, a pod, and what the pod uses. Nodes that are there stay, and so they do after remove()."""

    def __init__(self, mine, other, send, allocate=None):
        self.mine, self.other, self.send, self.allocate = mine, other, send, allocate or send

    def create(self):
        for node in (self.mine, self.other):
            self.send("POST", SLICES, slice_of(node, f"{node}-slice"))
            self.send("POST", LEASES, {"metadata": {"name": node}, "spec": {"holderIdentity": node}})
            for kind in ("secrets", "configmaps"):
                self.send("POST", f"/api/v1/namespaces/default/{kind}", {"metadata": {"name": f"{node}-key"}})
            self.send("POST", CLAIMS, {"metadata": {"name": f"{node}-claim"}, "spec": {"devices": {"requests": [
                {"name": "chips", "exactly": {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1}}]}}})
            self.send("POST", PODS, pod_of(node, f"{node}-pod"))
            selector = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}
            result = {"request": "chips", "driver": DRIVER, "pool": node, "device": "neuron-device-0"}
            self.allocate("PATCH", f"{CLAIMS}/{node}-claim/status", {"status": {
                "allocation": {"devices": {"results": [result]}, "nodeSelector": selector},
                "reservedFor": [{"resource": "pods", "name": f"{node}-pod", "uid": self.get(f"{PODS}/{node}-pod")["metadata"]["uid"]}]}})

    def remove(self):
        for node in (self.mine, self.other):
            self.send("DELETE", f"{PODS}/{node}-pod?gracePeriodSeconds=0", None)
            for path in (f"{SLICES}/{node}-slice", f"{LEASES}/{node}", f"{CLAIMS}/{node}-claim",
                         f"/api/v1/namespaces/default/secrets/{node}-key", f"/api/v1/namespaces/default/configmaps/{node}-key"):
                self.send("DELETE", path, None)

    def get(self, path):
        return self.send("GET", path, None)


def slice_of(node, name, **spec):
    devices = [{"name": "neuron-device-0"}]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": {
        "driver": DRIVER, "nodeName": node, "devices": devices,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, **spec}}


def pod_of(node, name):
    main = {"name": "main", "image": "train", "resources": {"claims": [{"name": "chips"}]}, "envFrom": [
        {"secretRef": {"name": f"{node}-key"}}, {"configMapRef": {"name": f"{node}-key"}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"tahoma.dev/gang": "train"}}, "spec": {
        "nodeName": node, "schedulerName": "tahoma", "containers": [main],
        "resourceClaims": [{"name": "chips", "resourceClaimName": f"{node}-claim"}]}}


class Attempt(NamedTuple):
    method: str
    path: str
    body: object = None  # callable: of a PUT, what the object that is there becomes; of a POST, what is made of the world
    media: str = MERGE

    def request(self, world):
        """(method, path, body as text, media type) as it is sent."""
        if self.method == "GET":
            return self.method, self.path, None, JSON
        body = self.body
        if callable(body):
            body = body(world) if self.method == "POST" else body(copy.deepcopy(world.get(self.path.removesuffix("/status"))))
        if self.method == "DELETE":  # with a body kube-apiserver takes no options from the query
            return self.method, f"{self.path}?dryRun=All", None, JSON
        more = "&fieldManager=neuron.aws.com&force=true" if self.media == APPLY else ""
        return (self.method, f"{self.path}?dryRun=All{more}", json.dumps(body or {}),
                self.media if self.method == "PATCH" else JSON)


class Line(NamedTuple):
    what: str
    standalone: bool  # the token of role `node`
    plugin: bool      # that of a dra-plugin's pod, in a cluster with the chart's policies
    attempts: list


def get(path):
    return Attempt("GET", path)


def token_of(node, **spec):
    """A TokenRequest for the pod of a node."""
    return lambda world: {"spec": {**spec, "boundObjectRef": {
        "apiVersion": "v1", "kind": "Pod", "name": f"{node}-pod", "uid": world.get(f"{PODS}/{node}-pod")["metadata"]["uid"]}}}


def both(path, body):
    """A patch of an object, also by way of its status."""
    return [Attempt("PATCH", path, body), Attempt("PATCH", f"{path}/status", body)]


def changed(path, value):
    """Sets the value at a.b.c of an object."""
    def change(now):
        at = now
        *way, last = path.split(".")
        for key in way:
            at = at.setdefault(key, {})
        at[last] = value
        return now
    return change


def node_lines(world):
    node, other = f"/api/v1/nodes/{world.mine}", f"/api/v1/nodes/{world.other}"
    label = lambda key: {"metadata": {"labels": {key: "v"}}}
    annotation = lambda key: {"metadata": {"annotations": {key: "3"}}}
    condition = lambda kind: {"status": {"conditions": [{"type": kind, "status": "False", "reason": "Test", "message": "m"}]}}
    owned = {"metadata": {"ownerReferences": [GONE]}}
    return [
        Line("its Node: read it", True, True, [get(node)]),
        Line("its Node: the labels of its instance", True, True, [
            *both(node, label("topology.k8s.aws/network-node-layer-1")), *both(node, label("node.kubernetes.io/instance-type")),
            Attempt("PATCH", node, label("neuron.amazonaws.com/ultraserver-mode"))]),
        Line("its Node: labels of other domains", True, False, [*both(node, label("example.com/team")), *both(node, label("team"))]),
        Line("its Node: labels of `node-restriction.kubernetes.io`, of `tahoma.dev`, and of `kubernetes.io` and `k8s.io` those that no kubelet sets",
             False, False, [one for key in ("node-restriction.kubernetes.io/trusted", "kubernetes.io/other", "x.k8s.io/other", "tahoma.dev/pool",
                                            "node-role.kubernetes.io/control-plane") for one in both(node, label(key))]),
        Line("its Node: annotations", True, False, both(node, annotation("example.com/note"))),
        Line("its Node: annotations of `tahoma.dev`, which cordon chips", False, False, both(node, annotation("tahoma.dev/cordoned-chips"))),
        Line("its Node: owners and finalizers", False, False, [
            *both(node, owned), *both(node, {"metadata": {"finalizers": ["example.com/stay"]}}),
            Attempt("PUT", node, changed("metadata.ownerReferences", [GONE])),
            Attempt("PUT", f"{node}/status", changed("metadata.ownerReferences", [GONE]))]),
        Line("its Node: taints, `unschedulable`", False, False, [
            Attempt("PATCH", node, {"spec": {"unschedulable": True}}),
            Attempt("PATCH", node, {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})]),
        Line("its Node: the condition `tahoma.dev/DevicesComplete`", True, True,
             [Attempt("PATCH", f"{node}/status", condition("tahoma.dev/DevicesComplete"), STRATEGIC)]),
        Line("its Node: the rest of the status", True, False, [
            Attempt("PATCH", f"{node}/status", condition("Ready"), STRATEGIC),
            Attempt("PATCH", f"{node}/status", {"status": {"capacity": {"cpu": "1"}}})]),
        Line("its Node: delete it", False, False, [Attempt("DELETE", node)]),
        Line("another Node: read it", False, True, [get(other)]),
        Line("another Node: change it", False, False, [
            *both(other, label("topology.k8s.aws/network-node-layer-1")), Attempt("DELETE", other),
            Attempt("PATCH", f"{other}/status", condition("tahoma.dev/DevicesComplete"), STRATEGIC)]),
        Line("all Nodes: list them", False, False, [get("/api/v1/nodes")]),
    ]


def slice_lines(world):
    mine, other = world.mine, world.other
    create = lambda made: Attempt("POST", SLICES, made)
    pool = lambda name: {"name": name, "generation": 10**9, "resourceSliceCount": 1}
    everywhere = slice_of(mine, "new", allNodes=True)
    selected = slice_of(mine, "new", nodeSelector={"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [other]}]}]})
    each = slice_of(mine, "new", perDeviceNodeSelection=True, devices=[{"name": "neuron-device-0", "nodeName": other}])
    for one in (everywhere, selected, each):
        del one["spec"]["nodeName"]
    return [
        Line("ResourceSlices of its node and pool", True, True, [
            create(slice_of(mine, "new")), Attempt("PUT", f"{SLICES}/{mine}-slice", changed("spec.pool.generation", 2)),
            Attempt("DELETE", f"{SLICES}/{mine}-slice"), get(f"{SLICES}/{mine}-slice"),
            get(f"{SLICES}?fieldSelector=spec.nodeName%3D{mine}")]),
        Line("ResourceSlices of its node in a pool of another name", False, False, [
            create(slice_of(mine, "new", pool=pool(other))), create(slice_of(mine, "new", pool=pool("more")))]),
        Line("ResourceSlices of another node, of all nodes, of nodes by a selector or by each device", False, False, [
            create(slice_of(other, "new")), create(everywhere), create(selected), create(each),
            Attempt("PUT", f"{SLICES}/{other}-slice", changed("spec.pool.generation", 2)), Attempt("DELETE", f"{SLICES}/{other}-slice")]),
        Line("ResourceSlices of other drivers on its node", True, False, [create(slice_of(mine, "new", driver="gpu.example.com"))]),
        Line("ResourceSlices of other nodes: read them", False, True, [get(SLICES), get(f"{SLICES}/{other}-slice")]),
    ]


def pod_lines(world):
    own, foreign = f"{PODS}/{world.mine}-pod", f"{PODS}/{world.other}-pod"
    running = {"status": {"phase": "Running"}}
    mirror = pod_of(world.mine, "new")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
    binding = {"target": {"kind": "Node", "name": world.mine}}
    return [
        Line("pods bound to its node: read and delete them, write their status", True, False, [
            get(own), get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{world.mine}"), Attempt("DELETE", own),
            Attempt("PATCH", f"{own}/status", running, STRATEGIC), Attempt("PUT", f"{own}/status", changed("status.phase", "Running"))]),
        Line("pods bound to its node: labels, annotations, finalizers and owners by way of the status", False, False, [
            Attempt("PATCH", f"{own}/status", {"metadata": {"labels": {"tahoma.dev/gang": "other"}}}, STRATEGIC),
            Attempt("PATCH", f"{own}/status", {"metadata": {"annotations": {"tahoma.dev/gang-uid": "1"}}}),
            Attempt("PATCH", f"{own}/status", {"metadata": {"finalizers": ["example.com/stay"]}}),
            Attempt("PUT", f"{own}/status", changed("metadata.labels", {}))]),
        Line("pods bound to its node: `status.resourceClaimStatuses`, `extendedResourceClaimStatus`", False, False, [
            Attempt("PATCH", f"{own}/status", {"status": {"resourceClaimStatuses": [{"name": "chips", "resourceClaimName": "x"}]}}),
            Attempt("PUT", f"{own}/status", changed("status.resourceClaimStatuses", [{"name": "chips", "resourceClaimName": "x"}]))]),
        Line("pods bound to its node: change, resize, debug, evict, bind them, make mirror pods", False, False, [
            Attempt("PATCH", own, {"metadata": {"labels": {"a": "b"}}}), Attempt("PATCH", f"{own}/resize", {"spec": {}}),
            Attempt("PATCH", f"{own}/ephemeralcontainers", {"spec": {}}), Attempt("POST", f"{own}/eviction", {"metadata": {"name": f"{world.mine}-pod"}}),
            Attempt("POST", f"{own}/binding", binding), Attempt("POST", PODS, mirror), Attempt("POST", PODS, pod_of(world.mine, "new"))]),
        Line("other pods", False, False, [
            get(foreign), get("/api/v1/pods"), get(PODS), get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{world.other}"), Attempt("DELETE", foreign),
            Attempt("DELETE", PODS), Attempt("PATCH", f"{foreign}/status", running, STRATEGIC), Attempt("POST", f"{foreign}/binding", binding)]),
        Line("Secrets and ConfigMaps that its pods use: read each", True, False, [
            get(f"/api/v1/namespaces/default/{kind}/{world.mine}-key") for kind in ("secrets", "configmaps")]),
        Line("other Secrets and ConfigMaps, and any change of them", False, False, [
            one for kind in ("secrets", "configmaps") for one in (
                get(f"/api/v1/namespaces/default/{kind}/{world.other}-key"), get(f"/api/v1/namespaces/default/{kind}"),
                Attempt("PATCH", f"/api/v1/namespaces/default/{kind}/{world.mine}-key", {"data": {}}),
                Attempt("POST", f"/api/v1/namespaces/default/{kind}", {"metadata": {"name": "new"}}))]),
        Line("tokens of the service accounts of its pods, each bound to its pod", True, False, [
            Attempt("POST", ACCOUNT_TOKEN, token_of(world.mine))]),
        Line("other tokens of service accounts", False, False, [
            Attempt("POST", ACCOUNT_TOKEN, {"spec": {}}), Attempt("POST", ACCOUNT_TOKEN, token_of(world.other)),
            Attempt("POST", ACCOUNT_TOKEN.replace("default/token", "builder/token"), token_of(world.mine)),
            Attempt("POST", ACCOUNT_TOKEN, token_of(world.mine, audiences=["elsewhere"]))]),
    ]


def claim_lines(world):
    own, foreign = f"{CLAIMS}/{world.mine}-claim", f"{CLAIMS}/{world.other}-claim"

    def devices(node, **status):
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "status": {
            "devices": [{"driver": DRIVER, "pool": node, "device": "neuron-device-0"}], **status}}
    free = {"status": {"allocation": None, "reservedFor": None, "devices": None}}
    return [
        Line("claims on its node: read each", True, True, [get(own)]),
        Line("claims on its node: the entries of its devices in `status.devices`", True, True, [
            Attempt("PATCH", f"{own}/status", devices(world.mine), APPLY), Attempt("PATCH", f"{own}/status", devices(world.mine))]),
        Line("claims on its node: allocation, reservations, finalizers, their end", False, False, [
            Attempt("PATCH", f"{own}/status", free), Attempt("PATCH", f"{own}/status", {"status": {"reservedFor": None}}),
            Attempt("PATCH", own, {"metadata": {"finalizers": ["example.com/stay"]}}), Attempt("DELETE", own)]),
        Line("other claims: read each", False, True, [get(foreign)]),
        Line("other claims: change them", False, False, [
            Attempt("PATCH", f"{foreign}/status", devices(world.other), APPLY), Attempt("PATCH", f"{foreign}/status", free),
            Attempt("DELETE", foreign)]),
        Line("all claims: list them", False, False, [get("/apis/resource.k8s.io/v1/resourceclaims"), get(CLAIMS)]),
    ]


def other_lines(world):
    lease = lambda name: {"metadata": {"name": name}, "spec": {"holderIdentity": world.mine}}
    event = {"metadata": {"name": "new"}, "type": "Normal", "reason": "Test", "message": "m",
             "involvedObject": {"kind": "Pod", "namespace": "default", "name": f"{world.mine}-pod"}}
    return [
        Line("its lease in `kube-node-lease`", True, False, [
            get(f"{LEASES}/{world.mine}"), Attempt("PATCH", f"{LEASES}/{world.mine}", {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})]),
        Line("other leases", False, False, [
            get(f"{LEASES}/{world.other}"), get(LEASES), Attempt("POST", LEASES, lease("new")),
            Attempt("PATCH", f"{LEASES}/{world.other}", {"spec": {"holderIdentity": world.mine}}),
            Attempt("POST", LEASES.replace("kube-node-lease", "default"), lease(world.mine))]),
        Line("events: make them", True, True, [Attempt("POST", "/api/v1/namespaces/default/events", event)]),
        Line("gangs, Capacity Blocks, namespaces, roles, lists of volumes, CSINodes", False, False, [
            get(path) for path in ("/apis/tahoma.dev/v1alpha1/gangs", "/apis/tahoma.dev/v1alpha1/capacityblocks", "/api/v1/namespaces",
                                   "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/api/v1/persistentvolumeclaims",
                                   f"/apis/storage.k8s.io/v1/csinodes/{world.mine}")]),
    ]


def lines(world):
    return [*node_lines(world), *slice_lines(world), *pod_lines(world), *claim_lines(world), *other_lines(world)]


def table():
    word = {True: "yes", False: "no"}
    rows = [f"| {line.what} | {word[line.standalone]} | {word[line.plugin]} |" for line in lines(World("mine", "other", None))]
    return "\n".join(["| | role `node`, standalone | dra-plugin's account, by the chart |", "|---|---|---|", *rows]) + "\n"


def main():
    if sys.argv[1:] == ["--write"]:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    else:
        print(table(), end="")


if __name__ == "__main__":
    main()
