#!/usr/bin/env python3
"""JobSet's and LeaderWorkerSet's own controllers on a standalone controller: no cluster, and no kubelet.

    standalone_controllers_test.py [Test.name]   in the repository's root, with TAHOMA_BIN and kubectl

Their programs are those of build_tools.sh (JOBSET_BIN, LWS_BIN): standalone_controllers.sh builds them. The nodes are the four members of an UltraServer; KEEP_LOGS names a folder that gets all logs.
"""

import functools
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/scenarios", "tests/cluster", "examples/local"):
    sys.path.insert(0, str(ROOT / folder))

import ground as grounds  # noqa: E402
import others  # noqa: E402
from kubectl import kubectl, until  # noqa: E402

EXAMPLES = ROOT / "examples/gangs"
BIN = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
TOPOLOGY = {
    "networkLayers": ["nn-27951e8b5f0b6c4fe", "nn-e4ed5f6d14a986202", "nn-0f43aef49613f02d1"],
    "nodes": [{"name": f"trn2u-{place}", "instanceType": "trn2u.48xlarge",
               "ultraServer": {"id": "us-0123456789abcde0", "nodeId": place}} for place in range(4)]}
PATIENCE_SECONDS = 120
MADE = "gangs,resourceclaims,jobs,pods,statefulsets,services,controllerrevisions"
# As people write it who never heard of Tahoma.
PLAIN = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "plain"}, "spec": {"replicatedJobs": [{
    "name": "w", "replicas": 1, "template": {"spec": {"parallelism": 2, "completions": 2, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{
            "name": "w", "image": "tahoma.dev/workload:v1", "command": ["neuron-ls"],
            "resources": {"limits": {"aws.amazon.com/neuron": 16}}}]}}}}}]}}


class StandaloneControllersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="th")))
        (scratch / "topology.json").write_text(json.dumps(TOPOLOGY))
        ground = grounds.Ground("standalone", BIN, topology=scratch / "topology.json")
        environment = cls.enterClassContext(ground)
        shutil.copy(environment["KUBECONFIG"], scratch / "kubeconfig")
        cls.kubectl = staticmethod(functools.partial(kubectl, kubeconfig=scratch / "kubeconfig"))
        for name in ("jobset", "lws"):
            child = others.start(scratch, name)
            cls.addClassCleanup(child.wait)
            cls.addClassCleanup(child.kill)
        if "KEEP_LOGS" in os.environ:
            cls.addClassCleanup(shutil.copytree, scratch / "log", pathlib.Path(os.environ["KEEP_LOGS"]) / "others", dirs_exist_ok=True)

    def setUp(self):
        self.until("the webhooks answer", lambda: self.kubectl(
            "create", "--dry-run=server", "-f", EXAMPLES / "jobset.yaml", "-f", EXAMPLES / "leaderworkerset.yaml", fails=None))

    def until(self, what, holds):
        return until(what, holds, PATIENCE_SECONDS, log=lambda: self.kubectl("get", MADE, "-o", "wide"))

    def get(self, *words):
        return json.loads(self.kubectl("get", "-o", "json", *words))

    def finish(self, kind, name):
        """Deletes it; nothing that was made for it may stay."""
        self.kubectl("delete", kind, name, "--timeout=90s")
        self.until("nothing is left", lambda: not self.get(MADE.replace("services,", ""))["items"])
        self.assertEqual([one["metadata"]["name"] for one in self.get("services")["items"] if one["metadata"]["name"] != "kubernetes"], [])

    def complete(self, name):
        def completed():
            conditions = self.get("jobset", name).get("status", {}).get("conditions", [])
            return any(one["type"] == "Completed" and one["status"] == "True" for one in conditions)
        self.until(f"{name} is complete", completed)

    def test_a_jobset_runs_to_its_end(self):
        self.kubectl("apply", "-f", EXAMPLES / "jobset.yaml")
        self.complete("train-set")
        pods = self.get("pods")["items"]
        self.assertEqual([pod["status"]["phase"] for pod in pods], ["Succeeded"] * 4)
        self.assertEqual(len({pod["spec"]["nodeName"] for pod in pods}), 4)
        self.finish("jobset", "train-set")

    def test_a_jobset_of_plain_pods_runs_to_its_end(self):
        self.kubectl("apply", "-f", "-", given=PLAIN)
        self.complete("plain")
        self.finish("jobset", "plain")

    def test_the_webhooks_of_jobset_refuse_what_they_refuse_in_a_cluster(self):
        wrong = {**PLAIN, "metadata": {"name": "wrong"}, "spec": {**PLAIN["spec"], "successPolicy": {
            "operator": "All", "targetReplicatedJobs": ["none"]}}}
        self.assertIn("denied the request", self.kubectl("apply", "-f", "-", given=wrong, fails=True))

    def test_a_leaderworkerset_is_served_scaled_updated_and_deleted(self):
        def running(pods_wanted, ready):
            status = self.get("leaderworkerset", "serve").get("status", {})
            pods = [pod for pod in self.get("pods")["items"] if "deletionTimestamp" not in pod["metadata"]]
            phases = [pod["status"]["phase"] for pod in pods]
            return phases == ["Running"] * pods_wanted and status.get("readyReplicas", 0) == ready and pods
        self.kubectl("apply", "-f", EXAMPLES / "leaderworkerset.yaml")
        before = self.until("both groups run", lambda: running(4, 2))
        self.kubectl("scale", "leaderworkerset", "serve", "--replicas=1")
        self.until("a group is left", lambda: running(2, 1))
        self.kubectl("patch", "leaderworkerset", "serve", "--type=json", "-p", json.dumps([{
            "op": "add", "path": "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/env",
            "value": [{"name": "VERSION", "value": "2"}]}]))

        def updated():
            pods = running(2, 1)
            return pods and all(any(
                entry["name"] == "VERSION" for entry in pod["spec"]["containers"][0].get("env", [])) for pod in pods)
        self.until("the group runs the new version", updated)
        self.assertNotIn(before[0]["metadata"]["uid"], {pod["metadata"]["uid"] for pod in self.get("pods")["items"]})
        self.finish("leaderworkerset", "serve")


if __name__ == "__main__":
    unittest.main()
