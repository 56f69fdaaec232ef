#!/usr/bin/env python3
"""Tests volumes of pods that run as processes, claims, and evictions, with the real kubectl.

    volumes_test.py              in the repository's root, with KUBECTL and TAHOMA_BIN set

A controller and one node as `make up` starts them. Hostile manifests try to leave their volume.
"""

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
NODE = "trn2-small-0"
PATIENCE_SECONDS = 60


class Cluster:
    """One for all tests of this file."""

    @classmethod
    def start(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="volumes"))
        cls.dir = cls.folder / "t"
        topology = {"networkLayers": ["nn-1", "nn-2", "nn-3"], "nodes": [{"name": NODE, "instanceType": "trn2.3xlarge"}]}
        (cls.folder / "topology.json").write_text(json.dumps(topology))
        subprocess.run([sys.executable, str(ROOT / "examples/local/up.py"), str(cls.dir), "--topology", str(cls.folder / "topology.json"),
                        "--quiet"], check=True)

    @classmethod
    def stop(cls):
        subprocess.call([sys.executable, str(ROOT / "examples/local/down.py"), str(cls.dir)])
        shutil.rmtree(cls.folder)


def kubectl(*arguments, stdin=""):
    return subprocess.run([os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", str(Cluster.dir / "kubeconfig"), *arguments],
                          input=stdin, capture_output=True, text=True, check=False, timeout=90)


def get(*arguments, path):
    return kubectl("get", *arguments, "-o", f"jsonpath={{{path}}}").stdout


def eventually(condition, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen in time")


def apply(*objects):
    done = kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    assert done.returncode == 0, done.stderr


def claim(name, **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}}


def config_map(name, data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name, script, volumes, mounts, **container):
    """Of one container; `volumes` and `mounts` by name."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                     "containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", script],
                                     "volumeMounts": [{"name": volume, **mount} for volume, mount in mounts], **container}],
                     "volumes": [{"name": volume, **source} for volume, source in volumes.items()]}}


def output_of(name):
    """What the pod printed, once it has ended well."""
    phase = eventually(lambda: (p := get("pod", name, path=".status.phase")) in ("Succeeded", "Failed") and p, f"{name} ended")
    text = kubectl("logs", name).stdout
    assert phase == "Succeeded", (phase, text, kubectl("describe", "pod", name).stdout)
    return text


def why_waiting(name):
    return eventually(lambda: get("pod", name, path=".status.containerStatuses[0].state.waiting.message"), f"{name} waits")


def run(name, script, volumes, mounts, **container):
    apply(pod(name, script, volumes, mounts, **container))
    return output_of(name)


def of_claim(name):
    return {"persistentVolumeClaim": {"claimName": name}}


class ClaimTest(unittest.TestCase):
    def test_files_of_one_pod_are_there_for_the_next(self):
        apply(claim("data"))
        run("writer", "umask 077; mkdir /cache/d; echo kept >/cache/d/file; chmod 600 /cache/d/file", {"v": of_claim("data")}, [("v", {"mountPath": "/cache"})])
        text = run("reader", "cat /cache/d/file; echo more >>/cache/d/file; wc -l </cache/d/file", {"v": of_claim("data")},
                   [("v", {"mountPath": "/cache"})])
        self.assertEqual(text, "kept\n2\n")
        volume = get("pvc", "data", path=".spec.volumeName")
        folder = pathlib.Path(get("pv", volume, path=".spec.hostPath.path"))
        self.assertTrue((folder / "d").is_dir())
        self.assertFalse(pathlib.Path("/cache").exists())
        kubectl("delete", "pod", "writer", "reader", "--wait=true")
        kubectl("delete", "pvc", "data", "--wait=true")
        eventually(lambda: not folder.exists(), "the folder's end")
        self.assertEqual(kubectl("get", "pv", volume).returncode, 1)

    def test_a_claim_in_use_is_protected_and_a_retained_folder_stays(self):
        kept = Cluster.folder / "kept"
        kept.mkdir()
        apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "hand-made"},
               "spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "hand",
                        "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": str(kept)}}},
              claim("own", storageClassName="hand"),
              pod("keeper", "echo here >/data/file; sleep 1000", {"v": of_claim("own")}, [("v", {"mountPath": "/data"})]))
        eventually(lambda: (kept / "file").exists(), "the file")
        kubectl("delete", "pvc", "own", "--wait=false")
        self.assertEqual(get("pvc", "own", path=".status.phase"), "Bound")
        kubectl("delete", "pod", "keeper", "--wait=true")
        eventually(lambda: get("pv", "hand-made", path=".status.phase") == "Released", "the release")
        self.assertEqual((kept / "file").read_text(), "here\n")

    def test_pods_of_a_stateful_set_keep_their_own_volume_and_an_ephemeral_one_goes_with_its_pod(self):
        spec = pod("db", "date +%N >>/own/starts; touch /gone/f; sleep 1000", {"gone": {"ephemeral": {"volumeClaimTemplate": {"spec": claim("x")["spec"]}}}},
                   [("own", {"mountPath": "/own"}), ("gone", {"mountPath": "/gone"})])["spec"]
        spec["restartPolicy"] = "Always"
        apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
               "spec": {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "volumeClaimTemplates": [claim("own")],
                        "template": {"metadata": {"labels": {"app": "db"}}, "spec": spec}}})
        self.assertEqual(kubectl("rollout", "status", "statefulset/db", "--timeout=60s").returncode, 0)
        first = get("pvc", "db-0-gone", path=".metadata.uid")
        kubectl("delete", "pod", "db-0", "--wait=true")
        kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
        eventually(lambda: kubectl("exec", "db-0", "--", "wc", "-l", "/own/starts").stdout.split() == ["2", "/own/starts"], "the second start")
        self.assertEqual(kubectl("exec", "db-1", "--", "wc", "-l", "/own/starts").stdout.split()[0], "1")
        self.assertNotEqual(get("pvc", "db-0-gone", path=".metadata.uid"), first)
        kubectl("delete", "statefulset", "db", "--wait=true")
        eventually(lambda: kubectl("get", "pvc", "db-0-gone").returncode != 0, "the end of the ephemeral claim")
        self.assertEqual(get("pvc", "own-db-0", path=".status.phase"), "Bound")
        kubectl("delete", "pvc", "own-db-0", "own-db-1", "--wait=true")

    def test_two_pods_write_to_a_claim_at_a_time(self):
        apply(claim("many", accessModes=["ReadWriteMany"]))
        for name, other in (("left", "right"), ("right", "left")):
            apply(pod(name, f"umask 077; echo {name} >/s/{name}; until cat /s/{other} 2>/dev/null; do sleep 0.1; done; echo again >>/s/{other}",
                      {"s": of_claim("many")}, [("s", {"mountPath": "/s"})]))
        self.assertIn("right", output_of("left"))
        self.assertIn("left", output_of("right"))

    def test_the_case_of_vllm(self):
        apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hf"}, "stringData": {"token": "x"}}, claim("cache"),
              {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vllm"}, "spec": {
                  "replicas": 1, "selector": {"matchLabels": {"app": "vllm"}}, "template": {
                      "metadata": {"labels": {"app": "vllm"}},
                      "spec": {"terminationGracePeriodSeconds": 1, "volumes": [{"name": "cache", **of_claim("cache")}, {"name": "shm", "emptyDir": {"medium": "Memory"}}],
                               "containers": [{"name": "vllm", "image": "tahoma.dev/workload:v1", "command": ["sleep", "600"],
                                               "env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}],
                                               "resources": {"limits": {"aws.amazon.com/neuroncore": "2"}},
                                               "volumeMounts": [{"name": "cache", "mountPath": "/cache"}, {"name": "shm", "mountPath": "/dev/shm"}]}]}}}})
        self.assertEqual(kubectl("rollout", "status", "deployment/vllm", "--timeout=60s").returncode, 0)
        name = get("pods", "-l", "app=vllm", path=".items[0].metadata.name")
        done = kubectl("exec", name, "--", "sh", "-c", "echo a >/cache/f; echo b >/dev/shm/f; test -e /dev/neuron0 && echo chip")
        self.assertEqual((done.stdout, done.stderr), ("chip\n", ""))
        self.assertFalse(pathlib.Path("/dev/shm/f").exists())
        kubectl("delete", "deployment/vllm", "pvc/cache", "--wait=true")


class FilesTest(unittest.TestCase):
    def test_every_kind_of_file(self):
        apply(config_map("conf", {"a.txt": "A", "b.txt": "B"}),
              {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"pass": "word"}})
        fields = {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
                            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}
        text = run("files", "cat /conf/a.txt /conf/b.txt /etc/tahoma-test/deep/A /all/name /all/secret /all/deep/b; echo; cat /all/labels; echo; "
                            "stat -c %a /key/pass; cat /key/pass; echo; (echo x >/conf/a.txt) 2>/dev/null || echo read-only; echo t >/scratch/t && cat /scratch/t",
                   {"conf": {"configMap": {"name": "conf"}}, "key": {"secret": {"secretName": "key", "defaultMode": 0o400}}, "scratch": {"emptyDir": {}},
                    "all": {"projected": {"sources": [{"downwardAPI": fields}, {"secret": {"name": "key", "items": [{"key": "pass", "path": "secret"}]}},
                                                      {"configMap": {"name": "conf", "items": [{"key": "b.txt", "path": "deep/b"}]}}]}}},
                   [("conf", {"mountPath": "/conf"}), ("key", {"mountPath": "/key"}), ("scratch", {"mountPath": "/scratch"}), ("all", {"mountPath": "/all"}),
                    ("conf", {"mountPath": "/etc/tahoma-test/deep/A", "subPath": "a.txt"})])
        self.assertEqual(text.splitlines()[0], "ABAfileswordB")
        self.assertEqual(text.splitlines()[1:], ['app="files"', "400", "word", "read-only", "t"])
        self.assertFalse(pathlib.Path("/etc/tahoma-test").exists())

    def test_a_volume_over_tmp_hides_nothing_that_the_container_needs(self):
        text = run("over-tmp", "pwd; touch here; echo ok >/tmp/f; cat /tmp/f; ls /tmp/nobody 2>&1 | wc -l", {"t": {"emptyDir": {}}}, [("t", {"mountPath": "/tmp"})])
        self.assertEqual(text.splitlines()[1:], ["ok", "1"])

    def test_containers_of_a_pod_share_an_empty_dir_and_a_later_session_sees_it(self):
        both = pod("pair", "until test -e /s/go; do sleep 0.1; done; cat /s/go; sleep 1000", {"s": {"emptyDir": {"medium": "Memory"}}}, [("s", {"mountPath": "/s"})])
        both["spec"]["containers"].append({"name": "other", "image": "busybox", "command": ["sh", "-c", "echo shared >/o/go; sleep 1000"],
                                           "volumeMounts": [{"name": "s", "mountPath": "/o"}]})
        apply(both)
        eventually(lambda: kubectl("logs", "pair", "-c", "main").stdout == "shared\n", "the shared file")
        self.assertEqual(kubectl("exec", "pair", "-c", "main", "--", "cat", "/s/go").stdout, "shared\n")
        uid = get("pod", "pair", path=".metadata.uid")
        kubectl("delete", "pod", "pair", "--wait=true")
        eventually(lambda: not list(pathlib.Path("/dev/shm").glob(f"tahoma-*/{uid}")), "the memory's end")

    def test_a_missing_object_is_waited_for_and_said(self):
        apply(pod("early", "cat /c/k", {"c": {"configMap": {"name": "late"}}}, [("c", {"mountPath": "/c"})]))
        self.assertIn("late", why_waiting("early"))
        apply(config_map("late", {"k": "came"}))
        self.assertEqual(output_of("early"), "came\n")


class HostileTest(unittest.TestCase):
    def refused(self, name, volumes, mounts):
        apply(pod(name, "ls -R /v", volumes, mounts))
        return why_waiting(name)

    def test_no_path_leaves_its_volume(self):
        apply(claim("evil"), config_map("plain", {"k": "v"}))
        run("links", "ln -s /etc /v/out; ln -s ../../.. /v/up; ln -s d /v/in; mkdir /v/d; echo inside >/v/d/f", {"v": of_claim("evil")}, [("v", {"mountPath": "/v"})])
        for number, path in enumerate(("out", "up/etc")):
            self.assertIn("subPath", self.refused(f"leaves-{number}", {"v": of_claim("evil")}, [("v", {"mountPath": "/v", "subPath": path})]))
        self.assertEqual(run("stays", "cat /v/f", {"v": of_claim("evil")}, [("v", {"mountPath": "/v", "subPath": "in"})]), "inside\n")
        # A place below a link is not made on the machine.
        apply(pod("nested", "true", {"v": of_claim("evil"), "e": {"emptyDir": {}}}, [("v", {"mountPath": "/v"}), ("e", {"mountPath": "/v/out/tahoma-test"})]))
        self.assertIn("/v/out/tahoma-test", why_waiting("nested"))
        self.assertFalse(pathlib.Path("/etc/tahoma-test").exists())
        kubectl("delete", "pod", "--all", "--wait=true")

    def test_places_that_nobody_mounts_over(self):
        for number, place in enumerate(("/", "/proc", "/proc/self", "/sys/fs")):
            self.assertIn("nothing can be mounted", self.refused(f"over-{number}", {"e": {"emptyDir": {}}}, [("e", {"mountPath": place})]))
        kubectl("delete", "pod", "--all", "--wait=true")

    @unittest.skipUnless(os.geteuid() == 0, "pods have users of their own only where sim-node is root")
    def test_a_host_path_opens_no_folder_that_is_closed_to_the_pod(self):
        secret = Cluster.folder / "secret"
        (secret / "open").mkdir(parents=True)
        secret.chmod(0o700)
        self.assertIn("cannot enter", self.refused("digger", {"h": {"hostPath": {"path": str(secret / "open")}}}, [("h", {"mountPath": "/v"})]))
        self.assertIn("does not exist", self.refused("maker", {"h": {"hostPath": {"path": "/tahoma-test", "type": "DirectoryOrCreate"}}}, [("h", {"mountPath": "/v"})]))
        self.assertFalse(pathlib.Path("/tahoma-test").exists())
        kubectl("delete", "pod", "--all", "--wait=true")


class EvictionTest(unittest.TestCase):
    def test_a_drain_waits_for_the_budget(self):
        template = pod("web", "sleep 1000", {}, [])
        template["spec"]["restartPolicy"] = "Always"
        apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
               "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                        "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]}}},
              {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
               "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}})
        eventually(lambda: get("pdb", "web", path=".status.disruptionsAllowed") == "1", "the budget")
        # The node is cordoned, so the first pod's successor finds no place and the second pod may not go.
        waits = kubectl("drain", NODE, "--pod-selector=app=web", "--timeout=8s")
        self.assertNotEqual(waits.returncode, 0)
        self.assertIn("Cannot evict pod as it would violate the pod's disruption budget.", waits.stderr)
        kubectl("uncordon", NODE)
        eventually(lambda: get("pdb", "web", path=".status.disruptionsAllowed") == "1", "two pods again")
        kubectl("delete", "pdb", "web")
        done = kubectl("drain", NODE, "--pod-selector=app=web", "--timeout=60s")
        self.assertEqual(done.returncode, 0, done.stderr)
        kubectl("uncordon", NODE)
        kubectl("delete", "deployment", "web", "--wait=true")


def setUpModule():
    Cluster.start()


def tearDownModule():
    Cluster.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
