"""A pod that has something and one that wants it, and the wire that both speak.

Runs inside pods, as `python3 -c TEXT victim` and `python3 -c TEXT thief HINTS`, so it needs nothing but
Python. The thief is told everything that a neighbour could guess. It prints one JSON line per try:
{"try": …, "got": … or null, "why": what stopped it}.
"""

import ctypes
import glob
import json
import os
import signal
import socket
import struct
import sys
import threading
import urllib.request

SECRET = b"weights of the victim"
TIMEOUT_SECONDS = 5


def call(path, method, params, payload=b""):
    """One call of docs/formats/wire.md: the reply's header and payload."""
    with socket.socket(socket.AF_UNIX) as conn:
        conn.settimeout(TIMEOUT_SECONDS)
        conn.connect(path)
        header = json.dumps({"id": 1, "method": method, "params": params}).encode()
        conn.sendall(b"TAHO" + struct.pack("<HHII", 1, 0, len(header), len(payload)) + header + payload)
        reply = conn.makefile("rb")
        prefix = reply.read(16)
        if len(prefix) < 16:
            raise ConnectionError("the connection was closed without an answer")
        header_bytes, payload_bytes = struct.unpack("<II", prefix[8:])
        return json.loads(reply.read(header_bytes)), reply.read(payload_bytes)


def answer(path, method, params, payload=b""):
    """The result and payload of a call; PermissionError with the server's words when it has failed."""
    header, data = call(path, method, params, payload)
    if "error" in header:
        raise PermissionError(f"{header['error']['code']}: {header['error']['message']}")
    return header["result"], data


def own(method, payload=b"", **params):
    return answer(os.environ["TAHOMA_NODE_SOCKET"], method,
                  {"token": os.environ["TAHOMA_CLAIM_TOKEN"], **params}, payload)


def victim():
    """Leaves its secret in its chip's memory, in files and in a communicator that waits for a peer."""
    own("memStore", SECRET, chip=0, address=0)
    for name in ("secret", "/tmp/thief-test", "/dev/shm/thief-test"):
        with open(name, "wb") as out:
            out.write(SECRET)

    def join():
        try:
            own("commJoin", commId="victims", rank=0, worldSize=2)
        except OSError:
            pass  # nobody came

    threading.Thread(target=join, daemon=True).start()
    print(json.dumps({"pid": os.getpid(), "uid": os.getuid(), "cwd": os.getcwd(),
                      "devices": [d["index"] for d in own("devices")[0]["devices"]]}), flush=True)
    signal.pause()


def read(path):
    with open(path, "rb") as file:
        return file.read(1 << 20).decode(errors="replace") or None


def environments():
    """Tokens in the environments of all other processes that it can read."""
    mine = os.environ["TAHOMA_CLAIM_TOKEN"].encode()
    found = [p for p in glob.glob("/proc/[0-9]*/environ") if os.access(p, os.R_OK)]
    tokens = []
    for path in found:
        try:
            text = open(path, "rb").read()
        except OSError:
            continue
        if b"TAHOMA_CLAIM_TOKEN=" in text and mine not in text:
            tokens.append(path)
    return tokens or None


def trace(pid):
    attached = ctypes.CDLL(None, use_errno=True).ptrace(16, pid, 0, 0)  # PTRACE_ATTACH
    if attached != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    return "attached"


def http(address, path, method="GET"):
    request = urllib.request.Request(f"http://{address}{path}", method=method,
                                     data=b'{"reason": "dead"}' if method == "POST" else None,
                                     headers={"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).read().decode()


def foreign_devices():
    """Chips that its token shows and that are the victim's."""
    shown = {d["index"] for d in own("devices")[0]["devices"]}
    return sorted(shown & set(HINTS["devices"])) or None


def foreign_memory():
    for chip in range(16):
        try:
            data = own("memLoad", chip=chip, address=0, bytes=len(SECRET))[1]
        except PermissionError:
            return None
        if SECRET in data:
            return "the secret"
    return None


def join_the_victims():
    """Its own chips as the peer for which the victim waits: then memory could be read."""
    try:
        return own("commJoin", commId="victims", rank=1, worldSize=2)[0]
    except TimeoutError as error:
        raise PermissionError("nobody of that name is there") from error


def files_below(folder):
    """Files that it can read, where the victim's secret would be."""
    found = []
    for root, _, names in os.walk(folder):
        found += [os.path.join(root, n) for n in names if os.access(os.path.join(root, n), os.R_OK)]
    mine = os.path.dirname(os.getcwd())
    return [f for f in found if not f.startswith(mine)] or None


def tries():
    pid, node, workload = HINTS["pid"], HINTS["nodeSocket"], os.environ["TAHOMA_NODE_SOCKET"]
    yield "claims, on the plugin's socket", lambda: answer(node, "listClaims", {})[0]
    yield "a claim of its own making", lambda: answer(
        node, "applyClaim", {"claimUid": "x", "namespace": "d", "name": "x", "lnc": 2, "chips": [],
                             "cores": [], "ultraServerMode": 0})[0]
    yield "claims, on the pods' socket", lambda: answer(workload, "listClaims", {})[0]
    yield "devices without a token", lambda: answer(workload, "devices", {})[0]
    yield "devices with a token of zeros", lambda: answer(workload, "devices", {"token": "0" * 32})[0]
    yield "devices with half of its token", lambda: answer(
        workload, "devices", {"token": os.environ["TAHOMA_CLAIM_TOKEN"][:16]})[0]
    yield "the victim's devices with its own token", foreign_devices
    yield "the victim's memory with its own token", foreign_memory
    yield "the victim's communicator", join_the_victims
    for path in (f"/proc/{pid}/environ", f"/proc/{pid}/mem", f"/proc/{pid}/cwd/secret",
                 f"/proc/{pid}/root/tmp/thief-test", "/tmp/thief-test", "/dev/shm/thief-test",
                 HINTS["cwd"] + "/secret", *HINTS["files"]):
        yield path, lambda path=path: read(path)
    yield "files of DIR", lambda: files_below(HINTS["directory"])
    yield "files of the pods' folder", lambda: files_below(HINTS["pods"])
    yield "anybody's token", environments
    yield "a trace of the victim", lambda: trace(pid)
    yield "the victim's life", lambda: os.kill(pid, 0) or "may signal it"
    yield "sim-node's life", lambda: os.kill(HINTS["nodePid"], 0) or "may signal it"
    yield "root", lambda: os.setuid(0) or "is root"
    yield "root's group", lambda: [g for g in os.getgroups() if g == 0] or None
    yield "the fault API", lambda: http(HINTS["admin"], "/v1/state")
    yield "a chip's health", lambda: http(HINTS["admin"], "/v1/chips/0/break", "POST")
    yield "the victim's log", lambda: http(HINTS["logs"], "/containerLogs/default/victim/main")


def thief():
    for name, attempt in tries():
        got, why = None, "nothing was there"
        try:
            got = attempt()
        except (OSError, ValueError) as error:
            why = repr(error)
        print(json.dumps({"try": name, "got": got, "why": None if got else why}), flush=True)
    print(json.dumps({"uid": os.getuid(), "noNewPrivileges": "NoNewPrivs:\t1" in read("/proc/self/status"),
                      "core": __import__("resource").getrlimit(4)[1],
                      "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:3]}), flush=True)


if len(sys.argv) > 1:
    HINTS = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    victim() if sys.argv[1] == "victim" else thief()
