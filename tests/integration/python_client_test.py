#!/usr/bin/env python3
"""Drives the official Python client (PyPI `kubernetes`) against the standalone Kubernetes API: typed
create, list with pages, patches, watch, dry run, field errors, and the dynamic client with our CRD.

    TAHOMA_BIN=build/dev/bin tests/integration/python_client_test.py
    API_URL=http://127.0.0.1:8001 …           # an API server that runs already, with our CRDs

Runs itself with the Python that `.ci/setup` made for it (`.ci/python`). Status 77 (skipped) without one.
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
    found = subprocess.run([".ci/python", "--find"], capture_output=True, text=True)
    if found.returncode != 0 or found.stdout.strip() == sys.executable:
        print(f"SKIPPED: no Python package 'kubernetes': {found.stderr.strip()}")
        sys.exit(77)
    os.execv(found.stdout.strip(), [found.stdout.strip(), *sys.argv])

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

    def test_dry_run_and_field_validation(self):
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="made-"), data={"a": "1"})
        tried = self.core.create_namespaced_config_map(self.space, body, dry_run="All")
        self.assertRegex(tried.metadata.name, "^made-[a-z0-9]{5}$")
        self.assertEqual(self.core.list_namespaced_config_map(self.space).items, [])
        self.core.create_namespaced_config_map(self.space, body)
        self.assertEqual(len(self.core.list_namespaced_config_map(self.space).items), 1)
        wrong = {"metadata": {"name": "x"}, "dota": {}}
        with self.assertRaises(client.ApiException) as raised:
            self.core.create_namespaced_config_map(self.space, wrong, field_validation="Strict")
        self.assertEqual(raised.exception.status, 400)
        self.assertIn('unknown field \\"dota\\"', raised.exception.body)

    def test_delete_options_and_collections(self):
        for name in "abc":
            self.core.create_namespaced_config_map(
                self.space, client.V1ConfigMap(metadata=client.V1ObjectMeta(
                    name=name, labels={"keep": "yes" if name == "b" else "no"})))
        uid = client.V1Preconditions(uid="another")
        with self.assertRaises(client.ApiException) as raised:
            self.core.delete_namespaced_config_map(
                "a", self.space, body=client.V1DeleteOptions(preconditions=uid))
        self.assertEqual(raised.exception.reason, "Conflict")
        self.core.delete_namespaced_config_map("c", self.space, propagation_policy="Background")
        self.core.delete_collection_namespaced_config_map(self.space, label_selector="keep=no")
        left = self.core.list_namespaced_config_map(self.space).items
        self.assertEqual([one.metadata.name for one in left], ["b"])

    def test_custom_objects(self):
        gangs = client.CustomObjectsApi(self.api)
        where = {"group": "tahoma.dev", "version": "v1alpha1", "namespace": self.space, "plural": "gangs"}
        gangs.create_namespaced_custom_object(body={
            "apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang", "metadata": {"name": "g"},
            "spec": {"members": 4, "shape": "4x4x4"}}, **where)
        gangs.patch_namespaced_custom_object_status(name="g", body={"status": {"phase": "Running"}}, **where)
        gangs.patch_namespaced_custom_object_scale(name="g", body={"spec": {"replicas": 2}}, **where)
        scale = gangs.get_namespaced_custom_object_scale(name="g", **where)
        self.assertEqual(scale["spec"]["replicas"], 2)
        seen = gangs.get_namespaced_custom_object(name="g", **where)
        self.assertEqual((seen["spec"]["members"], seen["status"]["phase"]), (2, "Running"))
        gangs.delete_namespaced_custom_object(name="g", **where)
        self.assertEqual(gangs.list_namespaced_custom_object(**where)["items"], [])

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
