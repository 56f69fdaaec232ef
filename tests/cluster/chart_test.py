#!/usr/bin/env python3
"""The chart on a real control plane: all its objects are admitted, its accounts may do what they must and no more,
kube-scheduler takes no chip beside it, and nothing but the CRDs outlives it.

    chart_test.py [-v] [ChartTest]      in the repository's root, with KUBERNETES_BIN, TAHOMA_BIN and kubectl;
                                        SERVERS=FOLDER has the servers of an older Kubernetes

No kubelet is there: the controller is run by hand, with the configuration and the token that its pod would have.
"""

import base64
import copy
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/chart", "tests/support"):
    sys.path.insert(0, str(ROOT / folder))

import chart  # noqa: E402
import control_plane  # noqa: E402
import kubectl  # noqa: E402
import node_attempts  # noqa: E402

PATIENCE_SECONDS = 60
NODES = ("trn-a", "trn-b")
OPERATOR = "github.com/prometheus-operator/prometheus-operator"
SERVERS = os.environ.get("SERVERS")  # of a version whose gates for taints are off
VALUES = {"controller": {"replicas": 2, "persistence": {"type": "emptyDir"}},
          # AWS's chart brings the class, and is not here.
          "deviceClasses": {"neuron": True},
          "awsDriver": {"enabled": True},
          "simNode": {"enabled": True, "nodes": [{"node": name, "instanceType": "trn2.48xlarge"} for name in NODES]}}


def until(what, holds, log=lambda: ""):
    return kubectl.until(what, holds, PATIENCE_SECONDS, log)


