#!/usr/bin/env python3
"""The metrics and the log of a running controller are as docs/metrics.md and docs/formats/config.md say.

Runs $TAHOMA_BIN/controller in standalone mode, with nodes that no machine is behind.
"""

import pathlib
import re
import tempfile
import threading
import unittest

from standalone_controller import StandaloneController, ask

DEADLINE_SECONDS = 60
PAGE = pathlib.Path("docs/metrics.md").read_text(encoding="utf-8")
POD = {"metadata": {"name": "p", "namespace": "default"},
       "spec": {"schedulerName": "tahoma", "containers": [{"name": "main", "image": "i"}]}}


def documented(*sections):
    """The metrics that the sections of the page list in their tables."""
    text = "".join(PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0] for name in sections)
    cells = [line.split("|")[1].split(" by ")[0] for line in text.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall("`([a-z_]+)`", cell)}


class MetricsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = pathlib.Path(folder.name, "log")
        self.folder = folder.name

    def start(self, *flags):
        with open(self.log, "ab") as log:
            controller = StandaloneController(self.folder, "--audit-file", f"{self.folder}/audit.log", *flags, stderr=log)
        self.addCleanup(controller.stop)
        return controller

    def text(self, controller):
        status, text = ask("GET", controller.url + "/metrics")
        self.assertEqual(status, 200)
        return text

    def until(self, what, holds):
        waiting = threading.Event()
        for _ in range(DEADLINE_SECONDS * 10):
            if holds():
                return
            waiting.wait(0.1)
        self.fail(f"{what} did not happen: {self.log.read_text()}")

    def test_each_metric_of_the_page_is_there_and_no_other(self):
        controller = self.start()
        controller.make_node("node-a")
        controller.send("POST", "/api/v1/namespaces/default/pods", POD)  # a gang of one
        self.until("the pod is bound", lambda: "tahoma_gang_admission_wait_seconds_count 1" in self.text(controller))
        text = self.text(controller)
        # Of Capacity Blocks there is a row for each owner, and nobody has bought one.
        shown = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
        self.assertEqual(shown, documented("Every program", "Controller"))
        self.assertIn('tahoma_chips{state="free"} 16\n', text)
        self.assertIn('tahoma_nodes{state="ready"} 1\n', text)
        self.assertIn("tahoma_leader 1\n", text)

    def test_each_decision_has_a_line_and_the_audit_a_file_of_its_own(self):
        controller = self.start()
        controller.make_node("node-a")
        controller.send("POST", "/api/v1/namespaces/default/pods", POD)
        self.until("the pod is bound", lambda: "pod default/p: bound on node-a" in self.log.read_text())
        lines = self.log.read_text()
        self.assertRegex(lines, r"info pod default/p: placed on node-a; \d+\.\d{3} s after its last pod was created\n")
        self.assertNotIn('"kind":"Event"', lines)
        self.assertIn('"kind":"Event"', pathlib.Path(self.folder, "audit.log").read_text())

    def test_at_level_warn_decisions_are_not_written(self):
        controller = self.start("--log-level", "warn")
        controller.make_node("node-a")
        controller.send("POST", "/api/v1/namespaces/default/pods", POD)
        self.until("the pod is bound", lambda: "tahoma_pods_bound_total 1" in self.text(controller))
        self.assertNotIn(" info ", self.log.read_text())


if __name__ == "__main__":
    unittest.main()
