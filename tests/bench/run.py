#!/usr/bin/env python3
"""Runs the benchmarks of docs/performance.md.

    run.py [REGEX]        rows whose name matches; prints a line a row, writes build/bench.tsv

A row of bench.tsv: name, value, unit, target (or empty), "lower" or "higher" is better. Programs come from
$TAHOMA_BIN (default build/release/bin), benchmarks from the bench folder beside it.
"""

import csv
import datetime
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import cluster
from measure import BENCH, BIN, ROOT, cpu_percent, output, processor_seconds, rss_mib

MIB = 1024 * 1024


class Controller:
    """A fresh `controller --standalone` without TLS and tokens, as on a machine of its own."""

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="tb")
        self.directory = pathlib.Path(self.scratch.name)
        self.kubeconfig = self.directory / "kubeconfig"
        ports = self.directory / "ports.yaml"
        begin = time.monotonic()
        self.child = subprocess.Popen(
            [BIN / "controller", "--standalone", "--data-dir", self.directory / "data",
             "--listen-address", "127.0.0.1:0",
             "--admin-address", "127.0.0.1:0", "--port-file", ports, "--write-kubeconfig", self.kubeconfig,
             "--crd-dir", ROOT / "charts/tahoma/crds"], stderr=subprocess.DEVNULL)
        while not (ports.exists() and ready(ports)):
            if self.child.poll() is not None:
                raise OSError(f"the controller ended with {self.child.returncode}")
            time.sleep(0.001)
        self.start_ms = (time.monotonic() - begin) * 1000
        self.address = listen_address(ports)
        self.server = f"http://{self.address}"
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()
        self.scratch.cleanup()


class Cluster:
    """The cluster that `make up` starts, with one node of 16 chips."""

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="tb")
        self.directory = pathlib.Path(self.scratch.name) / "t"
        topology = pathlib.Path(self.scratch.name) / "topology.json"
        topology.write_text(json.dumps({"networkLayers": ["nn-1", "nn-2", "nn-3"],
                                        "nodes": [{"name": "n0", "instanceType": "trn2.48xlarge"}]}))
        subprocess.run([sys.executable, ROOT / "examples/local/up.py", self.directory, "--bin", BIN, "--topology",
                        topology, "--quiet"], check=True)
        return self

    def __exit__(self, *_):
        subprocess.call([sys.executable, ROOT / "examples/local/down.py", str(self.directory)])
        self.scratch.cleanup()

    def pid(self, name):
        return int((self.directory / "pids" / name).read_text())


def standalone_load(mode, count):
    with Controller() as ground:
        return float(output(BENCH / "standalone_load", ground.server, mode, count))


def gangs_per_processor_second(waiting):
    """Gangs bound in a second of the controller's processor time while so many others wait."""
    with Controller() as ground:
        load = subprocess.Popen([BENCH / "standalone_load", ground.server, "gangs", "2400", str(waiting)],
                                stdout=subprocess.PIPE, text=True)
        load.stdout.readline()  # the others wait
        begin = processor_seconds(ground.child.pid)
        load.stdout.read()
        if load.wait() != 0:
            raise OSError(f"standalone_load ended with {load.returncode}")
        return 2400 / (processor_seconds(ground.child.pid) - begin)


def beside_waiting_ratio():
    """With 10,000 that wait over none, the median of three pairs."""
    return sorted(gangs_per_processor_second(10000) / gangs_per_processor_second(0) for _ in range(3))[1]


def oracle_disagreements():
    """On how many of 100,000 fresh random gangs the planner and the oracle differ."""
    said = subprocess.run([BIN.parent / "tests/gang_oracle_test", "--cases", "100000"], check=False, stdout=subprocess.PIPE,
                          text=True).stdout
    return sum(map(int, re.findall(r"wrong places (\d+), wrong reasons (\d+), faults (\d+)", said)[0]))


def kernel_row(name):
    """What our kernels of AWS's operations say of an emulated core."""
    python = output(ROOT / ".ci/python", "--find")
    return float(output(python, ROOT / "tests/bench/kernels.py", name))


def instruction_oracle_mismatches():
    """How many tests find an instruction's numbers different from those of its slow oracle."""
    said = subprocess.run([BIN.parent / "tests/sim_core_test",], check=False, stdout=subprocess.PIPE,
                          text=True).stdout
    ran, passed = (int(re.search(pattern, said)[1]) for pattern in (r"(\d+) tests? from .* ran", r"PASSED  \] (\d+) test"))
    return ran - passed


