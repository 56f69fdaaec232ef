#!/usr/bin/env python3
"""Tests `sim-node --fleet` as a program, against `controller --standalone`: a start, a kill of either, an end.

    virtual_fleet_test.py          in the repository's root, with TAHOMA_BIN set
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from standalone_controller import StandaloneController, ask  # noqa: E402

NODES = 40
PATIENCE_SECONDS = 60
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PUBLISHED = r"all 40 nodes are published, with 40 ResourceSlices"


def program(*arguments):
    return [os.path.join(os.environ["TAHOMA_BIN"], "sim-node"), *arguments]


class Fleet:
    """sim-node --fleet, whose log is kept as it comes."""

    def __init__(self, kubeconfig, *arguments):
        self.process = subprocess.Popen(
            program("--fleet", str(NODES), "--fleet-nodes.kubeconfig", kubeconfig, "--fleet-nodes.lease-period", "1s",
                    "--fleet-nodes.resync-period", "10s", *arguments), stderr=subprocess.PIPE, text=True)
        self.log = ""
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            with self.changed:
                self.log += line
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def says(self, pattern):
        with self.changed:
            return self.changed.wait_for(lambda: re.search(pattern, self.log), PATIENCE_SECONDS)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE_SECONDS)
        self.reader.join()
        self.process.stderr.close()
        return status


class VirtualFleetTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="vf")
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.kubeconfig = f"{self.folder}/kubeconfig"
        self.start_controller()

    def start_controller(self, **where):
        pathlib.Path(self.folder, "ports").unlink(missing_ok=True)
        self.controller = StandaloneController(self.folder, "--write-kubeconfig", self.kubeconfig, **where)
        self.addCleanup(self.controller.stop)

    def items(self, path):
        return json.loads(ask("GET", self.controller.api + path)[1])["items"]

    def versions(self, path):
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in self.items(path)}

    def eventually(self, holds):
        waiting = threading.Event()
        for _ in range(10 * PATIENCE_SECONDS):
            if holds():
                return True
            waiting.wait(0.1)
        return False

    def fleet(self, *arguments):
        fleet = Fleet(self.kubeconfig, *arguments)
        self.addCleanup(lambda: fleet.process.poll() is None and fleet.end(signal.SIGKILL))
        return fleet

    def test_a_fleet_is_published_kept_taken_over_and_removed(self):
        fleet = self.fleet()
        self.assertTrue(fleet.says(PUBLISHED), fleet.log)
        self.assertEqual([len(self.items(path)) for path in ("/api/v1/nodes", LEASES, SLICES)], [NODES] * 3)
        before = self.versions(LEASES)
        self.assertTrue(self.eventually(lambda: all(before[name] != version for name, version in self.versions(LEASES).items())))
        self.assertEqual(fleet.end(signal.SIGKILL), -signal.SIGKILL)

        slices = self.versions(SLICES)
        fleet = self.fleet()
        self.assertTrue(fleet.says(PUBLISHED), fleet.log)
        self.assertEqual(self.versions(SLICES), slices)
        self.assertEqual(fleet.end(), 0)
        self.assertIn("40 nodes of the fleet stay in the API server", fleet.log)
        self.assertIn("kubectl delete nodes -l tahoma.dev/fleet=fleet", fleet.log)

        status, text = ask("DELETE", self.controller.api + "/api/v1/nodes?labelSelector=tahoma.dev/fleet%3Dfleet")
        self.assertEqual(status, 200, text)
        self.assertTrue(self.eventually(lambda: not self.items(LEASES) and not self.items(SLICES)))

    def test_a_server_that_was_killed_and_started_again_has_its_fleet_again(self):
        fleet = self.fleet()
        self.assertTrue(fleet.says(PUBLISHED), fleet.log)
        address = self.controller.api.removeprefix("http://")
        self.controller.process.kill()
        self.controller.process.wait()
        self.assertTrue(fleet.says("tasks that failed and are tried again"), fleet.log)
        self.start_controller(listen=address)
        before = self.versions(LEASES)
        self.assertEqual(len(before), NODES)
        self.assertTrue(self.eventually(lambda: all(before[name] != version for name, version in self.versions(LEASES).items())))
        self.assertEqual(len(self.items(SLICES)), NODES)
        self.assertEqual(fleet.end(), 0)

    def test_what_cannot_be_is_said_before_anything_is_done(self):
        for flags, wanted in (
                (["--node-name", "n1"], "fleet and nodeName do not go together"),
                (["--fleet-nodes.name", "West"], "fleetNodes.name \"West\""),
                (["--fleet-nodes.instance-types", "trn9=1"], "\"trn9\" is unknown; known are"),
                (["--fleet-nodes.lease-period", "50s"], "lease-period"),
                (["--fleet-nodes.kubeconfig", f"{self.folder}/none"], "fleetNodes.kubeconfig: ")):
            server = [] if "--fleet-nodes.kubeconfig" in flags else ["--fleet-nodes.kubeconfig", self.kubeconfig]
            done = subprocess.run(program("--fleet", "4", *server, *flags),
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_SECONDS)
            self.assertNotEqual(done.returncode, 0, flags)
            self.assertIn(wanted, done.stderr)
        self.assertEqual(self.items("/api/v1/nodes"), [])


if __name__ == "__main__":
    unittest.main()
