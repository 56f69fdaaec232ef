#!/usr/bin/env python3
"""What a newcomer types first: `make demo`, and `make up` with the line that it prints.

    local_test.py                  in the repository's root, with KUBECTL set

Whatever the programs leave running becomes a child of this one, and is seen.
"""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEMO_SECONDS_MAX = 120
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
                      r"Gang late: Pending", r"\"chip\":5,.*HBM_UNCORRECTABLE_ERROR", r"! .*", r"nothing is left running"):
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
                pods = run(["bash", "-c", f"{line} && {gang} && {wait} && kubectl tahoma topology"], env=bare)
                self.assertRegex(pods.stdout, r"A +gang default/half")
            finally:
                down = run(["examples/local/down.py", directory])
            self.assertEqual((down.returncode, down.stdout), (0, ""))
            self.assertEqual(left_running(), [])
            for log in (pathlib.Path(directory) / "log").glob("*.sim-node.log"):
                self.assertIn("ending", log.read_text(), log)


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    unittest.main()
