#!/usr/bin/env python3
"""Runs Tahoma on this machine: a controller and the simulated nodes of a topology.

    up.py DIR [--bin BIN] [--topology FILE] [--kubeconfig FILE [--kubelets FOLDER]] [--time-scale N] [--quiet]
    down.py DIR

Without --kubeconfig the controller also serves the Kubernetes API (standalone mode), on a free port
of loopback, to whoever shows a token: DIR/admin.token, which DIR/kubeconfig names, may do everything;
each node has one of its own that reaches what belongs to the node. The API has a certificate, as kubectl
sends tokens over TLS only. With --kubeconfig, the controller and the nodes use the API server that
the file names; with --kubelets, pods are run by real kubelets, whose folders FOLDER/NODE are laid out as by
tests/cluster/node.py; FOLDER/NODE/plugin.kubeconfig, where there is one, is for the node's dra-plugin. State, logs, sockets, tokens and configuration files go to DIR, which must be new or
stopped and is made private (0700); DIR/kubeconfig is what kubectl and clients of Kubernetes need. DIR/tahoma.env
is for a shell, which `. DIR/tahoma.env` logs in: KUBECONFIG, PATH with kubectl, `kubectl tahoma` and the
tools, ADMIN, NODES (the nodes' folders), and of the standalone API TOKEN, CA and what AWS's programs need to buy Capacity Blocks
(DIR/aws.env has that part alone). The end of the output names the file.
With --time-scale 1440, in a new DIR, a day of Capacity Blocks takes a minute.
As root, pods run as users of their own, in a folder of /tmp that down.py removes; otherwise they run
as you do.
"""

import argparse
import hashlib
import hmac
import json
import os
import pathlib
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
READY_TIMEOUT_SECONDS = 60
AWS_IMAGES = ("jax-training-neuronx", "pytorch-inference-neuronx", "pytorch-inference-vllm-neuronx", "pytorch-training-neuronx")
# Images that people try a cluster with: a shell and the machine's own programs stand for them.
USUAL_IMAGES = [place + name for name in ("alpine", "busybox", "debian", "ubuntu") for place in ("", "docker.io/library/")]
USUAL_PROGRAMS = ("awk", "base64", "basename", "cat", "chmod", "cp", "cut", "date", "dd", "df", "dirname", "du", "echo", "env",
                  "expr", "find", "grep", "gzip", "head", "hostname", "id", "kill", "ln", "ls", "mkdir", "mktemp", "mv", "nproc",
                  "printenv", "printf", "ps", "pwd", "readlink", "rm", "sed", "seq", "sort", "stat", "stty", "tail", "tar",
                  "tee", "test", "timeout", "touch", "tr", "tty", "uname", "uniq", "wc", "which", "whoami", "xargs", "yes")


def say(args, text):
    if not args.quiet:
        print(text, flush=True)


def fail(text):
    print(f"up.py: {text}", file=sys.stderr)
    sys.exit(1)


def start(directory, name, command, env=None):
    """Starts a program in a session of its own; its log and process id go to DIR."""
    (directory / "log").mkdir(exist_ok=True)
    (directory / "pids").mkdir(exist_ok=True)
    with open(directory / "log" / f"{name}.log", "ab") as log:
        child = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=log, start_new_session=True, env={**os.environ, **(env or {})})
    (directory / "pids" / name).write_text(f"{child.pid}\n")
    return child


def last_lines(directory, name, count=5):
    try:
        return "\n".join((directory / "log" / f"{name}.log").read_text().splitlines()[-count:])
    except OSError:
        return ""


def wait_until(directory, what, condition, children):
    """Polls `condition`; a child that ends meanwhile is the error to show."""
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        for name, child in children.items():
            if child.poll() is not None:
                fail(f"{name} ended with status {child.returncode}:\n{last_lines(directory, name)}")
        if condition():
            return
        time.sleep(0.05)
    fail(f"{what} did not happen within {READY_TIMEOUT_SECONDS} s; see {directory}/log")


def kubectl(kubeconfig, *arguments):
    command = [os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", str(kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def kubectl_folder():
    """The folder of the kubectl that is used here; the user's own may be missing or too old."""
    found = shutil.which(os.environ.get("KUBECTL", "kubectl"))
    return pathlib.Path(found).absolute().parent if found else fail("there is no kubectl; set KUBECTL to its path")


def short(directory, name):
    """A node's own folder. Unix socket paths have at most 107 bytes, so the folders are short."""
    path = directory / "n" / name
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)  # the plugin's socket and the links to other nodes are in it
    return path


