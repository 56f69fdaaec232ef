#!/usr/bin/env python3
"""What happens to a node in its life, with a real kubelet, containerd and runc: programs killed, restarted and replaced.

    node_life_test.py       in the repository's root, with KUBERNETES_BIN, TAHOMA_BIN and kubectl, as root

The node is one trn2.48xlarge. Who holds which claim is asked of sim-node, which knows neither the API server nor the
kubelet; what is allocated, of the API server.
"""

import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/scenarios", "tests/cluster", "examples/local"):
    sys.path.insert(0, str(ROOT / folder))

import control_plane  # noqa: E402
import ground as grounds  # noqa: E402
from node_case import NodeCase  # noqa: E402

NAME = "trn2-0"
TOPOLOGY = {"networkLayers": ["nn-27951e8b5f0b6c4fe", "nn-e4ed5f6d14a986202", "nn-0f43aef49613f02d1"],
            "nodes": [{"name": NAME, "instanceType": "trn2.48xlarge"}]}
BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
WAITS = ["bash", "-c", "trap 'exit 0' TERM; sleep 9999 & wait"]


def template(name, device_class, count, selector="true", tolerations=()):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
            "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {
                "deviceClassName": device_class, "count": count, "selectors": [{"cel": {"expression": selector}}],
                **({"tolerations": list(tolerations)} if tolerations else {})}}]}}}}


def pod(name, claims=None, scheduler="tahoma", command=WAITS, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
                     "containers": [{"name": "main", "image": "tahoma.dev/workload:v1", "command": list(command),
                                     **({"resources": {"claims": [{"name": "c"}]}} if claims else {})}],
                     **({"resourceClaims": [{"name": "c", **claims}]} if claims else {}), **spec}}


def of(name):
    return {"resourceClaimTemplateName": name}


LNC2, LNC1 = ("device.attributes['tahoma.dev'].lnc == 2", "device.attributes['tahoma.dev'].lnc == 1")


