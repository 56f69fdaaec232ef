"""The test environment on whatever cluster KUBECONFIG names, with Tahoma as its chart installs it.

    with InstalledGround(bin_dir) as environment:
        execute("kubectl get nodes", environment)

The emulated nodes are those of examples/kind/values.yaml, by their names; nothing else is in the namespace default. Pods
there that name no scheduler are Tahoma's meanwhile, by an admission policy (Kubernetes 1.36). PODS may name a folder
that pods see under the same name; without it scenarios that need one are skipped.
"""

import base64
import json
import os
import pathlib
import tempfile

import kubectl

POLICY_SECONDS = 60
NAMESPACE = "tahoma-system"


def scheduler_policy():
    """Pods of the namespace default that name no scheduler are Tahoma's, as AWS's manifests are."""
    name = "scheduler.test.tahoma.dev"
    return {"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
         "spec": {"failurePolicy": "Fail", "reinvocationPolicy": "Never",
                  "matchConstraints": {
                      "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
                      "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
                  "matchConditions": [{"name": "no-scheduler", "expression": "object.spec.schedulerName == 'default-scheduler'"}],
                  "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
                      "expression": "Object{spec: Object.spec{schedulerName: 'tahoma'}}"}}]}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name},
         "spec": {"policyName": name}}]}


class InstalledGround:
    """A context, whose value is the environment of commands."""

    def __init__(self, bin_dir):
        self.scratch = tempfile.TemporaryDirectory(prefix="ti")
        self.environment = {**os.environ, "GROUND": "kubeconfig", "NODES": self.scratch.name, "PATH": f"{bin_dir}:{os.environ['PATH']}"}
        self.ended_in_order = True

    def kubectl(self, *arguments, given=None):
        return kubectl.kubectl(*arguments, environment=self.environment, given=given)

    def get(self, *what):
        return json.loads(self.kubectl("get", *what, "--namespace", NAMESPACE, "--output", "json"))

    def fault_token(self):
        """Of sim-node's fault API; empty: it asks for none."""
        nodes = self.get("daemonsets", "--selector", "app.kubernetes.io/component=sim-node")["items"]
        secrets = {one["name"]: one["secret"]["secretName"]
                   for one in nodes[0]["spec"]["template"]["spec"]["volumes"] if "secret" in one}
        if "admin" not in secrets:
            return ""
        return base64.b64decode(self.get("secret", secrets["admin"])["data"]["token"]).decode().strip()

    def __enter__(self):
        token = self.fault_token()
        for pod in self.get("pods", "--selector", "app.kubernetes.io/component=sim-node")["items"]:
            node = pathlib.Path(self.scratch.name, pod["spec"]["nodeName"])
            node.mkdir(exist_ok=True)
            (node / "admin.token").write_text(token + "\n")
        self.kubectl("apply", "--filename", "-", given=scheduler_policy())
        self.wait_for_policy()
        return self.environment

    def wait_for_policy(self):
        """The API server takes a policy up some time after it was made."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "default"},
               "spec": {"containers": [{"name": "main", "image": "none"}]}}
        kubectl.until("the admission policy of pods without a scheduler", lambda: self.kubectl(
            "create", "--dry-run=server", "--filename", "-", "--output", "jsonpath={.spec.schedulerName}", given=pod) == "tahoma",
            POLICY_SECONDS)

    def __exit__(self, *_):
        self.kubectl("delete", "--filename", "-", given=scheduler_policy())
        self.scratch.cleanup()
