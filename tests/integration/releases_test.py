#!/usr/bin/env python3
"""What every release has written is read by this one: its journal and its custom resources, tests/golden/releases.

    TAHOMA_BIN=build/release/bin tests/integration/releases_test.py [-v]
    TAHOMA_BIN=build/release/bin tests/integration/releases_test.py --make 0.1.0    of a release, once, when it is made

A release's folder has backup.ndjson (docs/formats/backup.md), a store with gangs that run and wait, a bought block with
an extension, a series, a search and a quota; expected.json, what that release's own APIs answered about it; and
chart.tgz, its chart (tests/chart, tests/cluster). A later release reads the first and must answer the second. Its clock goes on
where that of the release stopped, or blocks would have ended long ago.
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from standalone_controller import StandaloneController, ask

RELEASES = pathlib.Path("tests/golden/releases")
BIN = pathlib.Path(os.environ.get("TAHOMA_BIN", "build/release/bin"))
CLOCK = BIN / "libsettable_clock.so"
KINDS = ("gangs", "capacityblocks", "capacityblockextensions", "capacityblockquotas", "capacityblockseries",
         "capacityblockwaitlistentries", "capacityreservations", "ultraservers")
OURS = "/apis/tahoma.dev/v1alpha1"
NODES = ("node-a", "node-b", "node-c", "node-d")


def until(what, read):
    """The first answer that is not empty."""
    waiting = threading.Event()
    for _ in range(300):
        if answer := read():
            return answer
        waiting.wait(0.1)
    raise AssertionError(f"{what} did not happen within 30 s")


def get(controller, path, admin=False):
    status, text = ask("GET", (controller.url if admin else controller.api) + path)
    return json.loads(text) if status == 200 else None


def items(controller, path):
    return (get(controller, path) or {"items": []})["items"]


def shown(gang):
    """The gang's phase. No kubelet makes the pods ready: releases up to 0.2.0 say Running of what is bound, later ones Placed."""
    return "Running" if gang["phase"] == "Placed" and gang["boundPods"] > 0 else gang["phase"]


def answers(controller):
    """What is asked of each release, without what changes by itself: times of writing, versions, prices of today."""
    gangs = get(controller, "/v1/gangs", admin=True)["gangs"]
    claims = {one["metadata"]["name"].rsplit("-", 1)[0]:
              " ".join(r["device"].removeprefix("neuron-device-") for r in one["status"]["allocation"]["devices"]["results"])
              for one in items(controller, "/apis/resource.k8s.io/v1/resourceclaims") if one.get("status", {}).get("allocation")}
    blocks = {one["metadata"]["name"]: {key: one.get("status", {}).get(key) for key in
                                        ("capacityReservationIds", "capacityBlockIds", "state", "startDate", "endDate", "upfrontFee", "totalInstanceCount")}
              for one in items(controller, f"{OURS}/capacityblocks")}
    requests = {f"{plural}/{one['metadata']['name']}": one.get("status", {}).get("state")
                for plural in ("capacityblockextensions", "capacityblockquotas", "capacityblockseries", "capacityblockwaitlistentries")
                for one in items(controller, f"{OURS}/{plural}")}
    return {"gangs": {f"{one['namespace']}/{one['name']}": [shown(one), {pod["name"]: pod["node"] for pod in one.get("pods", [])}]
                      for one in gangs},
            "claims": claims, "blocks": blocks, "requests": requests,
            "freeChips": {one["name"]: one["freeChips"] for one in get(controller, "/v1/topology", admin=True)["domains"]}}


