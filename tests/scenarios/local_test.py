#!/usr/bin/env python3
"""Tests the commands that a newcomer types first: `make demo`, and `make up` with the line that it prints.

    local_test.py                  in the repository's root, with KUBECTL set

Whatever the programs leave running becomes a child of this one, and is seen.
"""

import ctypes
import json
import os
import pathlib
import re
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEMO_SECONDS_MAX = 300  # of them two minutes for a Capacity Block's wait and its day
PR_SET_CHILD_SUBREAPER = 36  # include/uapi/linux/prctl.h


def left_running():
    """Command lines of this process's children; those that have ended are collected."""
    running = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            if os.waitpid(int(pid), os.WNOHANG)[0] == 0:
                running.append(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
    return running


def run(command, **options):
    return subprocess.run(command, cwd=ROOT, text=True, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


class LocalTest(unittest.TestCase):
    def test_the_demo_does_the_main_job_and_leaves_nothing_running(self):
        began = time.monotonic()
        done = run(["examples/local/demo.sh"], timeout=2 * DEMO_SECONDS_MAX)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertLess(time.monotonic() - began, DEMO_SECONDS_MAX)
        self.assertEqual(left_running(), [])
        for shown in (r"trn2u-3 +Ready", r"logical-neuroncore-config: 1", r"gang\.tahoma\.dev/torus +4 +4x4x4",
                      r"torus-0-neurons-\w+ +allocated,reserved", r"A A A A +A A A A", r"fp32", r"equal times",
                      r"Gang late: Pending", r"\"chip\":5,.*HBM_UNCORRECTABLE_ERROR", r"! .*",
                      r"at most 1 of 2 u-trn2x64", r"Capacity Block default/pretrain is not bought",
                      r"is scheduled and begins", r"GangPreempted +us-\w+ is kept for a Capacity Block", r"TAHOMA_CAPACITY_BLOCK_RECLAIM_TIMESTAMP=\d+",
                      r"SIGTERM: checkpoint of step \d+", r"CapacityBlockExpirationWarning",
                      r"=> each of its four ranks wrote a checkpoint", r"=> the hardware is free", r"nothing is left running"):
            self.assertRegex(done.stdout, shown)

    def test_the_line_that_up_prints_works_in_a_bare_shell_and_down_ends_pods_too(self):
        with tempfile.TemporaryDirectory(prefix="tl") as directory:
            up = run(["examples/local/up.py", directory])
            try:
                self.assertEqual(up.returncode, 0, up.stdout)
                line = re.search(r"Look around with: +(.*)", up.stdout)[1]
                bare = {"PATH": "/usr/bin:/bin", "HOME": directory}
                nodes = run(["bash", "-c", line], env=bare)
                self.assertRegex(nodes.stdout, r"trn2u-0 +Ready")
                gang = "examples/gangs/make_gang.py half 4x4x2 2 --command 'sleep 9999' | kubectl apply -f -"
                wait = "kubectl wait pod/half-0 pod/half-1 --for=condition=Ready --timeout=60s"
                self.only_this_user_may_call(pathlib.Path(directory))
                pods = run(["bash", "-c", f"{line} && {gang} && {wait} && kubectl tahoma topology --all"], env=bare)
                self.assertRegex(pods.stdout, r"A +gang default/half")
            finally:
                down = run(["examples/local/down.py", directory])
            self.assertEqual((down.returncode, down.stdout), (0, ""))
            self.assertEqual(left_running(), [])
            for log in (pathlib.Path(directory) / "log").glob("*.sim-node.log"):
                self.assertIn("ending", log.read_text(), log)

    def only_this_user_may_call(self, directory):
        """The folder and what is secret in it are private, and without a token nothing is answered."""
        self.assertEqual(directory.stat().st_mode & 0o777, 0o700)
        secret = [directory / "admin.token", directory / "tls.key", directory / "kubeconfig", directory / "identities.yaml",
                  directory / "tahoma.env",
                  *directory.glob("n/*/token"), *directory.glob("n/*/kubeconfig")]
        self.assertEqual(len(secret), 5 + 2 * 6)
        for path in secret:
            self.assertEqual(path.stat().st_mode & 0o777, 0o600, path)
        server = json.loads((directory / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
        admin = re.search(r"adminAddress: (\S+)", (directory / "ports.yaml").read_text())[1]
        tls = ssl.create_default_context(cafile=directory / "tls.crt")
        for url in (f"{server}/api/v1/pods", f"https://{admin}/v1/topology", f"https://{admin}/metrics"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url, timeout=10, context=tls)
            self.assertEqual(refused.exception.code, 401, url)
            refused.exception.close()
        kubectl = [os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", str(directory / "n/trn2u-0/kubeconfig")]
        own = run([*kubectl, "get", "node", "trn2u-0"])
        self.assertEqual(own.returncode, 0, own.stdout)
        self.assertEqual(run([*kubectl, "auth", "can-i", "create", "events"]).stdout, "yes\n")
        self.assertEqual(run([*kubectl, "auth", "can-i", "list", "secrets"]).stdout, "no\n")
        self.assertIn("system:node:trn2u-0", run([*kubectl, "auth", "whoami"]).stdout)
        for wanted in (["get", "node", "trn2u-1"], ["get", "secrets", "-A"], ["delete", "pods", "--all"]):
            denied = run([*kubectl, *wanted])
            self.assertIn('User "system:node:trn2u-0" cannot', denied.stdout, wanted)


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    unittest.main()
