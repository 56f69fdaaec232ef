#!/usr/bin/env python3
"""The chart's templates: what they render for many values, and what they refuse, with advice.

    chart_test.py [-v] [CLASS[.TEST]]      in the repository's root; TAHOMA_BIN has the programs, which read the configurations

Status 77 (skipped) where there is no Helm and it cannot be built. On a real API server: tests/cluster/chart_test.py.
"""

import base64
import copy
import functools
import http.server
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import unittest

import chart
import rights
import values_table

yaml = chart.yaml
HELM = None
TAINT_RULE = "resource.k8s.io/v1/DeviceTaintRule"
NODES = [{"node": f"worker-{i}", "instanceType": "trn2u.48xlarge",
          "ultraServer": {"id": "us-0123456789abcdef", "nodeId": i},
          "networkLayers": ["nn-0123456789abcdef0", "nn-0123456789abcdef1", "nn-0123456789abcdef2"]} for i in range(4)]
EMULATED = {"simNode": {"enabled": True, "nodes": [*NODES, {"node": "alone", "instanceType": "trn2.48xlarge"}]}}


def merged(base, over):
    out = copy.deepcopy(base)
    for key, value in over.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def dotted(path, value):
    """{"a": {"b": value}} of "a.b"."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


VALUE_SETS = {
    "nothing": {},
    "emulated": EMULATED,
    "a mixed cluster": merged(EMULATED, {"awsDriver": {"enabled": True}}),
    "one replica on a node's folder": {"controller": {"replicas": 1, "persistence": {"type": "hostPath", "hostPath": "/data"}}},
    "no disk": {"controller": {"persistence": {"type": "emptyDir"}}},
    "a claim that exists": {"controller": {"replicas": 1, "persistence": {"type": "existingClaim", "claimName": "journal"}}},
    "a storage class": {"controller": {"persistence": {"storageClass": "gp3", "size": "32Gi", "keep": True}}},
    "secrets": {"controller": {"admin": {"tlsSecret": "t", "identitySecret": "i", "accessKeySecret": "a",
                                         "allowedHosts": ["tahoma.example.com"]}}},
    "certificates of one's own": merged(EMULATED, {"simNode": {"peerTls": {"mode": "secret", "secret": "peers"},
                                                               "adminTokenSecret": "faults"}}),
    "plain HTTP": {"controller": {"admin": {"plainHttp": True}}},
    "no certificates, and EFA": merged(EMULATED, {"simNode": {"peerTls": {"mode": "insecure"}, "efa": {"enabled": True}}}),
    "monitoring": merged(EMULATED, {"monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}, "dashboard": {"enabled": True},
        "rules": {"enabled": True, "labels": {"release": "prometheus"}},
        "readers": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}]}}),
    "kube-scheduler gives the devices away": merged(EMULATED, {
        "draPlugin": {"managedTaint": False, "publish": ["chips", "lnc2"]}, "admission": {"allocations": False},
        "deviceClasses": {"extendedResources": True}}),
    "no guards": {"admission": {"deviceConfigs": False, "allocations": False, "tolerations": False, "slicesByNode": False, "controller": False},
                  "awsDriver": {"taint": "none"}, "networkPolicy": {"enabled": False},
                  "controller": {"podDisruptionBudget": {"enabled": False}}},
    "a registry": {"image": {"registry": "registry.example.com/team/", "pullSecrets": [{"name": "pull"}]},
                   "controller": {"image": {"tag": "1.2.3"}}},
    "everything that pods may have": merged(EMULATED, {
        "controller": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}], "podAnnotations": {"a": "b"},
                       "affinity": {"nodeAffinity": {}}, "config": {"capacityBlocks": {"oneSpareIn": 0}}},
        "draPlugin": {"podAnnotations": {"a": "b"}, "config": {"flapHold": "20s"}},
        "simNode": {"podAnnotations": {"a": "b"}, "config": {"efa": {"packetLatency": "20us"}}, "updateStrategy": "OnDelete"},
        "networkPolicy": {"adminFrom": [{"podSelector": {}}], "metricsFrom": [{"podSelector": {}}]}}),
}
for example in sorted((chart.ROOT / "examples/helm").glob("*.yaml")):
    VALUE_SETS[f"examples/helm/{example.name}"] = chart.read(example)[0]


def containers(objects):
    for one in objects:
        pod = one["spec"] if one["kind"] == "Pod" else one.get("spec", {}).get("template", {}).get("spec")
        for container in [*pod.get("initContainers", []), *pod["containers"]] if pod else []:
            yield one, pod, container


def of_each(check):
    """A test of what each set of values renders."""
    @functools.wraps(check)
    def test(self):
        for name, objects in self.rendered.items():
            with self.subTest(values=name):
                check(self, objects)
    return test


def metrics_in(text):
    """The names of metrics in a text, histograms by their own names."""
    return [name.removesuffix("_bucket") for name in re.findall(r"\b(?:tahoma|process)_[a-z_]+[a-z]\b", text)]


def metrics_of_the_sources():
    """The names that the programs' sources give to metrics."""
    source = "".join(path.read_text(encoding="utf-8") for folder in ("controller", "dra-plugin", "sim-node", "lib/rest")
                     for path in (chart.ROOT / folder).rglob("*.cc"))
    names = set(re.findall(r'"(tahoma_[a-z_{}]+|process_[a-z_]+_(?:total|bytes|fds|seconds))"', source))
    # dra-plugin puts one word of two into some names.
    return {name.replace("{}", word) for name in names for word in ("prepare", "unprepare")}


