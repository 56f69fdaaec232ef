"""A standalone controller for tests in Python, with nodes that no machine is behind.

    controller = StandaloneController(folder, "--access-key-file", keys)
    controller.make_node("node-a")
    status, text = ask("GET", controller.url + "/v1/nodes", headers=controller.headers)
    controller.stop()
"""

import json
import os
import pathlib
import subprocess
import threading
import urllib.error
import urllib.request


def ask(method, url, body=None, headers=None):
    """(status, text) of one request."""
    request = urllib.request.Request(url, data=body.encode() if body else None, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class StandaloneController:
    def __init__(self, folder, *flags, token="", listen="127.0.0.1:0", environment=None, stderr=None):
        port_file = pathlib.Path(folder, "ports")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.process = subprocess.Popen([
            os.path.join(os.environ["TAHOMA_BIN"], "controller"), "--standalone", "--data-dir", f"{folder}/data",
            "--listen-address", listen, "--admin-address", "127.0.0.1:0", "--crd-dir", "charts/tahoma/crds",
            "--port-file", str(port_file), *flags], env=environment, stderr=stderr)
        waiting = threading.Event()
        while not port_file.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"the controller ended with status {self.process.returncode}")
            waiting.wait(0.02)
        ports = dict(line.split(": ") for line in port_file.read_text().splitlines())
        self.url = f"http://{ports['adminAddress']}"
        self.api = f"http://{ports['listenAddress']}"

    def send(self, method, path, body):
        """The answer of the Kubernetes API."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        status, text = ask(method, self.api + path, json.dumps(body), {"Content-Type": kind, **self.headers})
        if status not in (200, 201):
            raise RuntimeError(f"{method} {path}: {status} {text}")
        return json.loads(text)

    def make_node(self, name):
        node = self.send("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        self.send("PATCH", f"/api/v1/nodes/{name}/status",
                  {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        published = json.loads(pathlib.Path("tests/golden/dra-plugin/slices-trn2.48xlarge-chips.json").read_text())
        published["metadata"]["ownerReferences"][0].update(name=name, uid=node["metadata"]["uid"])
        published["metadata"]["name"] = f"{name}-neuron"
        published["spec"]["nodeName"] = published["spec"]["pool"]["name"] = name
        self.send("POST", "/apis/resource.k8s.io/v1/resourceslices", published)

    def stop(self):
        self.process.terminate()
        return self.process.wait()