def hostile_ratio():
    """Gangs per second beside 200 slow connections a second, over those without them, each a fresh controller's.

    With HOSTILE_MINUTES the least of all pairs in that time.
    """
    end = time.monotonic() + 60 * float(os.environ.get("HOSTILE_MINUTES", "0"))
    ratios = []
    while not ratios or time.monotonic() < end:
        alone = standalone_load("gangs", 1200)
        with Controller() as ground:
            attack = subprocess.Popen([BENCH / "hostile_clients", ground.address, "200"],
                                      stdout=subprocess.PIPE)
            try:
                attack.stdout.readline()  # as many are open as ever will be
                ratios.append(float(output(BENCH / "standalone_load", ground.server, "gangs", 1200)) / alone)
            finally:
                attack.kill()
                attack.wait()
    return min(ratios)


def hostile_peak_rss_mib():
    """The most memory that a program has beside the attacks of the hostile_*memory_test.py."""
    peaks = []
    for script in sorted((ROOT / "tests/integration").glob("hostile_*memory_test.py")):
        said = subprocess.run([sys.executable, script], check=True, cwd=ROOT, env={**os.environ, "TAHOMA_BIN": str(BIN)},
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        peaks += [float(peak) for peak in re.findall(r"^peak of [^:]*: (\d+) MiB", said, re.MULTILINE)]
    return max(peaks)


def watch_fanout():
    with Controller() as ground:
        return float(output(BENCH / "watch_fanout", ground.address, 1000, 5))


def median_ms(command):
    """Median of five runs."""
    times = []
    for _ in range(5):
        begin = time.monotonic()
        output(*command)
        times.append((time.monotonic() - begin) * 1000)
    return sorted(times)[2]


def topology_summary_ms():
    """Median of five runs of `kubectl tahoma topology` on 62,500 nodes, once the controller has published them."""
    nodes = 62500
    with Controller() as ground:
        output(BENCH / "standalone_load", ground.server, "fleet", nodes)
        command = [BIN / "kubectl-tahoma", "topology", "--kubeconfig", ground.kubeconfig]
        while not re.search(rf"^all +{nodes} ", output(*command), re.MULTILINE):
            time.sleep(1)
        return median_ms(command)


def trace_64_units_ms():
    """Median of five tables of an all-reduce of 1 GiB on 64 UltraServers."""
    return median_ms([BIN / "trn-trace", "--domains", "64", "--bytes", "1G"])


def controller_start_ms():
    """Median of five starts on an empty folder, from exec to /readyz."""
    times = []
    for _ in range(5):
        with Controller() as ground:
            times.append(ground.start_ms)
    return sorted(times)[2]


def controller_restart_to_leading_ms():
    """Median of five kills of a cluster's controller, from its next exec until it leads."""
    def start(ground):
        child = subprocess.Popen([BIN / "controller", "--kubeconfig", ground.kubeconfig, "--data-dir",
                                  ground.directory / "leader", "--admin-address", "127.0.0.1:0"],
                                 stderr=subprocess.PIPE, text=True)
        for line in child.stderr:
            if "leading: lease" in line:
                return child
        raise RuntimeError(f"the controller ended with {child.wait()} before it led")

    times = []
    with Controller() as ground:
        child = start(ground)
        for _ in range(5):
            child.kill()
            child.wait()
            begin = time.monotonic()
            child = start(ground)
            times.append((time.monotonic() - begin) * 1000)
        child.kill()
        child.wait()
    return sorted(times)[2]


def listen_address(ports):
    """Where the controller that wrote the port file listens; None while the file is not whole."""
    found = re.search(r"listenAddress: *\"?([^\s\"]+)", ports.read_text())
    return found and found[1]


def ready(ports):
    address = listen_address(ports)
    return bool(address) and subprocess.call(["curl", "-sf", "-o", "/dev/null", f"http://{address}/readyz"]) == 0


def plugin_idle_cpu_percent():
    """Of one processor, in the minute after a pair of looks at its ResourceSlices that follow its registration."""
    with Cluster() as ground:
        time.sleep(45)
        return cpu_percent(ground.pid("n0.dra-plugin"), 60)


def idle_rss(program):
    settle = 2  # seconds until start-up is over; this is a measurement, not a test
    if program == "controller":
        with Controller() as ground:
            time.sleep(settle)
            return rss_mib(ground.child.pid)
    with Cluster() as ground:
        time.sleep(settle)
        return rss_mib(ground.pid(f"n0.{program}"))


def make_up_to_first_gang_s():
    """From the first moment of `make up`, its programs built, until a gang of a whole UltraServer is placed; median of three."""
    kubectl = os.environ.get("KUBECTL") or output(ROOT / ".ci/kubectl")
    gang = output(ROOT / "examples/gangs/make_gang.py", "first", "4x4x4", "4", "--command", "sleep 600")
    times = []
    for _ in range(3):
        with tempfile.TemporaryDirectory(prefix="tb") as scratch:
            directory = pathlib.Path(scratch) / "t"
            begin = time.monotonic()
            subprocess.run([sys.executable, ROOT / "examples/local/up.py", directory, "--bin", BIN, "--quiet"], check=True)
            try:
                ask = [kubectl, "--kubeconfig", directory / "kubeconfig"]
                subprocess.run([*ask, "apply", "-f", "-"], input=gang, check=True, text=True, stdout=subprocess.DEVNULL)
                output(*ask, "wait", "gang/first", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
                times.append(time.monotonic() - begin)
            finally:
                subprocess.call([sys.executable, ROOT / "examples/local/down.py", str(directory)])
    return sorted(times)[1]


def post(url, manifest):
    request = urllib.request.Request(url, json.dumps(manifest).encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request).close()


def deployments_made_cpu_ms(ground, first, last):
    """Processor time of the controller for each Deployment of five pods that fit no node, made one after the other."""
    begin = processor_seconds(ground.child.pid)
    for number in range(first, last):
        labels = {"app": f"d{number}"}
        post(f"{ground.server}/apis/apps/v1/namespaces/default/deployments", {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"d{number}"},
            "spec": {"replicas": 5, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"nodeSelector": {"no": "such"}, "containers": [{"name": "main", "image": "busybox"}]}}}})
    while json.loads(output("curl", "-sf", f"{ground.server}/api/v1/pods?limit=1"))["metadata"].get(
            "remainingItemCount", 0) + 1 < last * 5:
        time.sleep(0.2)
    return 1000 * (processor_seconds(ground.child.pid) - begin) / (last - first)


