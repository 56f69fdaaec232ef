#!/usr/bin/env python3
"""Kubernetes 1.34 and 1.35, with the feature gate of devices' counters (DRAPartitionableDevices) on and off.

    older_servers_test.py   in the repository's root, with KUBERNETES_BIN, KUBERNETES_1_34_BIN, KUBERNETES_1_35_BIN,
                            TAHOMA_BIN and kubectl

Where a server keeps no counters, or few, a node must not show devices that overlap; and gangs of chips run on all of
them.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/scenarios", "tests/cluster"):
    sys.path.insert(0, str(ROOT / folder))

import ground as grounds  # noqa: E402
import run  # noqa: E402

GATE = "DRAPartitionableDevices=true"
NODE = "trn2-0"  # a trn2.48xlarge of the standard topology
SCENARIOS = ("connected-chips", "ultraserver-gang", "cannot-fit", "gang-spec")


class OlderServersTest(unittest.TestCase):
    def slices_of(self, environment):
        listed = subprocess.run([os.environ.get("KUBECTL", "kubectl"), "get", "resourceslices", "-o", "json"], env=environment,
                                stdout=subprocess.PIPE, check=True).stdout
        return [item["spec"] for item in json.loads(listed)["items"] if item["spec"].get("nodeName") == NODE]

    def check(self, version, gates, kinds, slices):
        """What the node shows: so many devices of each kind in so many slices. Then the scenarios."""
        servers = os.environ[f"KUBERNETES_{version.replace('.', '_')}_BIN"]
        bin_dir = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
        options = ["--servers", servers, *(["--feature-gates", gates] if gates else [])]
        with grounds.Ground("cluster", bin_dir, control_plane=options) as environment:
            shown = self.slices_of(environment)
            found = collections.Counter()
            for device in (device for one in shown for device in one.get("devices", [])):
                parts = device["name"].split("-")
                found["chip" if parts[1] == "device" else parts[3]] += 1
                self.assertEqual("consumesCounters" in device, gates is not None)
            self.assertEqual(dict(found), kinds)
            self.assertEqual(len(shown), slices)
            self.assertEqual({one["pool"]["resourceSliceCount"] for one in shown}, {slices})
            for name in SCENARIOS:
                self.assertTrue(run.run_scenario(ROOT / "tests/scenarios" / f"{name}.scenario", environment), name)

    def test_1_34_without_counters_shows_chips(self):
        self.check("1.34", None, {"chip": 16}, 1)

    def test_1_34_with_counters_shows_chips_and_cores_of_two_in_one_slice(self):
        self.check("1.34", GATE, {"chip": 16, "lnc2": 64}, 1)

    def test_1_35_without_counters_shows_chips(self):
        self.check("1.35", None, {"chip": 16}, 1)

    def test_1_35_with_counters_shows_everything(self):
        self.check("1.35", GATE, {"chip": 16, "lnc2": 64, "lnc1": 128}, 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
