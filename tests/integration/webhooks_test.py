#!/usr/bin/env python3
"""Tests of admission webhooks in standalone mode, with webhooks that are good, slow, dead and lying.

    webhooks_test.py            in the repository's root, with TAHOMA_BIN set
"""

import base64
import contextlib
import http.server
import json
import pathlib
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from standalone_controller import StandaloneController

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
PATCH_TYPES = {"merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}
HUGE_BYTES = 9 << 20


def patch(*operations):
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def label(name, value="yes"):
    return patch({"op": "add", "path": "/metadata/labels", "value": {name: value}})


ANSWERS = {
    "good": label("seen"),
    "defaults": patch({"op": "add", "path": "/spec/terminationGracePeriodSeconds", "value": 5}),
    "deny": {"allowed": False, "status": {"code": 409, "reason": "Conflict", "message": "not on Mondays"}},
    "silent": {"allowed": False},
    "warn": {"allowed": True, "warnings": ["old", "and \"quoted\""]},
    "uid": {"allowed": True, "uid": "another"},
    "patchless": {"allowed": True, "patchType": "JSONPatch"},
    "patch": patch({"op": "remove", "path": "/data/none"}),
    "rename": patch({"op": "replace", "path": "/metadata/name", "value": "other"}),
    "types": patch({"op": "add", "path": "/data", "value": [1]}),
    "allow": {"allowed": True}}


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by the last part of the path."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, length=None):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        with contextlib.suppress(OSError):
            self.answer()

    def answer(self):
        mode = self.path.split("?")[0].split("/")[-1]
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, review["request"]))
        if mode == "slow":
            self.server.end.wait(60)
        elif mode == "dribble":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not self.server.end.wait(0.2):
                self.wfile.write(b" ")
        elif mode == "half":
            self.send(b'{"kind":"AdmissionReview"', length=1000)
            self.connection.close()
        elif mode == "huge":
            self.send(b" " * HUGE_BYTES)
        elif mode == "text":
            self.send(b"hello")
        elif mode == "error":
            self.send_error(500)
        else:
            response = {"uid": review["request"]["uid"], **ANSWERS[mode]}
            self.send(json.dumps({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}).encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def __init__(self, certificate):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = []
        self.end = threading.Event()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.with_suffix(".crt"), certificate.with_suffix(".key"))
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # a client that went away


class WebhooksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for name in ("own", "other"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                            "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:hook.default.svc",
                            "-keyout", cls.folder / f"{name}.key", "-out", cls.folder / f"{name}.crt"], check=True,
                           capture_output=True)
        cls.server = Server(cls.folder / "own")
        cls.addClassCleanup(cls.server.shutdown)
        cls.addClassCleanup(cls.server.end.set)
        cls.controller = StandaloneController(cls.folder)
        cls.addClassCleanup(lambda: cls.controller.stop())

    def setUp(self):
        self.server.seen.clear()
        self.addCleanup(self.remove_all)

    def remove_all(self):
        for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            self.call("DELETE", f"{GROUP}/{plural}")
        self.call("DELETE", MAPS)

    def call(self, method, path, body=None, kind="application/json"):
        """(status, object, warnings) of one request."""
        request = urllib.request.Request(self.controller.api + path, data=json.dumps(body).encode() if body else None,
                                         headers={"Content-Type": kind}, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, json.loads(answer.read()), answer.headers.get_all("Warning") or []

    def hook(self, mode, name=None, kind="Mutating", resources=("configmaps",), operations=("*",), authority="own", **more):
        client = {"url": f"https://127.0.0.1:{self.server.server_port}/{mode}",
                  "caBundle": base64.b64encode((self.folder / f"{authority}.crt").read_bytes()).decode()}
        name = name or mode
        status, made, _ = self.call("POST", f"{GROUP}/{kind.lower()}webhookconfigurations", {
            "metadata": {"name": name}, "webhooks": [{
                "name": f"{name}.example.com", "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "rules": [{"operations": list(operations), "apiGroups": ["*"], "apiVersions": ["*"], "resources": list(resources)}],
                **more}]})
        self.assertEqual(status, 201, made)
        return made

    def make(self, name="a", query="", **metadata):
        return self.call("POST", MAPS + query, {"metadata": {"name": name, **metadata}, "data": {"k": "v"}})

    def test_a_configuration_gets_kubernetes_defaults(self):
        made = self.hook("good")["webhooks"][0]
        self.assertEqual(made["failurePolicy"], "Fail")
        self.assertEqual(made["matchPolicy"], "Equivalent")
        self.assertEqual(made["reinvocationPolicy"], "Never")
        self.assertEqual(made["timeoutSeconds"], 10)
        self.assertEqual((made["namespaceSelector"], made["objectSelector"]), ({}, {}))
        self.assertEqual(made["rules"][0]["scope"], "*")

    def test_a_patch_changes_what_is_stored(self):
        self.hook("good")
        status, made, _ = self.make()
        self.assertEqual((status, made["metadata"]["labels"]), (201, {"seen": "yes"}))
        self.assertEqual(self.call("GET", f"{MAPS}/a")[1], made)

    def test_a_webhook_is_told_all_about_the_request(self):
        self.hook("allow", kind="Validating")
        self.make(query="?dryRun=All&fieldManager=me")
        path, request = self.server.seen.pop()
        self.assertEqual(path, "/allow?timeout=10s")
        self.assertEqual(request["operation"], "CREATE")
        self.assertEqual(request["kind"], {"group": "", "version": "v1", "kind": "ConfigMap"})
        self.assertEqual(request["resource"], {"group": "", "version": "v1", "resource": "configmaps"})
        self.assertEqual((request["name"], request["namespace"], request["dryRun"]), ("a", "default", True))
        self.assertEqual(request["userInfo"]["username"], "system:unsecured")
        self.assertEqual(request["options"], {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "dryRun": ["All"], "fieldManager": "me"})
        self.assertEqual(request["object"]["data"], {"k": "v"})
        self.assertIsNone(request["oldObject"])
        self.assertEqual(self.call("GET", f"{MAPS}/a")[0], 404)

    def test_every_way_to_write_asks(self):
        self.hook("allow", kind="Validating")
        self.make()
        _, current, _ = self.call("GET", f"{MAPS}/a")
        current["data"] = {"k": "w"}
        self.call("PUT", f"{MAPS}/a", current)
        self.call("PATCH", f"{MAPS}/a", {"data": {"k": "x"}}, PATCH_TYPES["merge"])
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "y"}}
        self.call("PATCH", f"{MAPS}/b?fieldManager=me", applied, PATCH_TYPES["apply"])
        self.call("DELETE", f"{MAPS}/a")
        asked = [(request["operation"], request["name"], (request["oldObject"] or {}).get("data"),
                  (request["object"] or {}).get("data")) for _, request in self.server.seen]
        self.assertEqual(asked, [
            ("CREATE", "a", None, {"k": "v"}), ("UPDATE", "a", {"k": "v"}, {"k": "w"}), ("UPDATE", "a", {"k": "w"}, {"k": "x"}),
            ("CREATE", "b", None, {"k": "y"}), ("DELETE", "a", {"k": "x"}, None)])

    def test_managed_fields_are_shown_as_clients_see_them(self):
        self.make()
        self.hook("good")
        status, _, _ = self.call("PATCH", f"{MAPS}/a", {"data": {"k": "x"}}, PATCH_TYPES["merge"])
        self.assertEqual(status, 200)
        managed = self.server.seen[0][1]["oldObject"]["metadata"]["managedFields"][0]
        self.assertIn("f:data", managed["fieldsV1"])

    def test_a_refusal_is_told_in_kubernetes_words(self):
        self.hook("deny", kind="Validating", operations=("CREATE",))
        status, refusal, _ = self.make()
        self.assertEqual((status, refusal["reason"]), (409, "Conflict"))
        self.assertEqual(refusal["message"], 'admission webhook "deny.example.com" denied the request: not on Mondays')
        self.assertEqual(self.call("GET", f"{MAPS}/a")[0], 404)

    def test_a_refusal_without_a_reason_is_a_bad_request(self):
        self.hook("silent")
        status, refusal, _ = self.make()
        self.assertEqual(status, 400)
        self.assertEqual(refusal["message"], 'admission webhook "silent.example.com" denied the request without explanation')

    def test_a_deletion_can_be_refused(self):
        self.make()
        self.hook("deny", kind="Validating", operations=("DELETE",))
        self.assertEqual(self.call("DELETE", f"{MAPS}/a")[0], 409)
        self.assertEqual(self.call("DELETE", MAPS)[0], 409)
        self.assertEqual(self.call("GET", f"{MAPS}/a")[0], 200)

    def test_warnings_reach_the_client(self):
        self.hook("warn")
        status, _, warnings = self.make()
        self.assertEqual(status, 201)
        self.assertEqual(warnings, ['299 - "old"', r'299 - "and \"quoted\""'])

    def test_selectors_and_conditions_choose(self):
        self.hook("deny", name="by-label", objectSelector={"matchLabels": {"watched": "yes"}})
        self.hook("deny", name="by-space", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}})
        self.hook("deny", name="by-condition", matchConditions=[{
            "name": "big", "expression": "request.operation == 'CREATE' && object.metadata.name.startsWith('big')"}])
        self.assertEqual(self.make("a")[0], 201)
        self.assertIn("by-label", self.make("b", labels={"watched": "yes"})[1]["message"])
        self.assertIn("by-condition", self.make("big")[1]["message"])
        body = {"metadata": {"name": "a"}}
        self.assertIn("by-space", self.call("POST", "/api/v1/namespaces/kube-system/configmaps", body)[1]["message"])

    def test_a_condition_that_cannot_be_compiled_is_refused(self):
        status, refusal, _ = self.call("POST", f"{GROUP}/mutatingwebhookconfigurations", {
            "metadata": {"name": "x"}, "webhooks": [{
                "name": "x.example.com", "clientConfig": {"url": "https://127.0.0.1"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "matchConditions": [{"name": "a", "expression": "authorizer.x"}]}]})
        self.assertEqual(status, 422)
        self.assertIn("webhooks[0].matchConditions[0].expression", refusal["message"])
        self.assertIn("undeclared reference to 'authorizer'", refusal["message"])

    def test_mutating_webhooks_go_by_name_and_again_if_they_want(self):
        self.hook("good", name="a", reinvocationPolicy="IfNeeded")
        self.hook("allow", name="b")
        self.hook("good", name="c")
        self.hook("allow", name="z", kind="Validating")
        self.make()
        self.assertEqual([path for path, _ in self.server.seen], [f"/{m}?timeout=10s" for m in ("good", "allow", "good", "allow")])
        self.server.seen.clear()
        self.hook("warn", name="0", reinvocationPolicy="IfNeeded")
        self.make("b")
        modes = [path[1:].split("?")[0] for path, _ in self.server.seen]
        self.assertEqual(modes, ["warn", "good", "allow", "good", "warn", "allow"])

    def test_lies_are_failures_of_the_webhook(self):
        for mode, why in {"uid": "expected response.uid=", "patchless": "webhook returned response.patchType but not response.patch",
                          "text": "the answer is no JSON", "half": "failed to call webhook: Post", "huge": "failed to call webhook: Post",
                          "error": "the webhook answered 500"}.items():
            with self.subTest(mode):
                self.hook(mode)
                status, refusal, _ = self.make()
                self.assertEqual((status, refusal["reason"]), (500, "InternalError"), refusal)
                self.assertIn(f'failed calling webhook "{mode}.example.com": ', refusal["message"])
                self.assertIn(why, refusal["message"])
                self.remove_all()
                self.hook(mode, failurePolicy="Ignore")
                self.assertEqual(self.make()[0], 201)
                self.remove_all()

    def test_patches_that_make_no_object_fail_always(self):
        for mode in ("patch", "rename", "types"):
            with self.subTest(mode):
                self.hook(mode, failurePolicy="Ignore")
                status, refusal, _ = self.make()
                self.assertGreaterEqual(status, 400, refusal)
                self.remove_all()

    def test_a_dead_webhook_and_one_of_another_authority_fail(self):
        self.hook("good", authority="other")
        self.assertIn('failed calling webhook "good.example.com": failed to call webhook: Post "https://127.0.0.1:', self.make()[1]["message"])
        self.remove_all()
        self.call("POST", f"{GROUP}/mutatingwebhookconfigurations", {"metadata": {"name": "x"}, "webhooks": [{
            "name": "x.example.com", "clientConfig": {"url": "https://127.0.0.1:1/a"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]}]})
        self.assertEqual(self.make()[0], 500)
        # The configuration itself can always be changed.
        status, _, _ = self.call("DELETE", f"{GROUP}/mutatingwebhookconfigurations/x")
        self.assertEqual(status, 200)
        self.assertEqual(self.make()[0], 201)

    def test_a_hanging_webhook_ends_in_time_and_holds_nobody_up(self):
        for mode in ("slow", "dribble"):
            with self.subTest(mode):
                self.hook(mode, timeoutSeconds=2, objectSelector={"matchLabels": {"slow": "yes"}})
                self.make("held")
                outcomes = []
                threads = [threading.Thread(target=lambda i=i: outcomes.append(self.make(f"s{i}", labels={"slow": "yes"})))
                           for i in range(40)]
                begin = time.monotonic()
                for thread in threads:
                    thread.start()
                # The object of a held request is not locked, and no other request waits.
                self.assertEqual(self.make("s0")[0], 201)
                self.assertEqual(self.make("quick")[0], 201)
                self.assertLess(time.monotonic() - begin, 2)
                for thread in threads:
                    thread.join()
                self.assertEqual({status for status, _, _ in outcomes} - {409}, {500})
                self.assertIn("context deadline exceeded", outcomes[0][1]["message"])
                self.remove_all()

    def test_a_service_is_reached_by_its_endpoints(self):
        client = {"service": {"name": "hook", "namespace": "default", "path": "/good"},
                  "caBundle": base64.b64encode((self.folder / "own.crt").read_bytes()).decode()}
        self.call("POST", f"{GROUP}/mutatingwebhookconfigurations", {"metadata": {"name": "x"}, "webhooks": [{
            "name": "x.example.com", "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}]})
        failed = 'failed calling webhook "x.example.com": failed to call webhook: Post "https://hook.default.svc:443/good?timeout=10s": '
        self.assertTrue(self.make()[1]["message"].endswith(failed + 'service "hook" not found'))
        space = "/api/v1/namespaces/default"
        self.call("POST", f"{space}/services", {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443, "targetPort": 9443}]}})
        self.addCleanup(self.call, "DELETE", f"{space}/services/hook")
        self.assertTrue(self.make()[1]["message"].endswith(failed + 'no endpoints available for service "hook"'))
        status, made, _ = self.call("POST", f"{space}/endpoints", {"metadata": {"name": "hook"}, "subsets": [{
            "addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": self.server.server_port}]}]})
        self.assertEqual(status, 201, made)
        self.addCleanup(self.call, "DELETE", f"{space}/endpoints/hook")
        self.assertEqual(self.make()[1]["metadata"].get("labels"), {"seen": "yes"})

    def test_custom_kinds_and_subresources_are_asked_about(self):
        self.hook("allow", kind="Validating", resources=("gangs", "gangs/status"))
        gangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs"
        gang = {"apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang", "metadata": {"name": "g"}, "spec": {"members": 4, "shape": "4x4x4"}}
        self.assertEqual(self.call("POST", gangs, gang)[0], 201)
        self.call("PATCH", f"{gangs}/g/status", {"status": {"phase": "Pending"}}, PATCH_TYPES["merge"])
        self.call("DELETE", f"{gangs}/g")
        mine = [request for _, request in self.server.seen if request["userInfo"]["username"] == "system:unsecured"]
        self.assertEqual([(one["operation"], one.get("subResource", "")) for one in mine],
                         [("CREATE", ""), ("UPDATE", "status"), ("DELETE", "")])

    def test_the_controller_starts_again_when_a_webhook_for_everything_is_dead(self):
        self.hook("good", resources=("*/*",), authority="other")
        self.assertEqual(self.make()[0], 500)
        self.assertEqual(self.controller.stop(), 0)
        (self.folder / "ports").unlink()
        type(self).controller = StandaloneController(self.folder)
        self.assertEqual(self.make()[0], 500)


if __name__ == "__main__":
    unittest.main()
