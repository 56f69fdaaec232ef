#!/usr/bin/env python3
"""Tahoma as Helm installs it on a cluster of kind: every scenario, fail-over, drain, reboot, upgrades, hostile callers, the life
of a Capacity Block, uninstall.

    kind_test.py [-v]      in the repository's root, with the folders of build_tools.sh, TAHOMA_BIN and kubectl

One cluster is made for all tests, which run in the order of the file; the last one uninstalls the chart. KEEP_LOGS names
a folder that gets what every node and pod has said.
"""

import datetime
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/scenarios", "tests/cluster", "examples/local"):
    sys.path.insert(0, str(ROOT / folder))

import kind  # noqa: E402
from kind_ground import NAMESPACE, RELEASE, KindGround, in_own_network  # noqa: E402
from node_case import NodeCase  # noqa: E402

WAITS = ["bash", "-c", "trap 'exit 0' TERM; sleep 9999 & wait"]
MANAGED = {"key": "tahoma.dev/managed", "operator": "Exists"}
GROUND = None


def setUpModule():
    global GROUND
    GROUND = KindGround(pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve())
    began = time.monotonic()
    KindCase.environment = unittest.enterModuleContext(GROUND)
    print(f"the cluster is up, and the chart is installed ({time.monotonic() - began:.0f} s)", flush=True)


def claim(name, count=1, tolerations=(), api_kind="ResourceClaim", instance="trn2.48xlarge"):
    selector = f"device.attributes['neuron.aws.com'].instanceType == '{instance}'"
    spec = {"devices": {"requests": [{"name": "chips", "exactly": {
        "deviceClassName": "neuron.aws.com", "count": count, "selectors": [{"cel": {"expression": selector}}],
        **({"tolerations": list(tolerations)} if tolerations else {})}}]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": api_kind, "metadata": {"name": name},
            "spec": {"spec": spec} if api_kind == "ResourceClaimTemplate" else spec}


def template(name, count=1):
    return claim(name, count, api_kind="ResourceClaimTemplate")


def pod(name, claims, scheduler="tahoma", **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 5,
                     "containers": [{"name": "main", "image": "tahoma.dev/workload:v1", "command": WAITS,
                                     "resources": {"claims": [{"name": "chips"}]}}],
                     "resourceClaims": [{"name": "chips", "resourceClaimTemplateName": claims}], **spec}}


class KindCase(NodeCase):
    def tearDown(self):
        self.kubectl("delete", "pods,gangs.tahoma.dev,resourceclaims,resourceclaimtemplates", "--all", "--timeout=90s")

    def devices(self):
        """(node, device) of every allocation."""
        return sorted((one["pool"], one["device"]) for claim in self.get("resourceclaims", "-A")["items"]
                      for one in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", []))

    def system_pods(self, part):
        return self.get("pods", "--namespace", NAMESPACE, "--selector", f"app.kubernetes.io/component={part}")["items"]

    def container(self, name):
        return self.get("pod", name)["status"]["containerStatuses"][0]["containerID"]

    def kubeconfig(self, user):
        """The cluster's, with other credentials."""
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--output", "json"))
        config["users"][0]["user"] = user
        file = GROUND.directory / "other.kubeconfig"
        file.write_text(json.dumps(config))
        return str(file)

    def forward(self):
        """The address of the admin API by kubectl port-forward, as docs/helm.md says; what it is trusted by is in self.trusted."""
        child = subprocess.Popen([os.environ.get("KUBECTL", "kubectl"), "port-forward", "--namespace", NAMESPACE, "service/tahoma-controller", ":8002"],
                                 env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.terminate)
        self.trusted = GROUND.directory / "tahoma-ca.crt"
        self.trusted.write_text(self.get("configmap", "tahoma-controller-ca", "--namespace", NAMESPACE)["data"]["ca.crt"])
        return "https://" + re.search(r"127.0.0.1:\d+", child.stdout.readline())[0]

    def ask_admin(self, url, headers):
        """The answer; an HTTPError."""
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20,
                                      context=ssl.create_default_context(cafile=str(self.trusted)))

    def token(self, account, namespace, *more):
        return {"token": self.kubectl("create", "token", account, "--namespace", namespace, *more).strip()}


