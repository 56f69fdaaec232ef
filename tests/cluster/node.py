#!/usr/bin/env python3
"""Starts or stops real nodes, each a kubelet with a containerd, beside a control plane of control_plane.py.

    node.py up DIR NAME… [--share FOLDER] [--sync-frequency 1m] [--max-pods 110]
                                            DIR: the control plane's folder. Prints a line for each node that is Ready
    node.py down DIR                        stops them all and what runs in their containers
    node.py kill-containers DIR NAME        as a reboot does, while the node's kubelet is stopped
    node.py import DIR IMAGE                gives every node the image of a docker-archive file

Each node has a folder DIR/nodes/NAME: root/ is its kubelet's (plugins_registry, plugins), cdi/ its CDI specs,
containerd.sock its runtime. Its pods have addresses of a bridge, 10.244.N.0/24, whose first is the node's. Every
container sees FOLDER, at the same path, and cannot write there. Run it as root in a network namespace of its own
(unshare --net), which also takes the bridges away at the end.
Programs come from build_tools.sh (folder in $KUBERNETES_BIN), runc from Debian.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import control_plane
import image
from kubectl import kubectl

READY_TIMEOUT_SECONDS = 120
PAUSE_IMAGE = "localhost/pause:1"


def binaries():
    return pathlib.Path(os.environ["KUBERNETES_BIN"])


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"node.py: {' '.join(str(c) for c in command)} ended with status {done.returncode}:\n{done.stderr}")
    return done.stdout


def add_bridge(number):
    """The bridge of the node's pods; its address is the node's, so that a kubelet listens on it alone."""
    name, address = f"node{number}", f"10.244.{number}.1"
    run("ip", "link", "add", name, "type", "bridge")
    run("ip", "addr", "add", f"{address}/24", "dev", name)
    run("ip", "link", "set", name, "up")
    return name, address


def write_container_spec(place, share):
    """What every container begins with: containerd's own, and the shared folder."""
    spec = json.loads(run(binaries() / "ctr", "oci", "spec"))
    if share:
        spec["mounts"].append({"destination": str(share), "source": str(share), "type": "bind",
                               "options": ["rbind", "ro"]})
    (place / "spec.json").write_text(json.dumps(spec))


def write_containerd_config(place, bridge, number):
    (place / "cni").mkdir(parents=True, exist_ok=True)
    (place / "cni" / "10-bridge.conflist").write_text(json.dumps({
        "cniVersion": "1.0.0", "name": "pods", "plugins": [{
            "type": "bridge", "bridge": bridge, "isGateway": True,
            "ipam": {"type": "host-local", "dataDir": str(place / "ipam"),
                     "ranges": [[{"subnet": f"10.244.{number}.0/24"}]],
                     "routes": [{"dst": "0.0.0.0/0"}]}}]}))
    # restrict_oom_score_adj: a root without CAP_SYS_RESOURCE may not lower it.
    (place / "containerd.toml").write_text(f"""version = 3
root = '{place}/images'
state = '{place}/state'
disabled_plugins = ['io.containerd.nri.v1.nri']
[grpc]
address = '{place}/containerd.sock'
[ttrpc]
address = '{place}/containerd.ttrpc.sock'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{PAUSE_IMAGE}'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
enable_cdi = true
cdi_spec_dirs = ['{place}/cdi']
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
base_runtime_spec = '{place}/spec.json'
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{binaries()}/cni']
conf_dir = '{place}/cni'
""")


def write_kubelet_config(place, keys, name, address, args):
    keys.sign(name, f"/O=system:nodes/CN=system:node:{name}", f"IP:{address},DNS:{name}")
    # Several kubelets share the machine: none may take its cgroups, or make room on its disk.
    (place / "kubelet.yaml").write_text(json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "healthzPort": 0,
        "tlsCertFile": str(keys.path(f"{name}.crt")),
        "tlsPrivateKeyFile": str(keys.path(f"{name}.key")),
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": str(keys.path("ca.crt"))}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{place}/containerd.sock",
        "podLogsDir": str(place / "logs"),
        "syncFrequency": args.sync_frequency,
        "maxPods": args.max_pods,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
    }))


def ctr(place, *arguments):
    return run(binaries() / "ctr", "--timeout", "60s", "--address", place / "containerd.sock", "--namespace", "k8s.io",
               *arguments)


def wait_until(what, condition, child, log):
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        if condition():
            return
        time.sleep(0.1)
    sys.exit(f"{what} did not happen within {READY_TIMEOUT_SECONDS} s:\n{log.read_text()[-3000:]}")


def is_ready(directory, name):
    return kubectl("get", "node", name, "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
                   kubeconfig=directory / "kubeconfig", fails=None) == "True"