class EveryValueSet(unittest.TestCase):
    """What holds whatever the values."""

    @classmethod
    def setUpClass(cls):
        cls.rendered = {name: chart.render(HELM, values) for name, values in VALUE_SETS.items()}
        cls.rendered["a server with DeviceTaintRules"] = chart.render(HELM, {}, api_versions=[TAINT_RULE])

    @of_each
    def test_objects_are_complete_and_of_different_names(self, objects):
        names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
        self.assertEqual(len(names), len(set(names)))
        for one in objects:
            self.assertTrue(one["apiVersion"])
            labels = one["metadata"]["labels"]
            self.assertEqual(labels["app.kubernetes.io/name"], "tahoma", one["metadata"]["name"])
            self.assertEqual(labels["app.kubernetes.io/managed-by"], "Helm")
            self.assertIn(one["metadata"].get("namespace"), (None, chart.NAMESPACE, "kube-system"))

    @of_each
    def test_containers_may_do_little_and_say_what_they_need(self, objects):
        for owner, pod, container in containers(objects):
            context, name = container["securityContext"], container["name"]
            self.assertFalse(context["allowPrivilegeEscalation"], name)
            self.assertTrue(context["readOnlyRootFilesystem"], name)
            self.assertEqual(context["capabilities"]["drop"], ["ALL"], name)
            self.assertEqual(context["capabilities"].get("add", []), ["CHOWN"] if name == "own-folder" else [])
            self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"}, name)
            self.assertNotIn("privileged", context)
            user = context.get("runAsUser", pod.get("securityContext", {}).get("runAsUser"))
            root = name in ("own-folder", "dra-plugin", "sim-node")
            self.assertEqual(user, 0 if root else 65532, name)
            if name == "own-folder":
                self.assertEqual(owner["metadata"]["name"], "tahoma-controller")
            self.assertIn("memory", container["resources"]["limits"])
            self.assertEqual(set(container["resources"]["requests"]), {"cpu", "memory"})
            self.assertRegex(container["image"], r":[^:/]+$")
            self.assertFalse(container["image"].endswith(":latest"))

    @of_each
    def test_long_running_containers_are_probed(self, objects):
        for owner, _, container in containers(objects):
            if owner["kind"] != "Pod" and container["name"] != "own-folder":
                self.assertIn("readinessProbe", container)
                self.assertIn("livenessProbe", container)

    @of_each
    def test_what_pods_refer_to_is_there(self, objects):
        theirs = {"t", "i", "a", "faults", "pull", "journal", "tahoma-admin-tls", *(f"peers-{one['node']}" for one in EMULATED["simNode"]["nodes"])}
        have = {(one["kind"], one["metadata"]["name"]) for one in objects}
        for _, pod, container in containers(objects):
            volumes = {volume["name"] for volume in pod.get("volumes", [])} | {"data"}
            self.assertLessEqual({mount["name"] for mount in container.get("volumeMounts", [])}, volumes)
            if "serviceAccountName" in pod:
                self.assertIn(("ServiceAccount", pod["serviceAccountName"]), have)
            for volume in pod.get("volumes", []):
                if "configMap" in volume:
                    self.assertIn(("ConfigMap", volume["configMap"]["name"]), have)
                if "secret" in volume and volume["secret"]["secretName"] not in theirs:
                    self.assertIn(("Secret", volume["secret"]["secretName"]), have)

    @of_each
    def test_selectors_select_the_pods_that_they_are_for(self, objects):
        pods = [one["spec"]["template"]["metadata"]["labels"] for one in objects if one["kind"] in ("StatefulSet", "DaemonSet")]
        for one in objects:
            selector = one.get("spec", {}).get("selector") or one.get("spec", {}).get("podSelector")
            if not selector or one["kind"] == "ServiceMonitor":  # that one selects Services
                continue
            selector = selector.get("matchLabels", selector)
            wanted = {key: value for key, value in selector.items() if key != "tahoma.dev/leader"}
            self.assertEqual(len([labels for labels in pods if {**labels, **wanted} == labels]), 1, one["metadata"]["name"])

    @of_each
    def test_bindings_bind_what_is_there(self, objects):
        have = {(one["kind"], one["metadata"]["name"]) for one in objects}
        for one in objects:
            if one["kind"] in ("ClusterRoleBinding", "RoleBinding"):
                self.assertIn((one["roleRef"]["kind"], one["roleRef"]["name"]), have)
                for subject in one["subjects"]:
                    if subject["namespace"] == chart.NAMESPACE:
                        self.assertIn(("ServiceAccount", subject["name"]), have)
            if one["kind"] == "ValidatingAdmissionPolicyBinding":
                self.assertIn(("ValidatingAdmissionPolicy", one["spec"]["policyName"]), have)
                self.assertEqual(one["spec"]["validationActions"], ["Deny"])

    @of_each
    def test_the_programs_read_their_configurations(self, objects):
        """Everything is well but what is wrong on the command line, which is judged last."""
        programs = pathlib.Path(os.environ.get("TAHOMA_BIN", chart.ROOT / "build/release/bin"))
        missing = [name for name in ("controller", "dra-plugin", "sim-node") if not (programs / name).exists()]
        if missing:
            self.skipTest(f"{programs} has no {', '.join(missing)}")
        for one in objects:
            name = one["metadata"]["name"].removeprefix("tahoma-")
            if one["kind"] != "ConfigMap" or name not in ("controller", "dra-plugin", "sim-node"):
                continue
            for text in one["data"].values():
                with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                    file.write(text)
                    file.flush()
                    done = subprocess.run([programs / name, "--config", file.name, "--log-format", "shouting"],
                                          capture_output=True, text=True, check=False, timeout=60)
                self.assertEqual(done.returncode, 2)
                self.assertIn("--log-format", done.stderr)
                self.assertNotIn(file.name, done.stderr)


