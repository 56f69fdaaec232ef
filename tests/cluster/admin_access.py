#!/usr/bin/env python3
"""A real cluster decides who may read the admin API of a controller that asks it (adminAsksCluster).

    admin_access.py         needs what the cluster's scenarios need: KUBERNETES_BIN, TAHOMA_BIN, kubectl
"""

import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import control_plane
from kubectl import kubectl as run_kubectl, until
from verdict import Failure, judge

ROOT = control_plane.HERE.parent.parent
UNTIL_SECONDS = 60

READER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: admin-reader}
rules:
- {nonResourceURLs: ["/v1/topology", "/metrics"], verbs: ["get"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: admin-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin-reader}
subjects:
- {kind: ServiceAccount, name: reader, namespace: default}
"""


def start_controller(directory, kubeconfig):
    """Starts a controller and returns the URL of its admin API."""
    binary = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")) / "controller"
    ports = directory / "ports.yaml"
    child = control_plane.start(directory, "controller", binary, "--kubeconfig", kubeconfig, "--data-dir",
                                directory / "data", "--admin-address", "127.0.0.1:0", "--port-file", ports,
                                "--admin-asks-cluster")
    until("the controller serves its admin API", lambda: ports.exists() or child.poll() is not None, UNTIL_SECONDS)
    if not ports.exists():
        raise Failure("the controller ended before it served its admin API")
    return "http://" + re.search(r"adminAddress: (\S+)", ports.read_text())[1]


def ask(url, token=None):
    """The status of a GET, and the body."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        raise Failure(f"GET {url}: {error}") from error


def expect(status, answer):
    if answer[0] != status:
        raise Failure(f"expected {status}, got {answer[0]}: {answer[1]}")


def check(directory):
    done = subprocess.run([sys.executable, control_plane.HERE / "control_plane.py", "up", directory / "k"],
                          check=True, stdout=subprocess.PIPE, text=True)
    kubeconfig = done.stdout.strip()
    url = start_controller(directory / "k", kubeconfig)

    kubectl = functools.partial(run_kubectl, kubeconfig=kubeconfig)
    kubectl("create", "serviceaccount", "reader")
    token = kubectl("create", "token", "reader").strip()
    expect(401, ask(f"{url}/v1/topology"))
    expect(401, ask(f"{url}/v1/topology", "no.such.token"))
    expect(403, ask(f"{url}/v1/topology", token))
    kubectl("apply", "-f", "-", given=READER)
    until("the right is seen", lambda: ask(f"{url}/v1/topology", token)[0] == 200, UNTIL_SECONDS)
    expect(200, ask(f"{url}/metrics", token))
    expect(403, ask(f"{url}/v1/nodes", token))
    control_plane.stop(directory / "k", "kube-apiserver")
    expect(200, ask(f"{url}/metrics", token))
    unasked = ask(f"{url}/v1/gangs", token)
    expect(503, unasked)
    if "the cluster cannot be asked" not in unasked[1]:
        raise Failure(f"503 does not say why: {unasked[1]}")


def check_in_a_cluster():
    with tempfile.TemporaryDirectory(prefix="th") as scratch:
        directory = pathlib.Path(scratch)
        try:
            check(directory)
        except (Failure, subprocess.CalledProcessError) as problem:
            log = directory / "k/log/controller.log"
            end = log.read_text()[-2000:] if log.exists() else "it was not started"
            raise Failure(f"{problem}\nthe controller's log ends with:\n{end}") from problem
        finally:
            subprocess.call([sys.executable, str(ROOT / "examples/local/down.py"), str(directory / "k")])


if __name__ == "__main__":
    sys.exit(judge("admin-access", "the cluster says who may read the admin API", check_in_a_cluster))
