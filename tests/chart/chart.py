"""The chart as tests see it: Helm, and what it renders.

    helm = chart.find_helm()                     # status 77 and the reason where there is none
    objects = chart.render(helm, {"controller": {"replicas": 1}})
    chart.find(objects, "StatefulSet", "tahoma-controller")["spec"]["replicas"]

Helm is that of tests/cluster/tools-helm, or $HELM. PyYAML comes with the Python of .ci/python.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/tahoma"
RELEASES = ROOT / "tests/golden/releases"
NAMESPACE = "tahoma-system"

try:
    import yaml
except ImportError:
    found = subprocess.run([ROOT / ".ci/python", "--find"], capture_output=True, text=True, check=False)
    if found.returncode != 0 or found.stdout.strip() == sys.executable:
        print(f"SKIPPED: no Python package 'yaml': {found.stderr.strip()}")
        sys.exit(77)
    os.execv(found.stdout.strip(), [found.stdout.strip(), *sys.argv])


class Refused(Exception):
    """Helm renders nothing with these values; the text is its message."""


def find_helm():
    if os.environ.get("HELM"):
        return os.environ["HELM"]
    built = subprocess.run([ROOT / "tests/cluster/build_tools.sh", "tools-helm"], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        print(f"SKIPPED: helm cannot be had: {built.stderr.strip()[-500:]}")
        sys.exit(77)
    return built.stdout.strip() + "/helm"


def render_text(helm, values, api_versions=(), kube_version=None):
    command = [helm, "template", "tahoma", CHART, "--namespace", NAMESPACE, "--values", "-"]
    for version in api_versions:
        command += ["--api-versions", version]
    if kube_version:
        command += ["--kube-version", kube_version]
    # Values are JSON, which is YAML.
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(done.stderr.strip())
    return done.stdout


def render(helm, values, **options):
    return [one for one in yaml.safe_load_all(render_text(helm, values, **options)) if one]


def read(path):
    """The documents of a YAML file."""
    return [one for one in yaml.safe_load_all(pathlib.Path(path).read_text(encoding="utf-8")) if one]


def find(objects, kind, name):
    found = [one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects are {kind} {name}")
    return found[0]
