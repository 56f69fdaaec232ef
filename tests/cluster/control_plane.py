#!/usr/bin/env python3
"""Starts or stops a real Kubernetes control plane on free loopback ports, or restores it from a backup.

    control_plane.py up DIR [--accounts] [--servers FOLDER] [--feature-gates GATE=true,…] [--runtime-config GROUP/VERSION=true,…]
                                         prints the path of an administrator's KUBECONFIG
    control_plane.py save DIR FILE       writes a backup of etcd
    control_plane.py restore DIR FILE    stops everything, puts the backup in etcd's place, and starts it again
    control_plane.py default-gates DIR   starts both servers again with the feature gates that their version has by default
    control_plane.py down DIR

etcd, kube-apiserver and kube-controller-manager come from build_tools.sh (folder in $KUBERNETES_BIN); --servers has
the latter two of another version.
There is no kube-scheduler and no kubelet: Tahoma's controller and pod runner are in their places. With --accounts pods
have the default service account and its token, as real kubelets expect, and `up` waits until it is there.
"""

import argparse
import base64
import json
import os
import pathlib
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import ssl

HERE = pathlib.Path(__file__).resolve().parent
READY_TIMEOUT_SECONDS = 120
STOP_TIMEOUT_SECONDS = 60
SERVICE_NETWORK = "10.96.0.0/16"


def run(*command, **options):
    subprocess.run([str(c) for c in command], check=True, stderr=subprocess.DEVNULL, **options)


class Keys:
    """A certificate authority of our own and what it signs, in a folder; one that exists is used again."""

    def __init__(self, folder):
        self.folder = folder
        if folder.exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "30", "-keyout", folder / "ca.key", "-out", folder / "ca.crt", "-subj", "/CN=test-ca",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature")
        run("openssl", "genrsa", "-out", folder / "sa.key", "2048")

    def path(self, name):
        return self.folder / name

    def sign(self, name, subject, alt_names=None):
        extensions = self.folder / f"{name}.ext"
        extensions.write_text("extendedKeyUsage=serverAuth,clientAuth\n" +
                              (f"subjectAltName={alt_names}\n" if alt_names else ""))
        request = self.folder / f"{name}.csr"
        run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", self.path(f"{name}.key"), "-out", request, "-subj", subject)
        run("openssl", "x509", "-req", "-in", request, "-CA", self.path("ca.crt"), "-CAkey",
            self.path("ca.key"), "-days", "30", "-out", self.path(f"{name}.crt"), "-set_serial",
            "0x" + secrets.token_hex(8), "-extfile", extensions)

    def kubeconfig(self, user, port, target, token=None):
        """Of a user who has signed keys, or a token."""
        def inline(name):
            return base64.b64encode(self.path(name).read_bytes()).decode()
        if token:
            credentials = f"token: {token}"
        else:
            credentials = f"client-certificate-data: {inline(user + '.crt')}, client-key-data: {inline(user + '.key')}"
        target.write_text(f"""apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster: {{server: "https://127.0.0.1:{port}", certificate-authority-data: {inline("ca.crt")}}}
users:
- name: {user}
  user: {{{credentials}}}
contexts:
- name: test
  context: {{cluster: test, user: {user}}}
""")
        return target


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start(directory, name, *command):
    """Starts a program, and keeps its command line so that it can be started again."""
    for sub in ("log", "pids", "commands"):
        (directory / sub).mkdir(exist_ok=True)
    (directory / "commands" / name).write_text(json.dumps([str(c) for c in command]))
    with open(directory / "log" / f"{name}.log", "ab") as log:
        child = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=log, start_new_session=True)
    (directory / "pids" / name).write_text(f"{child.pid}\n")
    return child


def start_again(directory, name):
    return start(directory, name, *json.loads((directory / "commands" / name).read_text()))


def stop(directory, name):
    """Kills a program that another run of this script has started: kube-apiserver waits a minute for watches to end."""
    file = directory / "pids" / name
    ended = os.pidfd_open(int(file.read_text()))
    signal.pidfd_send_signal(ended, signal.SIGKILL)
    if not select.select([ended], [], [], STOP_TIMEOUT_SECONDS)[0]:
        sys.exit(f"{name} did not end within {STOP_TIMEOUT_SECONDS} s")
    os.close(ended)
    file.unlink()


def wait_for(url, keys, child, log):
    """Polls a URL with the administrator's certificate until it answers 200."""
    context = ssl.create_default_context(cafile=str(keys.path("ca.crt")))
    context.load_cert_chain(keys.path("admin.crt"), keys.path("admin.key"))
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with urllib.request.urlopen(url, context=context, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url} did not answer within {READY_TIMEOUT_SECONDS} s:\n{log.read_text()[-2000:]}")


