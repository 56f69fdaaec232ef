#!/usr/bin/env python3
"""Tests tokens of service accounts with kubectl, and the credentials of a kubeconfig that kubectl tahoma takes.

    account_tokens_test.py            in the repository's root, with TAHOMA_BIN and KUBECTL set

A signature is checked by arithmetic on the curve, written out here, with the key that the server publishes.
"""

import base64
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from standalone_controller import StandaloneController

IDENTITIES = """
apiVersion: tahoma.dev/v1alpha1
kind: IdentityFile
identities:
- {name: ops, role: admin, token: the-token-of-the-administrator}
- {name: jane, role: view, namespaces: [default]}
- {name: "system:serviceaccount:default:reader", role: view}
"""
NO_GANGS = "kubectl-tahoma: there are no gangs in namespace default\n"
# P-256: y^2 = x^3 - 3x + b over the integers modulo P, with N points (FIPS 186-5, SP 800-186).
P = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffff
N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551
G = (0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296,
     0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5)


def add(a, b):
    """The sum of two points of the curve; None is the neutral one."""
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    slope = (3 * a[0] ** 2 - 3) * pow(2 * a[1], -1, P) if a == b else (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope ** 2 - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(n, point):
    total = None
    while n:
        total = add(total, point) if n & 1 else total
        point, n = add(point, point), n >> 1
    return total


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def number(text):
    return int.from_bytes(decoded(text), "big")


def is_signed_by(token, key):
    signed, _, signature = token.rpartition(".")
    r, s = (int.from_bytes(decoded(signature)[at:at + 32], "big") for at in (0, 32))
    digest = int.from_bytes(hashlib.sha256(signed.encode()).digest(), "big")
    back = pow(s, -1, N)
    point = add(times(digest * back % N, G), times(r * back % N, (number(key["x"]), number(key["y"]))))
    return point is not None and point[0] % N == r


class AccountTokensTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", cls.folder / "own.key",
                        "-out", cls.folder / "own.crt"], check=True, capture_output=True)
        (cls.folder / "own.key").chmod(0o600)
        identities = cls.folder / "identities.yaml"
        identities.write_text(IDENTITIES)
        identities.chmod(0o600)
        cls.start()
        cls.addClassCleanup(lambda: cls.controller.stop())

    @classmethod
    def start(cls):
        (cls.folder / "ports").unlink(missing_ok=True)
        cls.controller = StandaloneController(
            cls.folder, "--identity-file", str(cls.folder / "identities.yaml"), "--audit-file", str(cls.folder / "audit.log"),
            "--tls-cert-file", str(cls.folder / "own.crt"), "--tls-key-file", str(cls.folder / "own.key"))
        cls.server = cls.controller.api.replace("http://", "https://")
        cls.kubeconfig("ops.kubeconfig", {"token": "the-token-of-the-administrator"})

    @classmethod
    def kubeconfig(cls, name, user):
        file = cls.folder / name
        file.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": user}],
            "clusters": [{"name": "c", "cluster": {"server": cls.server, "certificate-authority": str(cls.folder / "own.crt")}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        return str(file)

    def run_it(self, command, stdin=None):
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(self.folder)})
        return done.returncode, done.stdout + done.stderr

    def kubectl(self, *arguments, token=None, stdin=None):
        file = self.folder / "ops.kubeconfig" if token is None else self.kubeconfig("account.kubeconfig", {"token": token})
        return self.run_it([os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", str(file), *arguments], stdin)

    def ok(self, *arguments, **more):
        status, said = self.kubectl(*arguments, **more)
        self.assertEqual(status, 0, said)
        return said.strip()

    def account(self, name):
        self.ok("create", "serviceaccount", name)
        self.addCleanup(self.kubectl, "delete", "serviceaccount", name, "--ignore-not-found")

    def review(self, token):
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        return json.loads(self.ok("create", "-f", "-", "-o", "json", stdin=json.dumps(review)))["status"]

    def test_the_token_names_the_account_and_is_signed_by_the_published_key(self):
        self.account("builder")
        token = self.ok("create", "token", "builder", "--duration", "20m")
        key, = json.loads(self.ok("get", "--raw", "/openid/v1/jwks"))["keys"]
        self.assertTrue(is_signed_by(token, key))
        self.assertFalse(is_signed_by("x" + token, key))
        claims = json.loads(decoded(token.split(".")[1]))
        self.assertEqual((claims["sub"], claims["exp"] - claims["iat"]), ("system:serviceaccount:default:builder", 1200))
        issuer = json.loads(self.ok("get", "--raw", "/.well-known/openid-configuration"))
        self.assertEqual((issuer["issuer"], issuer["jwks_uri"]), (claims["iss"], f"{self.server}/openid/v1/jwks"))

    def test_the_account_is_who_shows_it_and_may_do_what_the_file_says(self):
        self.account("reader")
        self.account("nobody")
        reader, nobody = (self.ok("create", "token", name) for name in ("reader", "nobody"))
        who = json.loads(self.ok("auth", "whoami", "-o", "json", token=reader))["status"]["userInfo"]
        self.assertEqual(who["username"], "system:serviceaccount:default:reader")
        self.assertEqual(who["groups"], ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
        self.assertEqual(self.ok("get", "pods", token=reader), "No resources found in default namespace.")
        self.assertEqual(self.kubectl("auth", "can-i", "create", "pods", token=reader), (1, "no\n"))
        status, said = self.kubectl("get", "pods", token=nobody)
        self.assertEqual(status, 1)
        self.assertIn('User "system:serviceaccount:default:nobody" cannot list resource "pods"', said)
        review = self.review(reader)
        self.assertEqual((review["authenticated"], review["user"]["username"]), (True, who["username"]))
        self.assertEqual(self.review("x" + reader)["error"], "invalid bearer token")
        self.assertNotIn(reader.split(".")[2], (self.folder / "audit.log").read_text(), "the audit has no token")

    def test_a_token_of_a_pod_ends_with_the_pod(self):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "train"}]}}
        self.ok("create", "-f", "-", stdin=json.dumps(pod))
        token = self.ok("create", "token", "default", "--bound-object-kind", "Pod", "--bound-object-name", "p")
        who = json.loads(self.ok("auth", "whoami", "-o", "json", token=token))["status"]["userInfo"]
        self.assertEqual(who["extra"]["authentication.kubernetes.io/pod-name"], ["p"])
        self.ok("delete", "pod", "p", "--now")
        status, said = self.kubectl("auth", "whoami", token=token)
        self.assertEqual((status, "Unauthorized" in said or "logged in" in said), (1, True), said)
        self.assertIn("service account token has been invalidated", self.review(token)["error"])

    def test_a_token_outlives_the_server_and_not_its_account(self):
        self.account("lasting")
        token = self.ok("create", "token", "lasting")
        self.assertEqual(self.controller.stop(), 0)
        self.start()
        self.ok("auth", "whoami", token=token)
        self.ok("delete", "serviceaccount", "lasting")
        self.ok("create", "serviceaccount", "lasting")
        self.assertIn("does not match claim", self.review(token)["error"])

    def test_refusals_are_kubernetes(self):
        status, said = self.kubectl("create", "token", "default", "--duration", "1m")
        self.assertEqual(status, 1)
        self.assertIn("may not specify a duration less than 10 minutes", said)
        self.assertIn('serviceaccounts "missing" not found', self.kubectl("create", "token", "missing")[1])
        self.assertIn('pods "missing" not found', self.kubectl(
            "create", "token", "default", "--bound-object-kind", "Pod", "--bound-object-name", "missing")[1])

    def test_each_namespace_has_its_account_and_gets_it_again(self):
        self.ok("create", "namespace", "team")
        self.wait_for("default", "team")
        self.ok("delete", "serviceaccount", "default", "-n", "team")
        self.wait_for("default", "team")
        self.ok("delete", "namespace", "team")

    def wait_for(self, account, namespace):
        deadline = time.monotonic() + 30
        while self.kubectl("get", "serviceaccount", account, "-n", namespace)[0] != 0:
            self.assertLess(time.monotonic(), deadline, "no account was made")

    # ---- kubectl tahoma ---------------------------------------------------------------------------------------------

    def tahoma(self, user, *arguments):
        return self.run_it([os.path.join(os.environ["TAHOMA_BIN"], "kubectl-tahoma"), "gangs", "--kubeconfig",
                            self.kubeconfig("tahoma.kubeconfig", user), *arguments])

    def test_kubectl_tahoma_runs_the_program_of_the_kubeconfig(self):
        self.account("reader")
        script = self.folder / "login"
        script.write_text(f"""#!/bin/sh
printf '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "%s"}}}}' \\
  "$({os.environ.get("KUBECTL", "kubectl")} --kubeconfig {self.folder}/ops.kubeconfig create token "$1")"
""")
        script.chmod(0o755)
        program = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script), "args": ["reader"], "interactiveMode": "Never"}
        self.assertEqual(self.tahoma({"exec": program}), (0, NO_GANGS))
        status, said = self.tahoma({"exec": {**program, "args": ["missing"]}})
        self.assertEqual(status, 1)
        self.assertIn("printed neither a token nor a certificate", said)
        self.assertIn("exec: executable no-such-program not found\n\nask ops",
                      self.tahoma({"exec": {**program, "command": "no-such-program", "installHint": "ask ops"}})[1])
        script.write_text("#!/bin/sh\nexit 3\n")
        self.assertIn(f"exec: executable {script} failed with exit code 3", self.tahoma({"exec": program})[1])
        script.write_text("#!/bin/sh\nyes\n")
        self.assertIn("printed more than", self.tahoma({"exec": program})[1])

    def test_kubectl_tahoma_acts_as_whom_the_kubeconfig_says(self):
        ops = {"token": "the-token-of-the-administrator"}
        self.assertEqual(self.tahoma({**ops, "as": "jane"}), (0, NO_GANGS))
        self.assertIn('User "jane" cannot list', self.tahoma({**ops, "as": "jane"}, "-A")[1])
        self.assertIn('User "john" cannot', self.tahoma({**ops, "as": "jane"}, "--as", "john")[1])
        self.assertEqual(self.tahoma({**ops, "as": "john", "as-groups": ["system:masters"]}, "-A")[0], 0)
        self.assertIn("only together with a user", self.tahoma({**ops, "as-groups": ["system:masters"]})[1])


if __name__ == "__main__":
    unittest.main()
