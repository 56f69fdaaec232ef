"""Cases of conformance_cases.py: rules of a CustomResourceDefinition, and objects that keep and break them.

The requests are those of tests/golden/apiserver/crd_rules.json, beside the answers that the unit tests expect.
"""

import json
import pathlib

from conformance_case import case

RECORDED = pathlib.Path(__file__).parent.parent / "golden/apiserver/crd_rules.json"
GOODS = "/apis/probe.example.com/v1/namespaces/default/goods"


def cases():
    changed = 0
    for step in json.loads(RECORDED.read_text()):
        headers = {"Content-Type": step["contentType"]} if "contentType" in step else {}
        # What is accepted is compared elsewhere. A real server warns of rules that a value from before them breaks.
        rest = {"unordered": True} if "causes" in step else {"only": ["code"]}
        rest["ignore_headers"] = ["Warning"]
        yield case(step["name"], step["method"], step["path"], step["body"], headers=headers, after_seconds=changed, **rest)
        changed = 0
        if step["name"] == "the definition":
            yield case("its objects are served", "GET", GOODS, until=("kind", 1), only=["kind"])
        if step["name"] == "more rules":
            changed = 3  # a real server asks new rules a moment after it has stored them


CASES = list(cases())
