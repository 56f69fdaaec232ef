#!/usr/bin/env python3
"""Searches for an offering of a Capacity Block and buys the first as a CapacityBlock.

    search_and_buy.py ADMIN_URL NAME [--token-file FILE] [--ca FILE] [--namespace NS] [--yes | --manifest]
        [--type u-trn2x64] [--count 1] [--hours 24] [--start 2026-12-01T00:00:00Z | --start +2]

Prints the offerings, or what is nearest when there is none; with --yes it buys the first one by REST, with --manifest
it prints the CapacityBlock that buys it, for kubectl apply -f -. A start of +2 is in two hours or later, by the clock
of blocks, which may be a test's.
"""

import argparse
import datetime
import json
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request


def call(args, method, path, body=None):
    request = urllib.request.Request(args.admin.rstrip("/") + path, method=method,
                                     data=None if body is None else json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"} if body else {})
    if args.token_file:
        with open(args.token_file, encoding="utf-8") as file:
            request.add_header("Authorization", "Bearer " + file.read().strip())
    context = ssl.create_default_context(cafile=args.ca) if args.admin.startswith("https") else None
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        problem = json.loads(error.read() or b"{}")
        sys.exit(f"{problem.get('code', error.code)}: {problem.get('detail', error.reason)}")


def show(offerings):
    for offering in offerings:
        hours, minutes = offering["capacityBlockDurationHours"], offering["capacityBlockDurationMinutes"]
        count = offering.get("ultraserverCount", offering["instanceCount"])
        print(f"  {count} x {offering.get('ultraserverType', offering['instanceType'])} from {offering['startDate']} to "
              f"{offering['endDate']} ({hours} h {minutes} min) for {offering['upfrontFee']} {offering['currencyCode']}")


def start_of(args):
    """The earliest start, as a search has it."""
    if not args.start.startswith("+"):
        return args.start
    now = datetime.datetime.fromisoformat(call(args, "GET", "/v1/clock")["blockTime"].replace("Z", "+00:00"))
    start = now + datetime.timedelta(hours=float(args.start))
    return start.strftime("%Y-%m-%dT%H:%M:%SZ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("admin")
    parser.add_argument("name")
    parser.add_argument("--token-file")
    parser.add_argument("--ca")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--type", default="u-trn2x64")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--start")
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("--manifest", action="store_true")
    args = parser.parse_args()
    kind = "ultraserver" if args.type.startswith("u-") else "instance"
    query = {f"{kind}Type": args.type, f"{kind}Count": args.count, "capacityDurationHours": args.hours,
             "namespace": args.namespace}
    if args.start:
        query["startDateRange"] = start_of(args)
    found = call(args, "GET", "/v1/capacityblockofferings?" + urllib.parse.urlencode(query))
    if not found["capacityBlockOfferings"]:
        if args.manifest:
            sys.exit(found["reasons"][0]["message"])
        for reason in found["reasons"]:
            print(reason["message"])
        print("nearest:")
        show(found["nearest"])
        return 1
    if args.manifest:
        block = {"apiVersion": "tahoma.dev/v1alpha1", "kind": "CapacityBlock", "metadata": {"name": args.name},
                 "spec": {"capacityBlockOfferingId": found["capacityBlockOfferings"][0]["capacityBlockOfferingId"]}}
        print(json.dumps(block, indent=2))  # JSON is YAML
        return 0
    show(found["capacityBlockOfferings"])
    if args.yes:
        block = call(args, "POST", "/v1/capacityblocks/" + args.namespace,
                     {"name": args.name, "clientToken": args.name,
                      "capacityBlockOfferingId": found["capacityBlockOfferings"][0]["capacityBlockOfferingId"]})
        print(f"bought {block['namespace']}/{block['name']}: {block['capacityReservationId']}, {block['state']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