def slice_of(node, name=None):
    """As AWS's driver publishes a trn2.48xlarge: no taint, no attribute of ours, in no order."""
    order = (6, 7, 3, 10, 11, 15, 0, 1, 4, 8, 12, 2, 5, 9, 13, 14)
    devices = [{"name": f"neuron-device-{chip}", "attributes": {
        "deviceId": {"int": chip}, "instanceType": {"string": "trn2.48xlarge"},
        "neuronDriverVersion": {"string": "2.26.10.0"}, "draDriverVersion": {"version": "1.0.0"},
        "resourceType": {"string": "neuron_device"}, "topology_x": {"int": chip // 4}, "topology_y": {"int": chip % 4},
        "networkNodeLayer1": {"string": "nn-0123456789abcdef0"}, "networkNodeLayer2": {"string": "nn-0123456789abcdef1"},
        "networkNodeLayer3": {"string": "nn-0123456789abcdef2"}}} for chip in order]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": name or f"{node}-neuron.aws.com-1"},
            "spec": {"driver": "neuron.aws.com", "nodeName": node,
                     "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices}}


def claim(name, tolerations=(), kind="ResourceClaim", count=16):
    request = {"deviceClassName": "neuron.aws.com", "allocationMode": "ExactCount", "count": count}
    if tolerations:
        request["tolerations"] = list(tolerations)
    spec = {"devices": {"requests": [{"name": "chips", "exactly": request}]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec}


def pod(name, template, scheduler="tahoma", **labels):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"schedulerName": scheduler, "restartPolicy": "Never",
                     "containers": [{"name": "main", "image": "tahoma.dev/workload:v1",
                                     "resources": {"claims": [{"name": "chips"}]}}],
                     "resourceClaims": [{"name": "chips", "resourceClaimTemplateName": template}]}}


class ClusterCase(unittest.TestCase):
    """A control plane without a release, with two nodes that no machine is behind."""

    @classmethod
    def setUpClass(cls):
        cls.helm_program = chart.find_helm()
        cls.scratch = tempfile.TemporaryDirectory(prefix="th")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.directory = pathlib.Path(cls.scratch.name)
        cls.addClassCleanup(subprocess.call, [sys.executable, ROOT / "examples/local/down.py", cls.directory / "k"])
        command = [sys.executable, ROOT / "tests/cluster/control_plane.py", "up", cls.directory / "k", "--accounts"]
        if SERVERS:
            command += ["--servers", SERVERS]
        else:
            command += ["--feature-gates", "DRADeviceTaintRules=true", "--runtime-config", "resource.k8s.io/v1beta2=true"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        cls.kubeconfig = pathlib.Path(done.stdout.strip())
        for name in NODES:
            cls.kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        cls.controllers = {}
        cls.before = cls.names()
        cls.kubectl("create", "namespace", chart.NAMESPACE)

    @classmethod
    def kubectl(cls, *arguments, kubeconfig=None, **options):
        return kubectl.kubectl(*arguments, kubeconfig=kubeconfig or cls.kubeconfig, **options)

    def beat(self):
        """As kubelets do: nodes that are silent for 50 s are taken for lost."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        size = {"cpu": "192", "memory": "1Ti", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now}
        for name in NODES:
            self.kubectl("patch", "node", name, "--subresource=status", "-p", json.dumps(
                {"status": {"conditions": [ready], "allocatable": size, "capacity": size}}))

    @classmethod
    def get(cls, *arguments):
        return json.loads(cls.kubectl("get", "-o", "json", *arguments))

    @classmethod
    def helm(cls, verb, *options, values=None, source=chart.CHART):
        command = [cls.helm_program, verb, "tahoma", "--kubeconfig", cls.kubeconfig, "--namespace", chart.NAMESPACE, *options]
        if verb != "uninstall":
            command += [source, "--values", "-"]
        done = subprocess.run([str(c) for c in command], input=json.dumps(values or VALUES), capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise AssertionError(f"helm {verb}: {done.stderr}")
        return done.stdout

    @classmethod
    def names(cls):
        """Every object that is in the cluster, but for those that come and go by themselves."""
        kinds = [kind for kind in cls.kubectl("api-resources", "--verbs=list", "-o", "name").split()
                 if kind.split(".")[0] not in ("events", "endpoints", "endpointslices", "controllerrevisions", "componentstatuses")]
        listed = cls.kubectl("get", ",".join(kinds), "-A", "-o", "name", "--ignore-not-found")
        return set(listed.split())

    def account(self, name, *bound):
        """A kubeconfig of a service account."""
        token = self.kubectl("create", "token", name, "-n", chart.NAMESPACE, *bound).strip()
        keys = control_plane.Keys(self.directory / "k/pki")
        target = self.directory / f"{name}{len(list(self.directory.iterdir()))}.kubeconfig"
        keys.kubeconfig(name, control_plane.port_of(self.directory / "k"), target, token=token)
        self.kubectl("config", "set-context", "test", f"--namespace={chart.NAMESPACE}", kubeconfig=target)
        return target

    def ask(self, who, method, path, body=None, media="application/json"):
        """(status, message or object) of one request by the token of a kubeconfig, or the keys of that name."""
        headers = {"Content-Type": media}
        context = ssl.create_default_context(cafile=str(self.directory / "k/pki/ca.crt"))
        if isinstance(who, pathlib.Path):
            headers["Authorization"] = "Bearer " + re.search(r"token: ([^}\s]+)", who.read_text())[1]
        else:
            context.load_cert_chain(self.directory / f"k/pki/{who}.crt", self.directory / f"k/pki/{who}.key")
        request = urllib.request.Request(f"https://127.0.0.1:{control_plane.port_of(self.directory / 'k')}{path}", method=method,
                                         data=body.encode() if body is not None else None, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["message"]

    def send(self, who):
        """Requests that must succeed."""
        def send(method, path, body):
            status, said = self.ask(who, method, path, json.dumps(body) if body is not None else None,
                                    "application/merge-patch+json" if method == "PATCH" else "application/json")
            self.assertIn(status, (200, 201), (method, path, said))
            return said
        return send

    def plugin(self, node):
        return self.account("tahoma-dra-plugin", "--bound-object-kind", "Node", "--bound-object-name", node)

    def start_controller(self, number=0):
        """As its pod would run, with its account and its configuration."""
        name = f"tahoma-controller-{number}"
        until("the pod is made", lambda: name in self.kubectl("get", "pods", "-n", chart.NAMESPACE))
        config = self.directory / "controller.yaml"
        config.write_text(self.get("configmap", "tahoma-controller", "-n", chart.NAMESPACE)["data"]["controller.yaml"])
        for file, data in self.get("secret", "tahoma-controller-tls", "-n", chart.NAMESPACE)["data"].items():
            (self.directory / file).write_bytes(base64.b64decode(data))
        (self.directory / "tls.key").chmod(0o600)
        ports = self.directory / f"ports{number}.yaml"
        program = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")) / "controller"
        child = control_plane.start(
            self.directory / "k", f"controller{number}", program, "--config", config, "--kubeconfig",
            self.account("tahoma-controller"), "--pod-name", name, "--data-dir", self.directory / f"data{number}",
            "--admin-address", "127.0.0.1:0", "--port-file", ports,
            "--tls-cert-file", self.directory / "tls.crt", "--tls-key-file", self.directory / "tls.key")
        until("the controller starts", lambda: ports.exists() or child.poll() is not None)
        self.assertIsNone(child.poll(), self.controller_log())
        self.controllers[number] = child

    def stop_controller(self, number):
        child = self.controllers.pop(number)
        child.terminate()
        self.assertEqual(child.wait(PATIENCE_SECONDS), 0)

    def controller_log(self):
        return "".join(path.read_text() for path in sorted((self.directory / "k/log").glob("controller*.log")))

    def leader(self):
        lease = self.get("lease", "tahoma-controller", "-n", chart.NAMESPACE)
        return lease.get("spec", {}).get("holderIdentity")


class ChartTest(ClusterCase):
    """The steps need each other, and are in order."""

    def test_1_every_object_of_many_values_is_admitted(self):
        for given in ({}, VALUES, {"controller": {"persistence": {"type": "hostPath", "hostPath": "/data"}}},
                      {"controller": {"admin": {"plainHttp": True}}},
                      {"controller": {"admin": {"tlsSecret": "t", "identitySecret": "i", "accessKeySecret": "a"}}},
                      {**VALUES, "monitoring": {"dashboard": {"enabled": True},
                                                "readers": [{"kind": "ServiceAccount", "name": "p", "namespace": "m"}]},
                       "awsDriver": {"enabled": False}, "draPlugin": {"managedTaint": False}, "admission": {"allocations": False},
                       "deviceClasses": {"neuron": True, "extendedResources": True}}):
            self.check_admitted(given)

    def check_admitted(self, given):
        """The server knows every field of what is rendered, and takes it."""
        with self.subTest(values=given):
            served = [] if SERVERS else ["resource.k8s.io/v1beta2/DeviceTaintRule"]
            text = chart.render_text(self.helm_program, given, api_versions=served)
            self.kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-", given=text)

    def test_1b_monitors_are_as_prometheus_operator_defines_them(self):
        found = subprocess.run(["go", "mod", "download", "-json", OPERATOR], cwd=ROOT / "tests/cluster/tools-monitoring",
                               stdout=subprocess.PIPE, check=True).stdout
        folder = pathlib.Path(json.loads(found)["Dir"]) / "example/prometheus-operator-crd"
        files = [f"--filename={folder}/monitoring.coreos.com_{plural}.yaml" for plural in ("servicemonitors", "podmonitors", "prometheusrules")]
        self.kubectl("apply", "--server-side", *files)
        self.kubectl("wait", "--for=condition=Established", *files, "--timeout=60s")
        for tls in ({}, {"controller": {"admin": {"tlsSecret": "t"}}}):
            self.check_admitted({**VALUES, **tls, "monitoring": {
                "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}, "rules": {"enabled": True}}})
        self.kubectl("delete", *files)

    def test_1c_rules_and_dashboard_are_read_by_prometheus_own_parser(self):
        tools = subprocess.run([ROOT / "tests/cluster/build_tools.sh", "tools-monitoring"], stdout=subprocess.PIPE, text=True, check=True)
        folder = ROOT / "charts/tahoma"
        checked = subprocess.run([tools.stdout.strip() + "/check-queries", folder / "rules/tahoma.yaml", folder / "dashboards/tahoma.json"],
                                 capture_output=True, text=True, check=False)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        self.assertIn("tahoma_leader", checked.stdout.split())

    def test_2_the_release_is_installed_and_awss_devices_are_tainted_where_the_server_can(self):
        notes = self.helm("install")
        self.assertIn("allocations by anybody but Tahoma are refused", notes)
        if SERVERS:
            self.assertIn("This API server serves no DeviceTaintRule", notes)
            return
        rule = self.get("devicetaintrules.v1beta2.resource.k8s.io", "managed.tahoma.dev")
        self.assertEqual(rule["spec"]["taint"]["key"], "tahoma.dev/managed")
        self.assertEqual(rule["spec"]["deviceSelector"], {"driver": "neuron.aws.com"})

    def test_2b_the_controllers_pods_fit_the_strictest_level_and_the_nodes_do_not(self):
        level = "pod-security.kubernetes.io/enforce"
        self.kubectl("label", "namespace", chart.NAMESPACE, f"{level}=restricted")
        for kind, name, refused in (("statefulset", "tahoma-controller", False), ("daemonset", f"tahoma-sim-node-{NODES[0]}", True),
                                    ("daemonset", "tahoma-dra-plugin", True)):
            template = self.get(kind, name, "-n", chart.NAMESPACE)["spec"]["template"]
            one = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
                   "metadata": {"name": "probe", "namespace": chart.NAMESPACE, "labels": template["metadata"]["labels"]}}
            told = self.kubectl("create", "--dry-run=server", "-f", "-", given=one, fails=refused)
            self.assertIn("violates PodSecurity" if refused else "probe created", told)
        self.kubectl("label", "namespace", chart.NAMESPACE, f"{level}-")

    def test_3_a_plugin_writes_for_its_own_node_only(self):
        mine, other = self.plugin(NODES[0]), self.plugin(NODES[1])
        self.kubectl("create", "-f", "-", given=slice_of(NODES[0]), kubeconfig=mine)
        self.kubectl("create", "-f", "-", given=slice_of(NODES[1]), kubeconfig=other)
        foreign = slice_of(NODES[0], "foreign")
        foreign["spec"]["driver"] = "gpu.example.com"
        changed = {"metadata": {"labels": {"topology.k8s.aws/ultraserver-id": "us-1"}}}
        attempts = [  # who, what, what he is told
            (mine, ("create", "-f", "-"), slice_of(NODES[1], "stolen"), f"own node only, which is {NODES[0]}"),
            (mine, ("create", "-f", "-"), foreign, "slices of neuron.aws.com and dra.net only"),
            (self.account("tahoma-dra-plugin"), ("create", "-f", "-"), slice_of(NODES[0], "unbound"), "token names no node"),
            (mine, ("delete", "resourceslice", f"{NODES[1]}-neuron.aws.com-1"), None, f"own node only, which is {NODES[0]}"),
            (mine, ("patch", "node", NODES[1], "--type=merge", "-p", json.dumps(changed)), None, "own node only"),
            (mine, ("patch", "node", NODES[0], "--type=merge", "-p", '{"spec": {"unschedulable": true}}'), None, "labels only"),
            (mine, ("get", "pods", "-A"), None, "cannot list resource"),
            (mine, ("get", "secrets", "-A"), None, "cannot list resource"),
            (self.account("tahoma-controller"), ("get", "secrets", "-A"), None, "cannot list resource"),
            (self.account("tahoma-controller"), ("create", "-f", "-"), slice_of(NODES[0], "controllers"), "cannot create resource"),
        ]
        for who, what, given, told in attempts:
            with self.subTest(what=what, told=told):
                self.assertIn(told, self.kubectl(*what, given=given, fails=True, kubeconfig=who))
        self.kubectl("patch", "node", NODES[0], "--type=merge", "-p", json.dumps(changed), kubeconfig=mine)

    def patch_status(self, who, node, **status):
        """What the server says to a patch of a Node's status. (kubectl would read it first, which a plugin may not.)"""
        status, said = self.ask(who, "PATCH", f"/api/v1/nodes/{node}/status", json.dumps({"status": status}),
                                "application/strategic-merge-patch+json")
        return f"{status}" if status == 200 else f"{status}: {said}"

    def test_3b_of_its_nodes_status_a_plugin_writes_one_condition_only(self):
        mine = self.plugin(NODES[0])
        complete = {"type": "tahoma.dev/DevicesComplete", "status": "False", "reason": "NoTaints", "message": "none"}
        self.beat()
        before = self.get("node", NODES[0])["status"]
        address = {"type": "InternalIP", "address": "10.0.0.9"}
        for node, status, told in (
                (NODES[1], {"conditions": [complete]}, f"own node only, which is {NODES[0]}"),
                (NODES[0], {"capacity": {"cpu": "1"}}, "DevicesComplete only"),
                (NODES[0], {"allocatable": {"cpu": None}}, "DevicesComplete only"),
                (NODES[0], {"allocatable": None, "capacity": None}, "DevicesComplete only"),
                (NODES[0], {"addresses": [address]}, "DevicesComplete only"),
                (NODES[0], {"conditions": [{"type": "Ready", "status": "False"}]}, "DevicesComplete only"),
                (NODES[0], {"conditions": [complete, {"type": "Ready", "$patch": "delete"}]}, "DevicesComplete only"),
                (NODES[0], {"conditions": [complete, {"type": "DiskPressure", "status": "True"}]}, "DevicesComplete only")):
            with self.subTest(node=node, status=status):
                said = self.patch_status(mine, node, **status)
                self.assertRegex(said, "^403: ")
                self.assertIn(told, said)
        self.assertRegex(self.patch_status(self.account("tahoma-dra-plugin"), NODES[0], conditions=[complete]), "^403: .*names no node")
        for status in ("False", "True"):
            self.assertEqual(self.patch_status(mine, NODES[0], conditions=[{**complete, "status": status}]), "200")
            after = self.get("node", NODES[0])["status"]
            shown = {one["type"]: one for one in after.pop("conditions")}
            self.assertEqual(shown.pop("tahoma.dev/DevicesComplete")["status"], status)
            self.assertEqual(shown, {one["type"]: one for one in before["conditions"]})
            self.assertEqual(after, {name: value for name, value in before.items() if name != "conditions"})

    def test_3c_each_line_of_the_table_of_a_nodes_token(self):
        """As the standalone server is asked by node_rights_test.py; and that server allows nothing that a kubelet and a plugin
        may not do here together."""
        keys = control_plane.Keys(self.directory / "k/pki")
        keys.sign("kubelet", f"/O=system:nodes/CN=system:node:{NODES[0]}")
        plugin, refused = self.plugin(NODES[0]), (403, 422)  # 422: of an allocation kube-apiserver says so itself
        world = node_attempts.World(*NODES, self.send("admin"), self.send(self.account("tahoma-controller")))
        world.create()
        self.addCleanup(world.remove)
        for line in node_attempts.lines(world):
            for attempt in line.attempts:
                with self.subTest(what=line.what, attempt=attempt[:3]):
                    request = attempt.request(world)
                    status, said = self.ask(plugin, *request)
                    self.assertIn(status, (200, 201) if line.plugin else refused, said)
                    if line.standalone and not line.plugin:
                        until("a kubelet may do it", lambda: self.ask("kubelet", *request)[0] in (200, 201),
                              lambda: self.ask("kubelet", *request)[1])

    def test_3d_of_others_objects_the_controller_changes_a_few_fields_only(self):
        own, other = (node_attempts.pod_of(NODES[0], name) for name in ("own", "others"))
        for one, scheduler in ((own, "tahoma"), (other, "default-scheduler")):
            one["spec"] = {"schedulerName": scheduler, "containers": [
                {"name": "main", "image": "train", "resources": {"limits": {"aws.amazon.com/neuron": "1"}}}]}
            self.kubectl("create", "-f", "-", given=one)
        self.kubectl("create", "-f", "-", given=claim("some", count=1))
        self.kubectl("create", "-f", "-", given={
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}})
        self.addCleanup(self.kubectl, "delete", "pods/own", "pods/others", "resourceclaims/some", "persistentvolumeclaims/data",
                        "--grace-period=0", "--force")
        controller = self.account("tahoma-controller")
        told = {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "own-extended", "requestMappings": [
            {"containerName": "main", "resourceName": "aws.amazon.com/neuron", "requestName": "container-0-request-0"}]}}}
        plain, extended = claim("plain", count=1), claim("own-extended", count=1)
        extended["metadata"] |= {
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "own", "uid": self.get("pod", "own")["metadata"]["uid"],
                                 "controller": True}]}
        labels, finalizers = {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": ["tahoma.dev/test"]}}
        ends = {"metadata": {"annotations": {"tahoma.dev/reclaim-timestamp": "1"}}}
        waits = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}]}}
        node, claims = f"/api/v1/nodes/{NODES[0]}", f"{node_attempts.CLAIMS}/some"
        cordon = {"metadata": {"annotations": {"tahoma.dev/cordoned-chips": "3"}}}
        selects = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": NODES[0]}}}
        volumes = "/api/v1/namespaces/default/persistentvolumeclaims/data"
        for method, path, body, allowed in (
                ("PATCH", f"{node_attempts.PODS}/own/status", waits, True), ("PATCH", f"{node_attempts.PODS}/own/status", ends, True),
                ("PATCH", f"{node_attempts.PODS}/own/status", told, True), ("PATCH", f"{node_attempts.PODS}/others/status", told, False),
                ("PATCH", f"{node_attempts.PODS}/own/status", labels, False), ("PATCH", f"{node_attempts.PODS}/own/status", finalizers, False),
                ("PATCH", f"{node_attempts.PODS}/own/status", cordon, False), ("PATCH", f"{node_attempts.PODS}/own/status", {"status": {"phase": "Failed"}}, False),
                ("PATCH", f"{node_attempts.PODS}/own", labels, False), ("DELETE", f"{node_attempts.PODS}/own", None, True),
                ("PATCH", f"{node_attempts.PODS}/others/status", waits, False), ("DELETE", f"{node_attempts.PODS}/others", None, False),
                ("PATCH", node, {"spec": {"unschedulable": True}}, True), ("PATCH", node, cordon, True), ("PATCH", node, labels, False),
                ("PATCH", node, ends, False), ("PATCH", node, {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, False),
                ("PATCH", claims, finalizers, True), ("PATCH", claims, labels, False), ("PATCH", claims, ends, False),
                ("POST", node_attempts.CLAIMS, plain, False), ("POST", node_attempts.CLAIMS, extended, True),
                ("PATCH", volumes, selects, True), ("PATCH", volumes, ends, False), ("PATCH", volumes, finalizers, False),
                ("PATCH", volumes, {"spec": {"volumeName": "v"}}, False)):
            with self.subTest(method=method, path=path, body=body):
                status, said = self.ask(controller, method, f"{path}?dryRun=All", json.dumps(body) if body else None,
                                        node_attempts.MERGE if method == "PATCH" else node_attempts.JSON)
                done = 201 if method == "POST" else 200
                self.assertEqual(status, done if allowed else 403, said)

    def test_4_claims_that_would_get_around_tahoma_are_refused(self):
        bad = claim("bad")
        bad["spec"]["devices"]["config"] = [{"opaque": {"driver": "neuron.aws.com", "parameters": {
            "apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig", "logicalNeuronCore": 3}}}]
        attempts = [
            (claim("managed", [{"key": "tahoma.dev/managed", "operator": "Exists"}]), "may not tolerate the taint tahoma.dev/managed"),
            (claim("managed", [{"key": "tahoma.dev/managed", "operator": "Exists"}], "ResourceClaimTemplate"),
             "may not tolerate the taint tahoma.dev/managed"),
            (claim("all", [{"operator": "Exists"}]), "may not tolerate every taint"),
            (bad, "must be 1 or 2"),
        ]
        alternatives = claim("later")
        first = alternatives["spec"]["devices"]["requests"][0].pop("exactly")
        tolerating = {**first, "name": "b", "tolerations": [{"key": "tahoma.dev/managed", "operator": "Exists"}]}
        alternatives["spec"]["devices"]["requests"][0]["firstAvailable"] = [{**first, "name": "a"}, tolerating]
        attempts.append((alternatives, "may not tolerate the taint tahoma.dev/managed"))
        for given, told in attempts:
            if SERVERS and "tolerate" in told:
                continue  # such a server drops tolerations, and knows no taints
            with self.subTest(told=told, given=given):
                self.assertIn(told, self.kubectl("create", "--dry-run=server", "-f", "-", given=given, fails=True))
        for tolerations in ([], [{"key": "tahoma.dev/unhealthy", "operator": "Exists"}]):
            self.kubectl("create", "--dry-run=server", "-f", "-", given=claim("good", tolerations))
        others = claim("gpus", [{"operator": "Exists"}])
        others["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "gpu.example.com"
        self.kubectl("create", "--dry-run=server", "-f", "-", given=others)

    def test_5_nobody_else_allocates_neuron_devices(self):
        self.kubectl("create", "-f", "-", given=claim("wanted", count=1))
        def allocation(driver, **more):
            return json.dumps({"status": {"allocation": {"devices": {"results": [
                {"request": "chips", "driver": driver, "pool": NODES[0], "device": "neuron-device-0", **more}]}}}})
        patch = ("patch", "resourceclaim", "wanted", "--subresource=status", "--type=merge", "--dry-run=server", "-p")
        told = self.kubectl(*patch, allocation("neuron.aws.com"), fails=True)
        self.assertIn("allocated by Tahoma alone: give the pod schedulerName: tahoma", told)
        self.kubectl(*patch, allocation("gpu.example.com"))
        self.kubectl("delete", "resourceclaim", "wanted")

    def make_gang(self):
        self.kubectl("create", "-f", "-", given={"apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang",
                                                 "metadata": {"name": "train"}, "spec": {"members": 2}})
        for rank in range(2):
            self.kubectl("create", "-f", "-", given=pod(f"train-{rank}", "whole", **{"tahoma.dev/gang": "train"}))

    def test_6_the_controllers_account_suffices_to_place_a_gang(self):
        self.start_controller()
        self.kubectl("create", "-f", "-", given=claim("whole", kind="ResourceClaimTemplate"))
        self.make_gang()
        def bound():
            self.beat()
            self.assertNotIn("orbidden", self.controller_log())
            return sorted(one["spec"].get("nodeName", "") for one in self.get("pods")["items"]) == sorted(NODES)
        until("the gang is bound", bound, lambda: self.controller_log() + self.kubectl("describe", "pods,gangs"))
        claims = self.get("resourceclaims")["items"]
        results = [r for one in claims for r in one["status"]["allocation"]["devices"]["results"]]
        self.assertEqual(len({(r["pool"], r["device"]) for r in results}), 32)
        if not SERVERS:
            self.assertTrue(all(t["key"] == "tahoma.dev/managed" for r in results for t in r["tolerations"]))
        until("the gang says so", lambda: self.get("gang", "train").get("status", {}).get("boundMembers") == 2)
        until("the leader's pod is marked", lambda: self.get("pods", "-n", chart.NAMESPACE, "-l", "tahoma.dev/leader=true")["items"])
        until("the fleet is summed up", lambda: "data" in self.get("configmap", "tahoma-topology", "-n", "kube-system"))
        self.assertNotIn("orbidden", self.controller_log())

    def test_7_an_upgrade_takes_neither_the_lease_nor_what_runs(self):
        leader, placed = self.leader(), self.get("pods")["items"]
        self.assertTrue(leader)
        template = self.get("statefulset", "tahoma-controller", "-n", chart.NAMESPACE)["spec"]["template"]
        def made():
            names = ("tahoma-controller-tls", *(f"tahoma-sim-node-peer-{node}" for node in NODES))
            return [self.get("secret", name, "-n", chart.NAMESPACE)["data"] for name in names]
        certificates = made()
        values = copy.deepcopy(VALUES)
        values["controller"]["config"] = {"capacityBlocks": {"oneSpareIn": 8}}
        values["simNode"]["nodes"].append({"node": "trn-c"})
        self.assertIn("kubectl apply --server-side --force-conflicts -f charts/tahoma/crds", self.helm("upgrade", values=values))
        self.assertEqual(self.leader(), leader)
        self.assertIn("data", self.get("configmap", "tahoma-topology", "-n", "kube-system"))
        self.assertEqual([one["metadata"]["uid"] for one in self.get("pods")["items"]], [one["metadata"]["uid"] for one in placed])
        changed = self.get("statefulset", "tahoma-controller", "-n", chart.NAMESPACE)["spec"]["template"]
        self.assertNotEqual(changed["metadata"]["annotations"], template["metadata"]["annotations"])
        # Keys that were there stay; the new node has its own, of the same authority.
        self.assertEqual(made(), certificates)
        added = self.get("secret", "tahoma-sim-node-peer-trn-c", "-n", chart.NAMESPACE)["data"]
        self.assertEqual(added["ca.crt"], certificates[1]["ca.crt"])
        self.assertNotIn(added["tls.key"], [one["tls.key"] for one in certificates])

    def test_7b_a_stand_by_takes_over_and_the_service_follows_it(self):
        def leaders():
            pods = self.get("pods", "-n", chart.NAMESPACE, "-l", "tahoma.dev/leader=true")["items"]
            return [one["metadata"]["name"] for one in pods]
        self.start_controller(1)
        until("it stands by", lambda: self.controller_log().count("standing by") == 2)
        self.assertEqual(leaders(), ["tahoma-controller-0"])
        self.stop_controller(0)
        until("the other leads", lambda: leaders() == ["tahoma-controller-1"], self.controller_log)
        self.kubectl("delete", "gang", "train")
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        self.make_gang()
        def whole_again():
            self.beat()
            return all(one["spec"].get("nodeName") for one in self.get("pods")["items"])
        until("it places pods", whole_again, self.controller_log)
        self.assertNotIn("orbidden", self.controller_log())

    def test_7c_whoever_the_cluster_lets_buys_blocks_and_drains_nodes_by_the_admin_api(self):
        url = "https://" + re.search(r"adminAddress: (\S+)", (self.directory / "ports1.yaml").read_text())[1]
        trusted = ssl.create_default_context(cadata=self.get("configmap", "tahoma-controller-ca", "-n", chart.NAMESPACE)["data"]["ca.crt"])
        self.kubectl("create", "serviceaccount", "operator")
        token = self.kubectl("create", "token", "operator").strip()

        def ask(method, path, body=None):
            request = urllib.request.Request(url + path, method=method, data=json.dumps(body).encode() if body is not None else None,
                                             headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=20, context=trusted) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        self.assertEqual(ask("GET", "/v1/topology")[0], 403)
        self.kubectl("create", "clusterrole", "operator", "--verb=get,post,delete", "--non-resource-url=/v1/*")
        self.kubectl("create", "clusterrolebinding", "operator", "--clusterrole=operator", "--serviceaccount=default:operator")
        until("the right is seen", lambda: ask("GET", "/v1/topology")[0] == 200)
        for verb, wanted in (("cordon", True), ("uncordon", None)):
            status, said = ask("POST", f"/v1/nodes/{NODES[0]}/{verb}", {})
            self.assertEqual(status, 200, said)
            self.assertEqual(self.get("node", NODES[0])["spec"].get("unschedulable"), wanted)
            status, said = ask("POST", f"/v1/nodes/{NODES[1]}/chips/3/{verb}", {})
            self.assertEqual(status, 200, said)
        status, said = ask("POST", f"/v1/nodes/{NODES[0]}/drain", {})
        self.assertEqual(status, 202, said)
        until("the node's pod is evicted", lambda: NODES[0] not in
              [one["spec"].get("nodeName") for one in self.get("pods")["items"] if "deletionTimestamp" not in one["metadata"]])
        self.assertEqual(ask("DELETE", "/v1/gangs/default/train")[0], 202)
        self.assertEqual(ask("POST", f"/v1/nodes/{NODES[0]}/uncordon", {})[0], 200)
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")  # no kubelet ends them
        self.beat()
        search = "/v1/capacityblockofferings?instanceType=trn2.48xlarge&instanceCount=1&capacityDurationHours=24"
        found = until("there is an offering", lambda: ask("GET", search)[1]["capacityBlockOfferings"])
        order = {"capacityBlockOfferingId": found[0]["capacityBlockOfferingId"], "name": "block"}
        status, bought = ask("POST", "/v1/capacityblocks/default", order)
        self.assertEqual(status, 201, bought)
        until("the block is shown", lambda: self.get("capacityblock", "block").get("status", {}).get("state") in ("scheduled", "active"))
        until("the reservation is shown", lambda: self.get("capacityreservations", "-A")["items"])
        self.kubectl("delete", "clusterrolebinding,clusterrole", "operator")
        self.kubectl("delete", "serviceaccount", "operator")
        self.assertNotIn("orbidden", self.controller_log())

    def test_8_deleting_pods_and_gangs_frees_everything(self):
        self.kubectl("delete", "gangs", "--all")
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        until("the claims are gone", lambda: not self.get("resourceclaims")["items"])
        self.assertNotIn("orbidden", self.controller_log())

    def test_9_nothing_but_crds_outlives_the_release(self):
        self.stop_controller(1)
        self.kubectl("delete", "resourceslices", "--all")
        self.kubectl("delete", "resourceclaimtemplates", "--all")
        self.helm("uninstall", "--wait")
        self.kubectl("delete", "pods", "--all", "-n", chart.NAMESPACE, "--grace-period=0", "--force")
        self.kubectl("delete", "namespace", chart.NAMESPACE)
        left = self.names() - self.before
        crds = {name for name in left if name.startswith("customresourcedefinition")}
        of_users = {name for name in left if name.split("/")[0].endswith(".tahoma.dev")}
        self.assertEqual(left - crds - of_users, {"apiservice.apiregistration.k8s.io/v1alpha1.tahoma.dev"})  # the server's, of the CRDs
        self.assertEqual(len(crds), len(list((chart.CHART / "crds").iterdir())))
        # As docs/helm.md says: nobody is left to take the finalizer off a block that is sold.
        self.kubectl("patch", "capacityblock", "block", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        self.kubectl("delete", "-f", chart.CHART / "crds", "--timeout=60s")
        until("nothing is left", lambda: self.names() <= self.before, lambda: str(self.names() - self.before))


class UpgradeTest(ClusterCase):
    """From each earlier release's chart."""

    def objects(self):
        """But for those of Helm itself, and what has a name that is made up."""
        return {name for name in self.names() if not name.startswith(("pod/", "ipaddress.", "secret/sh.helm.release"))}

    def test_a_release_that_was_upgraded_has_the_objects_of_a_new_one(self):
        self.helm("install")
        new = self.objects()
        self.helm("uninstall", "--wait")
        own = chart.read(chart.CHART / "Chart.yaml")[0]["version"]
        for packed in (one for one in chart.RELEASES.glob("*/chart.tgz") if one.parent.name != own):
            with self.subTest(release=packed.parent.name):
                self.helm("install", source=packed)
                self.kubectl("apply", "--server-side", "--force-conflicts", "-f", chart.CHART / "crds")
                self.helm("upgrade")
                until("its objects are those of a new one", lambda: self.objects() == new, lambda: str(self.objects() ^ new))
                self.helm("uninstall", "--wait")


class RaceTest(ClusterCase):
    """kube-scheduler and Tahoma want the same untainted chips, as AWS's driver publishes them."""

    def start_kube_scheduler(self):
        keys = control_plane.Keys(self.directory / "k/pki")
        keys.sign("scheduler", "/CN=system:kube-scheduler")
        kubeconfig = keys.kubeconfig("scheduler", control_plane.port_of(self.directory / "k"), self.directory / "scheduler.kubeconfig")
        gates = [] if SERVERS else ["--feature-gates", "DRADeviceTaintRules=true"]
        control_plane.start(self.directory / "k", "kube-scheduler", pathlib.Path(os.environ["KUBERNETES_BIN"]) / "kube-scheduler",
                            "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=5000",
                            "--kube-api-burst=5000", *gates)

    def race(self, name):
        """Both get as many pods of four chips as there are chips for."""
        pods = [pod(f"{name}-{scheduler}-{i}", "four", scheduler) for i in range(8) for scheduler in ("default-scheduler", "tahoma")]
        self.kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": pods})

        def all_of_tahomas_are_bound():
            self.beat()
            bound = [one for one in self.get("pods")["items"] if one["spec"].get("nodeName")]
            self.assertEqual({one["spec"]["schedulerName"] for one in bound} - {"tahoma"}, set())
            taken = [(r["pool"], r["device"]) for one in self.get("resourceclaims")["items"]
                     for r in one.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])]
            self.assertEqual(len(taken), len(set(taken)), "a chip is in two claims")
            return len(bound) == 8 and len(taken) == 32
        until("all of Tahoma's pods are bound", all_of_tahomas_are_bound, self.controller_log)

    def told(self, name):
        """What kube-scheduler says of its pods."""
        return " ".join(one["message"] for one in self.get("events")["items"]
                        if one["involvedObject"].get("name", "").startswith(f"{name}-default-scheduler")
                        and one["reason"] == "FailedScheduling")

    def clear(self):
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        until("the claims are gone", lambda: not self.get("resourceclaims")["items"])

    def test_no_chip_is_in_two_claims(self):
        self.helm("install")
        for node in NODES:
            self.kubectl("create", "-f", "-", given=slice_of(node))
        self.kubectl("create", "-f", "-", given=claim("four", kind="ResourceClaimTemplate", count=4))
        self.beat()
        self.start_controller()
        self.start_kube_scheduler()
        if not SERVERS:
            self.race("ruled")
            until("kube-scheduler finds no device", lambda: "cannot allocate all claims" in self.told("ruled"))
            self.assertNotIn("allocated by Tahoma alone", self.told("ruled"))
            self.clear()
            self.helm("upgrade", values={**VALUES, "awsDriver": {"enabled": True, "taint": "none"}})
        self.race("refused")
        until("kube-scheduler is told why", lambda: "allocated by Tahoma alone: give the pod schedulerName: tahoma" in self.told("refused"))
        self.clear()


if __name__ == "__main__":
    unittest.main(failfast=True, warnings="ignore")