def up(directory, accounts, servers=None, feature_gates=None, runtime_config=None):
    binaries = pathlib.Path(os.environ["KUBERNETES_BIN"])
    servers = servers or binaries
    gates = ["--feature-gates", feature_gates] if feature_gates else []
    served = ["--runtime-config", runtime_config] if runtime_config else []
    directory.mkdir(parents=True, exist_ok=True)
    keys = Keys(directory / "pki")
    keys.sign("apiserver", "/CN=kube-apiserver",
              "IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc")
    keys.sign("admin", "/O=system:masters/CN=test-admin")
    keys.sign("kcm", "/CN=system:kube-controller-manager")
    etcd_port, peer_port, port = free_ports(3)
    admin = keys.kubeconfig("admin", port, directory / "kubeconfig")
    kcm = keys.kubeconfig("kcm", port, directory / "kcm.kubeconfig")

    peer = f"http://127.0.0.1:{peer_port}"
    client = f"http://127.0.0.1:{etcd_port}"
    start(directory, "etcd", binaries / "etcd", "--data-dir", directory / "etcd", "--unsafe-no-fsync",
          "--log-level", "warn", "--listen-client-urls", client, "--advertise-client-urls", client,
          "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
          "--initial-cluster", f"default={peer}")
    server = start(
        directory, "kube-apiserver", servers / "kube-apiserver", *gates, *served, "--etcd-servers", client,
        "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
        "--endpoint-reconciler-type", "none", "--secure-port", port,
        "--tls-cert-file", keys.path("apiserver.crt"), "--tls-private-key-file", keys.path("apiserver.key"),
        "--client-ca-file", keys.path("ca.crt"),
        # The API server fetches `kubectl logs` from our pod runner as from a kubelet.
        "--kubelet-client-certificate", keys.path("admin.crt"), "--kubelet-client-key", keys.path("admin.key"),
        "--kubelet-preferred-address-types", "InternalIP",
        "--service-account-issuer", "https://kubernetes.default.svc",
        "--service-account-key-file", keys.path("sa.key"),
        "--service-account-signing-key-file", keys.path("sa.key"),
        "--service-cluster-ip-range", SERVICE_NETWORK, "--authorization-mode", "Node,RBAC",
        "--enable-admission-plugins", "NodeRestriction",
        # Without it pods may be created at once: the default service account comes a second later.
        *([] if accounts else ["--disable-admission-plugins", "ServiceAccount"]))
    wait_for(f"https://127.0.0.1:{port}/readyz", keys, server, directory / "log" / "kube-apiserver.log")
    start(directory, "kube-controller-manager", servers / "kube-controller-manager", *gates, "--kubeconfig", kcm,
          "--leader-elect=false", "--secure-port", "0", "--kube-api-qps", "500", "--kube-api-burst", "1000",
          "--use-service-account-credentials", "--service-account-private-key-file", keys.path("sa.key"),
          "--root-ca-file", keys.path("ca.crt"), "--cluster-signing-cert-file", keys.path("ca.crt"),
          "--cluster-signing-key-file", keys.path("ca.key"))
    if accounts:
        run(os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", admin, "wait", "--for=create",
            "serviceaccount/default", f"--timeout={READY_TIMEOUT_SECONDS}s", stdout=subprocess.DEVNULL)
    print(admin)


def port_of(directory):
    """The port of the API server, as it was started."""
    command = json.loads((directory / "commands" / "kube-apiserver").read_text())
    return command[command.index("--secure-port") + 1]


def etcd_options(directory):
    """The options of etcd's command line, by name."""
    command = json.loads((directory / "commands" / "etcd").read_text())
    return {name: value for name, value in zip(command, command[1:]) if name.startswith("--")}


def save(directory, file):
    run(pathlib.Path(os.environ["KUBERNETES_BIN"]) / "etcdctl", "--endpoints",
        etcd_options(directory)["--advertise-client-urls"], "snapshot", "save", file, stdout=subprocess.DEVNULL)


def restore(directory, file):
    """The addresses stay as they were. Versions of objects go back to those of the backup."""
    for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
        stop(directory, name)
    options = etcd_options(directory)
    shutil.rmtree(directory / "etcd")
    run(pathlib.Path(os.environ["KUBERNETES_BIN"]) / "etcdutl", "snapshot", "restore", file,
        "--data-dir", directory / "etcd", "--initial-cluster", options["--initial-cluster"],
        "--initial-advertise-peer-urls", options["--initial-advertise-peer-urls"], stdout=subprocess.DEVNULL)
    start_again(directory, "etcd")
    server = start_again(directory, "kube-apiserver")
    wait_for(f"https://127.0.0.1:{port_of(directory)}/readyz", Keys(directory / "pki"), server,
             directory / "log" / "kube-apiserver.log")
    start_again(directory, "kube-controller-manager")


def default_gates(directory):
    """As an administrator turns them on. The address stays as it was."""
    names = ("kube-apiserver", "kube-controller-manager")
    for name in reversed(names):
        file = directory / "commands" / name
        command = json.loads(file.read_text())
        at = command.index("--feature-gates")
        file.write_text(json.dumps(command[:at] + command[at + 2:]))
        stop(directory, name)
    server = start_again(directory, names[0])
    wait_for(f"https://127.0.0.1:{port_of(directory)}/readyz", Keys(directory / "pki"), server,
             directory / "log" / "kube-apiserver.log")
    start_again(directory, names[1])


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Start or stop a real Kubernetes control plane.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("up", "down", "save", "restore", "default-gates"):
        commands.add_parser(name).add_argument("directory", type=lambda text: pathlib.Path(text).resolve())
    commands.choices["up"].add_argument("--accounts", action="store_true")
    commands.choices["up"].add_argument("--servers", type=pathlib.Path)
    commands.choices["up"].add_argument("--feature-gates")
    commands.choices["up"].add_argument("--runtime-config")
    for name in ("save", "restore"):
        commands.choices[name].add_argument("file", type=lambda text: pathlib.Path(text).resolve())
    args = parser.parse_args(arguments)
    if args.command == "up":
        up(args.directory, args.accounts, args.servers, args.feature_gates, args.runtime_config)
    elif args.command == "down":
        return subprocess.call([sys.executable, HERE.parent.parent / "examples/local/down.py", args.directory])
    elif args.command == "save":
        save(args.directory, args.file)
    elif args.command == "default-gates":
        default_gates(args.directory)
    else:
        restore(args.directory, args.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
