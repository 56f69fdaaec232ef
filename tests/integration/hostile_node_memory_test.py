#!/usr/bin/env python3
"""Tests that strangers cost a sim-node and a controller little memory, and keep nobody out.

    hostile_node_memory_test.py         in the repository's root, with TAHOMA_BIN set

Prints the most memory that each program has had: "peak of sim-node: 41 MiB".
"""

import hashlib
import hmac
import http.server
import json
import os
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
ARGUMENTS, sys.argv = sys.argv, sys.argv[:1]  # with arguments it begins to steal
import thief  # noqa: E402
from standalone_controller import StandaloneController, ask  # noqa: E402
sys.argv = ARGUMENTS

PATIENCE_SECONDS = thief.TIMEOUT_SECONDS = 60
MIB = 1 << 20
PEAK_MIB_MOST = 512
PAYLOAD = 63 * MIB  # the wire's format allows 64
STRANGERS = 24
SILENT = 530  # more than a sim-node takes
READERS = 24
SECRET = "the secret of the nodes' logs"


def eventually(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def peak_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


def frame(method, params, payload_bytes):
    """The beginning of a call, up to its payload."""
    header = json.dumps({"id": 1, "method": method, "params": params}).encode()
    return b"TAHO" + struct.pack("<HHII", 1, 0, len(header), payload_bytes) + header


def dial(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


class Flood:
    """Connections that each send the same bytes and then hold on, until they are cut off or closed."""

    def __init__(self, path, count, start, payload_bytes):
        self.sent = 0
        self.done = 0
        self.lock = threading.Lock()
        self.connections = [dial(path) for _ in range(count)]
        self.threads = [threading.Thread(target=self.run, args=(c, start, payload_bytes)) for c in self.connections]
        for thread in self.threads:
            thread.start()

    def run(self, connection, start, payload_bytes):
        piece = bytes(MIB)
        try:
            connection.sendall(start)
            for _ in range(payload_bytes // MIB):
                connection.sendall(piece)
                with self.lock:
                    self.sent += MIB
        except OSError:
            pass  # cut off
        with self.lock:
            self.done += 1

    def close(self):
        for connection in self.connections:
            connection.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for connection in self.connections:
            connection.close()


class SimNodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="hostile"))
        (cls.folder / "private").mkdir(mode=0o700)
        cls.node_socket = str(cls.folder / "private/node.sock")
        cls.pods_socket = str(cls.folder / "pods/workload.sock")
        config = {"apiVersion": "tahoma.dev/v1alpha1", "kind": "SimNodeConfig", "nodeName": "n1",
                  "instanceType": "trn2.48xlarge", "networkLayers": ["nn-1", "nn-2", "nn-3"],
                  "nodeSocket": cls.node_socket, "workloadSocket": cls.pods_socket, "adminAddress": "127.0.0.1:0",
                  "portFile": str(cls.folder / "ports"), "stateDir": str(cls.folder / "state")}
        (cls.folder / "sim-node.yaml").write_text(json.dumps(config))
        cls.process = subprocess.Popen([os.path.join(os.environ["TAHOMA_BIN"], "sim-node"), "--config",
                                        str(cls.folder / "sim-node.yaml")])
        eventually((cls.folder / "ports").exists)
        grant = {"claimUid": "uid-a", "namespace": "default", "name": "a", "lnc": 2, "chips": [0, 1], "cores": [],
                 "ultraServerMode": 0}
        cls.token = thief.answer(cls.node_socket, "applyClaim", grant)[0]["token"]

    @classmethod
    def tearDownClass(cls):
        cls.process.terminate()
        cls.process.wait()
        shutil.rmtree(cls.folder)

    def setUp(self):
        # A pod that was there before, and keeps its connection.
        self.kept = dial(self.pods_socket)
        self.kept.settimeout(PATIENCE_SECONDS)
        self.addCleanup(self.kept.close)
        self.assert_served()

    def assert_served(self):
        """Of a pod both the kept connection and a new one are served."""
        self.kept.sendall(frame("devices", {"token": self.token}, 0))
        reply = self.kept.recv(16, socket.MSG_WAITALL)
        header = json.loads(self.kept.recv(struct.unpack("<I", reply[8:12])[0], socket.MSG_WAITALL))
        self.assertEqual(len(header["result"]["devices"]), 2)
        self.assertEqual(len(eventually(self.devices)), 2)

    def devices(self):
        """Of a new connection; none while so many others dial that the socket takes no more."""
        try:
            return thief.answer(self.pods_socket, "devices", {"token": self.token})[0]["devices"]
        except BlockingIOError:
            return None

    def assert_peak(self, attack):
        peak = peak_mib(self.process.pid)
        print(f"peak of sim-node: {peak} MiB ({attack})", flush=True)
        self.assertLess(peak, PEAK_MIB_MOST)

    def test_payloads_without_a_token_are_not_kept(self):
        for params in ({}, {"token": "0" * 32}):
            flood = Flood(self.pods_socket, STRANGERS, frame("memStore", params, PAYLOAD // 2), PAYLOAD // 2 - MIB)
            self.assert_served()
            eventually(lambda: flood.done == STRANGERS)
            self.assertGreater(flood.sent, 0)
            self.assert_served()
            flood.close()
        self.assert_peak("payloads without a token")

    def test_a_frame_over_the_sockets_bounds_is_not_read(self):
        flood = Flood(self.pods_socket, STRANGERS, frame("memStore", {}, PAYLOAD), PAYLOAD)
        eventually(lambda: flood.done == STRANGERS)
        self.assertLess(flood.sent, STRANGERS * 8 * MIB)
        self.assert_served()
        flood.close()
        self.assert_peak("frames over the bounds")

    def test_one_pods_payloads_share_a_bound_and_hold_up_no_other_pod(self):
        start = frame("memStore", {"token": self.token, "chip": 0, "address": 0}, 32 * MIB)
        flood = Flood(self.pods_socket, STRANGERS, start, 31 * MIB)
        self.assert_served()
        eventually(lambda: flood.sent >= 31 * MIB)
        self.assert_served()
        flood.close()
        self.assert_peak("payloads with a token")

    def test_replies_that_are_not_read_share_a_bound(self):
        start = frame("memLoad", {"token": self.token, "chip": 0, "address": 0, "bytes": 32 * MIB}, 0)
        flood = Flood(self.pods_socket, STRANGERS, start, 0)
        eventually(lambda: select.select(flood.connections, [], [], 0)[0])  # the first reply has begun
        self.assert_served()
        flood.close()
        self.assert_peak("replies that are not read")

    def test_silent_connections_keep_no_pod_out(self):
        silent = [dial(self.pods_socket) for _ in range(SILENT)]
        for _ in range(20):
            self.assert_served()
        for connection in silent:
            connection.close()
        self.assert_peak("silent connections")


class HostileLogs(http.server.BaseHTTPRequestHandler):
    """The log server of a node that means harm: /containerLogs/default/POD/main does what POD says."""

    tokens = []

    def do_GET(self):
        self.tokens.append(self.headers.get("Authorization", ""))
        pod = self.path.split("/")[3]
        try:
            if pod == "head":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nA: ")
            else:
                self.send_response(404 if pod == "refusal" else 200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
            while True:
                self.wfile.write(b"<script>" * 8192)
        except OSError:
            pass  # it was cut off

    def log_message(self, *arguments):
        pass


class ControllerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="hostile"))
        secret = cls.folder / "secret"
        secret.write_text(SECRET + "\n")
        secret.chmod(0o600)
        cls.controller = StandaloneController(cls.folder, "--node-token-file", str(secret))
        cls.node = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HostileLogs)
        cls.node.daemon_threads = True
        threading.Thread(target=cls.node.serve_forever, daemon=True).start()
        cls.controller.make_node("n1")
        cls.controller.send("PATCH", "/api/v1/nodes/n1/status", {"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": cls.node.server_port}}}})
        for name in ("page", "head", "refusal"):
            cls.controller.send("POST", "/api/v1/namespaces/default/pods", {
                "metadata": {"name": name},
                "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "x"}]}})

    @classmethod
    def tearDownClass(cls):
        cls.controller.stop()
        cls.node.shutdown()
        cls.node.server_close()
        shutil.rmtree(cls.folder)

    def read(self, pod, query=""):
        """A reader of a log, which reads no more than it is told to."""
        host, port = self.controller.api.removeprefix("http://").split(":")
        reader = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
        reader.sendall(f"GET /api/v1/namespaces/default/pods/{pod}/log{query} HTTP/1.1\r\n"
                       f"Host: {host}:{port}\r\n\r\n".encode())
        return reader

    def assert_peak(self, attack):
        peak = peak_mib(self.controller.process.pid)
        print(f"peak of controller: {peak} MiB ({attack})", flush=True)
        self.assertLess(peak, PEAK_MIB_MOST)

    def assert_served(self):
        self.assertEqual(ask("GET", self.controller.api + "/api/v1/nodes")[0], 200)

    def test_a_log_without_end_stays_with_its_node_until_its_reader_takes_it(self):
        readers = [self.read("page", query) for query in ("", "?follow=true") for _ in range(READERS)]
        for reader in readers:
            head = b""
            while b"\r\n\r\n" not in head:
                head += reader.recv(4096)
            self.assertIn(b"200", head.splitlines()[0])
            self.assertIn(b"Content-Type: text/plain\r\n", head)
            self.assertIn(b"X-Content-Type-Options: nosniff\r\n", head)
        self.assert_served()
        readers.append(self.read("page"))
        taken = 0
        while taken < 64 * MIB:  # and whoever takes it gets it
            taken += len(readers[-1].recv(MIB))
        self.assert_peak("logs without end")
        for reader in readers:
            reader.close()

    def test_heads_and_refusals_without_end_are_errors(self):
        for pod in ("head", "refusal"):
            readers = [self.read(pod) for _ in range(READERS)]
            for reader in readers:
                self.assertIn(b" 500 ", reader.recv(4096).splitlines()[0])
                reader.close()
        self.assert_served()
        self.assert_peak("heads and refusals without end")

    def test_a_port_that_a_node_names_learns_no_more_than_that_nodes_token(self):
        with self.read("page") as reader:
            reader.recv(1)
        own = hmac.new(SECRET.encode(), b"node-logs/n1", hashlib.sha256).hexdigest()
        self.assertEqual(set(HostileLogs.tokens), {f"Bearer {own}"})


if __name__ == "__main__":
    unittest.main()
