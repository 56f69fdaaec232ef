#!/usr/bin/env python3
"""Writes a gang: the Gang, one claim template, and its pods, ready for `kubectl apply -f -`.

    make_gang.py NAME SHAPE MEMBERS [--command 'nccom-test allr …'] [--instance-type trn2u.48xlarge]
        [--block CAPACITY_BLOCK] [--preemptible] [--max-runtime 90m] [--grace SECONDS] [--tolerate TAINT]

Each pod asks for an equal share of the shape's chips.
"""

import argparse
import math
import shlex

PARSER = argparse.ArgumentParser(description=__doc__.splitlines()[0])
PARSER.add_argument("name")
PARSER.add_argument("shape", help="AxB or AxBxC")
PARSER.add_argument("members", type=int)
PARSER.add_argument("--command", default="nccom-test allr -b 1K -e 4M -f 16 -d fp32 -c")
PARSER.add_argument("--instance-type", default="trn2u.48xlarge")
PARSER.add_argument("--block", help="the Capacity Block in which it runs")
PARSER.add_argument("--preemptible", action="store_true", help="may use what is kept for blocks, or lent by them")
PARSER.add_argument("--max-runtime", help="after which it is ended, as 90m")
PARSER.add_argument("--grace", type=int, default=30, help="seconds between SIGTERM and SIGKILL")
PARSER.add_argument("--tolerate", help="the key of a taint of nodes that its pods tolerate, as tahoma.dev/virtual-node")

GANG = """\
apiVersion: tahoma.dev/v1alpha1
kind: Gang
metadata:
  name: {name}
spec:
  members: {members}
  shape: {shape}{more}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: {name}
spec:
  spec:
    devices:
      requests:
      - name: neurons
        exactly:
          deviceClassName: neuron.aws.com
          allocationMode: ExactCount
          count: {chips}
          selectors:
          - cel:
              expression: >-
                device.attributes['neuron.aws.com'].resourceType == 'neuron_device' &&
                device.attributes['neuron.aws.com'].instanceType == '{instance_type}'
"""

POD = """\
---
apiVersion: v1
kind: Pod
metadata:
  name: {name}-{index}
  labels:
    tahoma.dev/gang: {name}
spec:
  schedulerName: tahoma
  restartPolicy: Never
  terminationGracePeriodSeconds: {grace}{more}
  containers:
  - name: main
    image: tahoma.dev/workload:v1
    command: [{command}]
    env:
    - {{name: TAHOMA_RANK, valueFrom: {{fieldRef: {{fieldPath: "metadata.annotations['tahoma.dev/rank']"}}}}}}
    - {{name: TAHOMA_WORLD_SIZE, valueFrom: {{fieldRef: {{fieldPath: "metadata.annotations['tahoma.dev/world-size']"}}}}}}
    - {{name: TAHOMA_COMM_ID, valueFrom: {{fieldRef: {{fieldPath: "metadata.annotations['tahoma.dev/gang-uid']"}}}}}}
    resources:
      claims:
      - name: neurons
  resourceClaims:
  - name: neurons
    resourceClaimTemplateName: {name}
"""


def main():
    args = PARSER.parse_args()
    chips, rest = divmod(math.prod(int(side) for side in args.shape.split("x")), args.members)
    if rest:
        PARSER.error(f"the chips of {args.shape} cannot be shared equally by {args.members} pods")
    more = f"\n  capacityBlock: {args.block}" if args.block else ""
    more += "\n  preemptible: true" if args.preemptible else ""
    more += f"\n  maxRuntime: {args.max_runtime}" if args.max_runtime else ""
    print(GANG.format(name=args.name, members=args.members, shape=args.shape, chips=chips,
                      instance_type=args.instance_type,
                      more=more), end="")
    command = ", ".join(f'"{word}"' for word in shlex.split(args.command))
    of_pod = f"\n  tolerations:\n  - {{key: {args.tolerate}, operator: Exists}}" if args.tolerate else ""
    for index in range(args.members):
        print(POD.format(name=args.name, index=index, grace=args.grace, command=command, more=of_pod), end="")


if __name__ == "__main__":
    main()
