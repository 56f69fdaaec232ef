#!/usr/bin/env python3
"""Random pods on real kubelets: no pod that Tahoma bound is refused by its kubelet for want of room.

    random_pods_test.py             in the repository's root, with KUBERNETES_BIN, TAHOMA_BIN and kubectl, as root
    PODS=2000 SEED=7 random_pods_test.py    so many, of that seed; a run prints its seed

A kubelet admits a pod by its own sums of cpu, memory, ephemeral storage, pods and host ports. Who binds a pod by other
sums sees the pod fail with the reason OutOfcpu, OutOfmemory, OutOfpods, NodePorts and the like. Pods come in waves, while
those of the waves before still run. Between waves, when none of ours waits, pods of another scheduler appear on the nodes.
"""

import collections
import os
import pathlib
import random
import re
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/scenarios", "tests/cluster", "examples/local"):
    sys.path.insert(0, str(ROOT / folder))

import ground as grounds  # noqa: E402
from node_case import NodeCase  # noqa: E402

TOPOLOGY = {"networkLayers": ["nn-27951e8b5f0b6c4fe", "nn-e4ed5f6d14a986202", "nn-0f43aef49613f02d1"],
            "nodes": [{"name": f"trn2-{number}", "instanceType": "trn2.48xlarge"} for number in range(3)]}
PODS = int(os.environ.get("PODS", "160"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
WAVE = 30
MOST_PODS_OF_NODE = 6
PORTS = (30000, 30001)  # few, so that they collide
CAUSES = r"Insufficient [\w-]+|Too many pods|no free host port"
CLAIMS = {"one-chip": ("neuron.tahoma.dev", 1), "six-chips": ("neuron.tahoma.dev", 6),
          "two-cores": ("neuroncore-lnc2.tahoma.dev", 2)}


def template(name, device_class, count):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
            "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": device_class, "count": count}}]}}}}


def quantity(text):
    number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
    return int(number) * {"": 1, "m": 1e-3, "k": 1e3, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}[unit]


def ended(pod):
    return pod["status"]["phase"] in ("Succeeded", "Failed")