class Rendered(unittest.TestCase):
    """What single values do."""

    def one(self, kind, name, values=None, **options):
        return chart.find(chart.render(HELM, values or {}, **options), kind, name)

    def kinds(self, values=None, **options):
        return {(one["kind"], one["metadata"]["name"]) for one in chart.render(HELM, values or {}, **options)}

    def config(self, program, values, key=None):
        data = self.one("ConfigMap", f"tahoma-{program}", values)["data"]
        return yaml.safe_load(data[key or f"{program}.yaml"])

    def test_without_values_the_controller_alone_is_installed(self):
        kinds = self.kinds()
        self.assertNotIn("DaemonSet", {kind for kind, _ in kinds})
        self.assertNotIn(("DeviceClass", "neuron.aws.com"), kinds)  # AWS's chart brings it
        self.assertNotIn(("DeviceClass", "efa.networking.k8s.aws"), kinds)
        self.assertIn(("DeviceClass", "neuroncore.tahoma.dev"), kinds)
        self.assertIn(("ValidatingAdmissionPolicy", "allocations.tahoma.dev"), kinds)
        self.assertNotIn(("ValidatingAdmissionPolicy", "slices-by-node.tahoma.dev"), kinds)

    def test_names_of_extended_resources_are_for_pods_of_ours_too(self):
        for given in ({}, EMULATED):
            made = self.one("DeviceClass", "neuron.tahoma.dev", merged(given, dotted("deviceClasses.extendedResources", True)))
            self.assertEqual(made["spec"]["extendedResourceName"], "aws.amazon.com/neuron")

    def test_the_kinds_of_awss_operator_are_there_if_the_values_say_it_and_are_kept(self):
        for plural in ("neuronultraserverworkloads", "neuronultraservers"):
            name = f"{plural}.neuron.aws.com"
            self.assertNotIn(("CustomResourceDefinition", name), self.kinds())
            made = self.one("CustomResourceDefinition", name, dotted("ultraServerWorkloads.crd", True))
            plain, = chart.read(chart.CHART / f"aws-crds/neuron.aws.com_{plural}.yaml")
            self.assertEqual(made["spec"], plain["spec"])
            self.assertEqual(made["metadata"]["annotations"]["helm.sh/resource-policy"], "keep")

    def test_an_emulated_cluster_has_the_class_and_no_taint_rule(self):
        kinds = self.kinds(EMULATED, api_versions=[TAINT_RULE])
        self.assertIn(("DeviceClass", "neuron.aws.com"), kinds)
        self.assertIn(("DeviceClass", "efa.networking.k8s.aws"), kinds)
        self.assertIn(("ValidatingAdmissionPolicy", "slices-by-node.tahoma.dev"), kinds)
        self.assertNotIn(("DeviceTaintRule", "managed.tahoma.dev"), kinds)

    def test_the_driver_of_nics_can_be_aws_s(self):
        without = merged(EMULATED, dotted("draPlugin.efa", False))
        self.assertNotIn(("DeviceClass", "efa.networking.k8s.aws"), self.kinds(without))
        self.assertIs(self.config("dra-plugin", without)["efa"], False)

    def test_the_newest_taint_rule_that_is_served_is_used(self):
        versions = ["resource.k8s.io/v1alpha3", "resource.k8s.io/v1beta2", "resource.k8s.io/v1"]
        for count in range(1, 4):
            served = [f"{version}/DeviceTaintRule" for version in versions[:count]]
            rule = self.one("DeviceTaintRule", "managed.tahoma.dev", api_versions=served)
            self.assertEqual(rule["apiVersion"], versions[count - 1])
            self.assertEqual(rule["spec"], {"deviceSelector": {"driver": "neuron.aws.com"},
                                            "taint": {"key": "tahoma.dev/managed", "effect": "NoSchedule"}})

    def test_images_have_registry_and_version(self):
        image = self.one("StatefulSet", "tahoma-controller")["spec"]["template"]["spec"]["containers"][0]["image"]
        self.assertEqual(image, f"tahoma/controller:{chart.read(chart.CHART / 'Chart.yaml')[0]['appVersion']}")
        spec = self.one("StatefulSet", "tahoma-controller", VALUE_SETS["a registry"])["spec"]["template"]["spec"]
        self.assertEqual(spec["containers"][0]["image"], "registry.example.com/team/tahoma/controller:1.2.3")
        self.assertEqual(spec["imagePullSecrets"], [{"name": "pull"}])

    def test_the_journal_is_where_the_values_say(self):
        def volumes(persistence, replicas=1):
            spec = self.one("StatefulSet", "tahoma-controller",
                            {"controller": {"replicas": replicas, "persistence": persistence}})["spec"]
            data = [volume for volume in spec["template"]["spec"]["volumes"] if volume["name"] == "data"]
            return data, spec.get("volumeClaimTemplates"), spec.get("persistentVolumeClaimRetentionPolicy")
        data, claims, kept = volumes({"type": "claim", "size": "3Gi", "storageClass": "gp3"}, 2)
        self.assertEqual(data, [])
        self.assertEqual(claims[0]["spec"], {"accessModes": ["ReadWriteOnce"], "storageClassName": "gp3",
                                             "resources": {"requests": {"storage": "3Gi"}}})
        self.assertEqual(kept["whenDeleted"], "Delete")
        self.assertEqual(volumes({"keep": True})[2]["whenDeleted"], "Retain")
        self.assertEqual(volumes({"type": "emptyDir"})[:2], ([{"name": "data", "emptyDir": {}}], None))
        self.assertEqual(volumes({"type": "hostPath", "hostPath": "/d"})[0][0]["hostPath"]["path"], "/d")
        self.assertEqual(volumes({"type": "existingClaim", "claimName": "c"})[0][0]["persistentVolumeClaim"], {"claimName": "c"})

    def test_stand_bys_are_ready_and_the_service_is_the_leaders(self):
        spec = self.one("StatefulSet", "tahoma-controller")["spec"]
        self.assertEqual(spec["podManagementPolicy"], "Parallel")
        self.assertEqual(spec["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"], "/readyz?exclude=start")
        self.assertEqual(self.one("Service", "tahoma-controller")["spec"]["selector"]["tahoma.dev/leader"], "true")

    def test_the_admin_api_asks_the_cluster_and_knows_its_names(self):
        config = self.config("controller", {"controller": {"admin": {"tlsSecret": "t", "allowedHosts": ["x.example.com"]},
                                                           "schedulerNames": ["a", "b"]}})
        self.assertTrue(config["adminAsksCluster"])
        self.assertEqual(config["tlsKeyFile"], "/etc/tahoma/tls/tls.key")
        self.assertEqual(config["schedulerNames"], ["a", "b"])
        self.assertIn("tahoma-controller.tahoma-system.svc", config["allowedHosts"])
        self.assertIn("x.example.com", config["allowedHosts"])

    def test_the_admin_api_has_tls_unless_the_values_say_otherwise(self):
        def pod(values):
            return self.one("StatefulSet", "tahoma-controller", values)["spec"]["template"]["spec"]
        for values, secret in (({}, "tahoma-controller-tls"), (VALUE_SETS["secrets"], "t"), (VALUE_SETS["plain HTTP"], None)):
            spec = pod(values)
            self.assertEqual({probe["httpGet"]["scheme"] for name, probe in spec["containers"][0].items() if name.endswith("Probe")},
                             {"HTTPS" if secret else "HTTP"})
            self.assertEqual([volume["secret"]["secretName"] for volume in spec["volumes"] if volume["name"] == "tls"], [secret] if secret else [])
            self.assertEqual("tlsKeyFile" in self.config("controller", values), bool(secret))
            made = ("Secret", "tahoma-controller-tls") in self.kinds(values)
            self.assertEqual(made, secret == "tahoma-controller-tls")

    def test_the_certificate_that_is_made_is_for_the_names_by_which_the_admin_api_is_called(self):
        objects = chart.render(HELM, dotted("controller.admin.allowedHosts", ["tahoma.example.com"]))
        made = {name: base64.b64decode(text) for name, text in chart.find(objects, "Secret", "tahoma-controller-tls")["data"].items()}
        trusted = chart.find(objects, "ConfigMap", "tahoma-controller-ca")["data"]["ca.crt"]
        self.assertEqual(trusted.encode(), made["ca.crt"])
        with tempfile.TemporaryDirectory() as folder:
            for name, data in made.items():
                pathlib.Path(folder, name).write_bytes(data)
            for option, host in (("-verify_hostname", "tahoma-controller.tahoma-system.svc"), ("-verify_hostname", "localhost"),
                                 ("-verify_ip", "127.0.0.1"), ("-verify_hostname", "tahoma.example.com")):
                subprocess.run(["openssl", "verify", "-CAfile", f"{folder}/ca.crt", option, host, f"{folder}/tls.crt"],
                               check=True, capture_output=True)

    def test_configurations_restart_pods_but_for_what_is_followed(self):
        def mark(kind, program, values):
            return self.one(kind, f"tahoma-{program}", values)["spec"]["template"]["metadata"]["annotations"]["tahoma.dev/config"]
        self.assertNotEqual(mark("StatefulSet", "controller", {}),
                            mark("StatefulSet", "controller", {"controller": {"config": {"auditRequired": False}}}))
        published = merged(EMULATED, {"draPlugin": {"publish": ["chips"]}})
        self.assertEqual(mark("DaemonSet", "dra-plugin", EMULATED), mark("DaemonSet", "dra-plugin", published))
        self.assertEqual(self.config("dra-plugin", published)["publish"], ["chips"])
        other = merged(EMULATED, {"draPlugin": {"config": {"flapHold": "20s"}}})
        self.assertNotEqual(mark("DaemonSet", "dra-plugin", EMULATED), mark("DaemonSet", "dra-plugin", other))

    def test_each_emulated_node_knows_the_others_of_its_ultraserver(self):
        config = self.config("sim-node", EMULATED, "worker-1.yaml")
        self.assertEqual(config["ultraServer"]["nodeId"], 1)
        self.assertEqual([(peer["nodeId"], peer["nodeName"], peer["address"]) for peer in config["ultraServer"]["peers"]],
                         [(i, f"worker-{i}", f"worker-{i}:7001") for i in (0, 2, 3)])
        self.assertNotIn("efa", config)
        alone = self.config("sim-node", EMULATED, "alone.yaml")
        self.assertNotIn("ultraServer", alone)
        efa = self.config("sim-node", merged(EMULATED, {"simNode": {"efa": {"enabled": True}}}), "worker-1.yaml")["efa"]
        self.assertEqual(efa["peers"], [{"nodeName": "alone", "address": "alone:7003"}])
        moved = copy.deepcopy(EMULATED)
        moved["simNode"]["nodes"][0]["address"] = "10.0.0.7"
        self.assertEqual(self.config("sim-node", moved, "worker-1.yaml")["ultraServer"]["peers"][0]["address"], "10.0.0.7:7001")

    def test_a_node_refers_to_its_own_certificate_only_and_nobody_to_the_authoritys_key(self):
        """The node authorizer lets a node read the Secrets that its pods refer to, whole."""
        nodes = [one["node"] for one in EMULATED["simNode"]["nodes"]]
        for values, begin in ((EMULATED, "tahoma-sim-node-peer"), (VALUE_SETS["certificates of one's own"], "peers")):
            objects = chart.render(HELM, values)
            self.assertNotIn("tahoma-sim-node-authority", json.dumps([pod for _, pod, _ in containers(objects)]))
            for node in nodes:
                pod = chart.find(objects, "DaemonSet", f"tahoma-sim-node-{node}")["spec"]["template"]["spec"]
                secrets = {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
                self.assertEqual(secrets - {"faults"}, {f"{begin}-{node}"})
        made = chart.render(HELM, EMULATED)
        held = [chart.find(made, "Secret", f"tahoma-sim-node-peer-{node}")["data"] for node in nodes]
        self.assertEqual(len({one["tls.key"] for one in held}), len(nodes))
        self.assertEqual({frozenset(one) for one in held}, {frozenset(("ca.crt", "tls.crt", "tls.key"))})

    def test_a_node_that_is_called_as_another_object_of_the_chart_is_no_trouble(self):
        nodes = [{"node": name} for name in ("authority", "peers", "peer", "peer-a", "a")]
        objects = chart.render(HELM, {"simNode": {"enabled": True, "nodes": nodes}})
        names = [(one["kind"], one["metadata"]["name"]) for one in objects]
        self.assertEqual(len(names), len(set(names)))

    def test_only_a_node_whose_configuration_changes_reboots(self):
        def marks(values):
            objects = chart.render(HELM, values)
            return [chart.find(objects, "DaemonSet", f"tahoma-sim-node-{one['node']}")["spec"]["template"]["metadata"]["annotations"]
                    for one in EMULATED["simNode"]["nodes"]]
        more = copy.deepcopy(EMULATED)
        more["simNode"]["nodes"].append({"node": "more"})
        self.assertEqual(marks(EMULATED), marks(more))
        moved = copy.deepcopy(EMULATED)
        moved["simNode"]["nodes"][0]["address"] = "10.0.0.7"
        self.assertEqual([before == after for before, after in zip(marks(EMULATED), marks(moved))], [True, False, False, False, True])

    def test_node_pods_go_to_the_named_nodes_only(self):
        objects = chart.render(HELM, EMULATED)
        nodes = [one["node"] for one in EMULATED["simNode"]["nodes"]]
        for name, wanted in (("tahoma-dra-plugin", nodes), *((f"tahoma-sim-node-{node}", [node]) for node in nodes)):
            pod = chart.find(objects, "DaemonSet", name)["spec"]["template"]["spec"]
            terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            self.assertEqual([term["matchFields"][0]["values"] for term in terms], [[node] for node in wanted])

    def test_policies_know_the_accounts_by_the_releases_namespace(self):
        policy = self.one("ValidatingAdmissionPolicy", "allocations.tahoma.dev")
        self.assertIn(f"'system:serviceaccount:{chart.NAMESPACE}:tahoma-controller'", policy["spec"]["matchConditions"][0]["expression"])
        own = self.one("ValidatingAdmissionPolicy", "controller.tahoma.dev", dotted("controller.schedulerNames", ["a", "b"]))
        self.assertIn("in ['a','b']", own["spec"]["validations"][0]["expression"])

    def test_dashboard_and_rules_ask_for_metrics_that_exist(self):
        dashboard = self.one("ConfigMap", "tahoma-dashboard", VALUE_SETS["monitoring"])["data"]["tahoma.json"]
        rules = self.rules()
        asked = set(metrics_in(json.dumps([panel["targets"] for panel in json.loads(dashboard)["panels"]])))
        self.assertGreater(len(asked), 20)
        asked |= {metric for rule in rules for metric in metrics_in(rule["expr"])}
        self.assertEqual(asked - metrics_of_the_sources(), set())

    def rules(self):
        [group] = self.one("PrometheusRule", "tahoma", VALUE_SETS["monitoring"])["spec"]["groups"]
        return group["rules"]

    def test_each_alert_says_what_to_do_in_a_section_of_its_own(self):
        page = (chart.ROOT / "docs/metrics.md").read_text(encoding="utf-8")
        sections = re.findall(r"^### (Tahoma\w+)$", page, re.MULTILINE)
        rules = self.rules()
        self.assertEqual([rule["alert"] for rule in rules], sections)
        for rule in rules:
            self.assertEqual(rule["annotations"]["runbook"], f"docs/metrics.md#{rule['alert'].lower()}")
            self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))

    def test_each_metric_is_documented_and_each_documented_one_is_there(self):
        page = (chart.ROOT / "docs/metrics.md").read_text(encoding="utf-8")
        self.assertEqual(set(metrics_in(page)), metrics_of_the_sources())



