#!/usr/bin/env python3
"""Tests that callers who send what grows, or read nothing, cost a controller little memory and keep nobody out.

    hostile_memory_test.py         in the repository's root, with TAHOMA_BIN set

Prints the most memory that the program has had in each attack: "peak of controller: 141 MiB". What of it is the
objects' own is said before: "peak of controller before: 92 MiB".
"""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from standalone_controller import StandaloneController  # noqa: E402

PATIENCE_SECONDS = 60
MIB = 1 << 20
PEAK_MIB_MOST = 512
BODY_BYTES = 2_900_000  # a body may have 3 MiB
SENDERS = 16
READERS = 400
MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
IDENTITIES = """apiVersion: tahoma.dev/v1alpha1
kind: IdentityFile
identities:
- {name: ops, token: the-token-of-ops, role: admin}
- {name: ed, token: the-token-of-ed-, role: edit, namespaces: [default]}
- {name: nobody, token: the-token-of-nobody, role: view, namespaces: [elsewhere]}
"""
TOKENS = {"ops": "the-token-of-ops", "ed": "the-token-of-ed-", "nobody": "the-token-of-nobody"}


def peak_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


def filled(begin, item, end, size=BODY_BYTES):
    return (begin + item * ((size - len(begin) - len(end)) // len(item)) + end).encode()


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def config_map_message(message):
    type_meta = field(1, b"v1") + field(2, b"ConfigMap")
    return b"k8s\0" + field(1, type_meta) + field(2, message)


def wide_bodies():
    """Bodies that become many times as large when they are read: (Content-Type, bytes)."""
    members = ",".join(f'"{i:x}":0' for i in range(9_900))
    groups = ",".join("{" + members + "}" for _ in range(BODY_BYTES // (len(members) + 3)))
    lists = ",".join("[" + ",".join(["[]"] * 19_000) + "]" for _ in range(50))
    numbers = ",".join("[" + ",".join("0" * 19_000) + "]" for _ in range(75))
    begin = '{"metadata":{"name":"a"},"data":'
    return [
        ("application/yaml", filled("[", "a,", "a]")),
        ("application/yaml", filled("a: {b: [", "{},", "a]}")),
        ("application/yaml", filled("", "- a\n", "")),
        ("application/yaml", ("a: &a [" + "x," * 2000 + "x]\nb: [" + "*a," * 900_000 + "*a]").encode()),
        ("application/json", f"{begin}[{lists}]}}".encode()),
        ("application/json", f"{begin}[{numbers}]}}".encode()),
        ("application/json", f"{begin}[{groups}]}}".encode()),
        ("application/json", filled(begin, '{"a":', "")),
        (PROTOBUF, config_map_message(b"\x12\x00" * (BODY_BYTES // 2))),   # data, empty
        (PROTOBUF, config_map_message(b"\x7a\x00" * (BODY_BYTES // 2))),   # a field that there is not
        (PROTOBUF, config_map_message(field(1, b"\x6a\x00" * (BODY_BYTES // 2)))),  # ownerReferences, empty
    ]


class Stuck:
    """A connection that sends its bytes and reads no more than the kernel holds for it."""

    def __init__(self, address, data):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.socket.connect((host, int(port)))
        with contextlib.suppress(OSError):  # refused in its midst
            self.socket.sendall(data)

    def close(self):
        self.socket.close()


def in_parallel(count, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class HostileMemory(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tahoma-hostile-")
        self.addCleanup(shutil.rmtree, self.folder)
        identities = pathlib.Path(self.folder, "who.yaml")
        identities.touch(mode=0o600)
        identities.write_text(IDENTITIES)
        self.controller = StandaloneController(self.folder, "--identity-file", str(identities),
                                               "--audit-file", f"{self.folder}/audit", token=TOKENS["ops"])
        self.addCleanup(self.controller.stop)
        self.address = self.controller.api.removeprefix("http://")
        self.admin = self.controller.url.removeprefix("http://")
        self.crowd = []
        self.addCleanup(lambda: [one.close() for one in self.crowd])
        self.send("ed", "POST", MAPS, json.dumps({"metadata": {"name": "small"}}).encode(), patient=True)

    def send(self, who, method, path, body=None, content_type="application/json", patient=False, address=None):
        """The status of one request; patient callers come back when they are told to."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            connection = http.client.HTTPConnection(address or self.address, timeout=PATIENCE_SECONDS)
            try:
                connection.request(method, path, body, {"Authorization": f"Bearer {TOKENS[who]}", "Content-Type": content_type})
                status = connection.getresponse().status
            except OSError:  # a refusal may come before the body has gone
                status = 0
            finally:
                connection.close()
            if not patient or status not in (0, 429, 503):
                return status
            self.assertLess(time.monotonic(), deadline, f"{method} {path}: {status} to the end")
            time.sleep(0.05)

    def expect_service(self):
        """Whoever means well is served while others do not."""
        begin = time.monotonic()
        self.assertEqual(self.send("ed", "GET", f"{MAPS}/small", patient=True), 200)
        self.assertEqual(self.send("ed", "PUT", f"{MAPS}/small", b'{"metadata":{"name":"small"}}', patient=True), 200)
        self.assertEqual(self.send("ops", "GET", "/v1/nodes", patient=True, address=self.admin), 200)
        print(f"  served within {time.monotonic() - begin:.1f} s", flush=True)

    def expect_little_memory(self):
        self.assertIsNone(self.controller.process.poll())
        peak = peak_mib(self.controller.process.pid)
        print(f"peak of controller: {peak} MiB ({self.id().rsplit('.', 1)[-1]})", flush=True)
        self.assertLess(peak, PEAK_MIB_MOST)

    def beside(self, attack):
        """Runs the attack in a thread of its own while somebody else wants to be served."""
        thread = threading.Thread(target=attack)
        thread.start()
        self.expect_service()
        thread.join()
        self.expect_service()
        self.expect_little_memory()

    def test_texts_that_grow_when_they_are_read(self):
        bodies = wide_bodies()
        seen = set()

        def attack(worker):
            for i in range(len(bodies)):
                kind, body = bodies[(worker + i) % len(bodies)]
                seen.add(self.send("ed", "POST", MAPS, body, kind))
                seen.add(self.send("ed", "PATCH", f"{MAPS}/small?fieldManager=a", body, "application/apply-patch+yaml"))
                seen.add(self.send("ed", "PATCH", f"{MAPS}/small", body, "application/merge-patch+json"))
        self.beside(lambda: in_parallel(SENDERS, attack))
        self.assertLessEqual(seen, {0, 400, 413, 415, 422, 429, 503})

    def test_texts_of_who_may_do_nothing(self):
        bodies = wide_bodies()
        seen = set()

        def attack(worker):
            for i in range(len(bodies)):
                kind, body = bodies[(worker + i) % len(bodies)]
                seen.add(self.send("nobody", "POST", REVIEWS, body, kind))
                seen.add(self.send("nobody", "POST", MAPS, body, kind))
        self.beside(lambda: in_parallel(SENDERS, attack))
        self.assertLessEqual(seen, {0, 403, 413, 429, 503})

    def test_halves_of_bodies_and_heads(self):
        def attack(worker):
            head = (f"POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS['ed']}\r\n"
                    "Content-Type: application/json\r\nContent-Length: 3000000\r\n\r\n").encode()
            for _ in range(READERS // SENDERS):
                self.crowd.append(Stuck(self.address, head + b" " * BODY_BYTES))
                self.crowd.append(Stuck(self.address, b"GET / HTTP/1.1\r\nX: " + b"a" * 60_000))
                self.crowd.append(Stuck(self.admin, b"GET / HTTP/1.1\r\nX: " + b"a" * 60_000))
        self.beside(lambda: in_parallel(SENDERS, attack))

    def fill(self, objects, size):
        body = {"metadata": {}, "data": {"text": "x" * size}}

        def make(worker):
            for i in range(worker, objects, SENDERS):
                text = json.dumps({**body, "metadata": {"name": f"map-{i}"}}).encode()
                self.assertEqual(self.send("ed", "POST", MAPS, text, patient=True), 201)
        in_parallel(SENDERS, make)
        print(f"peak of controller before: {peak_mib(self.controller.process.pid)} MiB", flush=True)

    def read_nothing(self, *requests):
        def attack(worker):
            for i in range(READERS // SENDERS):
                path, accept = requests[i % len(requests)]
                self.crowd.append(Stuck(self.address, (f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n"
                                                  f"Authorization: Bearer {TOKENS['ed']}\r\n\r\n").encode()))
        self.beside(lambda: in_parallel(SENDERS, attack))

    def test_readers_of_nothing(self):
        self.fill(540, 100_000)
        self.read_nothing((MAPS, "application/json"))

    def test_readers_of_nothing_in_every_form(self):
        self.fill(540, 100_000)
        self.read_nothing((MAPS, "application/json"), (MAPS, PROTOBUF), (MAPS, TABLE), (MAPS, PARTIAL),
                          (f"{MAPS}?watch=true", "application/json"), (f"{MAPS}?watch=true", PROTOBUF))

    def test_readers_of_nothing_of_many_small_objects(self):
        self.fill(6_000, 1_000)
        self.read_nothing((MAPS, "application/json"), (MAPS, PROTOBUF), (MAPS, TABLE), (f"{MAPS}?watch=true", TABLE))

    def test_readers_of_nothing_of_large_objects(self):
        self.fill(50, 1_000_000)
        self.read_nothing((f"{MAPS}/map-1", "application/json"), (f"{MAPS}/map-2", PROTOBUF), (MAPS, "application/json"),
                          (f"{MAPS}?watch=true", "application/json"), (f"{MAPS}?watch=true", PROTOBUF),
                          ("/openapi/v3/api/v1", "application/json"))

    def test_bodies_of_the_admin_api(self):
        bodies = [filled("[", "0,", "0]", 300_000), filled("[", "[],", "0]", 300_000), filled("", "[", "", 300_000),
                  filled("", "A=", "", 300_000)]

        def attack(worker):
            for i in range(20):
                body = bodies[(worker + i) % len(bodies)]
                for path, kind in (("/v1/placements/default/a", "application/json"), ("/", "application/x-www-form-urlencoded"),
                                   ("/v1/nodes/a/cordon", "application/json")):
                    self.send("ops", "POST", path, body, kind, address=self.admin)
        self.beside(lambda: in_parallel(64, attack))


if __name__ == "__main__":
    assert os.environ.get("TAHOMA_BIN"), "TAHOMA_BIN is not set"
    unittest.main()
