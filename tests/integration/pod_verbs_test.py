#!/usr/bin/env python3
"""Tests what people do in a running pod, with the real kubectl and by hand: exec, cp, attach, run -i, port-forward, top, debug.

    pod_verbs_test.py              in the repository's root, with KUBECTL and TAHOMA_BIN set

A controller and one node as `make up` starts them. By hand means bytes on a socket: half handshakes, frames without
masks, lengths of 64 bits, and a caller without the right. Where `.ci/setup` made a Python with the official client,
its stream() and portforward() are tried, too, and where there is npm Exec and PortForward of the JavaScript client.
"""

import base64
import http.client
import importlib.util
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PATIENCE_SECONDS = 60
NODE = "trn2-small-0"
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  nodeName: {node}
  containers:
  - name: main
    image: busybox
    command: {command}
    env: [{{name: GREETING, value: hello}}]
    stdin: {stdin}
"""
SERVE = ["python3", "-m", "http.server", "--bind", "127.0.0.1"]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


UP = load(ROOT / "examples/local/up.py")


def eventually(condition, what="it"):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen in time")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """One for all tests of this file."""

    folder = None

    @classmethod
    def start(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbs"))
        cls.dir = cls.folder / "t"
        topology = {"networkLayers": ["nn-1", "nn-2", "nn-3"], "nodes": [{"name": NODE, "instanceType": "trn2.3xlarge"}]}
        (cls.folder / "topology.json").write_text(json.dumps(topology))
        make_node = UP.node_config

        def with_python(*arguments, **options):
            config = make_node(*arguments, **options)
            config["podRunner"]["images"]["busybox"]["commands"]["python3"] = shutil.which("python3")
            return config

        UP.node_config = with_python
        make_identities = UP.identity_file

        def with_people(directory, given):
            path = make_identities(directory, given)
            people = json.loads(path.read_text())
            for name, role in (("reader", "view"), ("editor", "edit")):
                people["identities"].append({"name": name, "role": role, "namespaces": ["default"],
                                             "tokenSha256": UP.hashlib.sha256(f"{name}-token-of-32-characters-or-more".encode()).hexdigest()})
            return UP.write_private(path, json.dumps(people))

        UP.identity_file = with_people
        sys.argv = ["up.py", str(cls.dir), "--topology", str(cls.folder / "topology.json"), "--quiet"]
        UP.main()
        kubectl("create", "namespace", "other")
        for name, namespace in (("box", "default"), ("far", "other")):
            make_pod(name, ["sleep", "3600"], namespace=namespace)

    @classmethod
    def stop(cls):
        subprocess.call([sys.executable, str(ROOT / "examples/local/down.py"), str(cls.dir)])
        shutil.rmtree(cls.folder)


def command_line(*arguments):
    return [os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", str(Cluster.dir / "kubeconfig"), *arguments]


def kubectl(*arguments, stdin=b"", timeout=60):
    return subprocess.run(command_line(*arguments), input=stdin, capture_output=True, check=False, timeout=timeout)


def make_pod(name, command, namespace="default", stdin=False):
    text = POD.format(name=name, namespace=namespace, node=NODE, command=json.dumps(command), stdin=json.dumps(stdin))
    made = kubectl("apply", "-f", "-", stdin=text.encode())
    assert made.returncode == 0, made.stderr
    eventually(lambda: kubectl("get", "pod", name, "-n", namespace, "-o", "jsonpath={.status.phase}").stdout in (b"Running", b"Succeeded"),
               f"{name} running")


def api():
    config = json.loads((Cluster.dir / "kubeconfig").read_text())
    return config["clusters"][0]["cluster"]["server"].removeprefix("https://"), (Cluster.dir / "admin.token").read_text()


def connect():
    address, _ = api()
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=str(Cluster.dir / "tls.crt"))
    return context.wrap_socket(socket.create_connection((host, int(port)), timeout=30), server_hostname=host)


def status_for(who, method, path, patch=None):
    """Returns the status of a person's request."""
    address, _ = api()
    context = ssl.create_default_context(cafile=str(Cluster.dir / "tls.crt"))
    door = http.client.HTTPSConnection(address, timeout=30, context=context)
    door.request(method, path, body=patch, headers={"Authorization": f"Bearer {who}-token-of-32-characters-or-more",
                                                    "Content-Type": "application/strategic-merge-patch+json"})
    status = door.getresponse().status
    door.close()
    return status


