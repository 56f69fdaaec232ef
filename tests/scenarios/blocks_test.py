#!/usr/bin/env python3
"""Tests the examples of Capacity Blocks and `kubectl tahoma` on a local cluster, as a user types them.

    blocks_test.py                 in the repository's root, with KUBECTL set
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCKS = "examples/blocks"
WAIT_SECONDS = 60


class BlocksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tb")
        up = cls.run_in_root(["examples/local/up.py", cls.folder.name])
        if up.returncode != 0:
            cls.tearDownClass()
            raise AssertionError(up.stdout)
        line = re.search(r"Look around with: +(.*)", up.stdout)[1]
        cls.bare = {"PATH": "/usr/bin:/bin", "HOME": cls.folder.name}
        cls.environment = f"{line} > /dev/null && "

    @classmethod
    def tearDownClass(cls):
        cls.run_in_root(["examples/local/down.py", cls.folder.name])
        cls.folder.cleanup()

    @staticmethod
    def run_in_root(command, **options):
        return subprocess.run(command, cwd=ROOT, text=True, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)

    def sh(self, command, status=0):
        done = self.run_in_root(["bash", "-c", self.environment + command], env=self.bare)
        self.assertEqual(done.returncode, status, f"{command}\n{done.stdout}")
        return done.stdout

    def until(self, command, pattern):
        """The command's output, once it has the pattern."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            text = self.sh(command)
            if re.search(pattern, text):
                return text
            self.assertLess(time.monotonic(), deadline, f"{command}: no {pattern} in\n{text}")
            time.sleep(0.3)

    def offering(self, *options):
        """The first offering of one UltraServer, once the controller knows the fleet."""
        text = self.until("kubectl tahoma offerings --type u-trn2x64 -o json " + " ".join(options) + " || true",
                          "capacityBlockOfferingId")
        return json.loads(text)["capacityBlockOfferings"][0]["capacityBlockOfferingId"]

    def test_blocks_are_found_bought_extended_and_drawn(self):
        self.sh(f"kubectl apply -f {BLOCKS}/quota.yaml")
        now = datetime.datetime.now(datetime.timezone.utc)
        later = (now + datetime.timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
        offering = self.offering("--hours 24", f"--from {later}")
        self.assertRegex(self.sh(f"kubectl tahoma offerings --type u-trn2x64 --hours 24 --from {later}"),
                         r"TYPE +COUNT +ZONE +START.*\nu-trn2x64 +1 .* 1d +3433.04 USD +cb-")
        bought = self.sh(f"kubectl tahoma book {offering} --name pretrain-a --replace-policy Automatic --tag run=7")
        self.assertRegex(bought, r"default/pretrain-a scheduled: 1 u-trn2x64, .* 3433.04 USD")
        self.assertIn("scheduled", self.sh(f"kubectl tahoma book {offering} --name pretrain-a"))
        self.assertIn("is of another offering",
                      self.sh("kubectl tahoma book cb-00 --name pretrain-a", status=1))
        refused = self.sh(f"kubectl tahoma book {offering} --name other", status=3)
        self.assertIn("refused: InvalidCapacityBlockOfferingIdExpired", refused)

        self.sh(f"kubectl apply -f {BLOCKS}/extension.yaml")
        self.until("kubectl get cbe", r"pretrain-a-day-more +payment-succeeded +pretrain-a +24 ")
        self.assertRegex(self.sh("kubectl describe cbe pretrain-a-day-more"),
                         r"(?s)Type: +PaymentSettled.*ExtensionSucceeded")
        self.sh(f"kubectl apply -f {BLOCKS}/series.yaml")
        self.until("kubectl get cbs", r"weekly +purchased +1 +4 +24 ")
        self.assertEqual(len(re.findall(r"weekly-\d +scheduled", self.sh("kubectl get cb"))), 4)
        self.sh(f"kubectl apply -f {BLOCKS}/waitlist.yaml")
        self.until("kubectl get cbw", r"soon +fulfilled +Buy +48 .* soon ")
        self.assertRegex(self.until("kubectl get cbq", r"default +128 +32 +\d+ +4 "), "WithinLimits")
        self.shows_hardware()
        self.draws()
        self.splits()
        self.reports()
        self.refuses()
        self.refuses_a_purchase_by_kubectl()
        self.puts_a_status_right()

    def shows_hardware(self):
        self.until("kubectl get ultraservers", r"us-0123456789abcdef +OK +nn-\w+ +(Kept|Idle) +64 +0 +0 ")
        rows = self.until("kubectl get capacityreservations", r"(cr-\w+ .* scheduled.*\n){6}")
        self.assertRegex(rows, r"cr-\w+ +weekly-4 +scheduled")
        self.assertEqual(len(re.findall(r"cr-\w+ .* scheduled", rows)), 6)
        self.sh("kubectl delete ultraserver us-0123456789abcdef")
        self.sh("kubectl label cr --all note=mine")
        self.until("kubectl get ultraservers", "us-0123456789abcdef")

    def draws(self):
        text = self.sh("kubectl tahoma calendar --width 100")
        self.assertRegex(text, r"default/pretrain-a .*-")
        self.assertIn("default/weekly-4", text)
        picture = self.sh("kubectl tahoma calendar -o svg")
        self.assertTrue(xml.etree.ElementTree.fromstring(picture).tag.endswith("svg"))
        self.assertEqual(len(json.loads(self.sh("kubectl tahoma calendar -o json"))["capacityBlocks"]), 6)
        self.assertIn("capacityBlocks:\n- cells:", self.sh("kubectl tahoma calendar -o yaml"))

    def splits(self):
        # The weekly blocks leave gaps; ten days in a row are free only behind the last of them.
        found = self.sh("kubectl tahoma offerings --type u-trn2x64 --hours 240 --segments 5")
        together = re.search(r"In \d segments, 10d for 34330\.37 USD:\n(?s:.*)all or none: kubectl tahoma book (\S+)", found)
        self.assertIsNotNone(together, found)
        bought = self.sh(f"kubectl tahoma book {together[1]} --name pieces")
        self.assertRegex(bought, r"default/pieces purchased: \d blocks for 34330\.3\d USD")
        self.assertIn("refused: ", self.sh(f"kubectl tahoma book {together[1]} --name others", status=3))
        self.assertNotIn("others-1", self.sh("kubectl get cb"))

    def reports(self):
        self.assertRegex(self.sh("kubectl tahoma usage"),
                         r"NAMESPACE +NAME .*\n(?s:.*)default +pieces-1 +scheduled (?s:.*)default +\d+ blocks ")
        self.assertIn("default,pieces-1,scheduled,u-trn2x64,1,", self.sh("kubectl tahoma usage -o csv"))
        self.assertIn("expected one of json, yaml, svg", self.sh("kubectl tahoma calendar -o csv", status=2))

    def refuses(self):
        self.assertRegex(self.sh("kubectl tahoma offerings --type u-trn2x64 --count 2 --hours 24", status=3),
                         r"No offerings\.\n  .*\nNearest:\n")
        self.assertIn("must be 24 to 336", self.sh("kubectl tahoma offerings --type u-trn2x64 --hours 25", status=1))
        self.assertIn("needs a --type", self.sh("kubectl tahoma offerings", status=2))
        self.assertIn("field is immutable", self.sh(
            "kubectl patch cbs weekly --type merge -p '{\"spec\": {\"occurrences\": 5}}'", status=1))
        without = f"sed '/capacityBlockName/d; s/day-more/other/' {BLOCKS}/extension.yaml"
        self.assertIn("either capacityBlockName or capacityReservationId",
                      self.sh(f"{without} | kubectl apply --dry-run=server -f -", status=1))

    def refuses_a_purchase_by_kubectl(self):
        bad = {"apiVersion": "tahoma.dev/v1alpha1", "kind": "CapacityBlock", "metadata": {"name": "bad"},
               "spec": {"capacityBlockOfferingId": "cb-00"}}
        self.sh(f"echo '{json.dumps(bad)}' | kubectl apply -f -")
        self.sh("kubectl wait --for=condition=Purchased=False cb/bad --timeout=30s")
        self.assertRegex(self.sh("kubectl get cb bad"), r"REASON(?s:.*)bad .*InvalidCapacityBlockOfferingId")
        self.until("kubectl describe cb bad", "CapacityBlockRefused")
        self.sh("kubectl wait --for=condition=Purchased cb/pretrain-a --timeout=30s")
        self.sh("kubectl delete cb bad")

    def puts_a_status_right(self):
        patch = "kubectl patch cb pretrain-a --subresource status --type merge -p "
        self.sh(patch + """'{"status": {"state": "expired", "endDate": "2030-01-01T11:30:00Z"}}'""")
        self.assertIn("cannot be cancelled", self.sh("kubectl delete cb pretrain-a", status=1))
        self.assertNotIn("2030", self.until("kubectl get cb pretrain-a", "pretrain-a +scheduled "))


if __name__ == "__main__":
    os.chdir(ROOT)
    unittest.main()