def make_objects(controller):
    """Gangs that run and one that waits; a block that is bought, extended and has a quota; a series and a search."""
    for name in NODES:
        controller.make_node(name)
    for name, count in (("sixteen", 16), ("four", 4)):
        controller.send("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", {
            "metadata": {"name": name}, "spec": {"spec": {"devices": {"requests": [{"name": "chips", "exactly": {
                "deviceClassName": "neuron.aws.com", "allocationMode": "ExactCount", "count": count, "selectors": [{"cel": {
                    "expression": "device.attributes['neuron.aws.com'].resourceType == 'neuron_device'"}}]}}]}}}})
    for gang, template, members in (("train", "sixteen", 2), ("tune", "four", 2), ("large", "sixteen", 3)):
        controller.send("POST", f"{OURS}/namespaces/default/gangs", {
            "apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang", "metadata": {"name": gang},
            "spec": {"members": members, "maxRuntime": "2h", "priority": 3}})
        for rank in range(members):
            controller.send("POST", "/api/v1/namespaces/default/pods", {
                "metadata": {"name": f"{gang}-{rank}", "labels": {"tahoma.dev/gang": gang}},
                "spec": {"schedulerName": "tahoma", "containers": [{"name": "main", "image": "tahoma.dev/workload:v1",
                                                                    "resources": {"claims": [{"name": "chips"}]}}],
                         "resourceClaims": [{"name": "chips", "resourceClaimTemplateName": template}]}})

    def phases():
        listed = get(controller, "/v1/gangs", admin=True)
        return {one["name"]: shown(one) for one in listed["gangs"]} if listed else {}
    until("the gangs are bound", lambda: [phases().get(name) for name in ("train", "tune")] == ["Running"] * 2)

    def request(plural, kind, name, spec, *states, place="/namespaces/default"):
        controller.send("POST", f"{OURS}{place}/{plural}", {
            "apiVersion": "tahoma.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
        until(f"{name} is {' or '.join(states)}",
              lambda: get(controller, f"{OURS}{place}/{plural}/{name}").get("status", {}).get("state") in states)
    request("capacityblockquotas", "CapacityBlockQuota", "default", {"instances": 64, "averageInstances": 32}, "WithinLimits", place="")
    search = "/v1/capacityblockofferings?instanceType=trn2.48xlarge&instanceCount=1&capacityDurationHours=24"
    found = until("an offering", lambda: (get(controller, search, admin=True) or {}).get("capacityBlockOfferings"))
    request("capacityblocks", "CapacityBlock", "pretrain", {"capacityBlockOfferingId": found[0]["capacityBlockOfferingId"]},
            "scheduled", "active")
    request("capacityblockseries", "CapacityBlockSeries", "weekly",
            {"instanceType": "trn2.48xlarge", "instanceCount": 1, "capacityDurationHours": 24, "everyWeeks": 1, "occurrences": 2},
            "purchased")
    request("capacityblockwaitlistentries", "CapacityBlockWaitlistEntry", "soon",
            {"instanceType": "trn2.48xlarge", "instanceCount": 4, "capacityDurationHours": 48, "maxUpfrontFee": "1", "action": "Notify"},
            "waiting")
    request("capacityblockextensions", "CapacityBlockExtension", "longer",
            {"capacityBlockName": "pretrain", "capacityBlockExtensionDurationHours": 24}, "payment-succeeded")


def make(version):
    folder = RELEASES / version
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        controller = StandaloneController(scratch)
        try:
            make_objects(controller)
            expected = answers(controller)
            subprocess.run([BIN / "controller", "backup", "--admin-url", controller.url, folder / "backup.ndjson"], check=True)
        finally:
            controller.stop()
    expected = {"made": int(time.time()), **expected}
    helm = subprocess.run(["tests/cluster/build_tools.sh", "tools-helm"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    subprocess.run([f"{helm}/helm", "package", "charts/tahoma", "--destination", folder], check=True)
    (folder / f"tahoma-{version}.tgz").rename(folder / "chart.tgz")
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


class ReleasesTest(unittest.TestCase):
    @contextlib.contextmanager
    def read(self, folder):
        """What this program makes of a release's store, a second after it was written."""
        expected = json.loads((folder / "expected.json").read_text())
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([BIN / "controller", "restore", folder / "backup.ndjson", "--data-dir", f"{scratch}/data"], check=True,
                           capture_output=True)
            offset = pathlib.Path(scratch, "offset")
            offset.write_text(str(expected.pop("made") + 1 - int(time.time())))
            controller = StandaloneController(scratch, environment={**os.environ, "LD_PRELOAD": str(CLOCK.resolve()),
                                                                    "TAHOMA_CLOCK_OFFSET": str(offset)})
            try:
                until("the fleet is known", lambda: get(controller, "/v1/topology", admin=True)["domains"])
                yield expected, controller
            finally:
                ended = controller.stop()
            self.assertEqual(ended, 0)

    def test_this_release_is_one_of_them(self):
        version = re.search(r"^appVersion: (\S+)", pathlib.Path("charts/tahoma/Chart.yaml").read_text(), re.MULTILINE)[1]
        self.assertTrue((RELEASES / version / "expected.json").exists(), f"make it: releases_test.py --make {version}")

    def test_gangs_claims_and_blocks_are_as_they_were(self):
        for folder in sorted(RELEASES.iterdir()):
            with self.subTest(release=folder.name):
                with self.read(folder) as (expected, controller):
                    found = {}

                    def same():
                        found.update(answers(controller))
                        return found == expected
                    try:
                        until("the same answers", same)
                    except AssertionError:
                        self.assertEqual(found, expected)

    def written_again(self, controller, path):
        """The object, and what the server would make of it; nothing when it was changed in between."""
        before = get(controller, path)
        status, text = ask("PUT", f"{controller.api}{path}?dryRun=All", json.dumps(before), {"Content-Type": "application/json"})
        if status == 409:
            return None
        self.assertEqual(status, 200, text)
        return before, json.loads(text)

    def test_custom_resources_are_still_admitted_as_they_were_written(self):
        for folder in sorted(RELEASES.iterdir()):
            with self.subTest(release=folder.name):
                with self.read(folder) as (_, controller):
                    seen = 0
                    for plural in KINDS:
                        for one in items(controller, f"{OURS}/{plural}"):
                            place = f"/namespaces/{one['metadata']['namespace']}" if "namespace" in one["metadata"] else ""
                            path = f"{OURS}{place}/{plural}/{one['metadata']['name']}"
                            before, after = until(f"{path} is written", lambda path=path: self.written_again(controller, path))
                            # Fields that are newer get their defaults.
                            spec = before.get("spec", {})
                            self.assertEqual(spec, {field: after["spec"].get(field) for field in spec})
                            seen += 1
                    self.assertGreater(seen, 8)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2])
    elif not CLOCK.exists():
        print(f"SKIPPED: there is no {CLOCK} (a sanitizer's own library must be the first that is loaded)")
        sys.exit(77)
    else:
        unittest.main()