def shake_hands(path, token=None, **others):
    """Returns the socket, the status and what came after the head."""
    headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {token or api()[1]}", "Connection": "Upgrade", "Upgrade": "websocket",
               "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
               "Sec-WebSocket-Protocol": "v5.channel.k8s.io", **{k.replace("_", "-"): v for k, v in others.items()}}
    wire = connect()
    wire.sendall(f"GET {path} HTTP/1.1\r\n".encode() + b"".join(f"{k}: {v}\r\n".encode() for k, v in headers.items() if v is not None) + b"\r\n")
    got = b""
    while b"\r\n\r\n" not in got:
        piece = wire.recv(4096)
        if not piece:
            break
        got += piece
    head, _, rest = got.partition(b"\r\n\r\n")
    return wire, int(head.split()[1]) if head else 0, rest


def frame(payload, opcode=2, mask=b"\1\2\3\4", fin=True):
    size = len(payload)
    length = bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 65536 else b"\x7f" + struct.pack(">Q", size)
    head = bytes([(0x80 if fin else 0) | opcode, length[0] | (0x80 if mask else 0)]) + length[1:]
    if not mask:
        return head + payload
    return head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))


def read_frames(wire, rest=b""):
    """Reads until the other side ends: (opcode, payload) each."""
    frames = []
    try:
        while piece := wire.recv(65536):
            rest += piece
    except (OSError, ssl.SSLError):
        pass
    while len(rest) >= 2:
        size, at = rest[1] & 0x7F, 2
        if size == 126:
            size, at = struct.unpack(">H", rest[2:4])[0], 4
        elif size == 127:
            size, at = struct.unpack(">Q", rest[2:10])[0], 10
        frames.append((rest[0] & 0xF, rest[at:at + size]))
        rest = rest[at + size:]
    return frames


EXEC = "/api/v1/namespaces/default/pods/box/exec?container=main&stdout=true&stderr=true"


