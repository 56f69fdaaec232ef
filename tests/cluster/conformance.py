#!/usr/bin/env python3
"""Sends the same requests to a real kube-apiserver and to our API server and compares the answers.

    conformance.py                                    starts both servers itself (KUBERNETES_BIN, TAHOMA_BIN)
    conformance.py REAL_KUBECONFIG OURS_KUBECONFIG    compares two that run

Compared: the status, the headers that clients read (HEADERS), and the body but for values that a server
generates (uid, resourceVersion, times, name suffixes) and fields listed in IGNORED, each with its reason.
The cases are in conformance_cases.py. The last line is "N passed, N failed, N skipped".
"""

import base64
import difflib
import http.client
import json
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import os
import urllib.parse

import time

from conformance_cases import CASES

UNTIL_SECONDS = 15  # a real server does some things a moment after its answer

HEADERS = ("Content-Type", "Warning", "Retry-After")
GENERATED = {"uid": "<uid>", "resourceVersion": "<rv>", "creationTimestamp": "<time>", "deletionTimestamp": "<time>",
             "time": "<time>", "continue": "<token>", "selfLink": None}


class Server:
    """One API server, reached as its kubeconfig says."""

    def __init__(self, kubeconfig):
        shown = subprocess.run([os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", kubeconfig, "config", "view",
                                "--raw", "--minify", "--flatten", "-o", "json"], check=True, capture_output=True, text=True).stdout
        config = json.loads(shown)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"] if config.get("users") else {}
        self.url = urllib.parse.urlsplit(cluster["server"])
        token = user.get("token") or ("tokenFile" in user and pathlib.Path(user["tokenFile"]).read_text().strip())
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.context = None
        if self.url.scheme == "https":
            self.context = ssl.create_default_context(
                cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
            if "client-certificate-data" in user:
                with tempfile.TemporaryDirectory() as folder:
                    for name in ("certificate", "key"):
                        path = pathlib.Path(folder) / name
                        path.write_bytes(base64.b64decode(user[f"client-{name}-data"]))
                    self.context.load_cert_chain(f"{folder}/certificate", f"{folder}/key")

    def send(self, case, variables):
        """(status, headers, body) of one request; a watch is read until its last expected line."""
        connection = (http.client.HTTPSConnection(self.url.netloc, context=self.context, timeout=20)
                      if self.context else http.client.HTTPConnection(self.url.netloc, timeout=20))
        headers = {"Accept": "application/json", **self.headers, **case.get("headers", {})}
        body = case.get("body")
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection.request(case["method"], fill(case["path"], variables), fill(body, variables), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), text


def fill(text, variables):
    for name, value in variables.items():
        text = text.replace("{" + name + "}", str(value)) if text else text
    return text


def normal(value, key=""):
    """A JSON value with what a server generates replaced."""
    if isinstance(value, dict):
        out = {}
        for name, inner in sorted(value.items()):
            if name == "managedFields":
                continue
            replaced = GENERATED.get(name, "")
            if replaced is None:
                continue
            out[name] = replaced if replaced and isinstance(inner, str) and inner else normal(inner, name)
        return out
    if isinstance(value, list):
        return [normal(v, key) for v in value]
    if isinstance(value, str):
        value = re.sub(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<uid>", value)
        return re.sub(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b", "<suffix>", value)
    return value


def digest(case, answer):
    """Returns the part of an answer that is compared, as lines."""
    status, headers, text = answer
    lines = [f"status {status}"]
    for name in HEADERS:
        if name in headers and name not in case.get("ignore_headers", ()):
            lines.append(f"{name}: {headers[name]}")
    try:
        bodies = [json.loads(line) for line in text.splitlines()] if case.get("watch") else [json.loads(text)]
    except ValueError:
        return lines + text.splitlines()
    for body in bodies:
        body = normal(body)
        if case.get("unordered"):  # Go's maps have no order
            remove(body, ["message"])
            body["details"]["causes"].sort(key=json.dumps)
        if "any_order" in case:  # of the list of that name: kube-apiserver has it from a map of Go
            body[case["any_order"]].sort(key=json.dumps)
        for path in case.get("ignore", ()):
            remove(body, path.split("."))
        for name in case.get("without", ()):
            drop_entries(body, name)
        if "only" in case:
            body = {path: find(body, path.split(".")) for path in case["only"]}
        lines += json.dumps(body, indent=1, sort_keys=True).splitlines()
    return lines


def remove(value, path):
    if isinstance(value, list):
        for inner in value:
            remove(inner, path)
    elif isinstance(value, dict) and path[0] in value:
        if len(path) == 1:
            del value[path[0]]
        else:
            remove(value[path[0]], path[1:])


def drop_entries(value, name):
    """Takes entries of lists away that are identified by `name`."""
    if isinstance(value, list):
        value[:] = [inner for inner in value if entry_name(inner)[-1:] != (name,)]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        drop_entries(inner, name)


def find(value, path):
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def settled(server, case, variables):
    """The answer, asked for again while `until` (path, least length) does not hold; ("", 0): until it is a 404."""
    time.sleep(case.get("after_seconds", 0))
    deadline = time.monotonic() + UNTIL_SECONDS
    while True:
        answer = server.send(case, variables)
        path, least = case.get("until", (None, 0))
        if path is None or time.monotonic() > deadline:
            return answer
        if path == "" and answer[0] == 404:
            return answer
        if path and answer[0] == 200 and len(find(json.loads(answer[2]), path.split(".")) or ()) >= least:
            return answer
        time.sleep(0.1)


def narrowed(real, ours):
    """The real answer with only those entries of lists that ours has too, in our order, and only our fields."""
    def narrow(theirs, wanted):
        if isinstance(theirs, dict) and isinstance(wanted, dict):
            # A list that ours lacks as a whole, such as subresources, is a subset too.
            return {k: narrow(v, wanted.get(k)) for k, v in theirs.items()
                    if k in wanted or (k not in OPTIONAL and not isinstance(v, list))}
        if isinstance(theirs, list) and isinstance(wanted, list):
            entries = {entry_name(v): v for v in theirs}
            return [narrow(entries[entry_name(v)], v) for v in wanted if entry_name(v) in entries]
        return theirs
    try:
        return (real[0], real[1], json.dumps(narrow(json.loads(real[2]), json.loads(ours[2]))))
    except ValueError:
        return real


# Fields of discovery that a client can do without, or that differ with the set of versions that is served.
OPTIONAL = {"storageVersionHash", "responseKind"}


def entry_name(value):
    """Returns the key of an entry of a list in a discovery document."""
    if not isinstance(value, dict):
        return (json.dumps(value),)
    for key in ("groupVersion", "name", "version", "resource", "subresource"):
        if key in value:
            return (key, value[key])
    return (value.get("metadata", {}).get("name"),)


def remember(case, answer, variables):
    """Values that later requests of the same server need, such as a resourceVersion."""
    for name, path in case.get("remember", {}).items():
        variables[name] = find(json.loads(answer[2]), path.split("."))


def start_both(directory):
    """The kubeconfigs of a fresh control plane with our CRDs and of a fresh standalone controller."""
    here = pathlib.Path(__file__).resolve().parent
    root = here.parent.parent
    real = subprocess.run([sys.executable, here / "control_plane.py", "up", directory / "k"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    kubectl = [os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", real]
    subprocess.run([*kubectl, "apply", "--server-side", "-f", root / "charts/tahoma/crds", "-f", root / "charts/tahoma/aws-crds"], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([*kubectl, "wait", "crd", "--all", "--for=condition=Established"], check=True,
                   stdout=subprocess.DEVNULL)
    topology = directory / "empty.json"
    topology.write_text('{"networkLayers": [], "nodes": []}')
    subprocess.run([sys.executable, root / "examples/local/up.py", directory / "t", "--topology", topology, "--quiet"],
                   check=True)
    return real, str(directory / "t" / "kubeconfig")


def stop_both(directory):
    down = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/local/down.py"
    for name in ("t", "k"):
        subprocess.call([sys.executable, str(down), str(directory / name)])


def main():
    if len(sys.argv) == 3:
        return compare(*sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="th") as scratch:
        directory = pathlib.Path(scratch)
        try:
            return compare(*start_both(directory))
        finally:
            stop_both(directory)


def compare(real_kubeconfig, our_kubeconfig):
    real, ours = Server(real_kubeconfig), Server(our_kubeconfig)
    memory = {real: {}, ours: {}}
    failed = 0
    for case in CASES:
        answers = [settled(server, case, memory[server]) for server in (real, ours)]
        for server, answer in zip((real, ours), answers):
            remember(case, answer, memory[server])
        if case.get("subset"):
            answers[0] = narrowed(*answers)
        # docs/kubernetes-api.md: ours blames the client where the other one blames itself for the client's mistake.
        if answers[0][0] == 500 and 400 <= answers[1][0] < 500:
            continue
        digests = [digest(case, answer) for answer in answers]
        difference = list(difflib.unified_diff(*digests, "kube-apiserver", "tahoma", lineterm="", n=2))
        failed += bool(difference)
        if difference:
            print(f"FAILED  {case['name']}: {case['method']} {case['path']}")
            print("\n".join("    " + line for line in difference[:60]))
    print(f"{len(CASES) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