class Rights(unittest.TestCase):
    def rights_of(self, objects, account):
        held = {}
        for binding in objects:
            if binding["kind"] not in ("ClusterRoleBinding", "RoleBinding"):
                continue
            if {"kind": "ServiceAccount", "name": account, "namespace": chart.NAMESPACE} not in binding["subjects"]:
                continue
            role = chart.find(objects, binding["roleRef"]["kind"], binding["roleRef"]["name"])
            where = binding["metadata"].get("namespace", "cluster")
            for rule in role["rules"]:
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        for name in rule.get("resourceNames", [""]):
                            key = (where, group, f"{resource}={name}" if name else resource)
                            held.setdefault(key, set()).update(rule["verbs"])
        return {key: " ".join(sorted(verbs)) for key, verbs in held.items()}

    def test_accounts_may_do_what_the_table_says_and_nothing_else(self):
        objects = chart.render(HELM, EMULATED)
        for account, table in (("tahoma-controller", rights.CONTROLLER), ("tahoma-dra-plugin", rights.DRA_PLUGIN),
                               ("tahoma-sim-node", rights.SIM_NODE)):
            expected = {key: " ".join(sorted(verbs.split())) for key, verbs in table.items()}
            self.assertEqual(self.rights_of(objects, account), expected, account)

    def test_every_kind_of_ours_has_a_right(self):
        for crd in (chart.CHART / "crds").iterdir():
            plural = chart.read(crd)[0]["spec"]["names"]["plural"]
            self.assertIn(("cluster", "tahoma.dev", plural), rights.CONTROLLER)

    def test_each_replica_may_be_labelled_and_no_other_pod(self):
        held = self.rights_of(chart.render(HELM, dotted("controller.replicas", 3)), "tahoma-controller")
        self.assertEqual({key for key in held if key[2].startswith("pods") and "patch" in held[key]},
                         {("cluster", "", "pods/status"), *((chart.NAMESPACE, "", f"pods=tahoma-controller-{i}") for i in range(3))})

    def test_reviews_need_no_right_where_the_cluster_is_not_asked(self):
        objects = chart.render(HELM, {"controller": {"admin": {"askCluster": False, "identitySecret": "i"}}})
        self.assertNotIn(("cluster", "authentication.k8s.io", "tokenreviews"), self.rights_of(objects, "tahoma-controller"))


