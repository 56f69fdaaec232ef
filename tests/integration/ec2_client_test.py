#!/usr/bin/env python3
"""Drives the real boto3 and the aws CLI against EC2's Query protocol: every action, pages, filters, tags, errors, DryRun and
signatures. Names are compared with botocore's model of EC2 by ec2_model_test.py.

    TAHOMA_BIN=build/release/bin tests/integration/ec2_client_test.py

The server is tahoma-ec2-server, whose seller is a fake or, in the class Book, the book of blocks; in the class
Controller it is the controller. Runs itself with the Python that `.ci/setup` made for it (`.ci/python`). Status 77
(skipped) without one.
"""

import datetime
import email.utils
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

# Not with a boto3 that happens to be on the machine: the model is compared, and has versions.
FOUND = subprocess.run([".ci/python", "--find"], capture_output=True, text=True)
if FOUND.returncode != 0:
    print(f"SKIPPED: no Python package 'boto3': {FOUND.stderr.strip()}")
    sys.exit(77)
if FOUND.stdout.strip() != sys.executable:
    os.execv(FOUND.stdout.strip(), [FOUND.stdout.strip(), *sys.argv])

import boto3
import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
import botocore.exceptions

from standalone_controller import StandaloneController, ask

REGION = "us-east-2"
VERSION = "2016-11-15"
UTC = datetime.timezone.utc
BLOCKS = 6
KEYS = """\
apiVersion: tahoma.dev/v1alpha1
kind: AccessKeyFile
accessKeys:
- {accessKeyId: AKIAEXAMPLE000000001, secretAccessKey: "a/secret+of=40characters", name: ana, account: "111122223333",
   namespace: team-a}
- {accessKeyId: AKIAEXAMPLE000000002, secretAccessKey: "another0secret0of0bob", name: bob,
   account: "444455556666", role: view}
- {accessKeyId: AKIAEXAMPLE000000003, secretAccessKey: "carols0secret0of0carol", name: carol,
   account: "777788889999", namespace: team-c}
"""
ANA = ("AKIAEXAMPLE000000001", "a/secret+of=40characters")
BOB = ("AKIAEXAMPLE000000002", "another0secret0of0bob")
CAROL = ("AKIAEXAMPLE000000003", "carols0secret0of0carol")

# The operations of boto3's client, with arguments that succeed.
SEARCH = {"InstanceType": "trn2.48xlarge", "InstanceCount": 4, "CapacityDurationHours": 24}
PURCHASE = {"CapacityBlockOfferingId": "cb-00000000000000001", "InstancePlatform": "Linux/UNIX"}
RESERVATION = "cr-00000000000000001"
EXTENSION = {"CapacityBlockExtensionOfferingId": "cbe-00000000000000001", "CapacityReservationId": RESERVATION}
CALLS = {
    "DescribeCapacityBlockOfferings": SEARCH,
    "PurchaseCapacityBlock": PURCHASE,
    "DescribeCapacityBlocks": {},
    "DescribeCapacityBlockStatus": {},
    "DescribeCapacityBlockExtensionOfferings": {
        "CapacityReservationId": RESERVATION, "CapacityBlockExtensionDurationHours": 24},
    "PurchaseCapacityBlockExtension": EXTENSION,
    "DescribeCapacityBlockExtensionHistory": {},
    "DescribeCapacityReservations": {},
    "DescribeInstanceTopology": {},
}
# Those that no block allows.
NEVER_DONE = {action: {"CapacityReservationId": RESERVATION}
              for action in ("CancelCapacityReservation", "ModifyCapacityReservation")}


class Server:
    """tahoma-ec2-server, once it serves."""

    def __init__(self, folder, name, *flags):
        port_file = pathlib.Path(folder, name)
        self.process = subprocess.Popen([
            os.path.join(os.environ["TAHOMA_BIN"], "tahoma-ec2-server"), "--port-file", str(port_file), "--blocks",
            str(BLOCKS), *flags])
        waiting = threading.Event()
        while not port_file.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with status {self.process.returncode}")
            waiting.wait(0.02)
        self.url = port_file.read_text().strip()

    def client(self, key=ANA, **more):
        config = botocore.config.Config(retries={"total_max_attempts": 1}, **more)
        return boto3.client("ec2", endpoint_url=self.url, region_name=REGION, aws_access_key_id=key[0],
                            aws_secret_access_key=key[1], config=config)

    def stop(self):
        self.process.terminate()
        return self.process.wait()


class ControllerServer(StandaloneController):
    """The standalone controller, with one node."""

    client = Server.client

    def __init__(self, folder, keys):
        keys.chmod(0o600)
        super().__init__(folder, "--access-key-file", str(keys))
        for owner in ("team-a", "team-c"):
            self.send("POST", "/api/v1/namespaces", {"metadata": {"name": owner}})
        self.make_node("node-a")


def call(client, action, **arguments):
    return getattr(client, botocore.xform_name(action))(**arguments)


