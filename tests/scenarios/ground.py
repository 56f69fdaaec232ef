"""Test environments of scenarios: an API server with Tahoma on it, and nodes that run pods.

    with Ground("standalone", bin_dir) as environment:
        execute("kubectl get nodes", environment)

standalone is our own API server; cluster is etcd, kube-apiserver and kube-controller-manager (tests/cluster); node is
these with a kubelet and a containerd for each node, where each dra-plugin has its service account, and belongs into a network namespace of its own, as root
(in_own_network). KEEP_LOGS names a folder that gets everything when it ends.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/cluster"))

import node  # noqa: E402

IMAGES = ("tahoma.dev/workload:v1", "public.ecr.aws/ubuntu/ubuntu:22.04")
COMMAND_SECONDS = 120
# A kubelet forgets why it could not prepare a claim, and tries again when it next looks at the pod: by default after
# more than a minute, longer than any test waits.
KUBELET_LOOKS_EVERY = "5s"


def in_own_network():
    """Starts this program again in a network namespace of its own, unless it is in one."""
    if os.environ.get("IN_NETWORK_NAMESPACE") == "1":
        return
    os.environ["IN_NETWORK_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv])


def execute(command, environment):
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=COMMAND_SECONDS)
    return done.returncode, done.stdout


class Ground:
    """An API server with Tahoma on it, as a context."""

    def __init__(self, kind, bin_dir, topology=ROOT / "examples/local/topology.json",
                 scheduler_names="tahoma,default-scheduler", control_plane=(), kubelets=()):
        self.kind = kind
        self.bin = bin_dir
        self.topology = topology
        self.scheduler_names = scheduler_names
        self.control_plane = control_plane  # further options of control_plane.py up
        self.kubelets = kubelets  # further options of node.py up
        self.scratch = tempfile.TemporaryDirectory(prefix="th")
        self.directory = pathlib.Path(self.scratch.name)
        self.ended_in_order = True

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def start(self):
        command = [sys.executable, ROOT / "examples/local/up.py", self.directory / "t", "--bin", self.bin, "--quiet",
                   "--topology", self.topology]
        kubeconfig = self.directory / "t" / "kubeconfig"
        if self.kind != "standalone":
            accounts = ["--accounts"] if self.kind == "node" else []
            done = subprocess.run([sys.executable, ROOT / "tests/cluster/control_plane.py", "up",
                                   self.directory / "k", *accounts, *self.control_plane], stdout=subprocess.PIPE, text=True, check=True)
            kubeconfig = pathlib.Path(done.stdout.strip())
            # Unless a test starts a kube-scheduler, nobody else places pods there.
            command += ["--kubeconfig", kubeconfig, "--scheduler-names", self.scheduler_names]
            install = "kubectl apply --server-side -f charts/tahoma/crds -f charts/tahoma/files -f examples/install"
            status, output = execute(install, {**os.environ, "KUBECONFIG": str(kubeconfig)})
            if status != 0:
                sys.exit(f"{install}: {output}")
        if self.kind == "node":
            command += ["--kubelets", self.start_kubelets()]
        if subprocess.call([str(c) for c in command]) != 0:
            sys.exit(f"the {self.kind} test environment did not start")
        pods = self.directory / "s" if self.kind == "node" else (self.directory / "t/pods-folder").read_text().strip()
        admin = {"ADMIN_API": "1"} if self.kind == "standalone" else {}
        return {**os.environ, **admin, "KUBECONFIG": str(kubeconfig), "GROUND": self.kind, "NODES": str(self.directory / "t/n"),
                "PODS": str(pods), "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def start_kubelets(self):
        """One for each node of up.py, with an image that has our programs."""
        topology = json.loads(self.topology.read_text())
        names = [one["name"] for one in topology["nodes"]]
        tar, shared = self.directory / "workload.tar", self.directory / "s"
        shared.mkdir()
        for command in (["image.py", tar, *IMAGES, "--bin", self.bin],
                        ["node.py", "up", self.directory / "k", *names, "--share", shared,
                         "--sync-frequency", KUBELET_LOOKS_EVERY, *self.kubelets],
                        ["node.py", "import", self.directory / "k", tar]):
            subprocess.run([sys.executable, ROOT / "tests/cluster" / command[0], *map(str, command[1:])], check=True,
                           stdout=subprocess.DEVNULL)
        for name in names:
            node.write_plugin_kubeconfig(self.directory / "k", name)
        return self.directory / "k" / "nodes"

    def __exit__(self, *_):
        commands = [[ROOT / "examples/local/down.py", self.directory / name] for name in ("t", "k")]
        if self.kind == "node":
            commands.insert(1, [ROOT / "tests/cluster/node.py", "down", self.directory / "k"])
        for command in commands:
            if subprocess.call([sys.executable, *[str(c) for c in command]]) != 0:
                self.ended_in_order = False
        keep = os.environ.get("KEEP_LOGS")
        if keep:
            subprocess.call(["cp", "-r", str(self.directory), keep])
        self.scratch.cleanup()