class Scenarios(KindCase):
    def test_every_scenario_on_the_cluster_of_a_kubeconfig(self):
        with subprocess.Popen([sys.executable, ROOT / "tests/scenarios/run.py", "kubeconfig"], env=self.environment,
                              stdout=subprocess.PIPE, text=True) as child:
            said = []
            for line in child.stdout:
                print(line, end="", flush=True)
                said.append(line)
        failed = [at for at, line in enumerate(said) if line.startswith("FAILED")]
        self.assertEqual(child.returncode, 0, "".join(said[failed[0]:failed[0] + 20]) if failed else "")


class Life(KindCase):
    def test_the_tests_of_the_chart_pass(self):
        GROUND.run("helm", "test", RELEASE, "--namespace", NAMESPACE, "--timeout", "90s")

    def leader(self):
        pods = self.get("pods", "--namespace", NAMESPACE, "--selector", "tahoma.dev/leader=true")["items"]
        return pods[0]["metadata"]["name"] if len(pods) == 1 else None

    def test_a_stand_by_places_pods_after_the_leader_has_been_killed(self):
        self.apply(template("two", 2), pod("before", "two"))
        self.ready("before")
        held, container = self.devices(), self.container("before")
        first = self.until("one leads", self.leader)
        began = time.monotonic()
        self.kubectl("delete", "pod", first, "--namespace", NAMESPACE, "--force", "--grace-period=0")
        self.apply(pod("after", "two"))
        self.until("the next pod has a node", lambda: self.get("pod", "after")["spec"].get("nodeName"))
        print(f"placed {time.monotonic() - began:.1f} s after the leader was killed", flush=True)
        self.ready("before", "after")
        devices = self.devices()
        self.assertEqual(len(devices), len(set(devices)))
        self.assertLess(set(held), set(devices))
        self.assertEqual(self.container("before"), container)
        self.assertNotEqual(self.until("another leads", self.leader), None)

    def kill(self, victim):
        """Something ends without a word, and is started again by who looks after it."""
        if victim == "controller":
            self.kubectl("delete", "pod", self.until("one leads", self.leader), "--namespace", NAMESPACE, "--force", "--grace-period=0")
        elif victim == "kube-apiserver":
            GROUND.cluster.in_node(f"{kind.NAME}-control-plane", "pkill", "-KILL", victim)
        else:
            GROUND.cluster.in_node("trn2u-1", "systemctl", "kill", "--signal=KILL", victim)

    def ready_members(self, count):
        """The gang's pods, if all are Ready; nothing while the API server is down."""
        try:
            pods = self.get("pods", "--selector", "tahoma.dev/gang=whole")["items"]
        except AssertionError:
            return None
        ready = [p for p in pods if any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))]
        return len(ready) == count

    def test_a_gang_is_whole_whatever_dies_while_it_is_placed(self):
        gang = GROUND.run(ROOT / "examples/gangs/make_gang.py", "whole", "4x4x4", "4", "--command", "sleep 9999")
        for victim in ("controller", "kubelet", "kube-apiserver"):
            with self.subTest(victim=victim):
                self.kubectl("apply", "-f", "-", given=gang)
                self.kill(victim)
                self.until("all four pods are Ready", lambda: self.ready_members(4))
                devices = self.devices()
                self.assertEqual(len(set(devices)), len(devices))
                self.assertEqual(len({node for node, _ in devices}), 4)
                self.tearDown()
                self.until("all chips are free", lambda: not self.devices())

    def test_a_drained_node_is_empty_and_is_used_again_when_it_is_back(self):
        self.apply(template("two", 2), pod("drained", "two"))
        self.ready("drained")
        self.addCleanup(self.kubectl, "uncordon", "trn2-0")
        self.kubectl("drain", "trn2-0", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=120s",
                     "--pod-selector=!app.kubernetes.io/component")
        self.until("its chips are free", lambda: not self.devices())
        self.apply(pod("later", "two"))
        self.until("the pod knows why it waits", lambda: any(
            c["reason"] == "Unschedulable" for c in self.get("pod", "later")["status"].get("conditions", [])))
        self.assertEqual(self.devices(), [])
        self.kubectl("uncordon", "trn2-0")
        self.ready("later")

    def test_a_node_that_reboots_runs_its_pods_with_the_same_chips(self):
        self.apply(template("two", 2), pod("stays", "two", restartPolicy="Always"))
        uid = self.ready("stays")[0]["metadata"]["uid"]
        held = self.devices()
        GROUND.cluster.restart("trn2-0")
        self.until("its container runs again", lambda: self.get("pod", "stays")["status"]["containerStatuses"][0]["restartCount"] > 0)
        self.assertEqual(self.ready("stays")[0]["metadata"]["uid"], uid)
        self.assertEqual(self.devices(), held)
        self.until("sim-node and its plugin are Ready again", lambda: all(
            c["ready"] for part in ("sim-node", "dra-plugin") for p in self.system_pods(part)
            for c in p["status"]["containerStatuses"]))
        self.assertIn("NEURON_RT_VISIBLE_CORES", self.kubectl("exec", "stays", "--", "env"))

    def test_kube_scheduler_gives_no_device_of_ours_away(self):
        self.kubectl("create", "namespace", "elsewhere")
        self.addCleanup(self.kubectl, "delete", "namespace", "elsewhere", "--timeout=90s")
        rival = [{**one, "metadata": {**one["metadata"], "namespace": "elsewhere"}}
                 for one in (template("eight", 8), *(pod(f"rival-{i}", "eight", scheduler="default-scheduler") for i in range(3)))]
        self.apply(template("eight", 8), *rival, *(pod(f"ours-{i}", "eight") for i in range(3)))
        self.until("two of ours have the node's chips", lambda: len(self.devices()) == 16)
        self.until("kube-scheduler has said that it has none", lambda: all(
            any(c["type"] == "PodScheduled" and c["status"] == "False" for c in p["status"].get("conditions", []))
            for p in self.get("pods", "--namespace", "elsewhere")["items"]))
        devices = self.devices()
        self.assertEqual(len(devices), len(set(devices)))
        self.assertEqual([c for c in self.get("resourceclaims", "--namespace", "elsewhere")["items"]
                          if "allocation" in c.get("status", {})], [])

