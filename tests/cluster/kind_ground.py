"""The test environment on kind: the chart, installed by Helm on a cluster of kind whose pods are Tahoma's programs.

    with KindGround(bin_dir) as environment:
        execute("kubectl get nodes", environment)
    kind_ground.py      makes one, says how long it took from helm install until all nodes show their devices, and ends

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
import kind_image
import kubectl

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("images", "tests/scenarios"):
    sys.path.insert(0, str(ROOT / folder))

import ground as grounds  # noqa: E402
import images  # noqa: E402
from installed_ground import NAMESPACE, scheduler_policy  # noqa: E402

RELEASE = "tahoma"
WORKLOAD_TAGS = ("tahoma.dev/workload:v1", "public.ecr.aws/ubuntu/ubuntu:22.04")
PROGRAMS = ("controller", "dra-plugin", "sim-node")
ADMIN_TOKEN_SECRET = "fault-api"
INSTALL_SECONDS = 240
# As in ground.py: a kubelet forgets why it could not prepare a claim until it looks at the pod again.
KUBELET_LOOKS_EVERY = "5s"


def in_own_network():
    """Starts this program again in a network namespace, unless the machine has an engine: there nothing can be fetched."""
    if kind.needs_own_network():
        if not os.environ.get("KIND_NODE_IMAGE"):
            kind_image.debian_base()
        grounds.in_own_network()


class KindGround:
    """A context, whose value is the environment of commands."""

    def __init__(self, bin_dir, topology=ROOT / "examples/local/topology.json"):
        self.bin = bin_dir
        self.topology = json.loads(topology.read_text())
        self.scratch = tempfile.TemporaryDirectory(prefix="tk")
        self.directory = pathlib.Path(self.scratch.name)
        self.shared, self.nodes, self.values = self.directory / "s", self.directory / "n", self.directory / "values.yaml"
        self.version = None  # of the images
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
            self.version = images.make(archives[-1], name, self.bin).rpartition(":")[2]
        archives.append(self.directory / "workload.tar")
        # A shell and the workload's programs, where sleep ends when it is told to.
        image.write(archives[-1], list(WORKLOAD_TAGS), image.workload_files(self.bin))
        self.cluster.load(*archives)

    def install(self):
        # The containers of kind have the name of its cluster.
        values = (kind.EXAMPLE / "values.yaml").read_text().replace("address: tahoma-", f"address: {kind.NAME}-")
        self.values.write_text(values.replace("simNode:\n", f"simNode:\n  adminTokenSecret: {ADMIN_TOKEN_SECRET}\n"))
        token = secrets.token_hex(16)
        for node in self.topology["nodes"]:
            (self.nodes / node["name"]).mkdir()
            (self.nodes / node["name"] / "admin.token").write_text(token + "\n")
        self.run("kubectl", "create", "namespace", NAMESPACE)
        self.run("kubectl", "create", "secret", "generic", ADMIN_TOKEN_SECRET, "--namespace", NAMESPACE, f"--from-literal=token={token}")
        self.run("kubectl", "apply", "-f", "-", text=json.dumps(scheduler_policy()))
        began = time.monotonic()
        self.run("helm", "install", RELEASE, ROOT / "charts/tahoma", "--namespace", NAMESPACE, "--values", self.values,
                 "--wait", "--timeout", f"{INSTALL_SECONDS}s", seconds=INSTALL_SECONDS + 20)
        kubectl.until("every node has published its devices", self.all_published, kind.READY_SECONDS)
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


if __name__ == "__main__":
    in_own_network()
    with KindGround(pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()):
        pass