def pods_folder(directory):
    """Where users of pods can go: DIR may be closed to all but its owner, whatever is above it too."""
    kept = directory / "pods-folder"
    if kept.exists() and pathlib.Path(kept.read_text().strip()).is_dir():
        return pathlib.Path(kept.read_text().strip())
    path = pathlib.Path(tempfile.mkdtemp(prefix="tahoma-pods-", dir="/tmp"))
    path.chmod(0o711)
    kept.write_text(f"{path}\n")
    return path


def write_private(path, text):
    """For this user alone, from its first byte on."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    return path


def token_file(path):
    """A secret that pods, which reach loopback too, cannot read. Made once and kept, without an end of line:
    clients put the whole file into a header. Earlier versions wrote one."""
    kept = path.read_text() if path.exists() else secrets.token_hex(16)
    return path if path.exists() and kept == kept.strip() else write_private(path, kept.strip())


def log_token_file(directory, node):
    """The token that the node's log server takes: the controller derives it of its secret and the node's name."""
    secret = token_file(directory / "node-logs.secret").read_bytes().strip()
    token = hmac.new(secret, f"node-logs/{node['name']}".encode(), hashlib.sha256).hexdigest()
    return write_private(short(directory, node["name"]) / "logs.token", token)


def certificate(directory):
    """The files of a certificate for loopback and of its key, made at the first start."""
    cert, key = directory / "tls.crt", directory / "tls.key"
    if not cert.exists():
        write_private(key, "")  # openssl keeps the mode of a file that exists
        # CA:FALSE, because clients on rustls refuse an authority's certificate as a server's.
        config = ("[req]\ndistinguished_name = dn\nx509_extensions = server\n[dn]\n[server]\nbasicConstraints = critical, CA:FALSE\n"
                  "subjectAltName = IP:127.0.0.1, DNS:localhost\n")
        done = subprocess.run(["openssl", "req", "-x509", "-config", "/dev/stdin", "-newkey", "ec", "-pkeyopt",
                               "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days", "3650", "-subj", "/CN=tahoma"],
                              input=config, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fail(f"openssl made no certificate:\n{done.stderr}")
    return cert, key


def identity_file(directory, topology):
    """Who may call besides the administrator: each node, with a token of its own."""
    nodes = [{"name": f"system:node:{node['name']}", "role": "node",
              "tokenSha256": hashlib.sha256(token_file(short(directory, node["name"]) / "token").read_bytes().strip()).hexdigest()}
             for node in topology["nodes"]]
    return write_private(directory / "identities.yaml", json.dumps(
        {"apiVersion": "tahoma.dev/v1alpha1", "kind": "IdentityFile", "identities": nodes}, indent=2) + "\n")


def access_key(directory):
    """One access key for EC2's API, whose blocks belong to the namespace default; and what AWS's programs need to use it."""
    file = directory / "access-keys.yaml"
    if not file.exists():
        write_private(file, json.dumps({"apiVersion": "tahoma.dev/v1alpha1", "kind": "AccessKeyFile", "accessKeys": [
            {"accessKeyId": f"AKIA{secrets.token_hex(8).upper()}", "secretAccessKey": secrets.token_hex(20),
             "name": "local", "account": "111122223333", "role": "admin"}]}, indent=2) + "\n")
    return file


def exports(values):
    return "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in values.items())


def aws_environment(directory, admin):
    """What the aws CLI, boto3 and other SDKs read."""
    key = json.loads((directory / "access-keys.yaml").read_text())["accessKeys"][0]
    return exports({
        "AWS_ACCESS_KEY_ID": key["accessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["secretAccessKey"],
        "AWS_DEFAULT_REGION": "us-east-2",
        "AWS_ENDPOINT_URL_EC2": admin,
        "AWS_ENDPOINT_URL_STS": admin,
        "AWS_CA_BUNDLE": directory / "tls.crt",
    })


def write_environment(args, directory, kubeconfig):
    """DIR/tahoma.env, by which a shell is logged in, and DIR/aws.env, which is a part."""
    ports = dict(line.split(": ", 1) for line in (directory / "ports.yaml").read_text().splitlines())
    admin = f"{'http' if args.kubeconfig else 'https'}://{ports['adminAddress']}"
    text = exports({"KUBECONFIG": kubeconfig, "ADMIN": admin, "NODES": directory / "n"})
    text += f"export PATH={shlex.quote(f'{args.bin}:{kubectl_folder()}')}:\"$PATH\"\n"
    if not args.kubeconfig:
        text += exports({"TOKEN": (directory / "admin.token").read_text(), "CA": directory / "tls.crt"})
        text += write_private(directory / "aws.env", aws_environment(directory, admin)).read_text()
    write_private(directory / "tahoma.env", text)


def node_kubeconfig(directory, node):
    """The administrator's kubeconfig with the node's token in it."""
    config = json.loads((directory / "kubeconfig").read_text())
    place = short(directory, node["name"])
    config["users"][0]["user"] = {"tokenFile": str(place / "token")}
    return write_private(place / "kubeconfig", json.dumps(config, indent=2) + "\n")


def kubelet_folders(args, directory, node):
    """Where the node's kubelet, or the pod runner in its place, looks for plugins and CDI files."""
    if args.kubelets:
        place = args.kubelets / node["name"]
        return {"registryDir": str(place / "root" / "plugins_registry"), "cdiDir": str(place / "cdi")}
    place = short(directory, node["name"])
    return {"registryDir": str(place / "reg"), "cdiDir": str(place / "cdi")}


