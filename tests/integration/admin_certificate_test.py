#!/usr/bin/env python3
"""Tests that kubectl tahoma trusts the admin API by a certificate of its own, as the chart makes one, and by no other.

    admin_certificate_test.py            in the repository's root, with TAHOMA_BIN set
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

from standalone_controller import StandaloneController


class AdminCertificateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for name in ("own", "other"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                            "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", cls.folder / f"{name}.key",
                            "-out", cls.folder / f"{name}.crt"], check=True, capture_output=True)
            (cls.folder / f"{name}.key").chmod(0o600)
        cls.controller = StandaloneController(cls.folder, "--tls-cert-file", str(cls.folder / "own.crt"), "--tls-key-file",
                                              str(cls.folder / "own.key"), "--write-kubeconfig", str(cls.folder / "kubeconfig"))
        cls.addClassCleanup(cls.controller.stop)
        # As a cluster's: its authority signs the API server's certificate, and not the admin API's.
        kubeconfig = cls.folder / "cluster.kubeconfig"
        kubeconfig.write_text(f"""
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1", certificate-authority: {cls.folder}/other.crt}}}}]
users: [{{name: u, user: {{token: a-token-of-16-characters}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
""")
        cls.command = [os.path.join(os.environ["TAHOMA_BIN"], "kubectl-tahoma"), "offerings", "--type", "trn2.48xlarge",
                       "--kubeconfig", kubeconfig, "--admin", cls.controller.url.replace("http://", "https://")]

    def ask(self, *more, **environment):
        done = subprocess.run([*self.command, *more], capture_output=True, text=True, check=False, env={**os.environ, **environment})
        return done.stdout + done.stderr

    def test_the_kubeconfigs_authority_does_not_vouch_for_it(self):
        self.assertIn("not from a trusted authority", self.ask())

    def test_the_certificates_of_the_option_or_the_environment_do(self):
        file = str(self.folder / "own.crt")
        self.assertIn("No offerings", self.ask("--admin-ca-file", file))
        self.assertIn("No offerings", self.ask(TAHOMA_ADMIN_CA_FILE=file))

    def test_a_file_that_is_not_there_is_named(self):
        self.assertIn("missing.crt: cannot be opened", self.ask("--admin-ca-file", "missing.crt"))


if __name__ == "__main__":
    unittest.main()