class NodeLifeTest(NodeCase):
    @classmethod
    def setUpClass(cls):
        cls.bring_up(TOPOLOGY, scheduler_names="tahoma")
        cls.node, = cls.nodes
        cls.node.options = {"resyncPeriod": "1s"}
        cls.node.kill("dra-plugin")
        cls.node.start("dra-plugin")

    def tearDown(self):
        self.kubectl("delete", "pods,jobs,gangs.tahoma.dev,resourceclaimtemplates", "--all", "--timeout=90s")
        self.until("every claim is given back", lambda: not self.node.claims() and not self.node.cdi_claims())
        self.kubectl("delete", "resourceclaims", "--all", "--timeout=60s")

    def allocated(self):
        """The devices of each allocated claim, by its uid."""
        return {claim["metadata"]["uid"]: [one["device"] for one in claim["status"]["allocation"]["devices"]["results"]]
                for claim in self.get("resourceclaims")["items"] if "allocation" in claim.get("status", {})}

    def event_of(self, name, pattern):
        events = json.loads(self.kubectl("get", "events", "--field-selector", f"involvedObject.name={name}", "-o", "json"))
        return next((e["message"] for e in events["items"] if re.search(pattern, e["message"])), None)

    def test_a_container_sees_the_chips_of_its_claim_and_no_others(self):
        self.apply(template("chips", "neuron.aws.com", 2), pod("two", of("chips")))
        self.ready("two")
        devices, = self.allocated().values()
        chips = sorted(int(device.rsplit("-", 1)[1]) for device in devices)
        shown = self.kubectl("exec", "two", "--", "bash", "-c",
                             "for file in /dev/neuron*; do [ -S $file ] && echo $file; done; echo $AWS_NEURON_VISIBLE_DEVICES")
        self.assertEqual(shown.split(), [*(f"/dev/neuron{chip}" for chip in chips), ",".join(map(str, chips))])

    def as_plugin(self, *arguments, **options):
        """What kubectl says with the account of the node's plugin."""
        return self.kubectl("--kubeconfig", self.node.cluster / "nodes" / NAME / "plugin.kubeconfig", *arguments, **options)

    def test_the_account_of_a_plugin_may_do_nothing_that_a_plugin_does_not(self):
        for verb, what in (("get", "pods"), ("create", "pods"), ("get", "secrets"), ("get", "configmaps"), ("list", "nodes"),
                           ("delete", "nodes"), ("update", "nodes"), ("list", "resourceclaims"), ("patch", "resourceclaims"),
                           ("delete", "resourceclaims"), ("patch", "resourceclaims/binding"), ("deletecollection", "resourceslices"),
                           ("create", "deviceclasses.resource.k8s.io"), ("get", "gangs.tahoma.dev"), ("create", "tokenreviews"),
                           ("create", "serviceaccounts/token"), ("escalate", "clusterroles"), ("impersonate", "users")):
            with self.subTest(verb=verb, what=what):
                self.assertEqual(self.as_plugin("auth", "can-i", verb, what, "--all-namespaces", fails=True).splitlines()[-1], "no")

    def patch_as_plugin(self, claim, status):
        """The answer's status and its message. (kubectl would read the claim's status first, which a plugin may not.)"""
        token = re.search(r"token: ([^}]+)", (self.node.cluster / "nodes" / NAME / "plugin.kubeconfig").read_text())[1]
        server = f"https://127.0.0.1:{control_plane.port_of(self.node.cluster)}"
        request = urllib.request.Request(
            f"{server}/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{claim}/status", method="PATCH",
            data=json.dumps({"status": status}).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"})
        context = ssl.create_default_context(cafile=str(self.node.cluster / "pki" / "ca.crt"))
        try:
            with urllib.request.urlopen(request, context=context) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["message"]

    def test_the_account_of_a_plugin_may_not_give_devices_away_nor_report_on_those_of_other_nodes(self):
        self.apply(template("chips", "neuron.aws.com", 1), pod("held", of("chips")))
        self.ready("held")
        claim, = self.get("resourceclaims")["items"]
        name = claim["metadata"]["name"]
        result, = claim["status"]["allocation"]["devices"]["results"]
        code, message = self.patch_as_plugin(name, {"reservedFor": []})
        self.assertEqual(code, 422, message)  # as the server says it where the right is for a part of an object
        self.assertIn("resourceclaims/binding", message)
        self.apply({**claim, "metadata": {"name": "elsewhere"}, "status": {}})
        there = {"devices": {"results": [{**result, "pool": "other"}]},
                 "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                     {"key": "metadata.name", "operator": "In", "values": ["other"]}]}]}}
        self.kubectl("patch", "resourceclaim", "elsewhere", "--subresource=status", "--type=merge", "-p",
                     json.dumps({"status": {"allocation": there}}))
        condition = {"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-11-26T00:00:00Z"}
        entry = {"driver": "neuron.aws.com", "pool": "other", "device": result["device"], "conditions": [condition]}
        code, message = self.patch_as_plugin("elsewhere", {"devices": [entry]})
        self.assertEqual(code, 422, message)
        self.assertIn("resourceclaims/driver", message)
        self.assertEqual(self.patch_as_plugin(name, {"devices": [{**entry, "pool": result["pool"]}]}), (200, ""))

    def test_a_plugin_without_any_capability_serves_claims(self):
        self.node.kill("dra-plugin")
        self.node.start("dra-plugin", before=("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"))
        self.apply(template("chips", "neuron.aws.com", 1), pod("served", of("chips")))
        self.ready("served")
        self.assertEqual(self.node.claims(), set(self.allocated()))

    def test_a_plugin_that_is_killed_after_any_of_its_writes_neither_loses_nor_doubles_a_claim(self):
        self.apply(template("core", "neuroncore.tahoma.dev", 1, LNC2))
        for count in range(1, 7):
            names = [f"kill-{count}-{i}" for i in range(3)]
            self.apply(*(pod(name, of("core")) for name in names))
            self.node.kill_plugin_at_change(count, lambda: len(self.node.claims()) == 3)
            self.node.start("dra-plugin")
            self.ready(*names)
            self.assertEqual(self.node.claims(), set(self.allocated()))
            self.assertEqual(self.node.cdi_claims(), set(self.allocated()))

            self.kubectl("delete", "pods", "--all", "--wait=false")
            self.node.kill_plugin_at_change(count, lambda: not self.node.claims())
            self.node.start("dra-plugin")
            self.until("all is given back", lambda: not self.node.claims() and not self.node.cdi_claims())
            self.until("the pods are gone", lambda: not self.get("pods")["items"])

    def test_a_new_plugin_takes_over_beside_the_old_one(self):
        self.apply(template("core", "neuroncore.tahoma.dev", 1, LNC2), pod("before", of("core")))
        before = self.ready("before")[0]["status"]["containerStatuses"][0]["containerID"]
        old = self.node.pid("dra-plugin")
        self.node.options["podUid"] = "a2f0a1de-0000-4000-8000-000000000002"
        self.node.start("dra-plugin")
        registry = self.node.cluster / "nodes" / NAME / "root" / "plugins_registry"
        self.until("both are registered", lambda: len(list(registry.glob("neuron*.sock"))) == 2)
        self.apply(pod("meanwhile", of("core")))
        self.ready("meanwhile")
        os.kill(old, signal.SIGTERM)
        self.until("the old one has gone", lambda: len(list(registry.glob("neuron*.sock"))) == 1)
        self.apply(pod("after", of("core")))
        self.assertEqual(self.ready("before", "meanwhile", "after")[0]["status"]["containerStatuses"][0]["containerID"], before)
        self.assertEqual(self.node.claims(), set(self.allocated()))
        self.kubectl("delete", "pod", "before", "--timeout=60s")
        self.until("what the old one prepared is unprepared", lambda: self.node.claims() == set(self.allocated()))

    def test_pods_live_through_a_restart_of_the_kubelet(self):
        self.apply(template("core", "neuroncore.tahoma.dev", 1, LNC2), pod("before", of("core")))
        before = self.ready("before")[0]["status"]["containerStatuses"][0]["containerID"]
        self.node.kill("kubelet")
        self.node.start("kubelet")
        self.apply(pod("after", of("core")))
        self.assertEqual(self.ready("before", "after")[0]["status"]["containerStatuses"][0]["containerID"], before)
        self.assertEqual(self.node.claims(), set(self.allocated()))

    def test_what_is_deleted_while_the_plugin_is_down_is_given_back_when_it_returns(self):
        self.apply(template("core", "neuroncore.tahoma.dev", 1, LNC2), pod("one", of("core")), pod("two", of("core")))
        self.ready("one", "two")
        self.node.kill("dra-plugin")
        self.kubectl("delete", "pod", "one", "--force", "--grace-period=0")
        self.until("its claim is gone", lambda: len(self.get("resourceclaims")["items"]) == 1)
        self.assertEqual(len(self.node.claims()), 2)
        self.node.start("dra-plugin")
        self.until("one is given back, and two is not", lambda: self.node.claims() == set(self.allocated()))
        self.ready("two")

    def test_claims_that_nobody_unprepares_are_swept(self):
        self.apply(template("core", "neuroncore.tahoma.dev", 1, LNC2), pod("forgotten", of("core")))
        self.ready("forgotten")
        self.node.kill("kubelet")
        self.kubectl("delete", "pod", "forgotten", "--force", "--grace-period=0")
        self.until("the plugin has swept its claim", lambda: not self.node.claims() and not self.node.cdi_claims())
        self.node.start("kubelet")
        self.apply(pod("next", of("core")))
        self.ready("next")

    def test_a_node_that_reboots_has_its_pods_and_their_claims_again(self):
        self.apply(template("core", "neuroncore.tahoma.dev", 1, LNC2), pod("stays", of("core"), restartPolicy="Always"))
        uid = self.ready("stays")[0]["metadata"]["uid"]
        claims = self.node.claims()
        for program in ("kubelet", "dra-plugin", "sim-node"):
            self.node.kill(program)
        subprocess.run([sys.executable, ROOT / "tests/cluster/node.py", "kill-containers", self.node.cluster, NAME], check=True)
        for file in self.node.cdi.iterdir():  # /var/run is new at a boot
            file.unlink()
        boot_id = self.node.place / "boot_id"
        boot_id.write_text("11111111-2222-4333-8444-555555555555\n")
        self.addCleanup(self.restart_plugin)
        self.node.start("sim-node")
        self.node.start("dra-plugin", before=("unshare", "--mount", "sh", "-c", f'mount --bind {boot_id} {BOOT_ID} && exec "$@"', "sh"))
        self.node.start("kubelet")
        self.until("its container runs again", lambda: self.get("pod", "stays")["status"]["containerStatuses"][0]["restartCount"] > 0)
        self.assertEqual(self.ready("stays")[0]["metadata"]["uid"], uid)
        self.assertEqual(self.node.claims(), claims)
        self.assertEqual(self.node.cdi_claims(), claims)
        self.assertIn("NEURON_RT_VISIBLE_CORES", self.kubectl("exec", "stays", "--", "env"))

    def restart_plugin(self):
        self.node.kill("dra-plugin")
        self.node.start("dra-plugin")

    def test_a_device_that_another_claim_holds_is_refused_with_its_name_in_the_pods_events(self):
        self.apply(template("chip", "neuron.aws.com", 1), pod("holder", of("chip")))
        self.ready("holder")
        (holder, [device]), = self.allocated().items()
        requests = [{"name": "r", "exactly": {"deviceClassName": "neuron.aws.com", "count": 1}}]
        self.apply({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "second"},
                    "spec": {"devices": {"requests": requests}}},
                   pod("loser", {"resourceClaimName": "second"}, scheduler="nobody"))
        uid = self.get("pod", "loser")["metadata"]["uid"]
        self.kubectl("patch", "resourceclaim", "second", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {
            "allocation": {"devices": {"results": [{"request": "r", "driver": "neuron.aws.com", "pool": NAME, "device": device}]}},
            "reservedFor": [{"resource": "pods", "name": "loser", "uid": uid}]}}))
        self.kubectl("create", "--raw", "/api/v1/namespaces/default/pods/loser/binding", "-f", "-", given={
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "loser"}, "target": {"kind": "Node", "name": NAME}})
        message = self.until("the refusal", lambda: self.event_of("loser", "default/second"))
        self.assertRegex(message, f"{device}|{holder}|cores")
        self.assertEqual(self.node.claims(), {holder})

    def test_a_fault_under_a_running_pod_is_in_its_status_until_it_is_repaired(self):
        # The scheduler takes a toleration without an effect for one of every effect, the eviction does not.
        tolerations = [{"key": "tahoma.dev/unhealthy", "operator": "Exists", "effect": "NoExecute"}]
        self.apply(template("chip", "neuron.aws.com", 1, tolerations=tolerations), pod("patient", of("chip")))
        self.ready("patient")
        (device,), = self.allocated().values()
        chip = device.rsplit("-", 1)[1]
        self.fault(f"chips/{chip}/break", '{"reason": "HBM_UNCORRECTABLE_ERROR"}')
        self.until("the kubelet says Unhealthy", lambda: self.health("patient") == {"Unhealthy"})
        self.fault(f"chips/{chip}/repair")
        self.until("the kubelet says Healthy", lambda: self.health("patient") == {"Healthy"})

    def fault(self, *arguments):
        subprocess.run([ROOT / "tests/scenarios/fault.sh", NAME, *arguments], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL)

    def health(self, name):
        statuses = [status for pod in self.get("pods")["items"] if pod["metadata"]["name"] == name
                    for status in pod["status"].get("containerStatuses", [])]
        return {resource["health"] for status in statuses
                for one in status.get("allocatedResourcesStatus", []) for resource in one.get("resources", [])}

    def physical_cores(self, device):
        """By the names that docs/design/0001-seams.md gives devices: which of 128 cores it has."""
        if match := re.fullmatch(r"neuron-device-(\d+)", device):
            return {int(match[1]) * 8 + core for core in range(8)}
        chip, lnc, core = map(int, re.fullmatch(r"neuron-core-(\d+)-lnc([12])-(\d+)", device).groups())
        return {chip * 8 + core * lnc + i for i in range(lnc)}

    def test_kube_scheduler_gives_no_core_away_twice(self):
        self.node.options["managedTaint"] = False
        self.addCleanup(self.restart_plugin)
        self.addCleanup(self.node.options.pop, "managedTaint")
        self.restart_plugin()
        self.until("the devices are not reserved for us", lambda: "tahoma.dev/managed" not in self.kubectl(
            "get", "resourceslices", "-o", "json"))
        control_plane.start(self.node.cluster, "kube-scheduler", pathlib.Path(os.environ["KUBERNETES_BIN"]) / "kube-scheduler",
                            "--kubeconfig", self.node.cluster / "kubeconfig", "--leader-elect=false", "--secure-port", "0")
        self.addCleanup(control_plane.stop, self.node.cluster, "kube-scheduler")
        # By the name of a resource, as for a device plugin.
        wish = pod("by-resource", scheduler="default-scheduler")
        wish["spec"]["containers"][0]["resources"] = {"limits": {"aws.amazon.com/neuroncore": "2"}}
        self.apply(wish)
        self.ready("by-resource")
        self.assertRegex(self.kubectl("exec", "by-resource", "--", "env"), r"NEURON_RT_VISIBLE_CORES=\d+(-|,)\d+")
        self.apply(template("chips", "neuron.aws.com", 2), template("twos", "neuroncore.tahoma.dev", 3, LNC2),
                   template("ones", "neuroncore.tahoma.dev", 5, LNC1))
        wishes = [(f"{kind}-{i}", kind) for i in range(9) for kind in ("chips", "twos", "ones")]
        self.apply(*(pod(name, of(kind), scheduler="default-scheduler") for name, kind in wishes))

        def settled():
            pods = [p for p in self.get("pods")["items"] if p["metadata"]["name"] != "by-resource"]
            return all(p["spec"].get("nodeName") or "conditions" in p["status"] for p in pods) and pods
        waiting = [p for p in self.until("every pod has a place or knows why not", settled) if not p["spec"].get("nodeName")]
        self.assertTrue(waiting, "27 pods ask for 9 * (16 + 6 + 5) cores, more than 128")
        taken = [core for devices in self.allocated().values() for device in devices for core in self.physical_cores(device)]
        self.assertEqual(len(taken), len(set(taken)), sorted(taken))
        self.assertGreater(len(taken), 64)

    def test_the_pods_of_a_job_and_of_an_indexed_job_form_a_gang(self):
        for name, mode in (("plain", "NonIndexed"), ("indexed", "Indexed")):
            gang = {"apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang", "metadata": {"name": name},
                    "spec": {"members": 2, "shape": "4x4"}}
            chips = template(name, "neuron.aws.com", 8)
            worker = pod("", of(name), command=["bash", "-c", "echo rank $TAHOMA_RANK of $TAHOMA_WORLD_SIZE index $JOB_COMPLETION_INDEX"])
            worker["spec"]["containers"][0]["env"] = [
                {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['tahoma.dev/{key}']"}}}
                for variable, key in (("TAHOMA_RANK", "rank"), ("TAHOMA_WORLD_SIZE", "world-size"))]
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
                   "spec": {"completions": 2, "parallelism": 2, "completionMode": mode, "backoffLimit": 0,
                            "template": {"metadata": {"labels": {"tahoma.dev/gang": name}}, "spec": worker["spec"]}}}
            self.apply(gang, chips, job)
            self.until(f"job {name} is complete", lambda job=name: self.get("job", job).get("status", {}).get("succeeded") == 2)
            said = sorted(self.kubectl("logs", "-l", f"tahoma.dev/gang={name}").splitlines())
            self.assertEqual([line.split(" index")[0] for line in said], ["rank 0 of 2", "rank 1 of 2"])
            if mode == "Indexed":
                self.assertEqual([line.split("index ")[1] for line in said], ["0", "1"], "a rank is the pod's index")
            self.kubectl("delete", "job,gang", name, "--timeout=60s")


if __name__ == "__main__":
    grounds.in_own_network()
    unittest.main(verbosity=2, warnings="ignore")  # programs that are started outlive the objects that started them
