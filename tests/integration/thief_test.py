#!/usr/bin/env python3
"""Tests what a pod can get of its neighbour's: everything that thief.py tries, on a node of its own making.

    thief_test.py                  as root, in the repository's root, with KUBECTL and TAHOMA_BIN set

Twice: as a process of the pod runner, and through the mounts that the plugin's CDI file gives a container
under a kubelet, where the pod may be root but sees nothing of the host beside them.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
THIEF = (HERE / "thief.py").read_text()
PATIENCE_SECONDS = 90
NODE = "trn2-0"
POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  devices:
    requests: [{{name: neurons, exactly: {{deviceClassName: neuron.aws.com, allocationMode: ExactCount, count: 4}}}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  schedulerName: tahoma
  restartPolicy: Never
  containers:
  - name: main
    image: thief
    command: [python3]
    args: {args}
    resources: {{claims: [{{name: neurons}}]}}
  resourceClaims: [{{name: neurons, resourceClaimName: {name}}}]
"""


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


UP = load(ROOT / "examples/local/up.py")
WIRE = load(HERE / "thief.py")


def eventually(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


@unittest.skipIf(os.geteuid() != 0, "pods have users of their own only where sim-node is root")
class ThiefTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Everybody may enter: what keeps the thief out must be of our own making.
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="thief"))
        cls.folder.chmod(0o755)
        cls.dir = cls.folder / "t"
        topology = {"networkLayers": ["nn-1", "nn-2", "nn-3"], "nodes": [{"name": NODE, "instanceType": "trn2.48xlarge"}]}
        (cls.folder / "topology.json").write_text(json.dumps(topology))
        make = UP.node_config

        def with_python(*arguments, **options):
            config = make(*arguments, **options)
            config["podRunner"]["images"]["thief"] = {"commands": {"python3": shutil.which("python3")}}
            return config

        UP.node_config = with_python
        sys.argv = ["up.py", str(cls.dir), "--topology", str(cls.folder / "topology.json"), "--quiet"]
        UP.main()
        cls.kubectl(f"create namespace thieves")
        cls.start("victim", "default", ["-c", THIEF, "victim"])
        said = eventually(lambda: cls.kubectl("logs victim").strip())
        cls.victim = json.loads(said.splitlines()[0])
        cls.hints = {**cls.victim, **cls.places()}
        cls.start("thief", "thieves", ["-c", THIEF, "thief", json.dumps(cls.hints)])
        eventually(lambda: cls.kubectl("get pod thief -n thieves -o jsonpath={.status.phase}") in ("Succeeded", "Failed"))
        cls.said = [json.loads(line) for line in cls.kubectl("logs thief -n thieves").splitlines()]

    @classmethod
    def tearDownClass(cls):
        subprocess.call([sys.executable, str(ROOT / "examples/local/down.py"), str(cls.dir)])
        shutil.rmtree(cls.folder)
        for path in ("/tmp/thief-test", "/dev/shm/thief-test"):
            pathlib.Path(path).unlink(missing_ok=True)

    @classmethod
    def kubectl(cls, arguments, stdin=None):
        command = [os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", str(cls.dir / "kubeconfig"), *arguments.split()]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False).stdout

    @classmethod
    def start(cls, name, namespace, args):
        cls.kubectl("apply -f -", POD.format(name=name, namespace=namespace, args=json.dumps(args)))

    @classmethod
    def places(cls):
        """Where everything is that the thief should not have."""
        node = json.loads((cls.dir / "n" / NODE / "sim-node.yaml").read_text())
        plug = json.loads((cls.dir / "n" / NODE / "dra-plugin.yaml").read_text())
        ports = dict(line.split(": ", 1) for line in pathlib.Path(node["portFile"]).read_text().splitlines())
        pods = pathlib.Path(node["podRunner"]["podsDir"])
        files = [*pathlib.Path(plug["cdiDir"]).iterdir(), *pods.glob("pods/*/*/*.log"), cls.dir / "kubeconfig",
                 pathlib.Path(plug["pluginDir"]) / "neuron.aws.com/claims.json",
                 pathlib.Path(node["stateDir"]) / "claims.json", pathlib.Path(node["adminTokenFile"]),
                 pathlib.Path(node["podRunner"]["logTokenFile"])]
        assert all(f.exists() for f in files), files
        return {"nodeSocket": node["nodeSocket"], "files": [str(f) for f in files], "directory": str(cls.dir),
                "pods": str(pods.parent), "nodePid": int((cls.dir / "pids" / f"{NODE}.sim-node").read_text()),
                "admin": ports["adminAddress"].strip('"'), "logs": ports["logAddress"].strip('"')}

    def test_a_process_of_the_pod_runner_gets_nothing_of_another_pod_or_the_node(self):
        self.assertGreater(len(self.said), 30, self.said)
        for attempt in self.said[:-1]:
            with self.subTest(attempt["try"]):
                self.assertIsNone(attempt["got"], attempt)

    def test_it_fails_because_it_is_refused_and_not_by_mistake(self):
        why = {attempt["try"]: attempt["why"] for attempt in self.said[:-1]}
        for attempt, reason in {
                "claims, on the plugin's socket": "PermissionError(13",
                "claims, on the pods' socket": "PERMISSION_DENIED",
                "devices with a token of zeros": "PERMISSION_DENIED",
                "the victim's communicator": "nobody of that name is there",
                f"/proc/{self.victim['pid']}/environ": "PermissionError(13",
                "/tmp/thief-test": "PermissionError(13", "/dev/shm/thief-test": "PermissionError(13",
                "a trace of the victim": "PermissionError(1,", "the victim's life": "PermissionError(1,",
                "sim-node's life": "PermissionError(1,", "root": "PermissionError(1,",
                "the fault API": "401", "a chip's health": "401", "the victim's log": "401",
                **{f: "PermissionError(13" for f in self.hints["files"]}}.items():
            with self.subTest(attempt):
                self.assertIn(reason, why[attempt])

    def test_every_pod_has_a_user_of_its_own_without_privileges(self):
        thief = self.said[-1]
        self.assertNotIn(thief["uid"], (0, self.victim["uid"]))
        self.assertNotEqual(self.victim["uid"], 0)
        self.assertTrue(thief["noNewPrivileges"])
        self.assertEqual((thief["core"], thief["descriptors"]), (0, [0, 1, 2]))

    def test_the_victim_has_lost_nothing(self):
        phase = self.kubectl("get pod victim -o jsonpath={.status.phase}")
        self.assertEqual((phase, "trn2-0" in self.kubectl("get resourceslices")), ("Running", True))

    def test_through_the_mounts_of_a_container_there_is_only_what_a_token_opens(self):
        plug = json.loads((self.dir / "n" / NODE / "dra-plugin.yaml").read_text())
        uid = self.kubectl("get resourceclaim victim -o jsonpath={.metadata.uid}")
        spec = json.loads((pathlib.Path(plug["cdiDir"]) / f"neuron.aws.com-device_{uid}.json").read_text())
        edits = spec["devices"][0]["containerEdits"]
        environment = dict(e.split("=", 1) for e in edits["env"])
        self.assertEqual(set(edits), {"env", "mounts"})
        visible = [str(p) for mount in edits["mounts"] for p in pathlib.Path(mount["hostPath"]).rglob("*")]
        self.assertEqual(visible, [environment["TAHOMA_NODE_SOCKET"]])
        # As root of the container, on all that it sees.
        for method, params in (("listClaims", {}), ("inventory", {}), ("applyClaim", {"claimUid": "x"}),
                               ("releaseClaim", {"claimUid": uid}), ("devices", {}), ("devices", {"token": "0" * 32})):
            with self.subTest(method), self.assertRaisesRegex(PermissionError, "PERMISSION_DENIED"):
                WIRE.answer(visible[0], method, params)
        token = {"token": environment["TAHOMA_CLAIM_TOKEN"]}
        with self.assertRaisesRegex(PermissionError, "UNIMPLEMENTED"):
            WIRE.answer(visible[0], "listClaims", token)
        devices = WIRE.answer(visible[0], "devices", token)[0]["devices"]
        self.assertEqual([d["index"] for d in devices], self.victim["devices"])


if __name__ == "__main__":
    unittest.main()
