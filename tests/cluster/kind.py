"""The cluster of kind that examples/kind has: a control plane, and a worker for each node of a topology, by its name.

    cluster = kind.Cluster(folder, topology, share)
    with cluster:                                # created; deleted at the end
        cluster.load(image_tar, …)
        subprocess.run(["kubectl", "get", "nodes"], env=cluster.environment)
        cluster.restart("trn2-0")                # as a reboot of the node
        cluster.keep_logs("/tmp/logs")

The image of the nodes is that of $KIND_NODE_IMAGE (a tag or a docker-archive file), or the one that kind names where
the machine's Docker can pull it, or one assembled here (kind_image.py). Programs come from build_tools.sh (folders in
$KUBERNETES_BIN, $KIND_BIN and $COREDNS_BIN). Pods of the workers see `share` at its own path, and cannot write there.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import docker_engine
import kind_image
import kubectl

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE.parent.parent / "examples/kind"
NAME = "tahoma-test"
ASSEMBLED = "localhost/kind-node"
CREATE_SECONDS = 400
READY_SECONDS = 180
VOLUMES = 3  # one for each replica of the controller, and one for a test
VOLUME_FOLDER = "/var/tahoma-volumes"


class KindError(Exception):
    pass


def run(command, environment, text=None, seconds=READY_SECONDS):
    done = subprocess.run([str(c) for c in command], env=environment, input=text, text=True, check=False, timeout=seconds,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise KindError(f"{' '.join(str(c) for c in command)} ended with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def published_image(environment):
    """Whether the engine has, or can pull, the image of nodes that kind names."""
    sources = pathlib.Path(kind_image.run("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind", cwd=HERE / "tools-kind").strip())
    name = re.search(r'Image = "(\S+)"', (sources / "pkg/apis/config/defaults/image.go").read_text())[1]
    return subprocess.run(["docker", "pull", "--quiet", name], env=environment, capture_output=True, check=False).returncode == 0


def why_not():
    """Why there can be no cluster here; None: there can."""
    engine = docker_engine.find()
    if engine is None and (reason := docker_engine.why_not()):
        return reason
    if os.environ.get("KIND_NODE_IMAGE") or not shutil.which("go") or engine and published_image(engine.environment):
        return None  # without Go there are no programs, which build_tools.sh says
    return kind_image.why_not()


def needs_own_network():
    """Whether the tests belong into a network namespace of their own, with an engine in it."""
    return docker_engine.find() is None


def is_cgroup_v1():
    return not os.path.exists("/sys/fs/cgroup/cgroup.controllers")


def config(share, assembled, sync_frequency):
    """The example's configuration of kind, with what tests and this machine need besides."""
    kubelet = {"kind": "KubeletConfiguration", "syncFrequency": sync_frequency}
    if is_cgroup_v1():
        kubelet["failCgroupV1"] = False
    patches = [kubelet]
    if assembled:
        patches.append({"kind": "ClusterConfiguration", "imageRepository": kind_image.REPOSITORY})
    mount = {"hostPath": str(share), "containerPath": str(share), "readOnly": True}
    more = {"networking": {"kubeProxyMode": "nftables", "disableDefaultCNI": assembled},
            "kubeadmConfigPatches": [json.dumps(patch) for patch in patches]}
    text = (EXAMPLE / "cluster.yaml").read_text().replace("- role: worker\n", f"- role: worker\n  extraMounts: [{json.dumps(mount)}]\n")
    return text + "".join(f"{key}: {json.dumps(value)}\n" for key, value in more.items())  # JSON is YAML


