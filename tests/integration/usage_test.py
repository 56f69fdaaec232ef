#!/usr/bin/env python3
"""The chip time of gangs over kills of a standalone controller: `kubectl tahoma usage`, GET /v1/usage and the metric.

Nodes have no machine behind them, so pods end when the test says so. What a gang must count lies between two times that the
test takes itself: before and after its pods were bound, and before and after its claims were given back.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import unittest

from standalone_controller import StandaloneController, ask

DEADLINE_SECONDS = 60
IN = "/namespaces/default"


def claim(name, chips):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
            "spec": {"devices": {"requests": [{"name": "chips", "exactly": {
                "deviceClassName": "neuron.aws.com", "allocationMode": "ExactCount", "count": chips}}]}}}


def pod(name, labels):
    return {"metadata": {"name": name, "labels": labels},
            "spec": {"schedulerName": "tahoma", "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "c"}]}}],
                     "resourceClaims": [{"name": "c", "resourceClaimName": name}]}}


class UsageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.controller = None
        self.start()
        self.addCleanup(lambda: self.controller.stop())

    def start(self):
        pathlib.Path(self.folder, "ports").unlink(missing_ok=True)
        self.controller = StandaloneController(self.folder, "--write-kubeconfig", f"{self.folder}/kubeconfig")

    def kill(self):
        self.controller.process.kill()
        self.controller.process.wait()

    def until(self, what, holds):
        waiting = threading.Event()
        for _ in range(DEADLINE_SECONDS * 20):
            if holds():
                return
            waiting.wait(0.05)
        self.fail(f"{what} did not happen")

    def seconds(self):
        """(queue -> chip-seconds, queue -> chips held) as REST says."""
        status, text = ask("GET", self.controller.url + "/v1/usage")
        self.assertEqual(status, 200, text)
        rows = json.loads(text)["usage"]
        return {row["queue"]: row["chipSeconds"] for row in rows}, {row["queue"]: row["chips"] for row in rows}

    def run_pod(self, name, chips, labels):
        """Makes a pod that runs; returns the times before and after its bind."""
        self.controller.send("POST", f"/apis/resource.k8s.io/v1{IN}/resourceclaims", claim(name, chips))
        before = time.time()
        self.controller.send("POST", f"/api/v1{IN}/pods", pod(name, labels))
        queue = next(iter(labels.values()), "default")
        self.until(f"{name} is bound", lambda: self.seconds()[1].get(queue) == str(chips))
        return before, time.time()

    def end_pod(self, name, queue):
        before = time.time()
        self.controller.send("PATCH", f"/api/v1{IN}/pods/{name}/status", {"status": {"phase": "Succeeded"}})
        self.until(f"the claim of {name} is free", lambda: self.seconds()[1][queue] == "0")
        return before, time.time()

    def test_killed_at_any_moment_it_counts_each_second_once(self):
        self.controller.make_node("node-a")
        born = {"nightly": self.run_pod("four", 4, {"kueue.x-k8s.io/queue-name": "nightly"}),
                "default": self.run_pod("two", 2, {})}
        counted = {"nightly": 0, "default": 0}
        for _ in range(4):
            self.kill()
            self.start()
            # Listening comes before the first step.
            self.until("the gangs are known", lambda: self.seconds()[1] == {"nightly": "4", "default": "2"})
            now, _ = self.seconds()
            for queue, before in counted.items():
                self.assertGreaterEqual(now[queue], before, queue)
            counted = now
        died = {"nightly": self.end_pod("four", "nightly"), "default": self.end_pod("two", "default")}
        self.kill()
        self.start()
        self.until("the sums are known", lambda: self.seconds()[1] == {"nightly": "0", "default": "0"})
        sums, _ = self.seconds()
        for queue, chips in (("nightly", 4), ("default", 2)):
            least = chips * (died[queue][0] - born[queue][1])
            most = chips * (died[queue][1] - born[queue][0])
            self.assertGreaterEqual(sums[queue] + 1, least, queue)
            self.assertLessEqual(sums[queue], most, queue)
        self.check_the_other_ways(sums)

    def check_the_other_ways(self, sums):
        _, metrics = ask("GET", self.controller.url + "/metrics")
        for queue, chip_seconds in sums.items():
            [value] = re.findall(rf'^tahoma_chip_seconds_total\{{namespace="default",queue="{queue}"\}} (\S+)$', metrics, re.MULTILINE)
            self.assertEqual(int(float(value)), chip_seconds)
        said = self.kubectl("-o", "json")
        told = {row["queue"]: row["chipSeconds"] for row in json.loads(said)["gangs"]}
        self.assertEqual(told, sums)
        self.assertRegex(self.kubectl(), r"(?m)^NAMESPACE +QUEUE +CHIP-HOURS +CHIPS-NOW\ndefault +default +\d+\.\d\d +0\n"
                                         r"default +nightly +\d+\.\d\d +0\nall +\d+\.\d\d +0\n\Z")
        self.assertRegex(self.kubectl("--by", "namespace", "-o", "wide"),
                         r"(?m)^NAMESPACE +TYPE +CHIP-HOURS +CHIPS-NOW\ndefault +trn2\.48xlarge +\d+\.\d\d +0\n\Z")
        self.assertEqual(self.kubectl("-n", "default"), self.kubectl("-A"))

    def kubectl(self, *flags):
        command = [os.path.join(os.environ["TAHOMA_BIN"], "kubectl-tahoma"), "usage", *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "KUBECONFIG": f"{self.folder}/kubeconfig"})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