class BadValues(unittest.TestCase):
    def test_are_refused_with_advice(self):
        twice = copy.deepcopy(EMULATED)
        twice["simNode"]["nodes"].append({"node": "worker-0"})
        same_place = copy.deepcopy(EMULATED)
        same_place["simNode"]["nodes"][1]["ultraServer"]["nodeId"] = 0
        no_node_id = copy.deepcopy(EMULATED)
        del no_node_id["simNode"]["nodes"][1]["ultraServer"]["nodeId"]
        table = [
            (dotted("contoller.replicas", 1), "additional properties 'contoller' not allowed"),
            (dotted("controller.replicas", 0), "minimum: got 0, want 1"),
            (dotted("controller.image.tag", "latest"), "/controller/image/tag"),
            (dotted("controller.persistence.type", "disk"), "/controller/persistence/type"),
            (dotted("controller.schedulerNames", []), "/controller/schedulerNames"),
            (dotted("controller.terminationGracePeriodSeconds", 5), "minimum: got 5, want 11"),
            (dotted("draPlugin.publish", ["cores"]), "/draPlugin/publish/0"),
            (dotted("controller.persistence", {"type": "existingClaim"}), "name it in controller.persistence.claimName"),
            (dotted("controller.persistence", {"type": "existingClaim", "claimName": "c"}), "is for controller.replicas: 1"),
            (dotted("controller.persistence.type", "hostPath"), "give the node's folder in controller.persistence.hostPath"),
            (dotted("controller.admin.askCluster", False), "nobody could call the admin API"),
            (dotted("controller.config.dataDir", "/x"), "controller.config.dataDir is the chart's"),
            (dotted("controller.config.timeScale", 60), "controller.config.timeScale is the chart's"),
            (merged(EMULATED, dotted("draPlugin.config.nodeName", "x")), "draPlugin.config.nodeName is the chart's"),
            (merged(EMULATED, dotted("simNode.config.podRunner", {})), "simNode.config.podRunner is the chart's"),
            (dotted("draPlugin.enabled", True), "draPlugin.enabled needs simNode.enabled"),
            (merged(EMULATED, dotted("draPlugin.enabled", False)), "simNode.enabled needs draPlugin.enabled"),
            (dotted("simNode.enabled", True), "simNode.enabled needs simNode.nodes: name the nodes"),
            (twice, "simNode.nodes names worker-0 twice"),
            (same_place, "worker-0 and worker-1 are both us-0123456789abcdef, nodeId 0"),
            (no_node_id, "missing property 'nodeId'"),
            (merged(EMULATED, dotted("simNode.peerTls.mode", "secret")), "name the Secrets in simNode.peerTls.secret"),
            (dotted("controller.admin", {"plainHttp": True, "tlsSecret": "t"}), "leave one of them out"),
            (dotted("simNode.nodes", [{"node": "n" * 64}]), "/simNode/nodes/0/node"),
            (merged(EMULATED, dotted("simNode.adminPort", 7001)), "they must differ"),
            (merged(EMULATED, dotted("draPlugin.managedTaint", False)), "set admission.allocations: false"),
            (dotted("awsDriver.taint", "deviceTaintRule"), "this API server serves no DeviceTaintRule"),
            (dotted("admission.allocations", False), "would give away the same chips"),
        ]
        for values, advice in table:
            with self.subTest(advice=advice):
                with self.assertRaises(chart.Refused) as refused:
                    chart.render(HELM, values)
                self.assertIn(advice, str(refused.exception))

    def test_old_kubernetes_is_refused(self):
        with self.assertRaises(chart.Refused) as refused:
            chart.render(HELM, {}, kube_version="1.33.0")
        self.assertIn("kubeVersion: >=1.34.0-0", str(refused.exception))
        chart.render(HELM, {}, kube_version="1.34.1")