def pod_runner_config(args, directory, node, kubeconfig, pods):
    """What runs the node's pods where it has no kubelet."""
    programs = {name: str(args.bin / name) for name in ("neuron-ls", "neuron-monitor", "neuron-top", "nccom-test", "trn-mem", "trn-run")}
    shell = {name: f"/bin/{name}" for name in ("bash", "sh", "sleep", "true", "false")}
    usual = {name: found for name in USUAL_PROGRAMS if (found := shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin"))}
    python = {name: "/usr/bin/python3" for name in ("python", "python3")}
    aws = [f"public.ecr.aws/neuron/{name}" for name in AWS_IMAGES]  # of every tag
    cluster = bool(args.kubeconfig)
    return {
        "enabled": True,
        "kubeconfig": str(kubeconfig),
        **kubelet_folders(args, directory, node),
        "podsDir": str(pods),
        "podUser": "own" if os.geteuid() == 0 else "same",
        "logTokenFile": "" if cluster else str(log_token_file(directory, node)),
        "logTls": cluster,  # kube-apiserver wants TLS of kubelets, the standalone API does not
        "images": {
            "tahoma.dev/workload:v1": {"commands": {**programs, **shell}},
            "public.ecr.aws/ubuntu/ubuntu:22.04": {"commands": shell},
            **{image: {"commands": {**programs, **shell, **python}} for image in aws},
            **{image: {"commands": {**shell, **usual}, "defaultCommand": ["sh"]} for image in USUAL_IMAGES},
        },
    }


def node_config(args, directory, topology, node, kubeconfig):
    place = short(directory, node["name"])
    pods = pods_folder(directory) / node["name"]
    pods.mkdir(mode=0o711, exist_ok=True)
    config = {
        "apiVersion": "tahoma.dev/v1alpha1",
        "kind": "SimNodeConfig",
        "nodeName": node["name"],
        "instanceType": node["instanceType"],
        "networkLayers": topology["networkLayers"],
        "nodeSocket": str(place / "node.sock"),
        "workloadSocket": str(pods / "socket" / "workload.sock"),
        "linkAddress": f"unix:{place / 'link.sock'}",
        "adminAddress": "127.0.0.1:0",
        "adminTokenFile": str(token_file(place / "admin.token")),
        "portFile": str(place / "ports.yaml"),
        "stateDir": str(place / "state"),
    }
    if "driverVersion" in node:
        config["driverVersion"] = node["driverVersion"]
    if not args.kubelets:
        config["podRunner"] = pod_runner_config(args, directory, node, kubeconfig, pods)
    if "ultraServer" in node:
        peers = [n for n in topology["nodes"]
                 if n.get("ultraServer", {}).get("id") == node["ultraServer"]["id"]
                 and n["name"] != node["name"]]
        config["ultraServer"] = {
            "id": node["ultraServer"]["id"],
            "nodeId": node["ultraServer"]["nodeId"],
            "peers": [{"nodeId": p["ultraServer"]["nodeId"],
                       "address": f"unix:{short(directory, p['name']) / 'link.sock'}"}
                      for p in peers],
        }
    outside = [n for n in topology["nodes"] if domain(n) != domain(node)]
    if outside:
        config["efa"] = {
            "address": f"unix:{place / 'efa.sock'}",
            "peers": [{"nodeName": n["name"], "address": f"unix:{short(directory, n['name']) / 'efa.sock'}"}
                      for n in outside],
        }
    return config


def domain(node):
    """Returns the node's topology domain: its UltraServer, or the node itself."""
    return node["ultraServer"]["id"] if "ultraServer" in node else node["name"]


def plugin_config(args, directory, node, kubeconfig):
    place = short(directory, node["name"])
    own = args.kubelets / node["name"] / "plugin.kubeconfig" if args.kubelets else None
    if own and own.exists():
        kubeconfig = own
    return {
        "apiVersion": "tahoma.dev/v1alpha1",
        "kind": "DraPluginConfig",
        "nodeName": node["name"],
        "kubeconfig": str(kubeconfig),
        "nodeSocket": str(place / "node.sock"),
        "pluginDir": str(place / "plug"),
        **kubelet_folders(args, directory, node),
        "labelNode": bool(args.kubelets),  # the pod runner labels its own
    }


def write_config(path, config):
    path.write_text(json.dumps(config, indent=2) + "\n")  # JSON is YAML
    return path


def start_controller(args, directory, topology):
    config = {
        "apiVersion": "tahoma.dev/v1alpha1",
        "kind": "ControllerConfig",
        "dataDir": str(directory / "data"),
        "adminAddress": "127.0.0.1:0",
        "auditFile": str(directory / "audit.log"),
        "portFile": str(directory / "ports.yaml"),
        "crdDir": str(ROOT / "charts/tahoma/crds"),
    }
    if args.scheduler_names:
        config["schedulerNames"] = args.scheduler_names.split(",")
    if args.kubeconfig:
        config["kubeconfig"] = str(args.kubeconfig)
    else:
        cert, key = certificate(directory)
        config.update(tlsCertFile=str(cert), tlsKeyFile=str(key))
        config.update(standalone=True, listenAddress="127.0.0.1:0",
                      nodeTokenFile=str(token_file(directory / "node-logs.secret")),
                      tokenFile=str(token_file(directory / "admin.token")),
                      accessKeyFile=str(access_key(directory)),
                      writeKubeconfig=str(directory / "kubeconfig"))
        if args.time_scale != 1:
            config["timeScale"] = args.time_scale
        if topology["nodes"]:
            config["identityFile"] = str(identity_file(directory, topology))
    (directory / "ports.yaml").unlink(missing_ok=True)  # of an earlier start
    path = write_config(directory / "controller.yaml", config)
    return start(directory, "controller", [args.bin / "controller", "--config", path])


def all_published(kubeconfig, nodes):
    """Every node is Ready and has published its devices."""
    ready = kubectl(kubeconfig, "get", "nodes", "-o",
                    "jsonpath={range .items[*]}{.metadata.name} "
                    "{.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}{end}")
    slices = kubectl(kubeconfig, "get", "resourceslices", "-o",
                     "jsonpath={range .items[*]}{.spec.pool.name}{\"\\n\"}{end}")
    wanted = {n["name"] for n in nodes}
    is_ready = {line.split()[0] for line in ready.stdout.splitlines() if line.endswith(" True")}
    return wanted <= is_ready and wanted <= set(slices.stdout.split())


def parse_arguments():
    parser = argparse.ArgumentParser(description="Run Tahoma on this machine.")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")))
    parser.add_argument("--topology", type=pathlib.Path, default=HERE / "topology.json")
    parser.add_argument("--kubeconfig", type=pathlib.Path)
    parser.add_argument("--kubelets", type=pathlib.Path, help="the folder of the nodes' kubelets")
    parser.add_argument("--scheduler-names", help="the controller's schedulerNames, between commas")
    parser.add_argument("--time-scale", type=int, default=1, help="how fast Capacity Blocks live; for tests")
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    if args.kubelets and not args.kubeconfig:
        fail("--kubelets needs --kubeconfig: kubelets belong to a cluster")
    args.bin = args.bin.resolve()
    if not (args.bin / "controller").exists():
        fail(f"there is no controller in {args.bin}; build it first: make build")
    return args


def main():
    args = parse_arguments()
    directory = args.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)  # tokens, keys and everybody's Secrets are in it
    if (directory / "pids").exists() and any((directory / "pids").iterdir()):
        fail(f"{directory} is in use; stop it first: examples/local/down.py {directory}")
    topology = json.loads(args.topology.read_text())

    children = {"controller": start_controller(args, directory, topology)}
    kubeconfig = args.kubeconfig or directory / "kubeconfig"
    wait_until(directory, "the controller's API",
               lambda: (directory / "ports.yaml").exists() and kubectl(kubeconfig, "get", "--raw", "/readyz").returncode == 0,
               children)
    say(args, "  controller is up")
    write_environment(args, directory, kubeconfig)
    for node in topology["nodes"]:
        name = node["name"]
        place = short(directory, name)
        its_kubeconfig = args.kubeconfig or node_kubeconfig(directory, node)
        path = write_config(place / "sim-node.yaml",
                            node_config(args, directory, topology, node, its_kubeconfig))
        children[f"{name}.sim-node"] = start(directory, f"{name}.sim-node",
                                             [args.bin / "sim-node", "--config", path])
        path = write_config(place / "dra-plugin.yaml", plugin_config(args, directory, node, its_kubeconfig))
        children[f"{name}.dra-plugin"] = start(directory, f"{name}.dra-plugin",
                                               [args.bin / "dra-plugin", "--config", path])
    wait_until(directory, "the nodes' devices", lambda: all_published(kubeconfig, topology["nodes"]),
               children)
    say(args, f"  {len(topology['nodes'])} simulated nodes are ready")
    say(args, f"\nLook around with:  . {shlex.quote(str(directory / 'tahoma.env'))}; kubectl get nodes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
