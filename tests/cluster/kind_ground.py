"""The test environment on kind: the chart, installed by Helm on a cluster of kind whose pods are Tahoma's programs.

    with KindGround(bin_dir) as environment:
        execute("kubectl get nodes", environment)

The same as a Ground of tests/scenarios/ground.py, with the same nodes; on each of them sim-node and dra-plugin run as
pods of DaemonSets, and two controllers somewhere. kube-scheduler is there, too: pods of the namespace default that
name no scheduler are Tahoma's by an admission policy. It belongs into a network namespace of its own, as root, unless
the machine has a Docker engine (in_own_network). HELM_BIN and the folders of kind.py are build_tools.sh's.
KEEP_LOGS names a folder that gets what every node and pod has said when it ends.
"""

import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import time

import image
import kind

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "images"))

import images  # noqa: E402

NAMESPACE = "tahoma-system"
RELEASE = "tahoma"
WORKLOAD_TAGS = ("tahoma.dev/workload:v1", "public.ecr.aws/ubuntu/ubuntu:22.04")
PROGRAMS = ("controller", "dra-plugin", "sim-node")
ADMIN_TOKEN_SECRET = "fault-api"
INSTALL_SECONDS = 240
# As in ground.py: a kubelet forgets why it could not prepare a claim until it looks at the pod again.
KUBELET_LOOKS_EVERY = "5s"


def scheduler_policy():
    """Pods of the namespace default that name no scheduler are Tahoma's, as AWS's manifests are."""
    name = "scheduler.test.tahoma.dev"
    return [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
         "spec": {"failurePolicy": "Fail", "reinvocationPolicy": "Never",
                  "matchConstraints": {
                      "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
                      "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
                  "matchConditions": [{"name": "no-scheduler", "expression": "object.spec.schedulerName == 'default-scheduler'"}],
                  "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
                      "expression": "Object{spec: Object.spec{schedulerName: 'tahoma'}}"}}]}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name},
         "spec": {"policyName": name}}]


class KindGround:
    """A context, whose value is the environment of commands."""

    def __init__(self, bin_dir, topology=ROOT / "examples/local/topology.json"):
        self.bin = bin_dir
        self.topology = json.loads(topology.read_text())
        self.scratch = tempfile.TemporaryDirectory(prefix="tk")
        self.directory = pathlib.Path(self.scratch.name)
        self.shared, self.nodes = self.directory / "s", self.directory / "n"
        self.cluster = kind.Cluster(self.directory / "k", self.topology, self.shared, KUBELET_LOOKS_EVERY)
        self.ended_in_order = True
        self.environment = None

    def __enter__(self):
        for folder in (self.shared, self.nodes):
            folder.mkdir()
        try:
            self.cluster.__enter__()
            self.environment = {**self.cluster.environment, "GROUND": "kind", "NODES": str(self.nodes), "PODS": str(self.shared),
                                "PATH": f"{self.bin}:{self.cluster.environment['PATH']}:{os.environ['HELM_BIN']}"}
            self.load_images()
            self.install()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self.environment

    def run(self, *command, **options):
        return kind.run(command, self.environment, **options)

    def load_images(self):
        archives = []
        for name in PROGRAMS:
            archives.append(self.directory / f"{name}.tar")
            images.make(archives[-1], name, self.bin)
        archives.append(self.directory / "workload.tar")
        # A shell and the workload's programs, where sleep ends when it is told to.
        image.write(archives[-1], list(WORKLOAD_TAGS), image.workload_files(self.bin))
        self.cluster.load(*archives)

    def install(self):
        values = self.directory / "values.yaml"
        # The containers of kind have the name of its cluster.
        values.write_text((kind.EXAMPLE / "values.yaml").read_text().replace("address: tahoma-", f"address: {kind.NAME}-"))
        token = secrets.token_hex(16)
        for node in self.topology["nodes"]:
            (self.nodes / node["name"]).mkdir()
            (self.nodes / node["name"] / "admin.token").write_text(token + "\n")
        self.run("kubectl", "create", "namespace", NAMESPACE)
        self.run("kubectl", "create", "secret", "generic", ADMIN_TOKEN_SECRET, "--namespace", NAMESPACE, f"--from-literal=token={token}")
        self.run("kubectl", "apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": scheduler_policy()}))
        began = time.monotonic()
        self.run("helm", "install", RELEASE, ROOT / "charts/tahoma", "--namespace", NAMESPACE, "--values", values,
                 "--set", f"simNode.adminTokenSecret={ADMIN_TOKEN_SECRET}", "--wait", "--timeout", f"{INSTALL_SECONDS}s", seconds=INSTALL_SECONDS + 20)
        self.cluster.wait_for(self.all_published, "every node has published its devices")
        print(f"from helm install to every node with its devices: {time.monotonic() - began:.1f} s", flush=True)

    def all_published(self):
        pools = self.run("kubectl", "get", "resourceslices", "-o", "jsonpath={.items[*].spec.pool.name}").split()
        return {node["name"] for node in self.topology["nodes"]} <= set(pools)

    def __exit__(self, kind_of_error, *_):
        keep = os.environ.get("KEEP_LOGS")
        if kind_of_error and self.environment:
            self.show_pods()
        if keep:
            self.cluster.keep_logs(keep)
        try:
            self.cluster.__exit__()
        except SystemExit as error:
            print(error, file=sys.stderr)
            self.ended_in_order = False
        self.scratch.cleanup()

    def show_pods(self):
        """For a failure to say what stood in the way."""
        for command in ("kubectl get pods,nodes,pvc,pv -A -o wide", "kubectl get events -A --sort-by=.lastTimestamp | tail -n 40",
                        f"for p in $(kubectl -n {NAMESPACE} get pods -o name); do echo \"== $p\"; kubectl -n {NAMESPACE} logs --tail=20 $p; done"):
            done = subprocess.run(["bash", "-c", command], env=self.environment, text=True, check=False, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            print(f"$ {command}\n{done.stdout}", file=sys.stderr)
