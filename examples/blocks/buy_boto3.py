#!/usr/bin/env python3
"""Buys a Capacity Block with boto3, as one buys it from EC2.

    buy_boto3.py [--type trn2.48xlarge] [--count 1] [--hours 24]

Endpoint, certificate and key come from where boto3 looks for them: `. DIR/aws.env` after examples/local/up.py DIR.
"""

import argparse
import sys

import boto3
import botocore.exceptions


def buy(ec2, args):
    """Buys the first offering; one that has expired since the search, as others buy too, is searched for again."""
    for tries_left in reversed(range(5)):
        found = ec2.describe_capacity_block_offerings(InstanceType=args.type, InstanceCount=args.count,
                                                      CapacityDurationHours=args.hours)["CapacityBlockOfferings"]
        if not found:
            return None, None
        try:
            return found[0], ec2.purchase_capacity_block(CapacityBlockOfferingId=found[0]["CapacityBlockOfferingId"],
                                                         InstancePlatform="Linux/UNIX")
        except botocore.exceptions.ClientError as error:
            expired = error.response["Error"]["Code"] == "InvalidCapacityBlockOfferingIdExpired"
            if not expired or tries_left == 0:
                raise
    return None, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--type", default="trn2.48xlarge")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--hours", type=int, default=24)
    args = parser.parse_args()
    ec2 = boto3.client("ec2")
    try:
        offering, bought = buy(ec2, args)
    except botocore.exceptions.ClientError as error:
        sys.exit(str(error))
    if offering is None:
        print(f"no offering of {args.count} x {args.type} for {args.hours} h")
        return 1
    reservation = bought["CapacityReservation"]
    print(f"bought {reservation['CapacityReservationId']}: {reservation['TotalInstanceCount']} x "
          f"{reservation['InstanceType']} from {reservation['StartDate']:%Y-%m-%d %H:%M} to "
          f"{reservation['EndDate']:%Y-%m-%d %H:%M} UTC for {offering['UpfrontFee']} {offering['CurrencyCode']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
