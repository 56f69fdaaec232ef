#!/usr/bin/env python3
"""Kubernetes 1.34 and 1.35, with the feature gates of devices' counters (DRAPartitionableDevices) and taints
(DRADeviceTaints) on and off, and 1.36 with both off.

    older_servers_test.py   in the repository's root, with KUBERNETES_BIN, KUBERNETES_1_34_BIN, KUBERNETES_1_35_BIN,
                            TAHOMA_BIN and kubectl

Where a server keeps no counters, or few, a node must not show devices that overlap, and a condition of the Node says
what it does not show; and gangs of chips run on all of them.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/scenarios", "tests/cluster"):
    sys.path.insert(0, str(ROOT / folder))

import ground as grounds  # noqa: E402
import run  # noqa: E402

GATE = "DRAPartitionableDevices=true"
BOTH_GATES = f"{GATE},DRADeviceTaints=true"
NO_GATES = "DRAPartitionableDevices=false,DRADeviceTaints=false"
CONDITION = "tahoma.dev/DevicesComplete"
PATIENCE_SECONDS = 60
NODE = "trn2-0"  # a trn2.48xlarge of the standard topology
SCENARIOS = ("connected-chips", "ultraserver-gang", "cannot-fit", "gang-spec")


class OlderServersTest(unittest.TestCase):
    def slices_of(self, environment):
        listed = subprocess.run([os.environ.get("KUBECTL", "kubectl"), "get", "resourceslices", "-o", "json"], env=environment,
                                stdout=subprocess.PIPE, check=True).stdout
        return [item["spec"] for item in json.loads(listed)["items"] if item["spec"].get("nodeName") == NODE]

    def check_condition(self, environment, reason, told):
        """The Node says what it does not show, within the plugin's patience, and the words are in it."""
        def shown():
            node = json.loads(subprocess.run([os.environ.get("KUBECTL", "kubectl"), "get", "node", NODE, "-o", "json"],
                                             env=environment, stdout=subprocess.PIPE, check=True).stdout)
            return next((one for one in node["status"]["conditions"] if one["type"] == CONDITION), None)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (condition := shown()) is None or condition["reason"] != reason:
            self.assertLess(time.monotonic(), deadline, f"{condition}, where {reason} should be")
            time.sleep(0.2)
        self.assertEqual(condition["status"], "True" if reason == "AllShown" else "False")
        for words in told:
            self.assertIn(words, condition["message"])

    def await_chips(self, environment, count):
        """So many chips are shown and have no taint of a fault."""
        def usable():
            return sum(device["name"].startswith("neuron-device") and
                       not any(taint["key"] == "tahoma.dev/unhealthy" for taint in device.get("taints", []))
                       for one in self.slices_of(environment) for device in one.get("devices", []))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := usable()) != count:
            self.assertLess(time.monotonic(), deadline, f"{found} chips can be used, where {count} should be")
            time.sleep(0.2)

    def check_fault(self, environment):
        """What is broken is not given away, also where the server drops taints."""
        for action, left in (("break", 15), ("repair", 16)):
            subprocess.run([ROOT / "tests/scenarios/fault.sh", NODE, f"chips/5/{action}",
                            '{"reason": "HBM_UNCORRECTABLE_ERROR"}' if action == "break" else "{}"],
                           env=environment, stdout=subprocess.DEVNULL, check=True)
            self.await_chips(environment, left)

    def kinds_in(self, slices):
        kinds = collections.Counter()
        for device in (device for one in slices for device in one.get("devices", [])):
            parts = device["name"].split("-")
            kinds["chip" if parts[1] == "device" else parts[3]] += 1
        return dict(kinds)

    def check_upgrade(self, directory, environment):
        """The API server starts again with its gates on: the same plugins show the rest, and their Nodes say so."""
        subprocess.run([sys.executable, ROOT / "tests/cluster/control_plane.py", "default-gates", directory], check=True)
        self.check_fault(environment)  # a publication, for which there would be minutes to wait
        self.check_condition(environment, "AllShown", [])
        self.assertEqual(self.kinds_in(self.slices_of(environment)), {"chip": 16, "lnc2": 64, "lnc1": 128})

    def check(self, version, gates, kinds, slices, reason, *told, upgrade=False):
        """What the node shows: so many devices of each kind in so many slices, and what it says of the others. Then a
        fault, and the scenarios."""
        servers = os.environ["KUBERNETES_BIN" if version == "1.36" else f"KUBERNETES_{version.replace('.', '_')}_BIN"]
        bin_dir = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
        options = ["--servers", servers, *(["--feature-gates", gates] if gates else [])]
        ground = grounds.Ground("cluster", bin_dir, control_plane=options)
        with ground as environment:
            shown = self.slices_of(environment)
            for device in (device for one in shown for device in one.get("devices", [])):
                self.assertEqual("consumesCounters" in device, gates in (GATE, BOTH_GATES))
            self.assertEqual(self.kinds_in(shown), kinds)
            self.assertEqual(len(shown), slices)
            self.assertEqual({one["pool"]["resourceSliceCount"] for one in shown}, {slices})
            self.check_condition(environment, reason, told)
            self.check_fault(environment)
            if upgrade:
                self.check_upgrade(ground.directory / "k", environment)
            for name in SCENARIOS:
                self.assertIsNone(run.run_scenario(ROOT / "tests/scenarios" / f"{name}.scenario", environment), name)

    def test_a_server_without_claims_of_extended_resources_gets_none_and_the_pods_say_why(self):
        """Such a server drops the name of the class, too."""
        options = ["--servers", os.environ["KUBERNETES_BIN"], "--feature-gates", "DRAExtendedResource=false"]
        bin_dir = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
        by_class = "s#by-limits#by-class#; s#aws.amazon.com/neuron#deviceclass.resource.kubernetes.io/neuron.tahoma.dev#"
        with grounds.Ground("cluster", bin_dir, control_plane=options) as environment:
            for command in (f"sed '{by_class}' examples/aws/by-limits.yaml | kubectl apply -f - -f examples/aws/by-limits.yaml",
                            "kubectl wait pod/by-limits pod/by-class --for=condition=PodScheduled=false --timeout=60s"):
                status, output = grounds.execute(command, environment)
                self.assertEqual(status, 0, output)
            deadline = time.monotonic() + PATIENCE_SECONDS
            for name, words in (("by-class", "keeps no status.extendedResourceClaimStatus"), ("by-limits", "neither has a DeviceClass")):
                while words not in (said := grounds.execute(f"kubectl tahoma why {name}", environment)[1]):
                    self.assertLess(time.monotonic(), deadline, said)
                    time.sleep(0.2)
            self.assertEqual(grounds.execute("kubectl get resourceclaims -o name; kubectl get pods -o jsonpath='{..nodeName}'", environment),
                             (0, ""))

    def test_1_34_without_counters_shows_chips(self):
        self.check("1.34", None, {"chip": 16}, 1, "NoCountersAndNoTaints", "NeuronCores (LNC 1 and LNC 2)", "Kubernetes 1.34",
                   "turned on in 1.34, it leaves out NeuronCores (LNC 1)", "DRAPartitionableDevices", "DRADeviceTaints")

    def test_1_34_with_counters_shows_chips_and_cores_of_two_in_one_slice(self):
        self.check("1.34", GATE, {"chip": 16, "lnc2": 64}, 1, "FewCountersAndNoTaints", "Not shown: NeuronCores (LNC 1), for")

    def test_1_35_without_counters_shows_chips(self):
        self.check("1.35", None, {"chip": 16}, 1, "NoCountersAndNoTaints", "NeuronCores (LNC 1 and LNC 2)",
                   "upgrade to Kubernetes 1.36")

    def test_1_35_with_counters_shows_everything_but_taints(self):
        self.check("1.35", GATE, {"chip": 16, "lnc2": 64, "lnc1": 128}, 5, "NoTaints", "DRADeviceTaints")

    def test_1_35_with_both_gates_shows_everything(self):
        self.check("1.35", BOTH_GATES, {"chip": 16, "lnc2": 64, "lnc1": 128}, 5, "AllShown")

    def test_1_36_without_its_gates_shows_chips_until_they_are_turned_on(self):
        self.check("1.36", NO_GATES, {"chip": 16}, 1, "NoCountersAndNoTaints", "DRAPartitionableDevices is off. Turn it on.",
                   "DRADeviceTaints is off. Turn it on.", upgrade=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
