"""Starts controllers of others beside a control plane of control_plane.py.

    others.start(pathlib.Path("DIR"), "lws")       # the control plane's folder; down.py stops it with the others

NAME is a key of CONTROLLERS. Its program is of build_tools.sh tools-NAME (folder in $NAME_BIN, in capitals); its kinds and
webhooks are those of its Go module, but the API server reaches the webhooks on loopback, with a certificate of the
control plane's authority. The MPI operator listens on port 8080, so it needs a network namespace of its own.
"""

import base64
import dataclasses
import functools
import json
import os
import pathlib
import subprocess

import control_plane
from kubectl import kubectl as run_kubectl, until

HERE = pathlib.Path(__file__).resolve().parent
# Where Kueue looks for a certificate of its metrics, whatever its configuration says.
KUEUE_METRICS = "kueue/metrics/certs"


@dataclasses.dataclass(frozen=True)
class Controller:
    """The paths are of its Go module."""

    module: str
    kinds: str
    serves: tuple  # its kinds, as in `kubectl api-resources`
    webhooks: str = ""
    config: str = ""  # the version of its configuration's file; "": it has none
    options: dict = dataclasses.field(default_factory=dict)  # of that file
    arguments: tuple = ()
    namespace: str = ""


# Kueue counts chips by what claims ask of a DeviceClass (docs/tasks/jobs.md).
KUEUE_OPTIONS = {
    "featureGates": {"VisibilityOnDemand": False, "DynamicResourceAllocation": True},
    "resources": {"deviceClassMappings": [{"name": "tahoma.dev/chips", "deviceClassNames": ["neuron.tahoma.dev"]}]},
    "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]}}
CONTROLLERS = {
    "lws": Controller("sigs.k8s.io/lws", "config/crd/bases", ("leaderworkersets", "disaggregatedsets"), "config/webhook",
                      "config.lws.x-k8s.io/v1alpha1"),
    "jobset": Controller("sigs.k8s.io/jobset", "config/components/crd/bases", ("jobsets",), "config/components/webhook",
                         "config.jobset.x-k8s.io/v1alpha1"),
    "mpi": Controller("github.com/kubeflow/mpi-operator", "manifests/base/kubeflow.org_mpijobs.yaml", ("mpijobs",),
                      arguments=("--kube-api-qps", "50", "--kube-api-burst", "100"), namespace="mpi-operator"),
    "kueue": Controller("sigs.k8s.io/kueue", "config/components/crd/bases", ("clusterqueues", "localqueues", "workloads"),
                        "config/components/webhook", "config.kueue.x-k8s.io/v1beta2", KUEUE_OPTIONS, namespace="kueue-system"),
}


def objects_of(text):
    """The objects that kubectl prints one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        made, at = decoder.raw_decode(text, at)
        yield from made["items"] if made["kind"] == "List" else [made]
        while at < len(text) and text[at].isspace():
            at += 1


def webhooks(kubectl, name, folder, port, authority):
    """The module's webhook configurations, for a server on loopback."""
    text = kubectl("kustomize", folder)
    for made in objects_of(kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", given=text)):
        if not made["kind"].endswith("WebhookConfiguration"):
            continue  # the Service
        made["metadata"] = {"name": f"{name}-{made['metadata']['name']}"}
        for webhook in made["webhooks"]:
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{webhook['clientConfig']['service']['path']}",
                                       "caBundle": base64.b64encode(authority.read_bytes()).decode()}
        yield made


def write_certificate(directory, name):
    """The folder with the certificate of the controller's server on loopback."""
    keys = control_plane.Keys(directory / "pki")
    keys.sign(name, f"/CN={name}", "IP:127.0.0.1")
    folder = directory / name
    folder.mkdir()
    for ending in ("crt", "key"):
        (folder / f"tls.{ending}").write_bytes(keys.path(f"{name}.{ending}").read_bytes())
    return folder


def with_kueue_metrics(folder):
    """A command that starts what follows it with the certificate in the place where Kueue looks for one of its metrics."""
    place = folder / "etc" / KUEUE_METRICS
    place.mkdir(parents=True)
    for ending in ("crt", "key"):
        (place / f"tls.{ending}").write_bytes((folder / f"tls.{ending}").read_bytes())
    mount = f'mount -t overlay etc -o lowerdir={folder}/etc:/etc /etc && exec "$@"'
    return "unshare", "--mount", "sh", "-c", mount, "sh"


def serve_webhooks(kubectl, directory, name, module):
    """Returns the command line's part about them, and what comes before the program."""
    about = CONTROLLERS[name]
    folder = write_certificate(directory, name)
    port, = control_plane.free_ports(1)
    (folder / "config.yaml").write_text(json.dumps({
        "apiVersion": about.config, "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder)},
        "metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": "0"},
        "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False}, **about.options}))
    made = list(webhooks(kubectl, name, module / about.webhooks, port, directory / "pki" / "ca.crt"))
    kubectl("apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": made})
    return ("--config", folder / "config.yaml"), with_kueue_metrics(folder) if name == "kueue" else ()


def start(directory, name):
    about = CONTROLLERS[name]
    listed = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", about.module], cwd=HERE / f"tools-{name}", text=True,
                            stdout=subprocess.PIPE, check=True)
    module = pathlib.Path(listed.stdout.strip())
    kubectl = functools.partial(run_kubectl, kubeconfig=directory / "kubeconfig")
    kubectl("apply", "--server-side", "-f", module / about.kinds)
    # `kubectl wait` would fail where the definitions have no conditions yet.
    until("the kinds are served", lambda: all(kind in (served := kubectl("api-resources", "--output", "name"))
                                              for kind in about.serves), control_plane.READY_TIMEOUT_SECONDS)
    if about.namespace:
        kubectl("create", "namespace", about.namespace)
    config, before = serve_webhooks(kubectl, directory, name, module) if about.webhooks else ((), ())
    flag = "--kubeConfig" if name == "mpi" else "--kubeconfig"
    program = pathlib.Path(os.environ[f"{name.upper()}_BIN"]) / f"{name}-controller"
    return control_plane.start(directory, f"{name}-controller", *before, program, *config, *about.arguments, flag,
                               directory / "kubeconfig")