class HelmTest(unittest.TestCase):
    """What `helm test` runs in a pod, against a server here."""

    def run_pod(self, port, tls="false"):
        pod = chart.find(chart.render(HELM, {}), "Pod", "tahoma-test-leader")
        script = pod["spec"]["containers"][0]["args"][0].replace("< 60", "< 2")
        done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, check=False, timeout=60,
                              env={"HOST": "127.0.0.1", "PORT": str(port), "TLS": tls, "PATH": os.environ["PATH"]})
        return done.returncode, done.stdout

    def test_a_leader_that_is_ready_passes_and_everything_else_fails(self):
        class Server(http.server.BaseHTTPRequestHandler):
            status = 200

            def do_GET(self):  # noqa: N802, the name is the library's
                self.send_response(self.status if self.path == "/readyz" else 404)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.assertEqual(self.run_pod(server.server_port), (0, "the controller that leads is ready\n"))
        Server.status = 503
        status, said = self.run_pod(server.server_port)
        self.assertEqual(status, 1)
        self.assertIn("GET /readyz: 503", said)
        self.assertEqual(self.run_pod(server.server_port, tls="true")[0], 0)
        server.shutdown()
        server.server_close()
        status, said = self.run_pod(server.server_port)
        self.assertEqual(status, 1)
        self.assertIn("no controller leads behind", said)


