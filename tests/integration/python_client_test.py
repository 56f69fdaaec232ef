#!/usr/bin/env python3
"""Drives the official Python client (PyPI `kubernetes`) against the standalone Kubernetes API:
typed create, list with pages, patch, watch, field errors, and the dynamic client with our CRD.

    TAHOMA_BIN=build/dev/bin tests/integration/python_client_test.py
    API_URL=http://127.0.0.1:8001 …           # an API server that runs already, with our CRDs

Status 77 (skipped) without the package.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    import kubernetes
    from kubernetes import client, dynamic, watch
except ImportError:
    print("SKIPPED: no Python package 'kubernetes'")
    sys.exit(77)

URL = os.environ.get("API_URL")


def start_server(folder):
    """The test API server, once it serves: (process, url)."""
    port_file = pathlib.Path(folder, "url")
    server = subprocess.Popen(
        [os.path.join(os.environ["TAHOMA_BIN"], "tahoma-api-server"), "--data", f"{folder}/store",
         "--crds", "charts/tahoma/crds", "--port-file", str(port_file)])
    waiting = threading.Event()
    while not port_file.exists():
        if server.poll() is not None:
            raise RuntimeError(f"the API server ended with status {server.returncode}")
        waiting.wait(0.02)
    return server, port_file.read_text().strip()


def pod(name, labels=None):
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels=labels),
        spec=client.V1PodSpec(containers=[client.V1Container(name="main", image="train")]))


class PythonClient(unittest.TestCase):
    def setUp(self):
        self.api = client.ApiClient(client.Configuration(host=URL))
        self.core = client.CoreV1Api(self.api)
        self.space = f"test-{self._testMethodName.lower().replace('_', '-')}"[:60]
        self.core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=self.space)))

    def test_create_list_patch_delete(self):
        made = self.core.create_namespaced_pod(self.space, pod("a", {"x": "1"}))
        self.assertEqual(made.status.phase, "Pending")
        self.core.create_namespaced_pod(self.space, pod("b"))
        listed = self.core.list_namespaced_pod(self.space, label_selector="x=1")
        self.assertEqual([p.metadata.name for p in listed.items], ["a"])
        patched = self.core.patch_namespaced_pod("a", self.space, {"metadata": {"labels": {"y": "2"}}})
        self.assertEqual(patched.metadata.labels, {"x": "1", "y": "2"})
        self.core.delete_namespaced_pod("a", self.space)
        with self.assertRaises(client.ApiException) as raised:
            self.core.read_namespaced_pod("a", self.space)
        self.assertEqual(raised.exception.status, 404)

    def test_pages(self):
        for name in "abcde":
            self.core.create_namespaced_config_map(
                self.space, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name)))
        names, token = [], None
        while True:
            page = self.core.list_namespaced_config_map(self.space, limit=2, _continue=token)
            names += [m.metadata.name for m in page.items]
            token = page.metadata._continue
            if not token:
                break
        self.assertEqual(names, list("abcde"))

    def test_conflict_and_invalid(self):
        self.core.create_namespaced_pod(self.space, pod("a"))
        with self.assertRaises(client.ApiException) as raised:
            self.core.create_namespaced_pod(self.space, pod("a"))
        self.assertEqual(raised.exception.status, 409)
        with self.assertRaises(client.ApiException) as raised:
            self.core.create_namespaced_pod(self.space, pod("Bad_Name"))
        self.assertEqual(raised.exception.status, 422)

    def test_watch(self):
        seen = []
        version = self.core.list_namespaced_pod(self.space).metadata.resource_version
        self.core.create_namespaced_pod(self.space, pod("a"))
        self.core.patch_namespaced_pod("a", self.space, {"metadata": {"annotations": {"n": "1"}}})
        self.core.delete_namespaced_pod("a", self.space)
        stream = watch.Watch()
        for event in stream.stream(self.core.list_namespaced_pod, self.space,
                                   resource_version=version, timeout_seconds=20):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 3:
                stream.stop()
        self.assertEqual(seen, [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")])

    def test_dynamic_client(self):
        gangs = dynamic.DynamicClient(self.api).resources.get(
            api_version="tahoma.dev/v1alpha1", kind="Gang")
        made = gangs.create(namespace=self.space, body={
            "apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang", "metadata": {"name": "g"},
            "spec": {"members": 4, "shape": "4x4x4"}})
        self.assertEqual(made.metadata.generation, 1)
        patched = gangs.patch(namespace=self.space, name="g", body={"spec": {"members": 2}},
                              content_type="application/merge-patch+json")
        self.assertEqual(patched.spec.members, 2)
        applied = gangs.server_side_apply(
            namespace=self.space, name="g", field_manager="python", force_conflicts=True,
            body={"apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang", "metadata": {"name": "g"},
                  "spec": {"members": 8}})
        self.assertEqual(applied.spec.members, 8)
        for event in gangs.watch(namespace=self.space, timeout=20):
            self.assertEqual(event["object"].metadata.name, "g")
            break
        gangs.delete(namespace=self.space, name="g")


if __name__ == "__main__":
    if URL:
        unittest.main(verbosity=2)
    with tempfile.TemporaryDirectory() as data:
        SERVER, URL = start_server(data)
        try:
            result = unittest.main(verbosity=2, exit=False).result
        finally:
            SERVER.terminate()
            ended = SERVER.wait()
    sys.exit(0 if result.wasSuccessful() and ended == 0 else 1)
