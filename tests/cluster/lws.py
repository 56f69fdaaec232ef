"""Starts the controller of LeaderWorkerSets beside a control plane of control_plane.py.

    lws.start(pathlib.Path("DIR"))          # the control plane's folder; down.py stops it with the others

The program is of build_tools.sh tools-lws (folder in $LWS_BIN). Its kinds and webhooks are those of its Go module, but
the API server reaches the webhooks on loopback, with a certificate of the control plane's authority.
"""

import base64
import functools
import json
import os
import pathlib
import subprocess

import control_plane
from kubectl import kubectl as run_kubectl, until

MODULE = pathlib.Path(__file__).resolve().parent / "tools-lws"


def objects_of(text):
    """The objects that kubectl prints one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        made, at = decoder.raw_decode(text, at)
        yield from made["items"] if made["kind"] == "List" else [made]
        while at < len(text) and text[at].isspace():
            at += 1


def webhooks(kubectl, module, port, authority):
    """The module's webhook configurations, for a server on loopback."""
    text = kubectl("kustomize", module / "config/webhook")
    for made in objects_of(kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", given=text)):
        if not made["kind"].endswith("WebhookConfiguration"):
            continue  # the Service
        made["metadata"] = {"name": "lws-" + made["metadata"]["name"]}
        for webhook in made["webhooks"]:
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{webhook['clientConfig']['service']['path']}",
                                       "caBundle": base64.b64encode(authority.read_bytes()).decode()}
        yield made


def start(directory):
    listed = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/lws"], cwd=MODULE, text=True,
                            stdout=subprocess.PIPE, check=True)
    module = pathlib.Path(listed.stdout.strip())
    keys = control_plane.Keys(directory / "pki")
    keys.sign("lws", "/CN=lws", "IP:127.0.0.1")
    certificates = directory / "lws"
    certificates.mkdir()
    for ending in ("crt", "key"):
        (certificates / f"tls.{ending}").write_bytes(keys.path(f"lws.{ending}").read_bytes())
    port, = control_plane.free_ports(1)
    config = certificates / "config.yaml"
    config.write_text(json.dumps({
        "apiVersion": "config.lws.x-k8s.io/v1alpha1", "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
        "metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": "0"},
        "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False}}))
    kubectl = functools.partial(run_kubectl, kubeconfig=directory / "kubeconfig")
    kubectl("apply", "--server-side", "-f", module / "config/crd/bases")
    # `kubectl wait` would fail where the definitions have no conditions yet.
    until("the kinds are served", lambda: "leaderworkersets" in (served := kubectl("api-resources", "--output", "name"))
          and "disaggregatedsets" in served, control_plane.READY_TIMEOUT_SECONDS)
    made = list(webhooks(kubectl, module, port, keys.path("ca.crt")))
    kubectl("apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": made})
    return control_plane.start(directory, "lws-controller", pathlib.Path(os.environ["LWS_BIN"]) / "lws-controller",
                               "--config", config, "--kubeconfig", directory / "kubeconfig")
