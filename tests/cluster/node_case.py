"""Tests of nodes with a real kubelet, containerd and runc: what a node holds, and how they ask and wait.

    class LifeTest(NodeCase):
        @classmethod
        def setUpClass(cls):
            cls.bring_up({"networkLayers": [], "nodes": [{"name": "trn2-0", "instanceType": "trn2.48xlarge"}]})

Who holds which claim is asked of sim-node, which knows neither the API server nor the kubelet; what is allocated, of
the API server.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import tempfile
import time
import unittest
import urllib.request

import control_plane
import ground as grounds
import kubectl
import up

PATIENCE_SECONDS = 120
BIN = pathlib.Path(os.environ.get("TAHOMA_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/release/bin")).resolve()


class Node:
    """The node's programs and what they hold."""

    def __init__(self, ground, name):
        self.name = name
        self.state, self.cluster, self.bin = ground.directory / "t", ground.directory / "k", ground.bin
        self.place = self.state / "n" / self.name
        self.cdi = self.cluster / "nodes" / self.name / "cdi"
        self.options = {}

    def directory_of(self, program):
        return self.cluster if program in ("kubelet", "containerd") else self.state

    def kill(self, program):
        control_plane.stop(self.directory_of(program), f"{self.name}.{program}")

    def pid(self, program):
        return int((self.directory_of(program) / "pids" / f"{self.name}.{program}").read_text())

    def start(self, program, before=()):
        """As it was started before; the plugin with `options`. `before`: a command that starts what follows it."""
        if program in ("kubelet", "containerd"):
            return control_plane.start_again(self.cluster, f"{self.name}.{program}")
        config = self.place / f"{program}.yaml"
        if program == "dra-plugin":
            up.write_config(config, {**json.loads(config.read_text()), **self.options})
        return up.start(self.state, f"{self.name}.{program}", [*before, self.bin / program, "--config", config])

    def claims(self):
        """The claims that sim-node has given cores to, by uid."""
        address = re.search(r"adminAddress: *\"?([^\s\"]+)", (self.place / "ports.yaml").read_text())[1]
        request = urllib.request.Request(f"http://{address}/v1/state", headers={
            "Authorization": "Bearer " + (self.place / "admin.token").read_text().strip()})
        with urllib.request.urlopen(request) as answer:
            return {claim["uid"] for claim in json.load(answer)["claims"]}

    def cdi_claims(self):
        return {re.fullmatch(r"neuron.aws.com-device_(.+)\.json", file.name)[1] for file in self.cdi.glob("neuron*.json")}

    def written(self):
        """What the plugin has written last: its files, by name, with inode and time."""
        seen = set()
        for folder in (self.place / "plug", self.cdi):
            for file in folder.rglob("*"):
                with contextlib.suppress(OSError):
                    about = file.stat()
                    seen.add((file, about.st_ino, about.st_mtime_ns))
        return seen

    def kill_plugin_at_change(self, count, done):
        """Kills the plugin right after its `count`-th write from now on, at the latest when `done` holds."""
        last, changes, pid, looked = self.written(), 0, self.pid("dra-plugin"), time.monotonic()
        while changes < count:
            now = self.written()
            changes, last = changes + (now != last), now
            if time.monotonic() > looked + 1:
                if done():
                    break
                looked = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        self.kill("dra-plugin")
        return changes


class NodeCase(unittest.TestCase):
    """`environment`: of the ground; `nodes`: what a failure shows of."""

    environment, nodes = None, ()

    @classmethod
    def bring_up(cls, topology, **options):
        """Starts a ground of real kubelets for the class; `options` are the Ground's. Returns the ground."""
        scratch = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="tn")))
        (scratch / "topology.json").write_text(json.dumps(topology))
        ground = grounds.Ground("node", BIN, topology=scratch / "topology.json", **options)
        cls.environment = cls.enterClassContext(ground)
        cls.nodes = [Node(ground, node["name"]) for node in topology["nodes"]]
        return ground

    def kubectl(self, *arguments, **options):
        return kubectl.kubectl(*arguments, environment=self.environment, **options)

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": objects})

    def get(self, *what):
        return json.loads(self.kubectl("get", *what, "-o", "json"))

    def until(self, what, condition):
        def state():
            held = {node.name: (node.claims(), node.cdi_claims()) for node in self.nodes}
            return (f"; claims in sim-node and in CDI files: {held}\n"
                    f"{self.kubectl('get', 'pods,resourceclaims', '-o', 'wide')}\n{self.kubectl('get', 'events')}")
        return kubectl.until(what, condition, PATIENCE_SECONDS, state)

    def ready(self, *names):
        """The pods are Ready; returns them."""
        def all_ready():
            pods = [self.get("pod", name) for name in names]
            return all(any(c["type"] == "Ready" and c["status"] == "True" for c in p.get("status", {}).get("conditions", []))
                       for p in pods) and pods
        return self.until(f"pods {', '.join(names)} are Ready", all_ready)
