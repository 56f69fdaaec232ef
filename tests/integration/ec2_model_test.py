#!/usr/bin/env python3
"""Walks botocore's own model of EC2 over every action that is served, and compares it both ways with the actions and
with the tables of docs/formats/ec2-api.md: each parameter has an effect or stands in a table with the reason, each
element of an answer is given or stands in a table with the reason, and the tables hold nothing else.

    TAHOMA_BIN=build/release/bin tests/integration/ec2_model_test.py

The server is tahoma-ec2-server with a book of blocks. Status 77 (skipped) without a Python that has botocore.
"""

import datetime
import html.parser
import pathlib
import re
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree

from ec2_client_test import Server, VERSION, UTC
from standalone_controller import ask

import botocore.session

PAGE = pathlib.Path("docs/formats/ec2-api.md")
# Parameters of ours, since EC2's purchases have none.
OWN_PARAMETERS = {
    ("PurchaseCapacityBlock", "ClientToken"), ("PurchaseCapacityBlockExtension", "ClientToken")}
# Filters that compare tags: EC2 says so in the text about tags, not in each list.
TAG_FILTERS = {"tag:KEY", "tag-key"}
# Actions that refuse every call, as EC2 does for Capacity Blocks.
REFUSING = {"CancelCapacityReservation", "ModifyCapacityReservation"}
# EC2 answers so where the model has no answer.
RETURN = {"CreateTags", "DeleteTags"}

INSTANCES = {"InstanceType": "trn2.48xlarge", "InstanceCount": 1, "CapacityDurationHours": 24}
ULTRASERVERS = {"UltraserverType": "u-trn2x64", "UltraserverCount": 1, "CapacityDurationHours": 24}
ONE_OF_THREE = {
    "InstanceTypePreference.1.InstanceType": "trn2.48xlarge", "InstanceCount": 1, "CapacityDurationHours": 24}
ALL_TYPES = {"IncludeUnsupportedInRegion": "true"}
# What is asked for when nothing is said about it, by action. {names} are those of Walk.setUpClass.
USUAL = {
    "CreateTags": {"ResourceId.1": "{reservation}", "Tag.1.Key": "walk"},
    "CancelCapacityReservation": {"CapacityReservationId": "{reservation}"},
    "DeleteTags": {"ResourceId.1": "{reservation}", "Tag.1.Key": "walk"},
    "DescribeCapacityBlockExtensionOfferings": {
        "CapacityReservationId": "{reservation}", "CapacityBlockExtensionDurationHours": 24},
    "DescribeCapacityBlockOfferings": INSTANCES,
    "GetCapacityReservationUsage": {"CapacityReservationId": "{reservation}"},
    "ModifyCapacityReservation": {"CapacityReservationId": "{reservation}"},
    "PurchaseCapacityBlock": {"CapacityBlockOfferingId": "{offering}", "InstancePlatform": "Linux/UNIX"},
    "PurchaseCapacityBlockExtension": {
        "CapacityBlockExtensionOfferingId": "{extension}", "CapacityReservationId": "{reservation}"},
}


class Effect:
    """A parameter that changes what is answered: the answer to `usual` with `more` is not that to `usual`. Of actions
    that change something the answer to the call `look` is compared, after `prepare` was called."""

    def __init__(self, more, usual=None, prepare=None, look=None):
        self.more, self.usual, self.prepare, self.look = more, usual, prepare, look


class Refusal:
    """A parameter of which a wrong value is refused with that code."""

    def __init__(self, code, more):
        self.code, self.more = code, more


class Shown:
    """A parameter whose value is shown in the answer."""

    def __init__(self, text, more):
        self.text, self.more = text, more


def filters(name, value="nothing*has*this"):
    return {
        "Filter.N.Name": Effect({"Filter.1.Name": "no-such-filter"}, usual={
            "Filter.1.Name": name, "Filter.1.Value.1": "*"}),
        "Filter.N.Value.N": Effect({"Filter.1.Value.1": value}, usual={
            "Filter.1.Name": name, "Filter.1.Value.1": "*"}),
    }


def pages(least=1, usual=None):
    return {
        "MaxResults": Effect({"MaxResults": least}, usual),
        "NextToken": Refusal("InvalidPaginationToken", {"NextToken": "00"}),
    }