class ExecTest(unittest.TestCase):
    def test_prints_both_streams_and_ends_with_the_programs_status(self):
        done = kubectl("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
        self.assertEqual((done.stdout, done.returncode), (b"out\n", 7))
        self.assertIn(b"err\n", done.stderr)
        self.assertIn(b"command terminated with exit code 7", done.stderr)

    def test_has_the_environment_and_folder_of_the_container(self):
        done = kubectl("exec", "box", "--", "sh", "-c", "echo $GREETING $HOSTNAME $PWD; id -u")
        words, user = done.stdout.decode().splitlines()
        self.assertRegex(words, r"^hello box /.*/main/work$")
        self.assertEqual(user != "0", os.geteuid() == 0)

    def test_takes_stdin_of_any_length_until_its_end(self):
        text = os.urandom(3_000_000)
        self.assertEqual(kubectl("exec", "-i", "box", "--", "cat", stdin=text).stdout, text)
        self.assertEqual(kubectl("exec", "-i", "box", "--", "wc", "-c", stdin=text).stdout.strip(), b"3000000")

    def test_says_which_program_is_missing(self):
        done = kubectl("exec", "box", "--", "no-such-program")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b'exec: "no-such-program": executable file not found in $PATH', done.stderr)

    def test_says_which_container_or_pod_is_missing(self):
        self.assertIn(b'container nobody is not valid for pod box', kubectl("exec", "box", "-c", "nobody", "--", "true").stderr)
        self.assertIn(b'pods "nobody" not found', kubectl("exec", "nobody", "--", "true").stderr)

    def test_gives_a_terminal(self):
        ours, theirs = pty.openpty()
        child = subprocess.Popen(command_line("exec", "-it", "box", "--", "sh", "-c", "tty; stty size; read x; echo got $x"),
                                 stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        said = b""
        os.write(ours, b"word\n")
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
        self.assertEqual(child.wait(PATIENCE_SECONDS), 0)
        self.assertIn(b"/dev/pts/", said)
        self.assertIn(b"got word", said)

    def test_ends_with_its_client(self):
        child = subprocess.Popen(command_line("exec", "box", "--", "sh", "-c", "echo $$; exec sleep 1000"), stdout=subprocess.PIPE)
        number = int(child.stdout.readline())
        self.assertTrue(pathlib.Path(f"/proc/{number}").exists())
        child.kill()
        child.wait()
        child.stdout.close()
        eventually(lambda: not pathlib.Path(f"/proc/{number}").exists(), "the program's end")

    def test_copies_files_both_ways(self):
        source = Cluster.folder / "source"
        source.mkdir()
        (source / "a").write_bytes(os.urandom(1_500_000))
        (source / "b").write_text("b\n")
        target = kubectl("exec", "box", "--", "pwd").stdout.decode().strip() + "/copied"
        sent = kubectl("cp", str(source), f"box:{target}")
        self.assertEqual(sent.returncode, 0, sent.stderr)
        back = Cluster.folder / "back"
        got = kubectl("cp", f"box:{target}", str(back))
        self.assertEqual(got.returncode, 0, got.stderr)
        for name in ("a", "b"):
            self.assertEqual((back / name).read_bytes(), (source / name).read_bytes())


class AttachTest(unittest.TestCase):
    def test_run_prints_what_the_program_says_and_removes_the_pod(self):
        done = kubectl("run", "hi", "-i", "--rm", "--restart=Never", "--image=busybox", "--", "echo", "hi", timeout=PATIENCE_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"hi\n", done.stdout)
        self.assertIn(b"NotFound", kubectl("get", "pod", "hi").stderr)

    def test_run_passes_stdin_to_the_program(self):
        done = kubectl("run", "sum", "-i", "--rm", "--restart=Never", "--image=busybox", "--", "wc", "-l", stdin=b"a\nb\n" * 1000,
                       timeout=PATIENCE_SECONDS)
        self.assertIn(b"2000\n", done.stdout)

    def test_sees_what_the_container_says_from_now_on(self):
        make_pod("echoes", ["sh", "-c", "while read x; do echo got $x; done"], stdin=True)
        child = subprocess.Popen(command_line("attach", "-i", "echoes"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdin.write(b"one\n")
        child.stdin.flush()
        self.assertEqual(child.stdout.readline(), b"got one\n")
        child.stdin.close()
        child.kill()
        child.wait()
        child.stdout.close()
        # stdinOnce is false: the container waits for the next.
        self.assertEqual(kubectl("get", "pod", "echoes", "-o", "jsonpath={.status.phase}").stdout, b"Running")
        self.assertEqual(kubectl("logs", "echoes").stdout, b"got one\n")


class PortForwardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port = free_port()
        make_pod("web", [*SERVE, str(cls.port)])

    def forward(self, *arguments):
        child = subprocess.Popen(command_line("port-forward", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = child.stdout.readline().decode()
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        found = re.search(r":(\d+) ->", line)
        self.assertTrue(found, line + (child.stderr.read().decode() if not line else ""))
        return int(found[1]), child

    def test_reaches_a_port_again_and_again(self):
        ours, _ = self.forward("pod/web", f":{self.port}")
        for _ in range(5):
            page = eventually(lambda: self.get(ours))
            self.assertIn(b"Directory listing", page)

    @staticmethod
    def listens(port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    @staticmethod
    def get(port):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
                return answer.read()
        except OSError:
            return None

    def test_says_that_nobody_listens(self):
        ours, child = self.forward("pod/box", f":{self.port}")
        with socket.create_connection(("127.0.0.1", ours), timeout=20) as wire:
            wire.sendall(b"GET / HTTP/1.0\r\n\r\n")
            self.assertEqual(wire.recv(100), b"")
        self.assertIn("no process of the pod listens on port", child.stderr.readline().decode())


class HostileTest(unittest.TestCase):
    def test_half_handshakes_are_refused(self):
        for others in ({"Sec_WebSocket_Key": None}, {"Sec_WebSocket_Key": "short"}, {"Sec_WebSocket_Version": "8"},
                       {"Sec_WebSocket_Protocol": "chat"}, {"Upgrade": None}):
            wire, status, _ = shake_hands(EXEC + "&command=true", **others)
            self.assertEqual(status, 400, others)
            wire.close()

    def test_spdy_is_refused_with_a_sentence(self):
        wire, status, rest = shake_hands(EXEC + "&command=true", Upgrade="SPDY/3.1")
        self.assertEqual(status, 400)
        while b"}" not in rest and (piece := wire.recv(4096)):
            rest += piece
        self.assertIn(b"SPDY is not served; use WebSocket", rest)
        wire.close()

    def test_frames_without_masks_of_64_bits_and_of_no_known_kind_end_the_session(self):
        bad = (frame(b"\0abc", mask=None), b"\x82\xff" + b"\xff" * 8 + b"\1\2\3\4", frame(b"x", opcode=5), frame(b"\0", opcode=0),
               b"\x89\xfe\x10\x00" + b"\1\2\3\4" + b"x" * 4096)
        for text in bad:
            wire, status, rest = shake_hands(EXEC + "&stdin=true&command=cat")
            self.assertEqual(status, 101)
            wire.sendall(text)
            frames = read_frames(wire, rest)
            self.assertTrue(any(opcode == 8 for opcode, _ in frames) or frames == [] or frames[-1][0] == 2, (text[:20], frames))
            wire.close()
        self.assertEqual(kubectl("exec", "box", "--", "echo", "alive").stdout, b"alive\n")

    def test_readers_and_people_of_other_namespaces_may_not(self):
        far = EXEC.replace("/default/pods/box", "/other/pods/far")
        for who, path, expected in (("reader", EXEC, 403), ("editor", EXEC, 101), ("editor", far, 403)):
            wire, status, _ = shake_hands(path + "&command=true", token=f"{who}-token-of-32-characters-or-more")
            self.assertEqual(status, expected, (who, path))
            wire.close()
        wire, status, _ = shake_hands(EXEC + "&command=true", token="nobody")
        self.assertEqual(status, 401)
        wire.close()

    def test_the_nodes_door_takes_no_other_token(self):
        ports = (Cluster.dir / "n" / NODE / "ports.yaml").read_text()
        host, port = re.search(r'logAddress: "(.*):(\d+)"', ports).groups()
        for token in (api()[1], "f" * 64):
            door = http.client.HTTPConnection(host, int(port), timeout=20)
            door.request("GET", "/exec/default/box/main?command=true", headers={"Authorization": f"Bearer {token}"})
            self.assertEqual(door.getresponse().status, 401)
            door.close()

    def test_200_sessions_at_once_and_one_too_many(self):
        open_wires = []
        statuses = []
        lock = threading.Lock()

        def one():
            wire, status, _ = shake_hands(EXEC + "&stdin=true&command=cat")
            with lock:
                open_wires.append(wire)
                statuses.append(status)

        threads = [threading.Thread(target=one) for _ in range(205)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertGreaterEqual(statuses.count(101), 195, statuses)
        self.assertIn(429, statuses)
        for wire in open_wires:
            wire.close()
        eventually(lambda: kubectl("exec", "box", "--", "echo", "alive").stdout == b"alive\n", "room again")


class TopTest(unittest.TestCase):
    def test_shows_what_pods_and_nodes_use(self):
        make_pod("busy", ["sh", "-c", "while true; do :; done"])
        self.addCleanup(kubectl, "delete", "pod", "busy", "--wait=false")

        def cores():
            done = kubectl("top", "pod", "busy", "--no-headers")
            return done.returncode == 0 and int(done.stdout.split()[1].removesuffix(b"m")) > 20

        eventually(cores, "a pod that works, in kubectl top")
        rows = {row.split()[0]: row.split() for row in kubectl("top", "pods", "--no-headers").stdout.decode().splitlines()}
        self.assertIn("box", rows)
        self.assertRegex(rows["busy"][2], r"^\d+Mi$")
        everywhere = kubectl("top", "pods", "-A").stdout.decode()
        self.assertRegex(everywhere, r"(?m)^other +far +\d+m +\d+Mi")
        self.assertRegex(kubectl("top", "pods", "-n", "other", "--containers", "--no-headers").stdout.decode(), r"^far +main +\d+m")
        node = kubectl("top", "nodes", "--no-headers").stdout.decode().split()
        self.assertEqual(node[0], NODE)
        self.assertRegex(node[2], r"^\d+%$")
        self.assertIn(b"busy", kubectl("get", "pods.metrics.k8s.io").stdout)

    def test_says_that_there_are_no_numbers_yet(self):
        text = POD.format(name="early", namespace="default", node=NODE, command='["sleep", "3600"]', stdin="false")
        kubectl("apply", "-f", "-", stdin=text.replace("image: busybox", "image: no-such-image").encode())
        self.addCleanup(kubectl, "delete", "pod", "early", "--wait=false")
        self.assertIn(b'"early" not found', kubectl("top", "pod", "early").stderr)
        kubectl("label", "pod", "early", "numbers=none")
        self.assertIn(b"metrics not available yet", kubectl("top", "pods", "-l", "numbers=none").stderr)

    def test_a_node_that_is_silent_is_left_out(self):
        number = int((Cluster.dir / "pids" / f"{NODE}.sim-node").read_text())
        os.kill(number, signal.SIGSTOP)
        try:
            silent = kubectl("top", "nodes", "--request-timeout=20s")
        finally:
            os.kill(number, signal.SIGCONT)
        self.assertIn(b"metrics not available yet", silent.stderr)
        self.assertEqual(kubectl("top", "nodes", "--no-headers").stdout.split()[:1], [NODE.encode()])

    def test_readers_see_the_numbers_of_their_namespace(self):
        for namespace, expected in (("default", 200), ("other", 403)):
            self.assertEqual(status_for("reader", "GET", f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"), expected, namespace)


def statuses_of(pod):
    text = kubectl("get", "pod", pod, "-o", "jsonpath={.status.ephemeralContainerStatuses}").stdout
    return {one["name"]: one["state"] for one in json.loads(text or b"[]")}


def debug(pod, name, *arguments, command=()):
    done = kubectl("debug", pod, "--image=busybox", "--profile=general", "-c", name, *arguments, "--", *command)
    assert done.returncode == 0, done.stderr
    eventually(lambda: not {"waiting"} & set(statuses_of(pod).get(name, {"waiting": 0})), f"the start of {name}")


class DebugTest(unittest.TestCase):
    def test_runs_a_command_beside_the_containers(self):
        make_pod("sick", ["sleep", "3600"])
        debug("sick", "note", command=["sh", "-c", "echo in $HOSTNAME; exit 3"])
        eventually(lambda: "terminated" in statuses_of("sick")["note"], "the end of the command")
        self.assertEqual(statuses_of("sick")["note"]["terminated"]["exitCode"], 3)
        self.assertEqual(kubectl("logs", "sick", "-c", "note").stdout, b"in sick\n")
        self.assertEqual(kubectl("get", "pod", "sick", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].ready}").stdout,
                         b"Running true")
        kubectl("delete", "pod", "sick", timeout=PATIENCE_SECONDS)

    def test_gives_a_terminal_in_the_pod(self):
        make_pod("patient", ["sleep", "3600"])
        ours, theirs = pty.openpty()
        child = subprocess.Popen(command_line("debug", "pod/patient", "-it", "--image=busybox", "--profile=general", "--target=main", "--", "sh"),
                                 stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        said = b""

        def read_until(text):
            nonlocal said
            deadline = time.monotonic() + PATIENCE_SECONDS
            while text not in said and time.monotonic() < deadline:
                try:
                    piece = os.read(ours, 4096)
                except OSError:
                    break
                if not piece:
                    break
                said += piece
            self.assertIn(text, said)

        eventually(lambda: any("running" in state for state in statuses_of("patient").values()), "the shell")
        os.write(ours, b"echo $((40+2))-$HOSTNAME; tty; exit\n")
        read_until(b"42-patient")
        read_until(b"/dev/pts/")
        self.assertEqual(child.wait(PATIENCE_SECONDS), 0)
        os.close(ours)
        kubectl("delete", "pod", "patient", timeout=PATIENCE_SECONDS)

    def test_a_debugger_can_be_entered_and_ends_with_its_pod(self):
        make_pod("deaf", ["sleep", "3600"])
        debug("deaf", "stubborn", "-i", "--attach=false", command=["sh", "-c", "trap '' TERM; echo $$$$; while true; do sleep 1; done"])
        self.assertEqual(kubectl("exec", "deaf", "-c", "stubborn", "--", "echo", "inside").stdout, b"inside\n")
        number = int(eventually(lambda: kubectl("logs", "deaf", "-c", "stubborn").stdout, "its number"))
        self.assertTrue(pathlib.Path(f"/proc/{number}").exists())
        self.assertEqual(kubectl("delete", "pod", "deaf", timeout=PATIENCE_SECONDS).returncode, 0)
        eventually(lambda: not pathlib.Path(f"/proc/{number}").exists(), "its end")

    def test_fifty_debuggers_of_one_pod(self):
        make_pod("crowd", ["sleep", "3600"])
        many = {"spec": {"ephemeralContainers": [{"name": f"d{i}", "image": "busybox", "command": ["sleep", "3600"]} for i in range(50)]}}
        done = kubectl("patch", "pod", "crowd", "--subresource=ephemeralcontainers", "-p", json.dumps(many))
        self.assertEqual(done.returncode, 0, done.stderr)
        eventually(lambda: sum("running" in state for state in statuses_of("crowd").values()) == 50, "fifty debuggers")
        self.assertEqual(kubectl("delete", "pod", "crowd", timeout=PATIENCE_SECONDS).returncode, 0)

    def test_a_copy_is_a_pod_of_its_own(self):
        done = kubectl("debug", "box", "--copy-to=copy", "--same-node", "--image=busybox", "--profile=general", "-c", "more", "--", "echo", "copied")
        self.assertEqual(done.returncode, 0, done.stderr)
        eventually(lambda: kubectl("logs", "copy", "-c", "more").stdout == b"copied\n", "the copy's word")
        kubectl("delete", "pod", "copy", "--wait=false")

    def test_a_node_is_debugged_by_a_pod_on_it(self):
        done = kubectl("debug", f"node/{NODE}", "--image=busybox", "--profile=general", "--", "sh", "-c", "echo on $HOSTNAME")
        self.assertEqual(done.returncode, 0, done.stderr)
        pod = re.search(rb"debugging pod (\S+)", done.stderr + done.stdout)[1].decode()
        eventually(lambda: kubectl("logs", pod).stdout.startswith(b"on "), "its word")
        self.assertEqual(kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}").stdout.decode(), NODE)
        kubectl("delete", "pod", pod, "--wait=false")

    def test_readers_and_people_of_other_namespaces_may_not(self):
        patch = json.dumps({"spec": {"ephemeralContainers": [{"name": "x", "image": "busybox"}]}})
        for who, namespace, pod, expected in (("reader", "default", "box", 403), ("editor", "default", "box", 200), ("editor", "other", "far", 403)):
            path = f"/api/v1/namespaces/{namespace}/pods/{pod}/ephemeralcontainers?dryRun=All"
            self.assertEqual(status_for(who, "PATCH", path, patch), expected, (who, namespace))


def make_web():
    """A pod that serves a folder, once; returns its port."""
    if not hasattr(make_web, "port"):
        make_web.port = free_port()
        make_pod("pages", [*SERVE, str(make_web.port)])
    return make_web.port


PYTHON = """
import sys
from kubernetes import client, config, stream
config.load_kube_config(sys.argv[1])
port = int(sys.argv[2])
core = client.CoreV1Api()
print(stream.stream(core.connect_get_namespaced_pod_exec, "box", "default", command=["echo", "hi"], stdout=True, stderr=True), end="")
talk = stream.stream(core.connect_get_namespaced_pod_exec, "box", "default", command=["sh", "-c", "read x; echo got $x; exit 3"],
                     stdin=True, stdout=True, stderr=True, _preload_content=False)
talk.write_stdin("word\\n")
talk.run_forever(timeout=30)
print(talk.read_stdout(), talk.returncode)
forward = stream.portforward(core.connect_get_namespaced_pod_portforward, "pages", "default", ports=f"{port},1")
wire = forward.socket(port)
wire.setblocking(True)
wire.settimeout(30)
wire.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
page = b""
while piece := wire.recv(65536):
    page += piece
print(b"Directory listing" in page, forward.error(port))
print(forward.error(1))
"""

JAVASCRIPT = """
import net from "node:net";
import { PassThrough } from "node:stream";
import { Exec, KubeConfig, PortForward } from "@kubernetes/client-node";

const config = new KubeConfig();
config.loadFromDefault();
const input = new PassThrough();
const output = new PassThrough();
let said = "";
output.on("data", (piece) => { said += piece; });
const status = new Promise((resolve) => {
  new Exec(config).exec("default", "box", "main", ["sh", "-c", "cat; exit 3"], output, null, input, false, resolve);
});
input.write("word ");
input.end("and end");
const ended = await status;
console.log(said, ended.reason, ended.details.causes[0].message);
const server = net.createServer((wire) => {
  new PortForward(config).portForward("default", "pages", [Number(process.env.PORT)], wire, null, wire);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const wire = net.connect(server.address().port, "127.0.0.1");
wire.write("GET / HTTP/1.0\\r\\n\\r\\n");
let page = "";
await new Promise((resolve) => wire.on("data", (piece) => {
  page += piece;
  if (page.includes("</html>")) resolve();
}));
console.log(page.includes("Directory listing"));
process.exit(0);
"""


class OtherClientsTest(unittest.TestCase):
    def test_stream_and_portforward_of_the_python_client(self):
        python = subprocess.run([".ci/python", "--find"], cwd=ROOT, capture_output=True, text=True, check=False)
        if python.returncode != 0:
            self.skipTest(python.stderr)
        port = make_web()
        eventually(lambda: PortForwardTest.listens(port), "a web server")
        done = subprocess.run([python.stdout.strip(), "-c", PYTHON, str(Cluster.dir / "kubeconfig"), str(port)], capture_output=True, text=True,
                              check=False, timeout=PATIENCE_SECONDS)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:4], ["hi", "got word", " 3", "True None"], done.stderr)
        self.assertIn("error forwarding port 1 to pod pages: no process of the pod listens on port 1", lines[4])

    def test_exec_and_port_forward_of_the_javascript_client(self):
        built = subprocess.run(["tests/clients/login/build.sh", "javascript"], cwd=ROOT, capture_output=True, text=True, check=False)
        if built.returncode == 77:
            self.skipTest(built.stderr)
        node, program = built.stdout.split()
        port = make_web()
        eventually(lambda: PortForwardTest.listens(port), "a web server")
        done = subprocess.run([node, "--input-type=module", "-e", JAVASCRIPT], cwd=pathlib.Path(program).parent, capture_output=True, text=True,
                              check=False, timeout=PATIENCE_SECONDS,
                              env={**os.environ, "KUBECONFIG": str(Cluster.dir / "kubeconfig"), "PORT": str(port)})
        self.assertEqual(done.stdout, "word and end NonZeroExitCode 3\ntrue\n", done.stderr)


def setUpModule():
    Cluster.start()


def tearDownModule():
    Cluster.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
