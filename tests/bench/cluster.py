"""The rows of run.py that need real Kubernetes: what its API server takes, and how fast Tahoma and kube-scheduler
bind the same pods there, one after the other, each on a control plane of its own.

640 virtual nodes of 16 chips publish what AWS's driver would, with Tahoma's taint, which the claims tolerate. Pods
and claims are made first, then the scheduler is started; neither is kept back by limits of its own (kube-scheduler's
are lifted). Control plane, load and scheduler share the machine, so compare numbers of one run only.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from measure import BENCH, BIN, ROOT, cpu_percent, output, rss_mib

sys.path.insert(0, str(ROOT / "tests/cluster"))
import control_plane  # noqa: E402

LOAD = BENCH / "cluster_load"
NODES = 640
PODS = 2000
GANGS = 100
WRITES = 4000
IDLE_SECONDS = 30
WRITE_VERBS = {"POST", "PUT", "PATCH", "DELETE", "APPLY"}


@functools.cache
def kubernetes():
    """Where the Kubernetes programs are, which are built where they are not yet."""
    if not os.environ.get("KUBERNETES_BIN"):
        os.environ["KUBERNETES_BIN"] = output(ROOT / "tests/cluster/build_tools.sh")
    return pathlib.Path(os.environ["KUBERNETES_BIN"])


class Ground:
    """A control plane with a fleet of virtual nodes, our kinds and classes."""

    def __init__(self, instance_types, nodes=NODES):
        self.fleet = ["--fleet", str(nodes), "--fleet-nodes.instance-types", instance_types, "--fleet-nodes.taint", "none",
                      "--fleet-nodes.lease-period", "30s"]
        self.children = []

    def __enter__(self):
        kubernetes()
        self.scratch = tempfile.TemporaryDirectory(prefix="tc")
        self.directory = pathlib.Path(self.scratch.name)
        self.kubeconfig = self.directory / "k/kubeconfig"
        try:
            self.prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def prepare(self):
        output(sys.executable, ROOT / "tests/cluster/control_plane.py", "up", self.directory / "k")
        self.kubectl("apply", "-f", ROOT / "charts/tahoma/crds", "-f", ROOT / "charts/tahoma/files/deviceclasses.yaml")
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        if self.fleet[1] != "0":
            self.start("nodes are published", BIN / "sim-node", *self.fleet, "--fleet-nodes.kubeconfig", self.kubeconfig)

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
            child.wait()
        control_plane.main(["down", str(self.directory / "k")])
        self.scratch.cleanup()

    def kubectl(self, *arguments):
        return output(os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", self.kubeconfig, *arguments)

    def start(self, word, *command):
        """Starts a program and waits until its log says the word."""
        log = self.directory / f"log-{len(self.children)}"
        with open(log, "wb") as file:
            child = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self.children.append(child)
        while word not in log.read_text(errors="replace"):
            if child.poll() is not None:
                raise OSError(f"{command[0]} ended with {child.returncode}: {log.read_text()[-500:]}")
            time.sleep(0.01)
        return child

    def tahoma(self, name, word="leading: lease"):
        return self.start(word, BIN / "controller", "--kubeconfig", self.kubeconfig, "--data-dir",
                          self.directory / name, "--admin-address", "127.0.0.1:0")

    def kube_scheduler(self):
        return self.start("Starting Kubernetes Scheduler", kubernetes() / "kube-scheduler", "--kubeconfig", self.kubeconfig,
                          "--leader-elect=false", "--secure-port=0", "--kube-api-qps=5000", "--kube-api-burst=5000")

    def writes(self):
        """How many writes the API server has answered."""
        metrics = self.kubectl("get", "--raw", "/metrics")
        return sum(float(line.rpartition(" ")[2]) for line in metrics.splitlines()
                   if line.startswith("apiserver_request_total{") and re.search(r'verb="(\w+)"', line)[1] in WRITE_VERBS)

    def bind(self, mode, count, scheduler=None, start=lambda: None):
        """What is bound per second, and how many writes it took for each."""
        load = subprocess.Popen([LOAD, self.kubeconfig, mode, str(count), *([scheduler] if scheduler else [])], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, bufsize=1)
        if load.stdout.readline() != "made\n":
            raise OSError(f"cluster_load ended with {load.wait()}")
        before = self.writes()
        start()
        load.stdin.write("\n")
        rate = load.stdout.readline()
        if load.wait() != 0:
            raise OSError("not everything was bound")
        return float(rate), (self.writes() - before) / count


@functools.cache
def writes_per_s():
    with Ground("trn2.48xlarge=1", nodes=1) as ground:
        return float(output(LOAD, ground.kubeconfig, "writes", WRITES))


def config_writes_per_s():
    with Ground("", nodes=0) as ground:
        return float(output(LOAD, ground.kubeconfig, "configs", WRITES))


@functools.cache
def pods_of_tahoma():
    """(pods/s, writes a pod, MiB, percent of a processor when nothing is left to do)"""
    with Ground("trn2.48xlarge=1") as ground:
        rate, writes = ground.bind("pods", PODS, "tahoma", lambda: ground.tahoma("leader"))
        pid = ground.children[-1].pid
        time.sleep(5)  # this is a measurement, not a test: its last reports are written
        return rate, writes, rss_mib(pid), cpu_percent(pid, IDLE_SECONDS)


@functools.cache
def pods_of_kube_scheduler():
    with Ground("trn2.48xlarge=1") as ground:
        return ground.bind("pods", PODS, "default-scheduler", ground.kube_scheduler)[0]


@functools.cache
def pods_of_nobody():
    """The same pods, bound by a client that decides nothing."""
    with Ground("trn2.48xlarge=1") as ground:
        return ground.bind("unscheduled", PODS)[0]


def gangs_of_tahoma():
    with Ground("trn2u.48xlarge=1") as ground:
        return ground.bind("gangs", GANGS, "tahoma", lambda: ground.tahoma("leader"))[0]


def failover_s():
    """Median of three kills of the leader, until the stand-by leads. Its lease must expire first."""
    times = []
    for _ in range(3):
        with Ground("", nodes=0) as ground:
            leader = ground.tahoma("a")
            stand_by = ground.tahoma("b", "standing by for the lease")
            log = ground.directory / f"log-{ground.children.index(stand_by)}"
            leader.kill()
            begin = time.monotonic()
            while "leading: lease" not in log.read_text():
                if stand_by.poll() is not None:
                    raise OSError(f"the stand-by ended with {stand_by.returncode}")
                time.sleep(0.01)
            times.append(time.monotonic() - begin)
    return sorted(times)[1]


def helm_install_to_ready_s():
    """On a cluster of kind with seven nodes, six of them instances."""
    for name, module in (("KIND_BIN", "tools-kind"), ("COREDNS_BIN", "tools-coredns"), ("HELM_BIN", "tools-helm")):
        os.environ.setdefault(name, output(ROOT / "tests/cluster/build_tools.sh", module))
    kubernetes()
    said = output(sys.executable, ROOT / "tests/cluster/kind_ground.py")
    return float(re.search(r"every node with its devices: ([\d.]+) s", said)[1])


def bound_over_writes():
    """Pods bound per second over what the writes of each would allow if the server did nothing else."""
    rate, writes, *_ = pods_of_tahoma()
    return rate * writes / writes_per_s()


ROWS = [
    ("cluster_writes_per_s", "writes/s", None, "higher", lambda _: writes_per_s()),
    ("cluster_config_writes_per_s", "writes/s", None, "higher", lambda _: config_writes_per_s()),
    ("cluster_pods_bound_per_s", "pods/s", None, "higher", lambda _: pods_of_tahoma()[0]),
    ("cluster_pods_writes_each", "writes", None, "lower", lambda _: pods_of_tahoma()[1]),
    ("cluster_pods_bound_over_writes", "ratio", 0.95, "higher", lambda _: bound_over_writes()),
    ("cluster_unscheduled_pods_bound_per_s", "pods/s", None, "higher", lambda _: pods_of_nobody()),
    ("cluster_pods_bound_over_unscheduled", "ratio", 0.95, "higher", lambda _: pods_of_tahoma()[0] / pods_of_nobody()),
    ("cluster_kube_scheduler_pods_bound_per_s", "pods/s", None, "higher", lambda _: pods_of_kube_scheduler()),
    ("cluster_gangs_bound_per_s", "gangs/s", None, "higher", lambda _: gangs_of_tahoma()),
    ("cluster_controller_rss_mib", "MiB", None, "lower", lambda _: pods_of_tahoma()[2]),
    ("cluster_controller_idle_cpu_percent", "%", None, "lower", lambda _: pods_of_tahoma()[3]),
    ("cluster_leader_failover_s", "s", None, "lower", lambda _: failover_s()),
    ("helm_install_to_ready_s", "s", None, "lower", lambda _: helm_install_to_ready_s()),
]