def days_from_now(days):
    return (datetime.datetime.now(UTC) + datetime.timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


TAGS_LOOK = ("DescribeTags", {})
NO_TAGS = [("DeleteTags", {"ResourceId.1": "{reservation}"}), ("DeleteTags", {"ResourceId.1": "{other}"})]
ONE_TAG = [("CreateTags", {"ResourceId.1": name, "Tag.1.Key": "walk", "Tag.1.Value": "on"})
           for name in ("{reservation}", "{other}")]
EFFECTS = {
    "CreateTags": {
        "ResourceId.N": Effect({"ResourceId.1": "{other}"}, prepare=NO_TAGS, look=TAGS_LOOK),
        "Tag.N.Key": Effect({"Tag.1.Key": "run"}, prepare=NO_TAGS, look=TAGS_LOOK),
        "Tag.N.Value": Effect({"Tag.1.Value": "7"}, prepare=NO_TAGS, look=TAGS_LOOK),
    },
    "DeleteTags": {
        "ResourceId.N": Effect({"ResourceId.1": "{other}"}, prepare=ONE_TAG, look=TAGS_LOOK),
        "Tag.N.Key": Effect({"Tag.1.Key": "run"}, prepare=ONE_TAG, look=TAGS_LOOK),
        "Tag.N.Value": Effect({"Tag.1.Value": "off"}, prepare=ONE_TAG, look=TAGS_LOOK),
    },
    "DescribeAvailabilityZones": {
        **filters("zone-id"),
        "ZoneName.N": Effect({"ZoneName.1": "us-east-2b"}),
        "ZoneId.N": Effect({"ZoneId.1": "use2-az1"}),
    },
    "DescribeCapacityBlockExtensionHistory": {
        **filters("instance-type"), **pages(),
        "CapacityReservationId.N": Effect({"CapacityReservationId.1": "{other}"}),
    },
    "DescribeCapacityBlockExtensionOfferings": {
        "CapacityReservationId": Effect({"CapacityReservationId": "{other}"}),
        "CapacityBlockExtensionDurationHours": Effect({"CapacityBlockExtensionDurationHours": 48}),
        # There is one offering for a length of time.
        "MaxResults": Refusal("InvalidParameterValue", {"MaxResults": 0}),
        "NextToken": Refusal("InvalidPaginationToken", {"NextToken": "00"}),
    },
    "DescribeCapacityBlockOfferings": {
        **pages(),
        "InstanceType": Effect({"InstanceType": "trn2.3xlarge"}),
        "InstanceTypePreference.N.InstanceType": Effect(
            {"InstanceTypePreference.1.InstanceType": "trn2.3xlarge"}, usual=ONE_OF_THREE),
        "InstanceCount": Effect({"InstanceCount": 2}),
        "UltraserverType": Effect({"UltraserverType": "u-p6e-gb200x72"}, usual=ULTRASERVERS),
        "UltraserverCount": Effect({"UltraserverCount": 2}, usual=ULTRASERVERS),
        "CapacityDurationHours": Effect({"CapacityDurationHours": 48}),
        "StartDateRange": Effect({"StartDateRange": days_from_now(20)}),
        # A day that begins at 11:30 does not fit.
        "EndDateRange": Effect({"EndDateRange": days_from_now(21)}, usual={
            **INSTANCES, "StartDateRange": days_from_now(20)}),
    },
    "DescribeCapacityBlockStatus": {
        **filters("interconnect-status"), **pages(),
        "CapacityBlockId.N": Effect({"CapacityBlockId.1": "{block}"}),
    },
    "DescribeCapacityBlocks": {
        **filters("state"), **pages(),
        "CapacityBlockId.N": Effect({"CapacityBlockId.1": "{block}"}),
    },
    "DescribeCapacityReservationTopology": {
        **filters("instance-type"), **pages(),
        "CapacityReservationId.N": Effect({"CapacityReservationId.1": "{reservation}"}),
    },
    "DescribeCapacityReservations": {
        **filters("state"), **pages(),
        "CapacityReservationId.N": Effect({"CapacityReservationId.1": "{reservation}"}),
    },
    "DescribeInstanceTopology": {
        **filters("instance-type"), **pages(),
        "InstanceId.N": Effect({"InstanceId.1": "trn2.48xlarge-0"}),
        "GroupName.N": Effect({"GroupName.1": "ring"}),
    },
    "DescribeInstanceTypeOfferings": {
        **filters("location"), **pages(least=5),
        "LocationType": Effect({"LocationType": "availability-zone"}),
    },
    "DescribeInstanceTypes": {
        **filters("instance-type"), **pages(least=5),
        "InstanceType.N": Effect({"InstanceType.1": "trn2.48xlarge"}),
        "IncludeUnsupportedInRegion": Effect(ALL_TYPES),
    },
    "DescribeRegions": {
        **filters("region-name"),
        "RegionName.N": Effect({"RegionName.1": "us-east-9"}),
    },
    "DescribeTags": {
        **filters("key"),
        "MaxResults": Effect({"MaxResults": 5}, usual={"Filter.1.Name": "key", "Filter.1.Value.1": "many*"}),
        "NextToken": Refusal("InvalidPaginationToken", {"NextToken": "00"}),
    },
    "GetCapacityReservationUsage": {
        "CapacityReservationId": Effect({"CapacityReservationId": "{other}"}),
        # The use of a reservation is one row.
        "MaxResults": Refusal("InvalidParameterValue", {"MaxResults": 0}),
        "NextToken": Refusal("InvalidPaginationToken", {"NextToken": "00"}),
    },
    "PurchaseCapacityBlock": {
        "CapacityBlockOfferingId": Refusal(
            "InvalidCapacityBlockOfferingIdMalformed", {"CapacityBlockOfferingId": "offer"}),
        "InstancePlatform": Refusal("InvalidParameterValue", {"InstancePlatform": "Windows"}),
        "TagSpecification.N.ResourceType": Refusal("InvalidParameterValue", {
            "TagSpecification.1.ResourceType": "instance", "TagSpecification.1.Tag.1.Key": "walk"}),
        "TagSpecification.N.Tag.N.Key": Shown("<key>walk-key</key>", {
            "TagSpecification.1.ResourceType": "capacity-reservation", "TagSpecification.1.Tag.1.Key": "walk-key"}),
        "TagSpecification.N.Tag.N.Value": Shown("<value>walk-value</value>", {
            "TagSpecification.1.ResourceType": "capacity-reservation", "TagSpecification.1.Tag.1.Key": "walk",
            "TagSpecification.1.Tag.1.Value": "walk-value"}),
        "ClientToken": Refusal("InvalidParameterValue", {"ClientToken": "t" * 65}),
    },
    "PurchaseCapacityBlockExtension": {
        "CapacityBlockExtensionOfferingId": Refusal(
            "InvalidCapacityBlockOfferingIdMalformed", {"CapacityBlockExtensionOfferingId": "offer"}),
        "CapacityReservationId": Refusal("InvalidCapacityReservationId.Malformed", {"CapacityReservationId": "offer"}),
        "ClientToken": Refusal("InvalidParameterValue", {"ClientToken": "t" * 65}),
    },
}
# More calls by which elements of answers are seen.
VARIANTS = {
    "DescribeCapacityBlockOfferings": [ULTRASERVERS],
    "DescribeInstanceTypes": [ALL_TYPES],
}


def local_name(element):
    return element.tag.rpartition("}")[2]


def member_name(shape_member, name):
    """The element or parameter of a member, but for capitals."""
    return shape_member.serialization.get("name", name)


def table(heading):
    """The rows of the table below a heading of the page: lists of cells."""
    text = PAGE.read_text()
    section = re.search(rf"^###? {re.escape(heading)}\n(.*?)(?=^##|\Z)", text, re.M | re.S)[1]
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


class FilterNames(html.parser.HTMLParser):
    """The names that the documentation of a list of filters explains, and not the values that it names."""

    def __init__(self, text):
        super().__init__()
        self.names, self.depth, self.at_start, self.in_name = [], 0, False, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.depth += tag == "ul"
        if tag == "li":
            self.at_start = self.depth == 1
        if tag == "code" and self.at_start:
            self.names.append("")
            self.in_name, self.at_start = True, False

    def handle_endtag(self, tag):
        self.depth -= tag == "ul"
        if tag == "code":
            self.in_name = False

    def handle_data(self, text):
        if self.in_name:
            self.names[-1] += text


class Walk(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.model = botocore.session.get_session().get_service_model("ec2")
        cls.values = {}
        (active,) = cls.elements("DescribeCapacityReservations", {}, "capacityReservationId")
        cls.values["reservation"] = active
        (cls.values["block"],) = cls.elements("DescribeCapacityBlocks", {}, "capacityBlockId")
        cls.offer_anew(active)
        cls.buy("PurchaseCapacityBlock", {})
        found = cls.elements("DescribeCapacityReservations", {}, "capacityReservationId")
        (cls.values["other"],) = set(found) - {active}
        for reservation in (cls.values["other"], active):
            cls.offer_anew(reservation)
            cls.buy("PurchaseCapacityBlockExtension", {"CapacityReservationId": reservation})
        cls.tag_many()
        cls.served = cls.legal(ask("POST", WALK.url, *cls.form({"Action": "Nonsense", "Version": VERSION}))[1])

    def setUp(self):
        self.offer_anew(self.values["reservation"])

    @classmethod
    def offer_anew(cls, reservation):
        """Finds an offering, and one to extend the reservation, that were not bought yet."""
        cls.values["offering"] = cls.elements(
            "DescribeCapacityBlockOfferings", INSTANCES, "capacityBlockOfferingId")[0]
        cls.values["extension"] = cls.elements("DescribeCapacityBlockExtensionOfferings", {
            "CapacityReservationId": reservation}, "capacityBlockExtensionOfferingId")[0]

    @classmethod
    def buy(cls, action, more):
        status, text = cls.ask(action, more)
        if status != 200:
            raise AssertionError(text)
        return text

    @classmethod
    def tag_many(cls):
        tags = {f"Tag.{number}.Key": f"many-{number}" for number in range(1, 7)}
        assert cls.ask("CreateTags", {"ResourceId.1": "{other}", **tags}, usual={})[0] == 200

    @staticmethod
    def form(parameters):
        return urllib.parse.urlencode(parameters), {"Content-Type": "application/x-www-form-urlencoded"}

    @classmethod
    def ask(cls, action, more, usual=None):
        """(status, answer without its id) of a call with what is usual and more."""
        parameters = {**(USUAL.get(action, {}) if usual is None else usual), **more}
        for name, value in parameters.items():
            if isinstance(value, str) and value.startswith("{"):
                parameters[name] = value.format(**cls.values)
        status, text = ask("POST", WALK.url, *cls.form({"Action": action, "Version": VERSION, **parameters}))
        return status, re.sub("<(requestId|RequestID)>.*?</(requestId|RequestID)>", "", text)

    @classmethod
    def elements(cls, action, more, name):
        """The texts of the elements of that name."""
        return re.findall(f"<{name}>(.*?)</{name}>", cls.ask(action, more)[1])

    @staticmethod
    def legal(message):
        return re.search(r"legal are (.*?)(;|</Message>)", message)[1].split(", ")

    def actions(self):
        """Those that answer."""
        return [action for action in self.served if action not in REFUSING]

    def parameters_of(self, shape, prefix=""):
        """The names that botocore's serializer gives the members of a shape: Filter.N.Value.N."""
        if shape.type_name == "structure":
            for name, member in shape.members.items():
                serialized = member.serialization.get("queryName")
                if serialized is None:
                    serialized = member_name(member, name)
                    serialized = serialized[0].upper() + serialized[1:]
                yield from self.parameters_of(member, f"{prefix}.{serialized}" if prefix else serialized)
        elif shape.type_name == "list":
            yield from self.parameters_of(shape.member, f"{prefix}.N")
        else:
            yield prefix

    # ---- Parameters ------------------------------------------------------------------------------

    def test_the_parameters_are_those_of_the_model(self):
        for action in self.served:
            with self.subTest(action):
                status, text = self.ask(action, {"Nonsense": 1}, usual={})
                self.assertEqual((status, "UnknownParameter" in text), (400, True), text)
                expected = set(self.parameters_of(self.model.operation_model(action).input_shape))
                own = {name for owner, name in OWN_PARAMETERS if owner == action}
                self.assertEqual(set(self.legal(text)) - {"Action", "Version"}, expected | own)

    def test_each_parameter_has_an_effect_or_stands_in_the_table(self):
        ineffective = {(action, name) for actions, parameters, _ in table("Parameters without effect")
                       for action in names(actions) for name in names(parameters)}
        for action in self.actions():
            expected = set(self.parameters_of(self.model.operation_model(action).input_shape)) - {"DryRun"}
            expected |= {name for owner, name in OWN_PARAMETERS if owner == action}
            expected -= {name for owner, name in ineffective if owner == action}
            with self.subTest(action):
                self.assertEqual(set(EFFECTS.get(action, {})), expected)
        known = {(action, name) for action in self.actions()
                 for name in self.parameters_of(self.model.operation_model(action).input_shape)}
        self.assertEqual(ineffective - known, set(), "the table names what is not there")
        self.assertEqual(set(EFFECTS) - set(self.served), set())
        for action, name in ineffective:
            with self.subTest(f"{action} {name}"):
                self.check(action, Refusal("InvalidParameterValue", {name: "perhaps"}))
                with self.assertRaises(AssertionError, msg="it has an effect"):
                    self.check(action, Effect({name: "true"}))

    def test_the_effects_are_seen(self):
        for action in self.actions():
            for parameter, effect in EFFECTS.get(action, {}).items():
                with self.subTest(f"{action} {parameter}"):
                    self.check(action, effect)
            with self.subTest(f"{action} DryRun"):
                status, text = self.ask(action, {"DryRun": "true"})
                self.assertEqual((status, "<Code>DryRunOperation</Code>" in text), (412, True), text)

    def check(self, action, effect):
        if isinstance(effect, Refusal):
            status, text = self.ask(action, effect.more)
            self.assertIn(f"<Code>{effect.code}</Code>", text)
        elif isinstance(effect, Shown):
            status, text = self.ask(action, effect.more)
            self.assertEqual((status, effect.text in text), (200, True), text)
        elif effect.look:
            without, with_it = self.after(action, {}, effect), self.after(action, effect.more, effect)
            self.tag_many()
            self.assertNotEqual(without, with_it)
        else:
            usual = with_it = None
            while usual != self.ask(action, {}, effect.usual):  # offerings begin later when a minute has passed
                usual = self.ask(action, {}, effect.usual)
                with_it = self.ask(action, effect.more, effect.usual)
            self.assertEqual(usual[0], 200, usual[1])
            self.assertLess(with_it[0], 500, with_it[1])
            self.assertNotEqual(usual, with_it)

    def after(self, action, more, effect):
        """What is seen after a call."""
        for prepare, arguments in effect.prepare:
            self.assertEqual(self.ask(prepare, arguments, usual={})[0], 200)
        self.assertEqual(self.ask(action, more)[0], 200)
        return self.ask(*effect.look)

    def test_what_is_never_done_is_refused(self):
        for action in REFUSING:
            for more in ({}, {"DryRun": "true"}):
                status, text = self.ask(action, more)
                self.assertEqual((status, "<Code>OperationNotPermitted</Code>" in text), (400, True), text)

    def test_what_the_model_requires_is_required(self):
        for action in self.served:
            shape = self.model.operation_model(action).input_shape
            for name in shape.required_members:
                with self.subTest(f"{action} without {name}"):
                    (first, *_) = self.parameters_of(shape.members[name], self.query_name(shape, name))
                    without = {key: value for key, value in USUAL[action].items()
                               if not re.sub(r"\.\d+", ".N", key).startswith(first.split(".N")[0])}
                    status, text = self.ask(action, without, usual={})
                    self.assertEqual((status, "<Code>MissingParameter</Code>" in text), (400, True), text)
                    self.assertIn(first.split(".")[0], text)

    def query_name(self, shape, name):
        member = shape.members[name]
        query = member.serialization.get("queryName") or member_name(member, name)
        return query[0].upper() + query[1:]

    def test_the_filters_are_those_that_ec2_documents(self):
        for action in self.actions():
            members = self.model.operation_model(action).input_shape.members
            if "Filters" not in members:
                continue
            with self.subTest(action):
                _, text = self.ask(action, {"Filter.1.Name": "no-such-filter", "Filter.1.Value.1": "x"})
                documented = FilterNames(members["Filters"].documentation).names
                self.assertEqual(set(self.legal(text)) - TAG_FILTERS,
                                 {name for name in documented if name == "tags" or not name.startswith("tag")})

    # ---- Answers ---------------------------------------------------------------------------------

    def compare(self, element, shape, seen):
        """Checks an element's children against the model, and notes the names of those that are there."""
        if shape.type_name == "structure":
            by_element = {member_name(member, name): member for name, member in shape.members.items()}
            children = [local_name(child) for child in element]
            self.assertEqual(len(children), len(set(children)), f"{shape.name}: an element is there twice")
            for child in element:
                self.assertIn(local_name(child), by_element, shape.name)
                seen.setdefault(shape.name, set()).add(local_name(child))
                self.compare(child, by_element[local_name(child)], seen)
        elif shape.type_name == "list":
            for child in element:
                self.assertEqual(local_name(child), shape.member.serialization.get("name", "item"))
                self.compare(child, shape.member, seen)
        else:
            self.check_text(element, shape)

    def check_text(self, element, shape):
        self.assertEqual(len(element), 0, f"{local_name(element)} is no {shape.type_name}")
        if enum := getattr(shape, "enum", None):
            self.assertIn(element.text, enum)
        if shape.type_name in ("integer", "long"):
            int(element.text)
        if shape.type_name == "double":
            float(element.text)
        if shape.type_name == "boolean":
            self.assertIn(element.text, ("true", "false"))
        if shape.type_name == "timestamp":
            self.assertRegex(element.text, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def shapes_of(self, shape, never):
        """The structures below a shape, but for those that are never sent: name -> elements."""
        if shape.type_name == "list":
            return self.shapes_of(shape.member, never)
        if shape.type_name != "structure":
            return {}
        shapes = {shape.name: {member_name(member, name) for name, member in shape.members.items()}}
        for name, member in shape.members.items():
            if (shape.name, member_name(member, name)) not in never:
                shapes.update(self.shapes_of(member, never))
        return shapes

    def answers(self, action):
        """The roots of answers to some calls of an action, whole and by pages."""
        inputs = self.model.operation_model(action).input_shape.members
        for more in [{}, *VARIANTS.get(action, [])]:
            for page in [{}, {"MaxResults": 1}, {"MaxResults": 5}] if "MaxResults" in inputs else [{}]:
                status, text = self.ask(action, {**more, **page}, None if not more else {})
                if status == 400 and "MaxResults" in page:
                    continue  # pages of that action have a larger least size
                self.assertEqual(status, 200, text)
                root = xml.etree.ElementTree.fromstring(text)
                self.assertEqual(root.tag, f"{{http://ec2.amazonaws.com/doc/{VERSION}/}}{action}Response")
                yield root

    def test_each_element_is_given_or_stands_in_the_table(self):
        never = {(shape, element) for shapes, elements, _ in table("Elements that are never sent")
                 for shape in names(shapes) for element in names(elements)}
        seen, expected = {}, {}
        for action in self.actions():
            output = self.model.operation_model(action).output_shape
            if output is None:
                self.assertIn(action, RETURN)
                continue
            with self.subTest(action):
                for root in self.answers(action):
                    self.compare(root, output, seen)
            expected.update(self.shapes_of(output, never))
        unsent = {(shape, element) for shape, elements in expected.items()
                  for element in elements - seen.get(shape, set())}
        self.assertEqual(unsent - never, set(), "not sent, and not in the table")
        self.assertEqual(never - unsent, set(), "in the table, and sent or not in the model")

    def test_tags_are_answered_as_ec2_does(self):
        for action in RETURN:
            status, text = self.ask(action, {"Tag.1.Key": "answer"})
            self.assertEqual((status, "<return>true</return>" in text), (200, True), text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as data:
        WALK = Server(data, "walk", "--hosts", "8")
        try:
            result = unittest.main(verbosity=2, exit=False).result
        finally:
            ended = WALK.stop()
    sys.exit(0 if result.wasSuccessful() and not ended else 1)
