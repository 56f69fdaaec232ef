#!/usr/bin/env python3
"""Tests that a node's token may do in standalone mode what the table in docs/security.md says, and no more.

    node_rights_test.py            in the repository's root, with TAHOMA_BIN set

On a real control plane, with the chart's policies: tests/cluster/chart_test.py.
"""

import json
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import node_attempts  # noqa: E402
from standalone_controller import StandaloneController, ask  # noqa: E402

TOKENS = {"admin": "the-token-of-the-administrator", "node-a": "the-token-of-the-first-node"}
IDENTITIES = f"""
apiVersion: tahoma.dev/v1alpha1
kind: IdentityFile
identities:
- {{name: ops, role: admin, token: {TOKENS["admin"]}}}
- {{name: "system:node:node-a", role: node, token: {TOKENS["node-a"]}}}
"""


class NodeRightsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        identities = pathlib.Path(folder, "identities.yaml")
        identities.write_text(IDENTITIES)
        identities.chmod(0o600)
        cls.controller = StandaloneController(folder, "--identity-file", str(identities), "--audit-file", f"{folder}/audit", token=TOKENS["admin"])
        cls.addClassCleanup(cls.controller.stop)
        cls.world = node_attempts.World("node-a", "node-b", cls.send)
        for node in ("node-a", "node-b"):
            cls.send("POST", "/api/v1/nodes", {"metadata": {"name": node}})
        cls.world.create()
        account = f"{cls.controller.api}/api/v1/namespaces/default/serviceaccounts/default"
        deadline = time.monotonic() + 30
        while ask("GET", account, headers={"Authorization": f"Bearer {TOKENS['admin']}"})[0] != 200:
            if time.monotonic() > deadline:
                raise AssertionError("the namespace default has no account")

    @classmethod
    def ask(cls, who, method, path, body, media):
        return ask(method, cls.controller.api + path, body, {"Authorization": f"Bearer {TOKENS[who]}", "Content-Type": media})

    @classmethod
    def send(cls, method, path, body):
        media = node_attempts.MERGE if method == "PATCH" else node_attempts.JSON
        status, text = cls.ask("admin", method, path, json.dumps(body) if body is not None else None, media)
        if status not in (200, 201):
            raise AssertionError(f"{method} {path}: {status} {text}")
        return json.loads(text)

    def test_each_line_of_the_table(self):
        for line in node_attempts.lines(self.world):
            for attempt in line.attempts:
                with self.subTest(what=line.what, attempt=attempt[:3]):
                    status, text = self.ask("node-a", *attempt.request(self.world))
                    self.assertIn(status, (200, 201) if line.standalone else (403,), text)

    def test_the_page_has_the_table(self):
        self.assertIn(node_attempts.table(), node_attempts.PAGE.read_text(encoding="utf-8"),
                      "run tests/support/node_attempts.py --write")


if __name__ == "__main__":
    unittest.main()