class Ec2Case(unittest.TestCase):
    def setUp(self):
        self.ec2 = OPEN.client()

    def assert_refused(self, code, status, function, *arguments, says=""):
        with self.assertRaises(botocore.exceptions.ClientError) as raised:
            function(*arguments)
        response = raised.exception.response
        self.assertEqual(response["Error"]["Code"], code)
        self.assertEqual(response["ResponseMetadata"]["HTTPStatusCode"], status)
        self.assertRegex(response["ResponseMetadata"]["RequestId"], "^[0-9a-f-]{36}$")
        self.assertIn(says, response["Error"]["Message"])


class Actions(Ec2Case):
    def test_offerings_of_instances(self):
        start = datetime.datetime(2026, 11, 25, 11, 30, 0, 500000, tzinfo=UTC)
        offers = self.ec2.describe_capacity_block_offerings(
            **SEARCH, StartDateRange=start, EndDateRange=start + datetime.timedelta(days=9),
            AllAvailabilityZones=True)["CapacityBlockOfferings"]
        self.assertEqual(len(offers), 5)
        self.assertEqual(offers[0], {
            "CapacityBlockOfferingId": "cb-00000000000000001", "InstanceType": "trn2.48xlarge", "AvailabilityZone": "us-east-2a",
            "InstanceCount": 4, "StartDate": datetime.datetime(2026, 11, 22, 11, 30, tzinfo=UTC),
            "EndDate": datetime.datetime(2026, 11, 23, 11, 30, tzinfo=UTC), "CapacityBlockDurationHours": 24,
            "CapacityBlockDurationMinutes": 0, "UpfrontFee": "858.26", "CurrencyCode": "USD", "Tenancy": "default",
            "ZoneType": "availability-zone"})
        self.assertEqual(offers[1]["CapacityBlockOfferingSegments"][0]["CapacityBlockDurationMinutes"], 37)

    def test_offerings_of_ultraservers(self):
        offers = self.ec2.describe_capacity_block_offerings(
            UltraserverType="u-trn2x64", UltraserverCount=2, CapacityDurationHours=48)["CapacityBlockOfferings"]
        self.assertEqual((offers[0]["UltraserverType"], offers[0]["UltraserverCount"], offers[0]["InstanceCount"]),
                         ("u-trn2x64", 2, 8))

    def test_offerings_of_preferred_types(self):
        offers = self.ec2.describe_capacity_block_offerings(
            InstanceTypePreferences=[{"InstanceType": "trn2.48xlarge"}, {"InstanceType": "trn1.32xlarge"}],
            InstanceCount=1, CapacityDurationHours=24)["CapacityBlockOfferings"]
        self.assertEqual(offers[0]["InstanceType"], "trn2.48xlarge")

    def test_a_purchase_is_listed_with_its_tags(self):
        tags = [{"Key": "team", "Value": "A & B <ü> \"quoted\" +%"}, {"Key": "empty", "Value": ""}]
        bought = self.ec2.purchase_capacity_block(
            **PURCHASE, TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": tags}])
        block = bought["CapacityBlocks"][0]
        self.assertEqual(block["Tags"], tags)
        self.assertEqual(bought["CapacityReservation"], bought["CapacityReservations"][0])
        self.assertEqual(bought["CapacityReservation"]["CapacityReservationId"], block["CapacityReservationIds"][0])
        self.assertEqual(bought["CapacityReservation"]["ReservationType"], "capacity-block")
        listed = self.ec2.describe_capacity_blocks(CapacityBlockIds=[block["CapacityBlockId"]])["CapacityBlocks"]
        self.assertEqual(listed, [block])
        by_tag = self.ec2.describe_capacity_blocks(
            Filters=[{"Name": "tag:team", "Values": ["A & B*"]}])["CapacityBlocks"]
        self.assertIn(block, by_tag)

    def test_a_call_that_is_tried_again_buys_once(self):
        before = len(self.ec2.describe_capacity_blocks()["CapacityBlocks"])
        sent = []

        def fail_once(request, **_):
            sent.append(request)
            if len(sent) == 1:  # the server has bought, and the client does not hear of it
                self.assertEqual(ask("POST", request.url, request.body, plain(request.headers))[0], 200)
                raise botocore.exceptions.EndpointConnectionError(endpoint_url=request.url)

        client = boto3.client("ec2", endpoint_url=OPEN.url, region_name=REGION, aws_access_key_id=ANA[0],
                              aws_secret_access_key=ANA[1])
        client.meta.events.register("before-send.ec2.PurchaseCapacityBlock", fail_once)
        bought = client.purchase_capacity_block(**PURCHASE)
        self.assertEqual(len(sent), 2)
        blocks = self.ec2.describe_capacity_blocks()["CapacityBlocks"]
        self.assertEqual(len(blocks), before + 1)
        self.assertIn(bought["CapacityBlocks"][0], blocks)
        self.ec2.purchase_capacity_block(**PURCHASE)
        self.assertEqual(len(self.ec2.describe_capacity_blocks()["CapacityBlocks"]), before + 2)

    def test_status(self):
        status = self.ec2.describe_capacity_block_status(
            CapacityBlockIds=["cb-00000000000000002"])["CapacityBlockStatuses"]
        self.assertEqual(status, [{
            "CapacityBlockId": "cb-00000000000000002", "InterconnectStatus": "ok", "TotalCapacity": 4,
            "TotalAvailableCapacity": 3, "TotalUnavailableCapacity": 1, "CapacityReservationStatuses": [{
                "CapacityReservationId": "cr-00000000000000002", "TotalCapacity": 4, "TotalAvailableCapacity": 3,
                "TotalUnavailableCapacity": 1}]}])

    def test_an_extension_is_bought_and_in_the_history(self):
        offers = self.ec2.describe_capacity_block_extension_offerings(
            CapacityReservationId="cr-00000000000000004", CapacityBlockExtensionDurationHours=24)
        offer = offers["CapacityBlockExtensionOfferings"][0]
        self.assertEqual(offer["CapacityBlockExtensionStartDate"] - offer["StartDate"], datetime.timedelta(days=1))
        bought = self.ec2.purchase_capacity_block_extension(
            CapacityBlockExtensionOfferingId=offer["CapacityBlockExtensionOfferingId"],
            CapacityReservationId="cr-00000000000000004")["CapacityBlockExtensions"]
        history = self.ec2.describe_capacity_block_extension_history(
            CapacityReservationIds=["cr-00000000000000004"],
            Filters=[{"Name": "capacity-block-extension-status", "Values": ["payment-pending"]}])
        self.assertEqual(history["CapacityBlockExtensions"], bought)

    def test_reservations(self):
        found = self.ec2.describe_capacity_reservations(
            CapacityReservationIds=[RESERVATION])["CapacityReservations"][0]
        self.assertEqual(found["CapacityAllocations"], [{"AllocationType": "used", "Count": 1}])
        self.assertEqual(found["EndDate"], datetime.datetime(2026, 11, 23, 11, 30, tzinfo=UTC))
        self.assertEqual(found["CapacityBlockId"], "cb-00000000000000001")

    def test_topology(self):
        found = self.ec2.describe_instance_topology(GroupNames=["ring"])["Instances"]
        self.assertEqual(len(found), 4)
        self.assertEqual(found[0]["NetworkNodes"], ["nn-1", "nn-21", "nn-31"])
        one = self.ec2.describe_instance_topology(InstanceIds=[found[1]["InstanceId"]])["Instances"]
        self.assertEqual(one, [found[1]])
        self.assert_refused("InvalidParameterCombination", 400, lambda: self.ec2.describe_instance_topology(
            InstanceIds=[found[1]["InstanceId"]], MaxResults=5))


class Lists(Ec2Case):
    def test_every_paginator_gives_what_one_page_gives(self):
        self.ec2.purchase_capacity_block_extension(**EXTENSION)
        self.ec2.purchase_capacity_block_extension(**EXTENSION)
        for action, arguments in CALLS.items():
            name = botocore.xform_name(action)
            if not action.startswith("Describe"):
                self.assertFalse(self.ec2.can_paginate(name))
                continue
            paginator = self.ec2.get_paginator(name)
            (key,) = [expression.expression for expression in paginator.result_keys]
            with self.subTest(action):
                whole = call(self.ec2, action, MaxResults=100, **arguments)[key]
                pages = [page[key] for page in paginator.paginate(PaginationConfig={"PageSize": 2}, **arguments)]
                self.assertGreater(len(pages), 0)
                self.assertTrue(all(len(page) == 2 for page in pages[:-1]))
                self.assertEqual([row for page in pages for row in page], whole)

    def test_a_token_belongs_to_its_request(self):
        first = self.ec2.describe_capacity_blocks(MaxResults=1)
        second = self.ec2.describe_capacity_blocks(MaxResults=2, NextToken=first["NextToken"])
        self.assertEqual(second["CapacityBlocks"][0]["CapacityBlockId"], "cb-00000000000000002")
        for function in (
                lambda: self.ec2.describe_capacity_block_status(NextToken=first["NextToken"]),
                lambda: self.ec2.describe_capacity_blocks(NextToken=first["NextToken"][:-1]),
                lambda: self.ec2.describe_capacity_blocks(
                    NextToken=first["NextToken"], Filters=[{"Name": "state", "Values": ["*"]}])):
            self.assert_refused("InvalidPaginationToken", 400, function)

    def test_filters(self):
        def numbers(*filters):
            blocks = self.ec2.describe_capacity_blocks(
                Filters=[{"Name": name, "Values": values} for name, values in filters])["CapacityBlocks"]
            return [number for block in blocks if (number := int(block["CapacityBlockId"][3:])) <= BLOCKS]

        self.assertEqual(numbers(("ultraserver-type", ["ultraservers"])), [2, 4, 6])
        self.assertEqual(numbers(("state", ["scheduled", "failed"])), [3, 6])
        self.assertEqual(numbers(("state", ["sched*"]), ("tag:team", ["research"])), [6])
        self.assertEqual(numbers(("start-date", ["2026-11-2?T*"])), [1, 2, 3, 4, 5, 6])
        self.assertEqual(numbers(("tag-key", ["none"])), [])
        self.assert_refused("InvalidParameterValue", 400, numbers, ("colour", ["red"]), says="legal are")


class Refusals(Ec2Case):
    def test_dry_run(self):
        before = len(self.ec2.describe_capacity_blocks()["CapacityBlocks"])
        for action, arguments in CALLS.items():
            with self.subTest(action):
                self.assert_refused("DryRunOperation", 412, lambda: call(self.ec2, action, DryRun=True, **arguments))
        self.assertEqual(len(self.ec2.describe_capacity_blocks()["CapacityBlocks"]), before)

    def test_what_the_seller_refuses(self):
        self.assert_refused("InvalidParameterValue", 400, lambda: self.ec2.describe_capacity_block_offerings(
            **{**SEARCH, "CapacityDurationHours": 25}), says="multiples of 24 are legal")
        self.assert_refused("InvalidCapacityBlockOfferingIdExpired", 400, lambda: self.ec2.purchase_capacity_block(
            **{**PURCHASE, "CapacityBlockOfferingId": "cb-00000000000000000"}))

    def test_wrong_parameters(self):
        offers = self.ec2.describe_capacity_block_offerings
        self.assert_refused("InvalidParameterCombination", 400, lambda: offers(**SEARCH, UltraserverType="u-trn2x64"))
        self.assert_refused("MissingParameter", 400, lambda: offers(CapacityDurationHours=24))
        self.assert_refused("InvalidParameterValue", 400, lambda: offers(**SEARCH, MaxResults=1001),
                            says="from 1 to 1000")
        self.assert_refused("InvalidCapacityBlockOfferingIdMalformed", 400, lambda: self.ec2.purchase_capacity_block(
            **{**PURCHASE, "CapacityBlockOfferingId": "offer"}))
        self.assert_refused("InvalidCapacityReservationId.NotFound", 400,
                            lambda: self.ec2.describe_capacity_reservations(
                                CapacityReservationIds=["cr-00000000000000099"]))

    def test_ids_of_another_form(self):
        for code, form, function in (
                ("InvalidCapacityBlockId", "cb-", lambda id: self.ec2.describe_capacity_blocks(CapacityBlockIds=[id])),
                ("InvalidCapacityReservationId", "cr-",
                 lambda id: self.ec2.describe_capacity_reservations(CapacityReservationIds=[id])),
                ("InvalidInstanceID", "i-", lambda id: self.ec2.describe_instance_topology(InstanceIds=[id]))):
            for digits in ("0123", "0123456789ABCDEF0"):
                self.assert_refused(f"{code}.Malformed", 400, function, form + digits, says=f"expecting \"{form}...\"")
            self.assert_refused(f"{code}.NotFound", 400, function, form + "0123456789abcdef0", says="does not exist")

    def test_a_block_cannot_be_cancelled_or_changed(self):
        for action, arguments in NEVER_DONE.items():
            self.assert_refused("OperationNotPermitted", 400, lambda: call(self.ec2, action, **arguments),
                                says="is a Capacity Block, which cannot be")

    def test_a_page_buys_nothing(self):
        form = urllib.parse.urlencode({"Action": "PurchaseCapacityBlock", "Version": VERSION, **PURCHASE})
        self.assertEqual(ask("GET", f"{OPEN.url}/?{form}")[0], 403)
        for header, value in (("Sec-Fetch-Site", "same-site"), ("Referer", "http://elsewhere.example/")):
            for method, query, body in (("GET", f"?{form}", None), ("POST", "", form)):
                headers = {"Content-Type": "application/x-www-form-urlencoded", header: value}
                self.assertEqual(ask(method, f"{OPEN.url}/{query}", body, headers)[0], 403)

    def test_wrong_tags(self):
        def buy(*tags, kind="capacity-reservation"):
            self.ec2.purchase_capacity_block(**PURCHASE, TagSpecifications=[{
                "ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags]}])

        self.assert_refused("InvalidParameterValue", 400, buy, ("aws:x", ""))
        self.assert_refused("InvalidParameterValue", 400, buy, ("k" * 129, ""))
        self.assert_refused("InvalidParameterValue", 400, buy, ("k", "v" * 257))
        self.assert_refused("TagLimitExceeded", 400, buy, *((f"k{i}", "") for i in range(51)))
        self.assert_refused("InvalidParameterValue", 400, lambda: buy(("k", "v"), kind="instance"))

    def test_other_actions_are_not_served(self):
        self.assert_refused("InvalidAction", 400, self.ec2.describe_instances, says="DescribeCapacityBlocks")


class Signatures(Ec2Case):
    def test_sts_tells_the_callers_of_the_file_who_they_are(self):
        def sts(key):
            return boto3.client("sts", endpoint_url=SIGNED.url, region_name=REGION, aws_access_key_id=key[0],
                                aws_secret_access_key=key[1])
        told = sts(ANA).get_caller_identity()
        self.assertEqual((told["Account"], told["UserId"], told["Arn"]),
                         ("111122223333", "ana", "arn:aws:iam::111122223333:user/ana"))
        self.assert_refused("SignatureDoesNotMatch", 403, sts((BOB[0], "wrong")).get_caller_identity)
        self.assert_refused("InvalidAction", 400, sts(ANA).get_session_token)

    def test_the_callers_of_the_file(self):
        ana = SIGNED.client().purchase_capacity_block(**PURCHASE)
        self.assertEqual(ana["CapacityReservation"]["OwnerId"], "111122223333")
        bob = SIGNED.client(BOB)
        bob.describe_capacity_block_offerings(**SEARCH)
        for dry_run in (True, False):
            self.assert_refused("UnauthorizedOperation", 403,
                                lambda: bob.purchase_capacity_block(**PURCHASE, DryRun=dry_run))

    def test_every_form_that_botocore_signs(self):
        for action, arguments in CALLS.items():
            with self.subTest(action):
                call(SIGNED.client(), action, **arguments)
        tags = [{"Key": "ü &=+/~ *", "Value": "%41 'x'"}]
        bought = SIGNED.client().purchase_capacity_block(
            **PURCHASE, TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": tags}])
        self.assertEqual(bought["CapacityBlocks"][0]["Tags"], tags)

    def test_wrong_secrets_and_unknown_keys(self):
        self.assert_refused("SignatureDoesNotMatch", 403,
                            SIGNED.client((ANA[0], BOB[1])).describe_capacity_blocks)
        self.assert_refused("AuthFailure", 401,
                            SIGNED.client(("AKIAEXAMPLE000000009", ANA[1])).describe_capacity_blocks)
        self.assert_refused("MissingAuthenticationToken", 403, SIGNED.client(
            signature_version=botocore.UNSIGNED).describe_capacity_blocks)
        OPEN.client(signature_version=botocore.UNSIGNED).describe_capacity_blocks()

    def signed(self, method, query="", body=None, at=None):
        """(status, text) of a request that botocore's signer signed at another time, if any."""
        request = botocore.awsrequest.AWSRequest(method=method, url=f"{SIGNED.url}/{query}", data=body)
        if body:
            request.headers["Content-Type"] = "application/x-www-form-urlencoded"
        signer = botocore.auth.SigV4Auth(botocore.credentials.Credentials(*ANA), "ec2", REGION)
        timestamp = (at or datetime.datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        request.context["timestamp"] = timestamp
        signer._modify_request_before_signing(request)
        canonical = signer.canonical_request(request)
        signature = signer.signature(signer.string_to_sign(request, canonical), request)
        signer._inject_signature_to_request(request, signature)
        return ask(method, f"{SIGNED.url}/{query}", body, plain(request.headers))

    def test_a_signed_request_buys_once_whatever_its_unsigned_headers_say(self):
        sent = []
        client = SIGNED_BOOK.client()
        client.meta.events.register("before-send.ec2.PurchaseCapacityBlock", lambda request, **_: sent.append(request))
        offer = client.describe_capacity_block_offerings(
            InstanceType="trn2.48xlarge", InstanceCount=1, CapacityDurationHours=24)["CapacityBlockOfferings"][0]
        bought = client.purchase_capacity_block(CapacityBlockOfferingId=offer["CapacityBlockOfferingId"],
                                                InstancePlatform="Linux/UNIX")
        (request,) = sent
        reservation = bought["CapacityReservation"]["CapacityReservationId"]
        status, text = ask("POST", request.url, request.body, plain(request.headers))
        self.assertEqual((status, reservation in text), (200, True), text)
        for change in ({"amz-sdk-invocation-id": "another"}, {"amz-sdk-invocation-id": ""}):
            status, text = ask("POST", request.url, request.body, {**plain(request.headers), **change})
            self.assertEqual((status, "IdempotentParameterMismatch" in text), (400, True), text)
        self.assertEqual(len(client.describe_capacity_reservations()["CapacityReservations"]), 1)

    def test_queries_are_signed_as_bodies_are(self):
        query = "?Action=DescribeCapacityBlocks&Version=2016-11-15&Filter.1.Name=tag%3Ateam&Filter.1.Value.1=a%20b%2A"
        self.assertEqual(self.signed("GET", query)[0], 200)
        self.assertEqual(self.signed("POST", body=query[1:])[0], 200)

    def test_an_old_signature_is_refused(self):
        now = datetime.datetime.now(UTC)
        query = "?Action=DescribeCapacityBlocks&Version=2016-11-15"
        for minutes in (-14, 14):
            self.assertEqual(self.signed("GET", query, at=now + datetime.timedelta(minutes=minutes))[0], 200)
        for minutes in (-16, 16):
            status, text = self.signed("GET", query, at=now + datetime.timedelta(minutes=minutes))
            self.assertEqual((status, "RequestExpired" in text), (400, True))


class Book(Ec2Case):
    """The book of blocks as the seller, with its rules and prices."""

    def setUp(self):
        self.ec2 = BOOK.client()

    def offers(self, **arguments):
        return self.ec2.describe_capacity_block_offerings(**arguments)["CapacityBlockOfferings"]

    def buy(self, offer, client=None):
        return (client or self.ec2).purchase_capacity_block(
            CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX")

    def test_a_block_is_found_bought_listed_and_extended(self):
        days = 2
        offers = self.offers(InstanceType="trn2.48xlarge", InstanceCount=2, CapacityDurationHours=24 * days)
        (offer,) = [one for one in offers if one["StartDate"].strftime("%H:%M") == "11:30"]
        self.assertEqual(offer["EndDate"] - offer["StartDate"], datetime.timedelta(days=days))
        self.assertEqual(offer["UpfrontFee"], f"{35.7608 * 2 * 24 * days:.2f}")
        bought = self.buy(offer)
        (block,) = bought["CapacityBlocks"]
        reservation = bought["CapacityReservation"]
        self.assertEqual((reservation["TotalInstanceCount"], reservation["OwnerId"]), (2, "111122223333"))
        self.assertEqual(reservation["CapacityBlockId"], block["CapacityBlockId"])
        (listed,) = self.ec2.describe_capacity_blocks(
            CapacityBlockIds=[block["CapacityBlockId"]])["CapacityBlocks"]
        self.assertEqual(listed["State"], "scheduled")
        identity = {"CapacityReservationId": reservation["CapacityReservationId"]}
        (extension,) = self.ec2.describe_capacity_block_extension_offerings(
            **identity, CapacityBlockExtensionDurationHours=24)["CapacityBlockExtensionOfferings"]
        (got,) = self.ec2.purchase_capacity_block_extension(
            **identity, CapacityBlockExtensionOfferingId=extension["CapacityBlockExtensionOfferingId"],
        )["CapacityBlockExtensions"]
        self.assertEqual(got["CapacityBlockExtensionEndDate"] - offer["EndDate"], datetime.timedelta(days=1))
        (history,) = self.ec2.describe_capacity_block_extension_history(
            CapacityReservationIds=[identity["CapacityReservationId"]])["CapacityBlockExtensions"]
        self.assertEqual(history["CapacityBlockExtensionStatus"], "payment-succeeded")

    def test_each_ultraserver_is_a_block(self):
        offer = self.offers(UltraserverType="u-trn2x64", UltraserverCount=3, CapacityDurationHours=24)[0]
        self.assertEqual((offer["InstanceType"], offer["InstanceCount"]), ("trn2u.48xlarge", 12))
        bought = self.buy(offer)
        self.assertEqual(len(bought["CapacityBlocks"]), 3)
        status = self.ec2.describe_capacity_block_status(
            CapacityBlockIds=[block["CapacityBlockId"] for block in bought["CapacityBlocks"]])
        self.assertEqual({one["TotalCapacity"] for one in status["CapacityBlockStatuses"]}, {4})

    def test_blocks_of_others_are_not_seen(self):
        carol = BOOK.client(CAROL)
        offers = self.offers(InstanceType="trn2.48xlarge", InstanceCount=1, CapacityDurationHours=24)
        bought = self.buy(offers[0], carol)
        ids = [block["CapacityBlockId"] for block in bought["CapacityBlocks"]]
        self.assertEqual(len(carol.describe_capacity_blocks(CapacityBlockIds=ids)["CapacityBlocks"]), 1)
        self.assert_refused("InvalidCapacityBlockId.NotFound", 400,
                            lambda: self.ec2.describe_capacity_blocks(CapacityBlockIds=ids))

    def test_the_rules_are_the_books(self):
        search = {"InstanceType": "trn2.48xlarge", "InstanceCount": 1, "CapacityDurationHours": 24}
        self.assert_refused("InvalidParameterValue", 400, lambda: self.offers(
            **{**search, "CapacityDurationHours": 360}), says="24 to 336 in steps of 24")
        self.assert_refused("InvalidParameterValue", 400, lambda: self.offers(
            **{**search, "InstanceType": "p5.48xlarge"}), says="not supported for Capacity Blocks")
        preferred = {name: value for name, value in search.items() if name != "InstanceType"}
        found = self.offers(**preferred, InstanceTypePreferences=[
            {"InstanceType": "p5.48xlarge"}, {"InstanceType": "trn2.48xlarge"}])
        self.assertEqual({offer["InstanceType"] for offer in found}, {"trn2.48xlarge"})
        self.assertEqual(self.offers(**{**search, "InstanceCount": 64}), [])
        self.assert_refused("InvalidCapacityBlockOfferingIdNotFound", 400, lambda: self.buy(
            {"CapacityBlockOfferingId": "cb-0123456789abcdef0"}))

    def test_a_dry_run_is_refused_as_the_purchase_would_be(self):
        offer = self.offers(InstanceType="trn2.48xlarge", InstanceCount=1, CapacityDurationHours=24)[0]
        good = {"CapacityBlockOfferingId": offer["CapacityBlockOfferingId"], "InstancePlatform": "Linux/UNIX"}

        def dry(code, status, **change):
            self.assert_refused(code, status, lambda: self.ec2.purchase_capacity_block(
                **{**good, **change}, DryRun=True))

        before = len(self.ec2.describe_capacity_blocks()["CapacityBlocks"])
        dry("DryRunOperation", 412)
        dry("InvalidParameterValue", 400, InstancePlatform="Windows")
        dry("InvalidCapacityBlockOfferingIdNotFound", 400, CapacityBlockOfferingId="cb-0123456789abcdef0")
        self.assertEqual(len(self.ec2.describe_capacity_blocks()["CapacityBlocks"]), before)

    def test_answers_are_dated(self):
        headers = self.ec2.describe_capacity_blocks()["ResponseMetadata"]["HTTPHeaders"]
        self.assertLess(abs(email.utils.parsedate_to_datetime(headers["date"]) - datetime.datetime.now(UTC)),
                        datetime.timedelta(minutes=5))


class Controller(Ec2Case):
    """The controller itself: its core sells, journals and publishes, and the admin API stands beside."""

    def setUp(self):
        self.ec2 = CONTROLLER.client()

    def eventually(self, function):
        """The first answer that is not empty, within half a minute."""
        waiting = threading.Event()
        for _ in range(300):
            try:
                if answer := function():
                    return answer
            except botocore.exceptions.ClientError as error:
                if error.response["Error"]["Code"] != "Unavailable":  # until the core knows the fleet
                    raise
            waiting.wait(0.1)
        raise AssertionError("there was no answer within 30 s")

    def test_a_block_is_bought_and_an_object_of_the_cluster(self):
        (instance,) = self.eventually(lambda: self.ec2.describe_instance_topology()["Instances"])
        self.assertEqual((instance["InstanceId"], instance["InstanceType"], instance["NetworkNodes"]),
                         ("node-a", "trn2.48xlarge", ["nn-1", "nn-2", "nn-3"]))
        offers = self.eventually(lambda: self.ec2.describe_capacity_block_offerings(
            InstanceType="trn2.48xlarge", InstanceCount=1, CapacityDurationHours=24)["CapacityBlockOfferings"])
        bought = self.ec2.purchase_capacity_block(
            CapacityBlockOfferingId=offers[0]["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX")
        reservation = bought["CapacityReservation"]["CapacityReservationId"]
        (block,) = self.ec2.describe_capacity_blocks()["CapacityBlocks"]
        self.assertEqual(block["CapacityReservationIds"], [reservation])
        status, text = ask("GET", f"{CONTROLLER.api}/apis/tahoma.dev/v1alpha1/namespaces/team-a/capacityblocks")
        self.assertEqual(status, 200)
        self.assertEqual(len(json.loads(text)["items"]), 1)
        self.assert_refused("InvalidCapacityBlockOfferingIdExpired", 400, lambda: CONTROLLER.client(CAROL)
                            .purchase_capacity_block(CapacityBlockOfferingId=offers[0]["CapacityBlockOfferingId"],
                                                     InstancePlatform="Linux/UNIX"))

    def test_an_id_that_was_not_offered_is_refused_by_every_door(self):
        offers = self.eventually(lambda: self.ec2.describe_capacity_block_offerings(
            InstanceType="trn2.48xlarge", InstanceCount=1, CapacityDurationHours=48)["CapacityBlockOfferings"])
        good = offers[0]["CapacityBlockOfferingId"]
        self.assert_refused("DryRunOperation", 412, lambda: self.ec2.purchase_capacity_block(
            CapacityBlockOfferingId=good, InstancePlatform="Linux/UNIX", DryRun=True))
        for id, code in ((good[:-1] + ("0" if good[-1] != "0" else "1"), "InvalidCapacityBlockOfferingIdNotFound"),
                         ("cb-" + good[3:].upper(), "InvalidCapacityBlockOfferingIdMalformed")):
            self.assert_refused(code, 400, lambda: self.ec2.purchase_capacity_block(
                CapacityBlockOfferingId=id, InstancePlatform="Linux/UNIX"))
            for query in ("", "?dryRun=true"):
                text = ask("POST", f"{CONTROLLER.url}/v1/capacityblocks/team-a{query}", json.dumps(
                    {"capacityBlockOfferingId": id}), {"Content-Type": "application/json"})[1]
                self.assertIn(code, text)
        status, text = ask("POST", f"{CONTROLLER.url}/v1/capacityblocks/team-a?dryRun=true", json.dumps(
            {"capacityBlockOfferingId": good}), {"Content-Type": "application/json"})
        self.assertEqual(status, 201, text)

    def test_tags_are_those_of_the_object(self):
        begin = datetime.datetime.now(UTC) + datetime.timedelta(days=20)
        offers = self.eventually(lambda: self.ec2.describe_capacity_block_offerings(
            **{**SEARCH, "InstanceCount": 1}, StartDateRange=begin)["CapacityBlockOfferings"])
        bought = self.ec2.purchase_capacity_block(
            CapacityBlockOfferingId=offers[0]["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX")
        reservation = bought["CapacityReservation"]["CapacityReservationId"]
        block = bought["CapacityBlocks"][0]["CapacityBlockId"]

        def listed(resource):
            found = self.ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [resource]}])["Tags"]
            return {tag["Key"]: tag["Value"] for tag in found if not tag["Key"].startswith("aws:")}

        self.ec2.create_tags(Resources=[block], Tags=[{"Key": "team", "Value": "a"}, {"Key": "run", "Value": "7"}])
        self.assertEqual(listed(reservation), {"team": "a", "run": "7"})
        path = "/apis/tahoma.dev/v1alpha1/namespaces/team-a/capacityblocks"
        (found,) = [item for item in json.loads(ask("GET", CONTROLLER.api + path)[1])["items"]
                    if item["status"]["capacityReservationIds"] == [reservation]]
        self.assertEqual(found["spec"]["tags"], {"team": "a", "run": "7"})
        CONTROLLER.send("PATCH", f"{path}/{found['metadata']['name']}", {"spec": {"tags": {"team": "b"}}})
        self.ec2.delete_tags(Resources=[reservation], Tags=[{"Key": "run", "Value": "7"}])
        self.assertEqual(listed(block), {"team": "b"})
        self.assert_refused("InvalidCapacityReservationId.NotFound", 400, lambda: CONTROLLER.client(CAROL).create_tags(
            Resources=[reservation], Tags=[{"Key": "team", "Value": "c"}]))

    def test_where_it_is(self):
        (zone,) = self.eventually(lambda: self.ec2.describe_availability_zones()["AvailabilityZones"])
        self.assertEqual((zone["ZoneName"], zone["ZoneId"], zone["RegionName"]), ("tahoma-1a", "tahoma1-az1", "tahoma-1"))
        (kind,) = self.ec2.describe_instance_types()["InstanceTypes"]
        self.assertEqual((kind["InstanceType"], kind["VCpuInfo"]["DefaultVCpus"]), ("trn2.48xlarge", 192))

    def test_the_admin_api_is_served_beside(self):
        self.assertEqual(ask("GET", f"{CONTROLLER.url}/v1/topology")[0], 200)
        status, text = ask("GET", f"{CONTROLLER.url}/?Action=DescribeCapacityBlocks&Version={VERSION}")
        self.assertEqual((status, "MissingAuthenticationToken" in text), (403, True))


class Cli(unittest.TestCase):
    """The aws CLI, with what a user sets: an access key, a region and the endpoint."""

    def aws(self, *arguments, key=CAROL):
        return subprocess.run(
            [sys.executable, str(pathlib.Path(sys.executable).with_name("aws")), "ec2", *arguments],
            capture_output=True, text=True, env={
                "PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_ACCESS_KEY_ID": key[0],
                "AWS_SECRET_ACCESS_KEY": key[1], "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL_EC2": BOOK.url})

    def answer(self, *arguments):
        done = self.aws(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_block_is_found_bought_listed_and_extended(self):
        (offer, *_) = self.answer("describe-capacity-block-offerings", "--ultraserver-type", "u-trn2x64",
                                  "--ultraserver-count", "1", "--capacity-duration-hours", "24")["CapacityBlockOfferings"]
        bought = self.answer(
            "purchase-capacity-block", "--instance-platform", "Linux/UNIX", "--capacity-block-offering-id",
            offer["CapacityBlockOfferingId"], "--tag-specifications",
            "ResourceType=capacity-reservation,Tags=[{Key=run,Value=7}]")
        (listed,) = self.answer("describe-capacity-blocks", "--filters", "Name=tag:run,Values=7")["CapacityBlocks"]
        self.assertEqual(listed["CapacityBlockId"], bought["CapacityBlocks"][0]["CapacityBlockId"])
        reservation = bought["CapacityReservation"]["CapacityReservationId"]
        (extension,) = self.answer(
            "describe-capacity-block-extension-offerings", "--capacity-reservation-id", reservation,
            "--capacity-block-extension-duration-hours", "24")["CapacityBlockExtensionOfferings"]
        self.answer("purchase-capacity-block-extension", "--capacity-reservation-id", reservation,
                    "--capacity-block-extension-offering-id", extension["CapacityBlockExtensionOfferingId"])
        (history,) = self.answer("describe-capacity-block-extension-history", "--capacity-reservation-ids",
                                 reservation)["CapacityBlockExtensions"]
        self.assertEqual(history["CapacityBlockExtensionStatus"], "payment-succeeded")
        (reserved,) = self.answer("describe-capacity-reservations", "--capacity-reservation-ids",
                                  reservation)["CapacityReservations"]
        self.assertEqual(reserved["TotalInstanceCount"], 4)

    def test_what_is_refused_says_what_is_legal(self):
        done = self.aws("describe-capacity-block-offerings", "--instance-type", "trn2.48xlarge", "--instance-count", "1",
                        "--capacity-duration-hours", "23")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("(InvalidParameterValue)", done.stderr)
        self.assertIn("24 to 336 in steps of 24", done.stderr)
        done = self.aws("describe-capacity-blocks", key=(CAROL[0], "wrong"))
        self.assertIn("(SignatureDoesNotMatch)", done.stderr)


def plain(headers):
    """Headers as urllib takes them."""
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in headers.items()
            if name.lower() != "content-length"}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as data:
        keys = pathlib.Path(data, "keys.yaml")
        keys.write_text(KEYS)
        OPEN = Server(data, "open")
        SIGNED = Server(data, "signed", "--access-keys", str(keys))
        CONTROLLER = ControllerServer(data, keys)
        BOOK = Server(data, "book", "--access-keys", str(keys), "--hosts", "8")
        SIGNED_BOOK = Server(data, "signed-book", "--access-keys", str(keys), "--hosts", "8")
        try:
            result = unittest.main(verbosity=2, exit=False).result
        finally:
            ended = [server.stop() for server in (OPEN, SIGNED, BOOK, SIGNED_BOOK, CONTROLLER)]
    sys.exit(0 if result.wasSuccessful() and not any(ended) else 1)