def leaves(values, path=""):
    """The paths of values that are no sections."""
    for key, value in values.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value and not here.endswith(values_table.WHOLE):
            yield from leaves(value, here)
        else:
            yield here


class Documents(unittest.TestCase):
    def test_every_value_is_in_the_schema_the_comments_and_the_table(self):
        text = (chart.CHART / "values.yaml").read_text(encoding="utf-8")
        values = yaml.safe_load(text)
        schema = json.loads((chart.CHART / "values.schema.json").read_text(encoding="utf-8"))
        page = (chart.ROOT / "docs/helm.md").read_text(encoding="utf-8")

        def of_schema(part, path=""):
            for key, one in part.get("properties", {}).items():
                here = f"{path}.{key}" if path else key
                if one.get("type") == "object" and "properties" in one and not here.endswith("resources"):
                    yield from of_schema(one, here)
                elif here != "global":
                    yield here
        self.assertEqual(set(leaves(values)), set(of_schema(schema)))
        named = {path: meaning for _, _, rows in values_table.sections(text) for path, _, meaning in rows}
        self.assertEqual(set(leaves(values)), set(named))
        self.assertEqual([path for path, meaning in named.items() if not meaning], [])
        self.assertIn(values_table.table(text), page, "run tests/chart/values_table.py --write")

    def test_values_of_every_release_are_still_taken(self):
        for packed in sorted(chart.RELEASES.glob("*/chart.tgz")):
            with self.subTest(release=packed.parent.name):
                values = subprocess.run([HELM, "show", "values", packed], capture_output=True, check=True).stdout
                chart.render(HELM, yaml.safe_load(values))

    def test_the_charts_version_is_the_programs(self):
        program = pathlib.Path(os.environ.get("TAHOMA_BIN", chart.ROOT / "build/release/bin")) / "controller"
        if not program.exists():
            self.skipTest(f"there is no {program}")
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(said[-1], chart.read(chart.CHART / "Chart.yaml")[0]["appVersion"])

    def test_plain_files_are_yaml_as_they_are(self):
        for path in (chart.CHART / "files").iterdir():
            self.assertNotIn("{{", path.read_text(encoding="utf-8"))
            self.assertTrue(all("kind" in one for one in chart.read(path)))

    def test_helm_finds_nothing_to_complain_of(self):
        done = subprocess.run([HELM, "lint", "--strict", chart.CHART], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    HELM = chart.find_helm()
    unittest.main()