class Load(threading.Thread):
    """Gangs of two nodes, one after the other, until it is stopped. `gangs` ran; `error`: why one did not."""

    def __init__(self, case):
        super().__init__()
        self.case, self.gangs, self.error = case, 0, None
        self.stopped = threading.Event()

    def run(self):
        try:
            while not self.stopped.is_set():
                self.run_gang(f"load-{self.gangs}")
                self.gangs += 1
        except Exception as error:  # shown by the test's own thread
            self.error = error

    def run_gang(self, name):
        case = self.case
        case.kubectl("apply", "-f", "-", given=GROUND.run(ROOT / "examples/gangs/make_gang.py", name, "4x4x2", "2", "--command", "sleep 1"))

        def succeeded():
            devices = case.devices()
            case.assertEqual(len(devices), len(set(devices)), "a device is in two claims")
            pods = case.get("pods", "--selector", f"tahoma.dev/gang={name}")["items"]
            return len(pods) == 2 and all(one["status"]["phase"] == "Succeeded" for one in pods)
        case.until(f"both pods of {name} have succeeded", succeeded)
        case.kubectl("delete", "gang", name)
        case.kubectl("delete", "pods", "--selector", f"tahoma.dev/gang={name}")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()


class Upgrades(KindCase):
    def to_chart(self, chart, *options):
        """CRDs and chart, as docs/helm.md says. Pods of sim-node stay until somebody deletes them, but from a chart with one
        DaemonSet of them to one with a DaemonSet for each node."""
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", chart / "crds")
        GROUND.run("helm", "upgrade", RELEASE, chart, "--namespace", NAMESPACE, "--values", GROUND.values,
                   "--set", "simNode.updateStrategy=OnDelete", *options,
                   *(f"--set={part}.image.tag={GROUND.version}" for part in ("controller", "draPlugin", "simNode")))
        # Helm's --wait would wait for sim-node's pods, too.
        for workload in ("statefulset/tahoma-controller", "daemonset/tahoma-dra-plugin"):
            self.kubectl("rollout", "status", workload, "--namespace", NAMESPACE, "--timeout=180s")

    def restart_hardware(self):
        self.kubectl("delete", "pods", "--namespace", NAMESPACE, "--selector", "app.kubernetes.io/component=sim-node")
        self.until("pods of sim-node are Ready", lambda: len(ready := [
            c["ready"] for p in self.system_pods("sim-node") for c in p["status"].get("containerStatuses", [])]) ==
            len(GROUND.topology["nodes"]) and all(ready))

    def test_each_earlier_release_is_upgraded_under_load_and_leaves_what_runs_alone(self):
        releases = sorted((ROOT / "tests/golden/releases").glob("*/chart.tgz"))
        for packed in (one for one in releases if one.parent.name != GROUND.version):
            with self.subTest(release=packed.parent.name), tempfile.TemporaryDirectory() as folder:
                shutil.unpack_archive(packed, folder)
                # Charts up to 0.2.0 refuse these classes beside the managed taint.
                self.to_chart(pathlib.Path(folder) / "tahoma", "--set", "deviceClasses.extendedResources=false")
                self.restart_hardware()
                self.apply(template("two", 2), pod("runs", "two"))
                self.ready("runs")
                container, controllers = self.container("runs"), {p["metadata"]["uid"] for p in self.system_pods("controller")}
                with Load(self) as load:
                    self.until("gangs run", lambda: load.gangs > 0 or load.error)
                    self.to_chart(ROOT / "charts/tahoma")
                    self.assertFalse(controllers & {p["metadata"]["uid"] for p in self.system_pods("controller")})
                    during = load.gangs
                    self.until("gangs run on", lambda: load.gangs > during or load.error)
                self.assertIsNone(load.error)
                print(f"{load.gangs} gangs ran meanwhile", flush=True)
                self.apply(pod("next", "two"))
                self.ready("runs", "next")
                self.assertEqual(self.container("runs"), container)
                self.tearDown()
                self.restart_hardware()


