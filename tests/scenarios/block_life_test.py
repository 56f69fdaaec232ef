#!/usr/bin/env python3
"""The life of a Capacity Block through all programs, on a test's clock where a day takes a minute.

    block_life_test.py             in the repository's root, with KUBECTL set

Two adjoining blocks of one owner are bought. A gang waits for the first with a known start, begins with it, goes on at
the boundary, is warned, gets SIGTERM, writes its checkpoint and is gone before the second ends. A gang without a block
runs on the hardware afterwards, and never meanwhile. In a third block, one that ignores SIGTERM is killed.
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/cluster"))

import kubectl  # noqa: E402

PATIENCE_SECONDS = 150  # two days of blocks, and a slow machine
SCALE = 1440
PODS = [f"pretrain-{rank}" for rank in range(4)]


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], cwd=ROOT, text=True, check=False, stdin=options.pop("stdin", subprocess.DEVNULL),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def milliseconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


class BlockLifeTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="tb")
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name, "t")
        bin_dir = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
        self.addCleanup(self.down)
        run("examples/local/up.py", self.folder, "--bin", bin_dir, "--topology", "examples/blocks/topology.json",
            "--time-scale", SCALE, "--quiet")
        self.environment = {**os.environ, "KUBECONFIG": str(self.folder / "kubeconfig")}
        self.admin = "https://" + re.search(r"adminAddress: (\S+)", (self.folder / "ports.yaml").read_text())[1]
        self.ask = ["--token-file", self.folder / "admin.token", "--ca", self.folder / "tls.crt"]
        self.work = pathlib.Path((self.folder / "pods-folder").read_text().strip(), "work")
        self.work.mkdir()
        self.work.chmod(0o1777)  # pods have users of their own
        script = self.work / "train.sh"
        script.write_bytes((ROOT / "examples/blocks/train.sh").read_bytes())
        script.chmod(0o755)

    def down(self):
        """Says where the logs are kept of a run that failed."""
        keep = os.environ.get("KEEP_LOGS")
        if keep:
            subprocess.call(["cp", "-r", self.folder / "log", keep])
        run("examples/local/down.py", self.folder)

    def kubectl(self, *arguments, given=None):
        return kubectl.kubectl(*arguments, environment=self.environment, given=given)

    def get(self, kind, name):
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def until(self, what, condition):
        return kubectl.until(what, condition, PATIENCE_SECONDS, lambda: (
            f"; events:\n{self.kubectl('get', 'events')}\n{self.kubectl('get', 'cb,gangs,pods')}"))

    def state(self, block):
        return self.get("cb", block).get("status", {}).get("state")

    def search(self, *arguments):
        return run("examples/blocks/search_and_buy.py", self.admin, *arguments, *self.ask)

    def gang(self, name, shape, members, command, *more):
        manifest = run("examples/gangs/make_gang.py", name, shape, members, "--command", command, *more)
        self.kubectl("apply", "-f", "-", given=manifest)

    def buy(self, name, *arguments):
        self.kubectl("apply", "-f", "-", given=self.search(name, "--manifest", *arguments))
        self.until(f"the purchase of {name}", lambda: self.state(name) == "scheduled")
        return self.get("cb", name)["status"]

    def clock(self):
        """Returns a function from block time, as text, to milliseconds of real time."""
        answer = run("curl", "-sS", "--cacert", self.folder / "tls.crt", "-H",
                     "Authorization: Bearer " + (self.folder / "admin.token").read_text().strip(), self.admin + "/v1/clock")
        clock = json.loads(answer)
        self.assertTrue(clock["testClock"])
        self.assertEqual(clock["timeScale"], SCALE)
        wall, block = milliseconds(clock["wallTime"]), milliseconds(clock["blockTime"])
        return lambda text: wall + (milliseconds(text) - block) / SCALE

    def events(self, name):
        listed = json.loads(self.kubectl("get", "events", "--field-selector", f"involvedObject.name={name}", "-o", "json"))
        return {event["reason"]: event["message"] for event in listed["items"]}

    def begin_stubborn_gang(self, start):
        """An instance's block from that time and a gang of one pod in it, whose every state is kept."""
        instance = self.buy("instance", "--type", "trn2.48xlarge", "--start", start)
        self.assertEqual(instance["startDate"], start)
        self.gang("stubborn", "4x4", 1, """bash -c "trap '' TERM; while :; do sleep 1; done" """, "--instance-type",
                  "trn2.48xlarge", "--block", "instance")
        self.states = open(self.work / "states", "w+", encoding="utf-8")
        self.addCleanup(self.states.close)
        watch = subprocess.Popen([os.environ.get("KUBECTL", "kubectl"), "get", "pod", "stubborn-0", "--watch", "-o", "json"],
                                 env=self.environment, stdout=self.states)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.terminate)

    def check_stubborn_gang(self):
        """30 minutes before the end are 1.25 s here: it has got a second, and not the 30 of its own."""
        self.until("the kill", lambda: "stubborn" not in self.kubectl("get", "pods", "-o", "name"))
        self.states.seek(0)
        text, decoder, graces = self.states.read(), json.JSONDecoder(), []
        while text.strip():
            pod, end = decoder.raw_decode(text)
            text = text[end:].lstrip()
            graces.append(pod["metadata"].get("deletionGracePeriodSeconds"))
        self.assertEqual({grace for grace in graces if grace is not None} - {0}, {1})

    def test_a_gang_lives_its_blocks_from_the_wait_to_the_checkpoint(self):
        self.gang("pretrain", "4x4x4", 4, f"bash {self.work}/train.sh {self.work}", "--block", "first")
        self.until("the wait for a block", lambda: "Capacity Block default/first is not bought" in str(self.get("gang", "pretrain")))
        to_wall = self.clock()
        # Six hours are 15 s here: whatever the time of day, all three are bought before the first begins.
        first = self.buy("first", "--start", "+6")
        self.assertEqual(first["timeScale"], SCALE)
        second = self.buy("second", "--start", first["startDate"])
        self.assertEqual(second["startDate"], first["endDate"], "the second adjoins the first")
        self.assertEqual(self.get("cb", "second")["metadata"]["finalizers"], ["tahoma.dev/no-cancel"])
        self.until("the wait with a known start", lambda: f"begins {first['startDate']}" in str(self.get("gang", "pretrain")))
        # A gang that ends nobody knows when has no place on hardware that is kept for a block.
        self.gang("rival", "4x4x4", 4, "sleep 600")

        self.begin_stubborn_gang(first["startDate"])

        self.until("the start", lambda: self.state("first") == "active")
        self.until("the gang's start", lambda: self.get("gang", "pretrain")["status"]["phase"] == "Running")
        uids = [self.get("pod", pod)["metadata"]["uid"] for pod in PODS]
        self.until("the program's start", lambda: "begins with step 0" in self.kubectl("logs", "pretrain-0"))
        told = int(re.search(r"RECLAIM_TIMESTAMP=(\d+)", self.kubectl("logs", "pretrain-0"))[1])
        self.assertAlmostEqual(told, to_wall(first["reclaimDate"]), delta=20)
        self.assertEqual(self.get("gang", "rival")["status"]["phase"], "Pending")

        self.until("the boundary", lambda: self.state("first") == "expired")
        self.check_stubborn_gang()
        self.assertEqual(self.state("second"), "active")
        self.assertEqual([self.get("pod", pod)["metadata"]["uid"] for pod in PODS], uids, "the gang goes on")
        moved = to_wall(second["reclaimDate"])
        self.until("the annotation of the second block", lambda: abs(int(self.get("pod", "pretrain-0")["metadata"]["annotations"][
            "tahoma.dev/reclaim-timestamp"]) - moved) < 20)
        self.assertEqual(self.get("gang", "rival")["status"]["phase"], "Pending")

        self.until("the drain", lambda: "pretrain" not in self.kubectl("get", "pods", "-o", "name"))
        gone = time.time() * 1000
        self.assertLess(gone, to_wall(second["endDate"]), "they are gone before the end")
        for rank in range(4):
            step, saved = re.match(r"step (\d+)\nsaved (\d+)\n", (self.work / f"rank-{rank}").read_text()).groups()
            self.assertGreater(int(step), 100, "a tenth of a second each, for more than a minute")
            self.assertGreaterEqual(int(saved), moved - 20)
            self.assertLess(int(saved), to_wall(second["endDate"]))

        self.until("the end", lambda: self.state("second") == "expired")
        self.until("the rival's start", lambda: self.get("gang", "rival")["status"]["phase"] == "Running")
        bound = self.get("gang", "rival")["status"]["conditions"]
        placed = next(c["lastTransitionTime"] for c in bound if c["type"] == "Bound" and c["status"] == "True")
        self.assertGreaterEqual(milliseconds(placed), to_wall(second["endDate"]) - 1000, "times are whole seconds")
        events = self.events("second")
        for reason in ("Purchased", "Scheduled", "HardwareBound", "Delivered", "ExpirationWarning", "Reclaimed", "Expired"):
            self.assertIn("CapacityBlock" + reason, events)
        self.assertIn("takes its hardware back at", self.events("pretrain")["ReclaimIsNear"])
        self.assertIn("Capacity Block default/second ends", self.events("pretrain")["GangReclaimed"])


if __name__ == "__main__":
    unittest.main()