def start_node(directory, name, number, pause, args):
    place = directory / "nodes" / name
    for folder in ("root", "cdi", "logs"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    bridge, address = add_bridge(number)
    write_container_spec(place, args.share)
    write_containerd_config(place, bridge, number)
    keys = control_plane.Keys(directory / "pki")
    write_kubelet_config(place, keys, name, address, args)
    port = control_plane.port_of(directory)
    kubeconfig = keys.kubeconfig(name, port, place / "kubeconfig")

    runtime = control_plane.start(directory, f"{name}.containerd", binaries() / "containerd", "--config",
                                  place / "containerd.toml")
    log = directory / "log" / f"{name}.containerd.log"
    wait_until(f"containerd of {name}", lambda: subprocess.run(
        [binaries() / "ctr", "--address", place / "containerd.sock", "version"], capture_output=True,
        check=False).returncode == 0, runtime, log)
    ctr(place, "images", "import", pause)
    kubelet = control_plane.start(directory, f"{name}.kubelet", binaries() / "kubelet", "--config", place / "kubelet.yaml",
                                  "--kubeconfig", kubeconfig, "--root-dir", place / "root", "--cert-dir", directory / "pki",
                                  "--hostname-override", name, "--node-ip", address)
    return kubelet


def write_plugin_kubeconfig(directory, name):
    """The service account of dra-plugins, by a token that names the node as a pod's does there."""
    token = kubectl("create", "token", "tahoma-dra-plugin", "--namespace", "tahoma-system", "--bound-object-kind", "Node",
                    "--bound-object-name", name, kubeconfig=directory / "kubeconfig")
    keys = control_plane.Keys(directory / "pki")
    keys.kubeconfig("plugin", control_plane.port_of(directory), directory / "nodes" / name / "plugin.kubeconfig",
                    token=token.strip())


def up(args):
    directory = args.directory
    pause = directory / "pause.tar"
    image.write(pause, [PAUSE_IMAGE], image.with_libraries({"/bin/sleep": "/bin/sleep"}), ["/bin/sleep", "infinity"])
    kubelets = {name: start_node(directory, name, number, pause, args) for number, name in enumerate(args.names)}
    for name, kubelet in kubelets.items():
        wait_until(f"node {name} to be Ready", lambda name=name: is_ready(directory, name), kubelet,
                   directory / "log" / f"{name}.kubelet.log")
        print(f"node {name} is Ready", flush=True)


def nodes(directory):
    folder = directory / "nodes"
    return sorted(folder.iterdir()) if folder.exists() else []


def import_image(directory, file):
    for place in nodes(directory):
        ctr(place, "images", "import", file)


def shims(place):
    """The processes through which the node's containerd has its containers: theirs are their children."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if command[0].endswith(b"containerd-shim-runc-v2") and str(place / "containerd.sock").encode() in command:
            found.append(int(process.name))
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_containers(place):
    """Ends what runs in the node's containers. Their runtime is not asked: it may be dead."""
    for shim in shims(place):
        for child in pathlib.Path(f"/proc/{shim}/task/{shim}/children").read_text().split():
            kill(int(child))


def down(directory):
    """Who could start anything again goes first, and then the containers."""
    for place in nodes(directory):
        for program in ("kubelet", "containerd"):
            if (directory / "pids" / f"{place.name}.{program}").exists():
                control_plane.stop(directory, f"{place.name}.{program}")
        kill_containers(place)
        for shim in shims(place):
            kill(shim)
    for mount in reversed(pathlib.Path("/proc/self/mountinfo").read_text().splitlines()):
        point = mount.split()[4]
        if point.startswith(str(directory / "nodes") + "/"):
            subprocess.run(["umount", "--lazy", point], check=False)
    shutil.rmtree(directory / "nodes", ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="Start or stop real nodes.")
    commands = parser.add_subparsers(dest="command", required=True)
    starting, _, importing, killing = (commands.add_parser(name) for name in ("up", "down", "import", "kill-containers"))
    for command in commands.choices.values():
        command.add_argument("directory", type=lambda text: pathlib.Path(text).resolve())
    starting.add_argument("names", nargs="+", metavar="NAME")
    starting.add_argument("--sync-frequency", default="1m", help="how often a kubelet looks at a pod, whatever has happened")
    starting.add_argument("--max-pods", type=int, default=110, help="so many pods a node takes")
    starting.add_argument("--share", type=lambda text: pathlib.Path(text).resolve())
    killing.add_argument("name")
    importing.add_argument("image", type=lambda text: pathlib.Path(text).resolve())
    args = parser.parse_args()
    if args.command == "up":
        up(args)
    elif args.command == "import":
        import_image(args.directory, args.image)
    elif args.command == "kill-containers":
        kill_containers(args.directory / "nodes" / args.name)
    else:
        down(args.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
