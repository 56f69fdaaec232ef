"""A core for trn-run: the claim of this pod, or that of a sim-node of its own.

    with node.core() as environment:
        subprocess.run(["trn-run", program, "--no-data"], env=environment)

The sim-node comes from TAHOMA_BIN (build/release/bin). Without that program the status is 1.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
PATIENCE_SECONDS = 30


def claim_chip(path):
    """Claims chip 0 on a sim-node's nodeSocket (docs/formats/wire.md). Returns the claim's token."""
    claim = {"claimUid": "uid", "namespace": "default", "name": "claim", "lnc": 2, "chips": [0], "cores": [], "ultraServerMode": 0}
    header = json.dumps({"id": 1, "method": "applyClaim", "params": claim}).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b"TAHO" + struct.pack("<HHII", 1, 0, len(header), 0) + header)
        reply = connection.makefile("rb")
        answer = json.loads(reply.read(struct.unpack("<II", reply.read(16)[8:])[0]))
    if "error" in answer:
        sys.exit(f"the sim-node gives no chip: {answer['error']['message']}")
    return answer["result"]["token"]


@contextlib.contextmanager
def core():
    """The environment in which trn-run reaches a core."""
    if "TAHOMA_CLAIM_TOKEN" in os.environ and shutil.which("trn-run"):
        yield dict(os.environ)
        return
    if not (BIN / "sim-node").exists():
        sys.exit(f"there is no {BIN}/sim-node: build it (cmake --build --preset release --target programs), "
                 "name its folder by TAHOMA_BIN, or run in a pod with a claim")
    with tempfile.TemporaryDirectory(prefix="core") as scratch:
        config, log = pathlib.Path(scratch, "config"), pathlib.Path(scratch, "log")
        config.write_text("apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nnodeName: n\ninstanceType: trn2.48xlarge\n"
                          f"nodeSocket: {scratch}/node\nworkloadSocket: {scratch}/work/socket\nstateDir: {scratch}/state\n"
                          f"portFile: {scratch}/ports\n")
        with open(log, "w") as output:
            child = subprocess.Popen([BIN / "sim-node", "--config", config], stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not pathlib.Path(scratch, "ports").exists():
                if child.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"the sim-node did not start: {log.read_text()[-500:]}")
                time.sleep(0.01)
            yield {**os.environ, "TAHOMA_NODE_SOCKET": f"unix:{scratch}/work/socket",
                   "TAHOMA_CLAIM_TOKEN": claim_chip(f"{scratch}/node"), "TAHOMA_RANK": "0", "TAHOMA_WORLD_SIZE": "1",
                   "TAHOMA_COMM_ID": "nki", "PATH": f"{BIN}:{os.environ['PATH']}"}
        finally:
            child.terminate()
            child.wait()
