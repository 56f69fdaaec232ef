#!/usr/bin/env python3
"""Manifests for AWS's driver on real kubelets, with LeaderWorkerSet's controller and kube-controller-manager's Deployments.

    aws_manifests_test.py       in the repository's root, with KUBERNETES_BIN, LWS_BIN, TAHOMA_BIN and kubectl, as root

Ours are of examples/aws. AWS's own are read where AWS_MANIFESTS says, a folder with the files of aws-neuron-sdk's
deploy/files/specs, and applied as they are; without it these tests are skipped.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/scenarios", "tests/cluster", "examples/local"):
    sys.path.insert(0, str(ROOT / folder))

import ground as grounds  # noqa: E402
import image  # noqa: E402
import others  # noqa: E402
from node_case import BIN, NodeCase  # noqa: E402

EXAMPLES = ROOT / "examples/aws"
# Two UltraServers, and two instances with the driver that one of AWS's manifests asks for.
INSTANCES = ("trn2-0", "trn2-1")
TOPOLOGY = {
    "networkLayers": ["nn-27951e8b5f0b6c4fe", "nn-e4ed5f6d14a986202", "nn-0f43aef49613f02d1"],
    "nodes": [{"name": f"trn2u-{server}{place}", "instanceType": "trn2u.48xlarge",
               "ultraServer": {"id": f"us-0123456789abcde{server}", "nodeId": place}} for server in range(2) for place in range(4)] +
             [{"name": name, "instanceType": "trn2.48xlarge", "driverVersion": "2.25.4.0"} for name in INSTANCES]}
# What one of AWS's Deployments runs; here it is our programs, which wait.
SERVER_IMAGE = "public.ecr.aws/docker/library/nginx:alpine"
GROUP = "leaderworkerset.sigs.k8s.io/group-index"


def aws(name):
    """A manifest of AWS's, where there is one."""
    folder = os.environ.get("AWS_MANIFESTS")
    if not folder:
        raise unittest.SkipTest("AWS_MANIFESTS names no folder with the files of aws-neuron-sdk's deploy/files/specs")
    file = pathlib.Path(folder) / name
    if not file.exists():
        raise unittest.SkipTest(f"AWS_MANIFESTS has no {name}")
    return file


def count_of(ranges):
    """Of cores, as in 0-3,8."""
    ends = [list(map(int, part.split("-"))) for part in ranges.split(",")]
    return sum(end[-1] - end[0] + 1 for end in ends)