class Cluster:
    """A context. `environment`: KUBECONFIG and DOCKER_HOST for programs."""

    def __init__(self, folder, topology, share, sync_frequency="1m"):
        self.folder, self.topology, self.share = pathlib.Path(folder), topology, share
        self.sync_frequency = sync_frequency
        self.engine, self.environment, self.created, self.assembled = None, None, False, False
        self.containers = {}  # of each node, by the node's name

    def __enter__(self):
        try:
            self.create()
        except BaseException:
            self.__exit__()
            raise
        return self

    def create(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.engine = docker_engine.find() or docker_engine.start(self.folder / "engine")
        self.environment = {**self.engine.environment, "KUBECONFIG": str(self.folder / "kubeconfig"),
                            "PATH": f"{self.engine.environment['PATH']}:{os.environ['KIND_BIN']}"}
        image, self.assembled = self.node_image()
        file = self.folder / "kind.yaml"
        file.write_text(config(self.share, self.assembled, self.sync_frequency))
        self.created = True
        self.kind("delete", "cluster")  # of a run that was killed
        self.kind("create", "cluster", "--config", file, *(["--image", image] if image else []), seconds=CREATE_SECONDS)
        self.find_containers()
        self.give_shared_folder()
        if self.assembled:
            self.connect_pods()
            self.add_volumes()
        self.wait_ready()

    def kind(self, *arguments, seconds=READY_SECONDS):
        return run(["kind", *arguments, "--name", NAME], self.environment, seconds=seconds)

    def docker(self, *arguments, **options):
        return run(["docker", *arguments], self.environment, **options)

    def kubectl(self, *arguments, **options):
        return kubectl.kubectl(*arguments, environment=self.environment, **options)

    def node_image(self):
        """The image's name (None: the one that kind names), and whether it was assembled by kind_image.py."""
        wanted = os.environ.get("KIND_NODE_IMAGE")
        if wanted and os.path.exists(wanted):
            return re.search(r"Loaded image: (\S+)", self.docker("load", "--input", wanted))[1], False
        if wanted:
            return wanted, False
        if not self.engine.own and published_image(self.environment):
            return None, False
        return self.assembled_image(), True

    def assembled_image(self):
        # By the programs in it, and by how it is made.
        key = "-".join(pathlib.Path(os.environ[name]).name.rsplit("-", 1)[1] for name in kind_image.BIN_FOLDERS)
        key += "-" + run(["sh", "-c", f"cat {HERE}/kind_image.py {HERE}/image.py | sha256sum | cut -c1-12"], self.environment).strip()
        tag = f"{ASSEMBLED}:{key}"
        if subprocess.run(["docker", "image", "inspect", tag], env=self.environment, capture_output=True, check=False).returncode != 0:
            archive = self.folder / "node.tar"
            kind_image.assemble(archive.resolve(), tag)
            self.docker("load", "--input", archive)
            archive.unlink()
            if self.engine.own:  # what it keeps is ours
                for old in self.docker("image", "ls", ASSEMBLED, "--format", "{{.Repository}}:{{.Tag}}").split():
                    if old != tag:
                        self.docker("image", "rm", old)
        return tag

    def find_containers(self):
        """Nodes have the topology's names; their containers have kind's, in the same order."""
        workers = [f"{NAME}-worker{number if number > 1 else ''}" for number in range(1, len(self.topology["nodes"]) + 1)]
        names = [node["name"] for node in self.topology["nodes"]]
        self.containers = {f"{NAME}-control-plane": f"{NAME}-control-plane", **dict(zip(names, workers))}

    def in_node(self, node, *command, text=None):
        return self.docker("exec", *(["--interactive"] if text else []), self.containers[node], *command, text=text)

    def give_shared_folder(self):
        """Every container on the workers sees the folder: containerd begins each with the same specification."""
        mount = {"destination": str(self.share), "source": str(self.share), "type": "bind", "options": ["rbind", "ro"]}
        change = f"f=/etc/containerd/cri-base.json; jq -c '.mounts += [{json.dumps(mount)}]' $f >/tmp/spec && cp /tmp/spec $f && systemctl restart containerd"
        for node in self.topology["nodes"]:
            self.in_node(node["name"], "bash", "-c", change)

    def connect_pods(self):
        """The network of pods: a bridge on every node, and a route to each other node's pods."""
        nodes = kubectl.until("every node has a pod network", lambda: len(found := self.networks()) == len(self.containers) and found,
                              READY_SECONDS)
        for name, (pods, _) in nodes.items():
            network = {"cniVersion": "1.0.0", "name": "pods", "plugins": [
                {"type": "bridge", "bridge": "pods0", "isDefaultGateway": True, "hairpinMode": True,
                 "ipam": {"type": "host-local", "ranges": [[{"subnet": pods}]]}},
                {"type": "portmap", "capabilities": {"portMappings": True}}]}
            self.in_node(name, "sh", "-c", "mkdir -p /etc/cni/net.d && cat >/etc/cni/net.d/10-pods.conflist", text=json.dumps(network))
            self.add_routes(name, nodes)

    def add_routes(self, name, nodes):
        routes = [f"ip route replace {pods} via {address}" for other, (pods, address) in nodes.items() if other != name]
        self.in_node(name, "sh", "-c", " && ".join(routes))

    def networks(self):
        """(network of its pods, address) of each node that has both."""
        shown = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        found = {}
        for node in shown:
            address = [one["address"] for one in node["status"].get("addresses", []) if one["type"] == "InternalIP"]
            if "podCIDR" in node["spec"] and address:
                found[node["metadata"]["name"]] = (node["spec"]["podCIDR"], address[0])
        return found

    def add_volumes(self):
        """Folders of the first workers, for whoever claims a volume."""
        for number, node in enumerate(self.topology["nodes"][:VOLUMES]):
            self.in_node(node["name"], "mkdir", "-p", VOLUME_FOLDER)
            self.kubectl("apply", "-f", "-", given={
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"volume-{number}"},
                "spec": {"capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "standard",
                         "persistentVolumeReclaimPolicy": "Retain", "local": {"path": VOLUME_FOLDER},
                         "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                             {"key": "kubernetes.io/hostname", "operator": "In", "values": [node["name"]]}]}]}}}})

    def wait_ready(self):
        self.kubectl("wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={READY_SECONDS}s", seconds=READY_SECONDS + 10)

    def load(self, *archives):
        """Gives every worker the images of docker-archive files."""
        workers = ",".join(self.containers[node["name"]] for node in self.topology["nodes"])
        for archive in archives:
            self.kind("load", "image-archive", archive, "--nodes", workers)

    def restart(self, node):
        """As a reboot: every process of the node ends. Its routes are new."""
        self.docker("restart", self.containers[node])
        if self.assembled:
            self.add_routes(node, self.networks())

    def keep_logs(self, folder):
        """What every node and its pods have said."""
        if self.created:
            subprocess.run(["kind", "export", "logs", str(folder), "--name", NAME], env=self.environment, check=False,
                           capture_output=True, timeout=CREATE_SECONDS)

    def __exit__(self, *_):
        try:
            if self.created:
                self.kind("delete", "cluster")
        except (KindError, subprocess.TimeoutExpired) as error:
            print(f"kind.py: the cluster is not deleted: {error}", file=sys.stderr)
        finally:
            if self.engine:
                self.engine.stop()