class BlockLife(KindCase):
    """On a clock that is set ahead: a library in the controllers' pods adds what a file says."""

    def setUp(self):
        self.clock = GROUND.shared / "clock"
        self.set_clock(0)
        shutil.copy(GROUND.bin / "libsettable_clock.so", GROUND.shared)
        shutil.copy(ROOT / "examples/blocks/train.sh", GROUND.shared)
        self.kubectl("set", "env", "statefulset/tahoma-controller", "--namespace", NAMESPACE,
                     f"LD_PRELOAD={GROUND.shared}/libsettable_clock.so", f"TAHOMA_CLOCK_OFFSET={self.clock}")
        self.kubectl("rollout", "status", "statefulset/tahoma-controller", "--namespace", NAMESPACE, "--timeout=120s")
        self.kubectl("create", "serviceaccount", "buyer")
        self.kubectl("create", "clusterrole", "buyer", "--verb=get", "--non-resource-url=/v1/*")
        self.kubectl("create", "clusterrolebinding", "buyer", "--clusterrole=buyer", "--serviceaccount=default:buyer")

    def set_clock(self, ahead):
        self.ahead = ahead
        changed = self.clock.with_suffix(".new")
        changed.write_text(str(int(ahead)))
        changed.replace(self.clock)

    def leap_to(self, moment):
        """Sets the clock to the moment, in steps of which each is believed at once."""
        wanted = datetime.datetime.fromisoformat(moment).timestamp() - time.time()
        while self.ahead < wanted:
            self.set_clock(min(wanted + 1, self.ahead + 20 * 3600))
            believed = self.ahead - 60
            self.until("the clock is believed", lambda: believed < self.block_time() - time.time())

    def block_time(self):
        with self.ask_admin(f"{self.admin}/v1/clock", {"Authorization": f"Bearer {self.buyer['token']}"}) as answer:
            return datetime.datetime.fromisoformat(json.load(answer)["blockTime"]).timestamp()

    def tahoma(self, *arguments):
        return GROUND.run("kubectl-tahoma", *arguments, "--admin", self.admin, "--admin-ca-file", self.trusted,
                          "--kubeconfig", self.kubeconfig(self.buyer))

    def block(self):
        return self.get("capacityblock", "nightly").get("status", {})

    def phase(self, gang):
        return self.get("gang", gang).get("status", {}).get("phase")

    def make_gang(self, name, command, *more):
        self.kubectl("apply", "-f", "-", given=GROUND.run(
            ROOT / "examples/gangs/make_gang.py", name, "4x4", "1", "--command", command, "--instance-type", "trn2.48xlarge", *more))

    def buy(self):
        found = json.loads(self.tahoma("offerings", "--type", "trn2.48xlarge", "--count", "1", "--hours", "24", "--output", "json"))
        offering = found["capacityBlockOfferings"][0]["capacityBlockOfferingId"]
        self.kubectl("apply", "-f", "-", given={
            "apiVersion": "tahoma.dev/v1alpha1", "kind": "CapacityBlock", "metadata": {"name": "nightly"},
            "spec": {"capacityBlockOfferingId": offering}})
        self.until("it is sold", lambda: self.block().get("state") == "scheduled")

    def test_a_gang_lives_its_block_from_the_wait_to_the_checkpoint(self):
        leader, = self.until("one leads", lambda: self.get("pods", "--namespace", NAMESPACE, "--selector", "tahoma.dev/leader=true")["items"])
        self.assertIn("libsettable_clock", json.dumps(leader["spec"]))
        self.admin, self.buyer = self.forward(), self.token("buyer", "default")
        self.buy()
        self.make_gang("pretrain", f"bash {GROUND.shared}/train.sh /tmp", "--block", "nightly")
        self.until("the gang knows when it begins", lambda: f"begins {self.block()['startDate']}" in json.dumps(self.get("gang", "pretrain")))
        self.make_gang("rival", "sleep 9999")  # nobody knows when it ends
        self.leap_to(self.block()["startDate"])
        self.until("the block begins", lambda: self.block()["state"] == "active")
        self.ready("pretrain-0")
        self.assertEqual(self.phase("rival"), "Pending")
        log = GROUND.directory / "pretrain.log"
        with open(log, "wb") as file:
            follow = subprocess.Popen([os.environ.get("KUBECTL", "kubectl"), "logs", "--follow", "pretrain-0"], env=self.environment, stdout=file)
        self.addCleanup(follow.wait)
        self.addCleanup(follow.terminate)
        self.until("the program runs", lambda: "the hardware is taken back in" in log.read_text())

        self.leap_to(self.block()["reclaimDate"])
        self.until("the pod is gone", lambda: "pretrain-0" not in self.kubectl("get", "pods", "--output", "name"))
        self.assertEqual(follow.wait(), 0)
        self.assertIn("SIGTERM: checkpoint of step", log.read_text())
        self.assertEqual(self.phase("rival"), "Pending")
        self.leap_to(self.block()["endDate"])
        self.until("the block ends", lambda: self.block()["state"] == "expired")
        self.ready("rival-0")
        listed = self.get("events", "--field-selector", "involvedObject.name=nightly")["items"]
        for reason in ("Purchased", "Scheduled", "HardwareBound", "Delivered", "ExpirationWarning", "Reclaimed", "Expired"):
            self.assertIn(f"CapacityBlock{reason}", [event["reason"] for event in listed])


