#!/usr/bin/env python3
"""Drives the real Terraform and its AWS provider with examples/terraform/main.tf against EC2's Query protocol.

    TAHOMA_BIN=build/release/bin TF_PLUGINS=FOLDER tests/integration/terraform_test.py

TF_PLUGINS is a folder as `terraform providers mirror` makes it; without it Terraform asks its registry. The server is
tahoma-ec2-server with a book of blocks. Status 77 (skipped) without Terraform or where the provider cannot be had.

The provider leaves `arn`, `created_date` and `instance_count` of a block unknown, which Terraform calls an error after
the purchase (hashicorp/terraform-provider-aws#46829): as long as it does, the test goes on as docs/tasks/ec2.md says.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TERRAFORM = shutil.which("terraform")
DAY = "aws_ec2_capacity_block_reservation.day"
CLEAN = 0  # of `plan -detailed-exitcode`; 2 says that something would change
PROVIDERS_ERROR = "Provider returned invalid result object after apply"

IMPORT = """
provider "aws" {
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}

import {
  to = aws_ec2_capacity_block_reservation.day
  id = "%s"
}

resource "aws_ec2_capacity_block_reservation" "day" {
  capacity_block_offering_id = "bought before"
  instance_platform          = "Linux/UNIX"
  tags                       = { team = "research" }
  lifecycle { ignore_changes = [capacity_block_offering_id] }
}
"""

# What modules for EKS ask first.
PLACES = """
data "aws_caller_identity" "me" {}
data "aws_availability_zones" "all" { state = "available" }
data "aws_regions" "all" {}
data "aws_ec2_instance_type" "trainium" { instance_type = "trn2.48xlarge" }
data "aws_ec2_instance_type_offerings" "all" {
  location_type = "availability-zone"
  filter {
    name   = "instance-type"
    values = ["trn2.*"]
  }
}

resource "aws_ec2_tag" "owner" {
  resource_id = "%s"
  key         = "owner"
  value       = "ana"
}

output "account" { value = data.aws_caller_identity.me.account_id }
output "zones" { value = data.aws_availability_zones.all.names }
output "chips" { value = one(data.aws_ec2_instance_type.trainium.neuron_devices).count }
output "offered" { value = data.aws_ec2_instance_type_offerings.all.locations }
"""


class Server:
    """tahoma-ec2-server with hosts to sell, once it serves."""

    def __init__(self, folder):
        port_file = pathlib.Path(folder, "port")
        self.process = subprocess.Popen([os.path.join(os.environ["TAHOMA_BIN"], "tahoma-ec2-server"), "--port-file",
                                         str(port_file), "--hosts", "2"])
        waiting = threading.Event()
        while not port_file.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with status {self.process.returncode}")
            waiting.wait(0.02)
        self.url = port_file.read_text().strip()

    def reservations(self):
        with urllib.request.urlopen(f"{self.url}/?Action=DescribeCapacityReservations&Version=2016-11-15") as answer:
            return answer.read().decode()

    def stop(self):
        self.process.terminate()
        return self.process.wait()


class Module:
    """A folder with a main.tf, where Terraform runs."""

    def __init__(self, folder, server, text):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        (self.folder / "main.tf").write_text(text)
        self.env = {**os.environ, "AWS_ENDPOINT_URL_EC2": server.url, "AWS_ENDPOINT_URL_STS": server.url,
                    "AWS_DEFAULT_REGION": "us-east-2", "TF_IN_AUTOMATION": "1",
                    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE000000001", "AWS_SECRET_ACCESS_KEY": "any", "CHECKPOINT_DISABLE": "1"}
        plugins = os.environ.get("TF_PLUGINS")
        begun = self.run("init", *([f"-plugin-dir={plugins}"] if plugins else []))
        if begun.returncode != 0:
            raise unittest.SkipTest(f"the AWS provider cannot be had (TF_PLUGINS names a mirror): {begun.stdout[-300:]}")

    def run(self, verb, *arguments):
        return subprocess.run([TERRAFORM, verb, "-no-color", *arguments], cwd=self.folder, env=self.env, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180)


class TerraformTest(unittest.TestCase):
    def succeed(self, done, status=0):
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_a_block_is_bought_kept_imported_and_never_cancelled(self):
        day = Module(FOLDER / "day", SERVER, (ROOT / "examples/terraform/main.tf").read_text())
        bought = day.run("apply", "-auto-approve")
        if bought.returncode != 0:
            self.assertEqual(set(re.findall(r"^Error: (.*)", bought.stdout, re.M)), {PROVIDERS_ERROR}, bought.stdout)
            self.succeed(day.run("untaint", DAY))
            self.succeed(day.run("apply", "-auto-approve"))
        self.succeed(day.run("plan", "-detailed-exitcode"), CLEAN)
        reservation = self.succeed(day.run("output", "-raw", "reservation")).split()[-1]
        self.assertRegex(reservation, "^cr-[0-9a-f]{17}$")
        shown = self.succeed(day.run("show"))
        for attribute, value in (("instance_type", "trn2.48xlarge"), ("end_date_type", "limited"), ("tenancy", "default"),
                                 ("reservation_type", "capacity-block"), ("availability_zone", "us-east-2a")):
            self.assertRegex(shown, rf'{attribute} += "{value}"')
        refused = day.run("destroy", "-auto-approve")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("Instance cannot be destroyed", refused.stdout)
        self.import_and_forget(reservation)
        self.tag(reservation)

    def import_and_forget(self, reservation):
        again = Module(FOLDER / "again", SERVER, IMPORT % reservation)
        self.assertIn("1 imported", self.succeed(again.run("apply", "-auto-approve")))
        self.succeed(again.run("plan", "-detailed-exitcode"), CLEAN)
        # The provider cancels nothing: only the state is empty afterwards.
        self.succeed(again.run("destroy", "-auto-approve"))
        self.assertRegex(SERVER.reservations(), rf"{reservation}</capacityReservationId>(?s:.)*<state>(scheduled|payment-pending)<")

    def tag(self, reservation):
        places = Module(FOLDER / "places", SERVER, PLACES % reservation)
        said = self.succeed(places.run("apply", "-auto-approve"))
        self.assertIn("us-east-2a", said)
        self.assertIn("chips = 16", said)
        self.assertIn('account = "000000000000"', said)
        self.succeed(places.run("plan", "-detailed-exitcode"), CLEAN)
        self.assertIn("<key>owner</key>", SERVER.reservations())
        self.succeed(places.run("destroy", "-auto-approve"))
        self.assertNotIn("<key>owner</key>", SERVER.reservations())


if __name__ == "__main__":
    if TERRAFORM is None:
        print("SKIPPED: there is no terraform")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="tahoma-tf") as name:
        FOLDER = pathlib.Path(name)
        SERVER = Server(name)
        try:
            result = unittest.main(verbosity=2, exit=False).result
        finally:
            ended = SERVER.stop()
    sys.exit(1 if ended or not result.wasSuccessful() else 77 if result.skipped else 0)