class RandomPodsTest(NodeCase):
    @classmethod
    def setUpClass(cls):
        cls.bring_up(TOPOLOGY, scheduler_names="tahoma", kubelets=("--max-pods", MOST_PODS_OF_NODE))

    def setUp(self):
        self.random = random.Random(SEED)
        self.room = self.get("node", self.nodes[0].name)["status"]["allocatable"]
        self.ends, self.causes, self.made = collections.Counter(), set(), 0

    def part(self, resource, least, most):
        """So much of what a node has of a resource."""
        return int(quantity(self.room[resource]) * self.random.uniform(least, most))

    def requests(self):
        """Half of the pods ask for next to nothing, so that the number of pods can be what is short."""
        asked = {"cpu": "10m"}
        if self.random.random() < 0.35:
            asked["cpu"] = f"{int(quantity(self.room['cpu']) * 1000 * self.random.uniform(0.05, 0.7))}m"
        if self.random.random() < 0.25:
            asked["memory"] = str(self.part("memory", 0.05, 0.7))
        if self.random.random() < 0.15:
            asked["ephemeral-storage"] = str(self.part("ephemeral-storage", 0.05, 0.7))
        return asked

    def pod(self, scheduler, **spec):
        self.made += 1
        command = ["true"] if self.random.random() < 0.4 else ["sleep", str(self.random.randrange(1, 6))]
        main = {"name": "main", "image": "tahoma.dev/workload:v1", "command": command, "resources": {"requests": self.requests()}}
        if self.random.random() < 0.3:
            main["ports"] = [{"containerPort": 80, "hostPort": self.random.choice(PORTS)}]
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{self.made}"},
                "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                         "containers": [main], **spec}}
        if self.random.random() < 0.1:
            made["spec"]["initContainers"] = [{"name": "first", "image": "tahoma.dev/workload:v1", "command": ["true"],
                                               "resources": {"requests": self.requests()}}]
        return made

    def ours(self):
        made = self.pod("tahoma")
        if self.random.random() < 0.25:
            main = made["spec"]["containers"][0]
            main["resources"]["claims"] = [{"name": "c"}]
            made["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": self.random.choice(list(CLAIMS))}]
        return made

    def free(self, pods, node):
        """At least so much is free on the node, by what its pods request."""
        free = {resource: quantity(self.room[resource]) for resource in ("cpu", "memory", "ephemeral-storage", "pods")}
        ports = set(PORTS)
        for pod in pods:
            if pod["spec"].get("nodeName") == node and not ended(pod):
                free["pods"] -= 1
                for container in pod["spec"]["containers"] + pod["spec"].get("initContainers", []):
                    ports -= {port.get("hostPort") for port in container.get("ports", ())}
                    for resource, asked in container["resources"].get("requests", {}).items():
                        free[resource] -= quantity(asked)
        return free, ports

    def of_another(self, pods):
        """Pods that another scheduler puts where there is room for them. None of ours waits now, so ours cannot take the room."""
        made = []
        for node in self.nodes:
            pod, (free, ports) = self.pod("other", nodeName=node.name), self.free(pods, node.name)
            main = pod["spec"]["containers"][0]
            pod["spec"].pop("initContainers", None)
            if (free["pods"] >= 1 and all(quantity(asked) <= free[resource] for resource, asked in main["resources"]["requests"].items())
                    and {port["hostPort"] for port in main.get("ports", ())} <= ports):
                made.append(pod)
        return made

    def look(self):
        """The pods that are there; counts those that have ended, and deletes them."""
        pods = self.get("pods")["items"]
        for pod in pods:
            for one in pod["status"].get("conditions", []):
                if one["type"] == "PodScheduled" and one["status"] == "False":
                    self.causes.update(re.findall(CAUSES, one.get("message", "")))
        over = [pod for pod in pods if ended(pod) and "deletionTimestamp" not in pod["metadata"]]
        for pod in over:
            scheduler, status = pod["spec"]["schedulerName"], pod["status"]
            self.ends[(scheduler, status["phase"], status.get("reason", ""), status.get("message", ""))] += 1
        if over:
            self.kubectl("delete", "pods", "--wait=false", *(pod["metadata"]["name"] for pod in over))
        return pods

    def all_bound(self):
        pods = self.look()
        return [pods] if all(pod["spec"].get("nodeName") for pod in pods) else None

    def test_no_kubelet_refuses_a_pod_that_was_bound(self):
        print(f"PODS={PODS} SEED={SEED}", flush=True)
        self.apply(*(template(name, *asked) for name, asked in CLAIMS.items()))
        begun, left, pods = time.monotonic(), PODS, []
        while left:
            wave = min(left, WAVE)
            left -= wave
            self.apply(*self.of_another(pods), *(self.ours() for _ in range(wave)))
            pods, = self.until("every pod of the wave is bound", self.all_bound)
        self.until("every pod has ended", lambda: not self.look())
        seconds = time.monotonic() - begun
        print(f"{PODS} pods in {seconds:.0f} s; they waited for: {', '.join(sorted(self.causes))}", flush=True)
        refused = {end: count for end, count in self.ends.items() if end[0] == "tahoma" and end[1] != "Succeeded"}
        self.assertFalse(refused)
        self.assertEqual(sum(count for end, count in self.ends.items() if end[0] == "tahoma"), PODS)
        self.assertIn("Insufficient cpu", self.causes)
        self.assertTrue([end for end in self.ends if end[:2] == ("other", "Succeeded")])


if __name__ == "__main__":
    grounds.in_own_network()
    unittest.main(verbosity=2, warnings="ignore")  # programs that are started outlive the objects that started them
