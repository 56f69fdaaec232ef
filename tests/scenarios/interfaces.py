#!/usr/bin/env python3
"""interfaces.py NODE: prints a ResourceSlice of dra.net, four EFA interfaces in one group of four with chips of the node."""

import json
import subprocess
import sys

SLICES = json.loads(subprocess.check_output(["kubectl", "get", "resourceslices", "-o", "json"]))["items"]
GROUP = "resource.aws.com/devicegroup4_id"


def main():
    for slice_ in SLICES:
        spec = slice_["spec"]
        chips = [one for one in spec.get("devices", []) if GROUP in one.get("attributes", {})]
        groups = [one["attributes"][GROUP] for one in chips]
        four = [group for group in groups if groups.count(group) >= 4][:4]
        if spec["driver"] != "neuron.aws.com" or spec["nodeName"] != sys.argv[1] or not four:
            continue
        devices = [{"name": f"pci-{i}", "attributes": {
            "pciDevice": {"string": "Elastic Fabric Adapter (EFA)"}, GROUP: four[0]}} for i in range(4)]
        print(json.dumps({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "interfaces"},
            "spec": {"driver": "dra.net", "nodeName": spec["nodeName"], "devices": devices,
                     "pool": {"name": spec["nodeName"], "generation": 1, "resourceSliceCount": 1}}}))
        return
    raise SystemExit(f"{sys.argv[1]} has no four chips of one group")


if __name__ == "__main__":
    main()