class AwsManifestsTest(NodeCase):
    @classmethod
    def setUpClass(cls):
        ground = cls.bring_up(TOPOLOGY)
        server = ground.directory / "server.tar"
        image.write(server, [SERVER_IMAGE], image.workload_files(BIN), ["/bin/sleep", "infinity"])
        subprocess.run([sys.executable, ROOT / "tests/cluster/node.py", "import", ground.directory / "k", server], check=True)
        cls.controller = others.start(ground.directory / "k", "lws")

    def setUp(self):
        self.until("the members of the UltraServers have elected", lambda: len(json.loads(self.kubectl(
            "get", "nodes", "-l", "neuron.amazonaws.com/ultraserver-mode=1_2_4", "-o", "json"))["items"]) == 8)
        self.until("the webhooks answer", lambda: self.would_take(EXAMPLES / "group-of-two.yaml"))

    def would_take(self, file):
        return subprocess.run([os.environ.get("KUBECTL", "kubectl"), "create", "--dry-run=server", "-f", file], check=False,
                              env=self.environment, capture_output=True).returncode == 0

    def applied(self, file, count):
        """The pods of a manifest, when all of them run. When the test ends it is deleted, and nothing of it is left."""
        self.addCleanup(self.until, "every claim is given back", lambda: not any(n.claims() or n.cdi_claims() for n in self.nodes))
        self.addCleanup(self.until, "no pod and no claim is left", lambda: not self.get("pods,resourceclaims")["items"])
        self.addCleanup(self.kubectl, "delete", "-f", file, "--ignore-not-found", "--timeout=90s")
        self.kubectl("apply", "-f", file)
        return self.until(f"{count} pods of {file.name} run and are Ready", lambda: self.all_ready(count))

    def all_ready(self, count):
        pods = self.get("pods")["items"]
        ready = [pod for pod in pods if pod["status"]["phase"] == "Running" and any(
            c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])]
        return pods if len(pods) == len(ready) == count else None

    def environment_of(self, pod):
        lines = self.kubectl("exec", pod["metadata"]["name"], "--", "env").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def devices(self):
        """Those that are allocated, each with its node."""
        return [(result["pool"], result["device"]) for claim in self.get("resourceclaims")["items"]
                for result in claim["status"]["allocation"]["devices"]["results"]]

    def place_of(self, pod, nodes):
        """The group of members of an UltraServer to which the pod's node belongs."""
        label = f"neuron.amazonaws.com/ultraserver-server-id-{nodes}"
        return self.get("node", pod["spec"]["nodeName"])["metadata"]["labels"][label]

    def check_cores(self, pod, cores, lnc):
        seen = self.environment_of(pod)
        self.assertEqual(count_of(seen["NEURON_RT_VISIBLE_CORES"]), cores)
        self.assertEqual(seen["NEURON_LOGICAL_NC_CONFIG"], str(lnc))
        return seen

    def check_groups(self, pods, size, lnc=2):
        """Each group of pods has members of one UltraServer for itself, and each pod knows which."""
        groups = {}
        for pod in pods:
            groups.setdefault(pod["metadata"]["labels"][GROUP], []).append(pod)
        self.assertEqual([len(group) for group in groups.values()], [size, size])
        places = []
        for group in groups.values():
            seen = [self.check_cores(pod, 128 // lnc, lnc) for pod in group]
            self.assertEqual({one["NEURON_RT_ULTRASERVER_MODE"] for one in seen}, {str(size)})
            self.assertEqual(len({one["NEURON_RT_ULTRASERVER_SERVER_ID"] for one in seen}), 1)
            self.assertEqual(len({one["NEURON_RT_ULTRASERVER_NODE_ID"] for one in seen}), size)
            place, = {self.place_of(pod, size) for pod in group}
            places.append(place)
        self.assertEqual(len(set(places)), 2, "each group has a place of its own")
        self.assertEqual(len({pod["spec"]["nodeName"] for pod in pods}), 2 * size)
        self.assertEqual({device for _, device in self.devices()}, {"neuron-node"})

    def test_groups_of_two_each_have_a_pair_of_members_for_themselves(self):
        self.check_groups(self.applied(EXAMPLES / "group-of-two.yaml", 4), 2)

    def test_groups_of_four_each_have_an_ultraserver_for_themselves(self):
        self.check_groups(self.applied(EXAMPLES / "group-of-four.yaml", 8), 4)

    def test_a_group_with_annotations_is_a_gang_on_a_pair_of_members(self):
        pods = self.applied(ROOT / "examples/gangs/leaderworkerset.yaml", 4)
        def running():
            gangs = self.get("gangs")["items"]
            return len(gangs) == 2 and {gang["status"]["phase"] for gang in gangs} == {"Running"} and gangs
        gangs = self.until("both gangs run", running)
        self.assertEqual(sorted(gang["metadata"]["name"] for gang in gangs), ["serve-0", "serve-1"])
        self.assertEqual({gang["status"]["slices"][0]["shape"] for gang in gangs}, {"4x4x2"})
        self.assertEqual(len({pod["spec"]["nodeName"] for pod in pods}), 4)

    def test_the_pods_of_a_job_are_a_gang(self):
        file = ROOT / "examples/gangs/job.yaml"
        self.addCleanup(self.until, "the Gang went with its Job", lambda: not self.get("gangs")["items"])
        self.addCleanup(self.kubectl, "delete", "-f", file, "--ignore-not-found", "--timeout=90s")
        self.kubectl("apply", "-f", file)
        self.until("the Job is complete", lambda: self.get("job", "train-job").get("status", {}).get("succeeded") == 4)
        place, = {pod["metadata"]["annotations"]["tahoma.dev/placement"] for pod in self.get("pods")["items"]}
        self.assertIn("4x4x4", place)

    def test_the_replicas_of_a_deployment_have_eight_connected_chips_each(self):
        for pod in self.applied(EXAMPLES / "deployment.yaml", 2):
            self.check_cores(pod, 32, 2)
        self.assertEqual(len(set(self.devices())), 16)

    def test_aws_four_connected_chips(self):
        pod, = self.applied(aws("1x4-connected-devices.yaml"), 1)
        self.check_cores(pod, 16, 2)
        rows = {int(device.rsplit("-", 1)[1]) // 4 for _, device in self.devices()}
        self.assertEqual(len(rows), 1)
        self.assertIn(pod["spec"]["nodeName"], INSTANCES)

    def test_aws_all_devices(self):
        pod, = self.applied(aws("all-devices.yaml"), 1)
        self.assertEqual(self.check_cores(pod, 64, 2)["NEURON_RT_VISIBLE_CORES"], "0-63")
        self.assertEqual({device for _, device in self.devices()}, {f"neuron-device-{chip}" for chip in range(16)})

    def test_aws_logical_cores_of_one(self):
        pod, = self.applied(aws("lnc-setting-trn2.yaml"), 1)
        self.assertEqual(self.check_cores(pod, 128, 1)["NEURON_RT_VISIBLE_CORES"], "0-127")

    def test_aws_replicas_on_nodes_with_one_version_of_the_driver(self):
        pods = self.applied(aws("specific-driver-version.yaml"), 2)
        self.assertEqual({pod["spec"]["nodeName"] for pod in pods}, set(INSTANCES))
        self.assertEqual(len(set(self.devices())), 32)
        for pod in pods:  # its container does not name the pod's claim
            self.assertFalse([name for name in self.environment_of(pod) if re.match("NEURON|TAHOMA|AWS_NEURON", name)])

    def test_aws_groups_of_two(self):
        self.check_groups(self.applied(aws("2-node-inference-us.yaml"), 4), 2)

    def test_aws_groups_of_four(self):
        self.check_groups(self.applied(aws("4-node-inference-us.yaml"), 8), 4)


if __name__ == "__main__":
    grounds.in_own_network()
    unittest.main(verbosity=2)