def deployment_growth_ratio():
    """What a Deployment takes beside 2,500 others, over what one takes beside less than 250; the median of three."""
    ratios = []
    for _ in range(3):
        with Controller() as ground:
            few = deployments_made_cpu_ms(ground, 0, 250)
            deployments_made_cpu_ms(ground, 250, 2500)
            ratios.append(deployments_made_cpu_ms(ground, 2500, 2750) / few)
    return sorted(ratios)[1]


class VirtualFleet:
    """`sim-node --fleet` beside a controller, once all its nodes are published."""

    def __init__(self, ground, nodes, *options):
        self.child = subprocess.Popen([BIN / "sim-node", "--fleet", str(nodes), "--fleet-nodes.kubeconfig",
                                       ground.kubeconfig, *options], stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        for line in self.child.stderr:
            if found := re.search(r"all \d+ nodes are published, with (\d+) ResourceSlices, after ([\d.]+) s", line):
                self.slices, self.seconds = int(found[1]), float(found[2])
                return self
        raise OSError(f"sim-node ended with {self.child.wait()} before its fleet was published")

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


def fleet_slices_published_per_s():
    with Controller() as ground, VirtualFleet(ground, 5000) as fleet:
        return fleet.slices / fleet.seconds


def fleet_bytes_per_node():
    """What 9,000 more nodes take of a sim-node, all of them published and their leases renewed for two periods."""
    resident = {}
    for nodes in (1000, 10000):
        with Controller() as ground, VirtualFleet(ground, nodes) as fleet:
            time.sleep(20)  # this is a measurement, not a test
            resident[nodes] = rss_mib(fleet.child.pid) * MIB
    return (resident[10000] - resident[1000]) / 9000


def slice_bytes_per_node(publish):
    """The ResourceSlices of a trn2u.48xlarge as an API server stores them: in protobuf, each with its envelope."""
    with Controller() as ground, VirtualFleet(ground, 1, "--fleet-nodes.publish", publish):
        path = f"{ground.server}/apis/resource.k8s.io/v1/resourceslices"
        names = [item["metadata"]["name"] for item in json.loads(output("curl", "-sf", path))["items"]]
        return sum(len(subprocess.run(["curl", "-sf", "-H", "Accept: application/vnd.kubernetes.protobuf", f"{path}/{name}"],
                                      check=True, stdout=subprocess.PIPE).stdout) for name in names)


class Skipped(Exception):
    """Why a row is not measured here."""


@functools.cache
def replay(load, *policies):
    """The measures of each policy on NASA's log of 1993, which is not ours to hand on: its path is in the environment."""
    trace = os.environ.get("TAHOMA_NASA_TRACE")
    if not trace:
        raise Skipped("TAHOMA_NASA_TRACE names no NASA-iPSC-1993-3.1-cln.swf.gz of the Parallel Workloads Archive")
    return json.loads(output(BIN / "controller", "--replay", trace, "--load", str(load), "--policy", ",".join(policies),
                             "--format", "json"))


def replay_nasa_seconds():
    begin = time.monotonic()
    replay(1, "tahoma")
    return time.monotonic() - begin


def replay_ratio(measure, other):
    """Of the controller's core over another policy, when jobs come 1.7 times as fast as they did."""
    measured = {run["policy"]: run for run in replay(1.7, "first-fit", "easy", "tahoma")}
    return measured["tahoma"][measure] / measured[other][measure]


def big_gang_start_over_bound():
    """The wait of a whole UltraServer beside an endless stream of small jobs, over the time until those have ended that ran when
    the UltraServer was asked for."""
    with tempfile.TemporaryDirectory() as out:
        output(BIN / "controller", "--replay", ROOT / "examples/replay/big-beside-small.yaml", "--fleet", "1-UltraServers",
               "--policy", "tahoma", "--out", out)
        jobs = list(csv.DictReader((pathlib.Path(out) / "jobs.csv").open()))
    when = {key: [datetime.datetime.fromisoformat(job[key].replace("Z", "+00:00")) for job in jobs] for key in ("submit", "start", "end")}
    big = next(i for i, job in enumerate(jobs) if job["chips"] == "64")
    asked = when["submit"][big]
    bound = max(end for start, end in zip(when["start"], when["end"]) if start <= asked < end)
    return (when["start"][big] - asked) / (bound - asked)


def google_benchmark(program, counter):
    """The named counter, or the real time in ns, of a Google Benchmark program's only benchmark."""
    def run(name):
        report = json.loads(output(BENCH / program, f"--benchmark_filter=^{name}(/|$)", "--benchmark_format=json"))
        row = report["benchmarks"][0]
        return row[counter] if counter else row["real_time"]
    return run


ROWS = [
    # name, unit, target, better, how
    ("standalone_pods_bound_per_s", "pods/s", 2000, "higher", lambda _: standalone_load("pods", 8000)),
    ("standalone_gangs_bound_per_s", "gangs/s", 400, "higher", lambda _: standalone_load("gangs", 1200)),
    ("make_up_to_first_gang_s", "s", 5, "lower", lambda _: make_up_to_first_gang_s()),
    ("deployment_2500_others_cpu_ratio", "ratio", 1.5, "lower", lambda _: deployment_growth_ratio()),
    ("hostile_slow_connections_gangs_per_s_ratio", "ratio", 0.5, "higher", lambda _: hostile_ratio()),
    ("hostile_peak_rss_mib", "MiB", 512, "lower", lambda _: hostile_peak_rss_mib()),
    ("place_one_ultraserver_ns", "ns", None, "lower", google_benchmark("plan_bench", None)),
    ("place_fleet_15625_ultraservers_p99_us", "us", 1000, "lower", google_benchmark("plan_bench", "p99_us")),
    ("place_fleet_unique_devices_p99_us", "us", 1000, "lower", google_benchmark("plan_bench", "p99_us")),
    ("wake_10000_waiting_cpu_ms", "ms", 5, "lower", google_benchmark("wake_bench", "cpu_time")),
    ("new_node_10000_waiting_cpu_ms", "ms", 0.5, "lower", google_benchmark("wake_bench", "cpu_time")),
    ("fair_share_error_percent", "%", 2, "lower", google_benchmark("share_bench", "percent")),
    ("writes_per_freed_node_10000_waiting", "writes", 10, "lower", google_benchmark("waiting_bench", "writes")),
    ("gangs_bound_10000_waiting_over_none", "ratio", 0.9, "higher", lambda _: beside_waiting_ratio()),
    ("member_replaced_ms", "ms", 500, "lower", lambda _: standalone_load("replace", 2048)),
    ("oracle_disagreements_100k_cases", "cases", 0, "lower", lambda _: oracle_disagreements()),
    ("fleet_1m_rss_mib", "MiB", 2048, "lower", google_benchmark("fleet_bench", "mib")),
    ("fleet_1m_start_to_first_decision_ms", "ms", 5000, "lower", google_benchmark("fleet_bench", "ms")),
    ("fleet_1m_preemption_plan_ms", "ms", 500, "lower", google_benchmark("victims_bench", "real_time")),
    ("fleet_1m_decision_beside_windows_ms", "ms", 1, "lower", google_benchmark("windows_bench", "real_time")),
    ("fleet_1m_defrag_plan_ms", "ms", 1000, "lower", google_benchmark("victims_bench", "real_time")),
    ("offering_search_p99_ms", "ms", 5, "lower", google_benchmark("reserve_bench", "p99_ms")),
    ("plan_uses_60k_hosts_ms", "ms", 200, "lower", google_benchmark("reserve_bench", None)),
    ("block_purchase_p99_ms", "ms", 20, "lower", google_benchmark("block_journal_bench", "p99_ms")),
    ("handover_2232_ultraservers_ms", "ms", 5000, "lower", google_benchmark("reserve_bench", None)),
    ("blocks_100k_restart_ms", "ms", 2000, "lower", google_benchmark("block_journal_bench", "restart_ms")),
    ("blocks_100k_rss_mib", "MiB", None, "lower", google_benchmark("block_journal_bench", "mib")),
    ("what_if_512_ultraservers_ms", "ms", 200, "lower", google_benchmark("what_if_bench", "ms")),
    ("what_if_512_beside_blocks_ms", "ms", 200, "lower", google_benchmark("what_if_bench", "ms")),
    ("big_gang_start_over_bound", "ratio", 1, "lower", lambda _: big_gang_start_over_bound()),
    ("replay_nasa_seconds", "s", 60, "lower", lambda _: replay_nasa_seconds()),
    ("replay_mean_wait_over_easy", "ratio", 1, "lower", lambda _: replay_ratio("waitMeanSeconds", "easy")),
    ("replay_stranded_over_first_fit", "ratio", 0.5, "lower", lambda _: replay_ratio("strandedChips", "first-fit")),
    ("strategic_merge_533kb_ms", "ms", 200, "lower", google_benchmark("api_server_bench", None)),
    ("topology_summary_62500_nodes_ms", "ms", 1000, "lower", lambda _: topology_summary_ms()),
    ("controller_start_ms", "ms", None, "lower", lambda _: controller_start_ms()),
    ("controller_restart_to_leading_ms", "ms", 500, "lower", lambda _: controller_restart_to_leading_ms()),
    ("controller_idle_rss_mib", "MiB", None, "lower", lambda _: idle_rss("controller")),
    ("sim_node_16_chips_idle_rss_mib", "MiB", 26, "lower", lambda _: idle_rss("sim-node")),
    ("dra_plugin_idle_rss_mib", "MiB", 30, "lower", lambda _: idle_rss("dra-plugin")),
    ("fleet_slices_published_per_s", "slices/s", None, "higher", lambda _: fleet_slices_published_per_s()),
    ("fleet_bytes_per_node", "bytes", 20480, "lower", lambda _: fleet_bytes_per_node()),
    ("slice_bytes_per_node_chips_only", "bytes", 8192, "lower", lambda _: slice_bytes_per_node("chips")),
    ("slice_bytes_per_node_all_partitions", "bytes", 65536, "lower", lambda _: slice_bytes_per_node("chips,lnc1,lnc2,node")),
    ("dra_plugin_idle_cpu_percent", "%", 0, "lower", lambda _: plugin_idle_cpu_percent()),
    ("prepare_p99_ms", "ms", None, "lower", google_benchmark("prepare_bench", "p99_ms")),
    ("unprepare_p99_ms", "ms", None, "lower", google_benchmark("prepare_bench", "p99_ms")),
    ("allreduce_64_chips_1gib_wall_ms", "ms", 30, "lower", google_benchmark("collective_bench", None)),
    ("allreduce_2048_chips_hierarchical_wall_ms", "ms", 1000, "lower", google_benchmark("collective_bench", None)),
    ("broadcast_4096_units_wall_ms", "ms", 5000, "lower", google_benchmark("collective_bench", None)),
    ("trace_64_units_wall_ms", "ms", 3000, "lower", lambda _: trace_64_units_ms()),
    ("alltoall_64_chips_without_cable_wall_ms", "ms", 100, "lower", google_benchmark("collective_bench", None)),
    ("link_events_per_s", "events/s", None, "higher", google_benchmark("collective_bench", "link_events_per_s")),
    ("solve_4032_flows_us", "us", 200, "lower", google_benchmark("collective_bench", None)),
    *((f"{operation}_{shape}_1gib_over_bound", "ratio", target, "lower", google_benchmark("collective_bench", "over_bound"))
      for operation in ("allreduce", "allgather", "reducescatter", "alltoall")
      for shape, target in (("4x4", 1.07), ("4x4x2", 1.15), ("4x4x4", 1.07))),
    ("allgather_8_units_over_bound", "ratio", 1.2, "lower", google_benchmark("collective_bench", "over_bound")),
    ("predict_subcube_ns", "ns", 1000, "lower", google_benchmark("predict_bench", None)),
    ("predict_irregular_us", "us", 100, "lower", google_benchmark("predict_bench", None)),
    ("dma_4032_reads_ms", "ms", None, "lower", google_benchmark("links_bench", None)),
    ("plan_nics_down_32_domains_ms", "ms", 1000, "lower", google_benchmark("collective_bench", None)),
    ("plan_damaged_64_chips_ms", "ms", 100, "lower", google_benchmark("collective_bench", None)),
    ("flit_hops_per_s", "hops/s", None, "higher", google_benchmark("flit_bench", "flit_hops")),
    ("core_matmuls_per_s", "matmuls/s", None, "higher", google_benchmark("core_bench", "matmuls")),
    ("timing_instructions_per_s", "instructions/s", 2000000, "higher", google_benchmark("core_bench", "instructions")),
    ("timing_131655_instructions_wall_ms", "ms", 300, "lower", google_benchmark("core_bench", None)),
    ("functional_bf16_matmul_vs_onednn_ratio", "ratio", 0.5, "higher",
     lambda _: float(output("env", "OMP_NUM_THREADS=1", BENCH / "product_bench"))),
    *((f"emulated_{type}_tflops_per_core", "TFLOPS", target, "higher", google_benchmark("core_bench", "tflops"))
      for type, target in (("bf16", 77.8), ("fp8", 155.4), ("fp32", 19.5))),
    ("emulated_dma_gb_per_s_per_core", "GB/s", 368, "higher", google_benchmark("core_bench", "gb_per_s")),
    ("emulated_hbm_gb_per_s_per_stack", "GB/s", 702, "higher", google_benchmark("core_bench", "gb_per_s")),
    ("instruction_oracle_mismatches", "tests", 0, "lower", lambda _: instruction_oracle_mismatches()),
    *((f"nki_matmul_{kernel}_over_measured", "ratio", target, "lower", kernel_row)
      for kernel, target in (("tiled", 1.05), ("hoisted", 1.10), ("blocked", 1.02), ("bf16_hand", 1.10),
                             ("bf16_dma_transpose", 1.20))),
    ("nki_public_limits_kept", "limits", 5, "higher", kernel_row),
    ("nki_isa_entries_done", "entries", 35, "higher", kernel_row),
    ("protobuf_list_10000_pods_vs_json_ratio", "ratio", 1, "lower", google_benchmark("api_server_bench", "ratio")),
    ("watch_fanout_1000_events_per_s", "events/s", None, "higher", lambda _: watch_fanout()),
    *cluster.ROWS,
]


def main():
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else ".")
    lines, failed = [], 0
    for name, unit, target, better, how in ROWS:
        if not wanted.search(name):
            continue
        try:
            value = how(name)
        except Skipped as why:
            print(f"{name:40} skipped: {why}", flush=True)
            continue
        except (subprocess.CalledProcessError, OSError, KeyError, IndexError) as error:
            print(f"{name:40} FAILED: {error}", flush=True)
            failed += 1
            continue
        goal = f"target {'≥' if better == 'higher' else '≤'} {target}" if target is not None else ""
        print(f"{name:40} {value:12,.{1 if value >= 10 else 3}f} {unit:9} {goal}", flush=True)
        lines.append("\t".join([name, f"{value:.3f}", unit, "" if target is None else str(target), better]))
    path = ROOT / "build/bench.tsv"
    path.write_text("\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