class HostileCallers(KindCase):
    """Each row: what is tried, and what the server says."""

    def check_refused(self, user, said, *arguments, given=None):
        with self.subTest(arguments=arguments, said=said):
            shown = self.kubectl("--kubeconfig", self.kubeconfig(user), *arguments, given=given, fails=True)
            self.assertRegex(shown, said)

    def slice_of(self, node, driver="neuron.aws.com"):
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"false-{node}"},
                "spec": {"driver": driver, "nodeName": node, "devices": [{"name": "neuron-device-0"}],
                         "pool": {"name": node, "generation": 99, "resourceSliceCount": 1}}}

    def status_of(self, path, headers):
        """What the API server answers to a caller without a certificate."""
        server = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--output", "json"))["clusters"][0]["cluster"]["server"]
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(urllib.request.Request(server + path, headers=headers), context=context) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_callers_without_credentials_or_with_false_ones(self):
        for headers, status in (({}, 403), ({"Authorization": "Bearer made-up"}, 401),
                                ({"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters"}, 403),
                                ({"Impersonate-User": "system:serviceaccount:tahoma-system:tahoma-controller"}, 403)):
            for path in ("/api/v1/secrets", "/apis/resource.k8s.io/v1/resourceclaims", "/apis/tahoma.dev/v1alpha1/gangs"):
                with self.subTest(headers=headers, path=path):
                    self.assertEqual(self.status_of(path, headers), status)

    def test_the_account_of_a_pod(self):
        user = self.token("default", "default")
        for arguments, given in ((("get", "resourceclaims"), None), (("get", "resourceslices"), None),
                                (("create", "-f", "-"), self.slice_of("trn2-0")),
                                (("delete", "resourceslices", "--all"), None),
                                (("get", "secrets", "--namespace", NAMESPACE), None),
                                (("create", "token", "tahoma-controller", "--namespace", NAMESPACE), None)):
            self.check_refused(user, "cannot|orbidden", *arguments, given=given)

    def test_the_account_of_a_plugin_beyond_its_node(self):
        bound = self.token("tahoma-dra-plugin", NAMESPACE, "--bound-object-kind", "Node", "--bound-object-name", "trn2-0")
        own = "for its own node only, which is trn2-0"
        other = next(s["metadata"]["name"] for s in self.get("resourceslices")["items"] if s["spec"]["nodeName"] == "trn2u-0")
        self.check_refused(bound, own, "create", "-f", "-", given=self.slice_of("trn2u-0"))
        self.check_refused(bound, own, "delete", "resourceslice", other)
        self.check_refused(bound, own, "label", "node", "trn2u-0", "stolen=yes")
        self.check_refused(bound, "labels only", "patch", "node", "trn2-0", "--patch", '{"spec": {"unschedulable": true}}')
        self.check_refused(bound, "slices of neuron.aws.com and dra.net only", "create", "-f", "-", given=self.slice_of("trn2-0", "gpu.example.com"))
        self.check_refused(bound, "cannot", "get", "secrets", "--namespace", NAMESPACE)
        self.check_refused(bound, "cannot", "delete", "pods", "--all")
        nowhere = self.token("tahoma-dra-plugin", NAMESPACE)
        self.check_refused(nowhere, "names no node", "create", "-f", "-", given=self.slice_of("trn2-0"))

    def test_whoever_may_write_claims(self):
        admin = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--output", "json"))["users"][0]["user"]
        tolerant = claim("tolerant", tolerations=[MANAGED])
        self.check_refused(admin, "tahoma.dev/managed", "create", "-f", "-", given=tolerant)
        everything = claim("everything", tolerations=[{"operator": "Exists"}])
        self.check_refused(admin, "tahoma.dev/managed|tolerat", "create", "-f", "-", given=everything)
        self.check_refused(admin, "Invalid value", "create", "-f", "-", given=claim("../../etc/passwd"))
        self.apply(claim("taken"))
        allocation = {"devices": {"results": [{"request": "chips", "driver": "neuron.aws.com", "pool": "trn2-0", "device": "neuron-device-0"}]}}
        self.check_refused(admin, "allocated by Tahoma alone", "patch", "resourceclaim", "taken", "--subresource=status",
                           "--type=merge", "--patch", json.dumps({"status": {"allocation": allocation}}))

    def test_the_admin_api_asks_who_calls(self):
        admin, account = self.forward(), self.token("default", "default")["token"]
        for headers, status in (({}, 401), ({"Authorization": "Bearer made-up"}, 401),
                                ({"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}, 401),
                                ({"Authorization": f"Bearer {account}"}, 403)):
            with self.subTest(headers=headers), self.assertRaises(urllib.error.HTTPError) as refused:
                self.ask_admin(f"{admin}/v1/queue", headers)
            self.assertEqual(refused.exception.code, status)

    def test_a_pod_with_another_token_or_other_cores_than_its_claims(self):
        self.apply(template("one"), pod("victim", "one"), pod("thief", "one"))
        self.ready("victim", "thief")
        token, = re.findall(r"TAHOMA_CLAIM_TOKEN=(\S+)", self.kubectl("exec", "thief", "--", "env"))
        made_up = "0" * len(token)
        self.assertIn("NEURON", self.kubectl("exec", "thief", "--", "neuron-ls"))
        self.kubectl("exec", "thief", "--", "env", f"TAHOMA_CLAIM_TOKEN={made_up}", "neuron-ls", fails=True)
        devices = self.kubectl("exec", "thief", "--", "bash", "-c", "for f in /dev/neuron*; do [ -S $f ] && echo $f; done").split()
        self.assertEqual(len(devices), 1)
        for place in ("/var/run/cdi", "/var/lib/kubelet", "/run/tahoma/node"):
            self.kubectl("exec", "thief", "--", "ls", place, fails=True)


class Uninstalled(KindCase):
    def tearDown(self):
        pass

    def everything(self):
        """Every object that has our name, but events; the cluster's own name is not ours."""
        kinds = [kind_name for kind_name in self.kubectl("api-resources", "--verbs=list", "-o", "name").split()
                 if not kind_name.startswith(("events", "componentstatuses"))]
        shown = json.loads(GROUND.run("kubectl", "get", ",".join(kinds), "-A", "-o", "json", "--ignore-not-found"))
        named = {f"{one['kind']}/{one['metadata']['name']}": json.dumps([one["metadata"]["name"], one["metadata"].get("labels", {})])
                 for one in shown["items"]}
        return {name for name, words in named.items() if re.search("tahoma|neuron", words.replace(kind.NAME, ""))}

    def test_nothing_but_the_definitions_of_resources_is_left(self):
        GROUND.run("helm", "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout", "120s")
        # What the test and the scenarios have made, and the APIs that go with the definitions.
        given = {f"Namespace/{NAMESPACE}", "MutatingAdmissionPolicy/scheduler.test.tahoma.dev",
                 "MutatingAdmissionPolicyBinding/scheduler.test.tahoma.dev", "APIService/v1alpha1.tahoma.dev",
                 "APIService/v1beta1.neuron.aws.com"}

        def left():
            return {name for name in self.everything() - given if not name.startswith(("CustomResourceDefinition/", "Node/"))}
        deadline = time.monotonic() + 60
        while (found := left()) and time.monotonic() < deadline:
            time.sleep(1)
        self.assertEqual(found, set())
        self.assertIn("CustomResourceDefinition/gangs.tahoma.dev", self.everything())
        for node in GROUND.topology["nodes"]:
            shown = GROUND.cluster.in_node(node["name"], "sh", "-c", "ls /var/run/cdi /var/lib/kubelet/plugins_registry")
            self.assertNotRegex(shown, r"(neuron|dra).*\.(json|sock)")


def load_tests(loader, *_):
    """In this order: the last takes the chart away."""
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in (Life, Upgrades, HostileCallers, Scenarios, BlockLife, Uninstalled))


if __name__ == "__main__":
    in_own_network()
    unittest.main(verbosity=2)
