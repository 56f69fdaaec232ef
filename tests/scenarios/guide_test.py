#!/usr/bin/env python3
"""Tests what a newcomer's shell and programs do on `make up`: every command of README and docs/tasks as printed, after
`. build/up/tahoma.env`, and clients of Kubernetes in several languages with the kubeconfig that `make up` wrote.

    guide_test.py [GuideTest.test_…]     in the repository's root, with KUBECTL set

A folder stands in for the repository's root: its entries, and an own `build/up`. What commands write lands there.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import guide

ROOT = guide.ROOT
PAGE_SECONDS = 240
# Between two pages nothing is left of the first but the cluster.
FORGET = "kubectl delete deployments,jobs,gangs,pods,resourceclaimtemplates,nusw,queues,queuecalendars,maintenancewindows,defragmentations --all --wait --timeout=90s"


class GuideTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tg")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = pathlib.Path(cls.folder.name)
        for entry in ROOT.iterdir():
            if entry.name not in ("build", ".git"):
                (cls.root / entry.name).symlink_to(entry)
        cls.state = cls.root / "build/up"
        cls.addClassCleanup(cls.run_here, ["examples/local/down.py", str(cls.state)])
        up = cls.run_here(["examples/local/up.py", str(cls.state)])
        if up.returncode != 0:
            raise AssertionError(up.stdout)
        cls.said = up.stdout

    @classmethod
    def run_here(cls, command, **options):
        return subprocess.run(command, cwd=cls.root, text=True, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, **options)

    def shell(self, script, timeout=60):
        """In a shell that knows nothing of us but the file."""
        bare = {"PATH": os.environ["PATH"] if "PYENV_ROOT" in os.environ else "/usr/local/bin:/usr/bin:/bin",
                "HOME": os.environ["HOME"]}
        return self.run_here(["bash", "-c", f". build/up/tahoma.env\n{script}"], env=bare, timeout=timeout)

    # ---- the files --------------------------------------------------------------------------------------------------

    def test_the_end_of_make_up_names_the_file_that_logs_in(self):
        self.assertIn(f". {self.state}/tahoma.env", self.said.splitlines()[-1])
        self.assertEqual((self.state / "tahoma.env").stat().st_mode & 0o777, 0o600)
        names = self.shell("echo $KUBECONFIG $ADMIN $CA $NODES $AWS_ENDPOINT_URL_EC2; type kubectl kubectl-tahoma neuron-ls")
        self.assertEqual(names.returncode, 0, names.stdout)
        asked = self.shell('curl -sS --fail --cacert $CA -H "Authorization: Bearer $TOKEN" $ADMIN/v1/topology')
        self.assertEqual(asked.returncode, 0, asked.stdout)

    def test_tokens_end_without_a_newline_and_the_kubeconfig_has_all_that_clients_look_for(self):
        token = (self.state / "admin.token").read_text()
        self.assertRegex(token, r"\A[0-9a-f]{32}\Z")
        for file in self.state.glob("n/*/*token"):
            self.assertRegex(file.read_text(), r"\A[0-9a-f]{32,}\Z", file)
        config = json.loads((self.state / "kubeconfig").read_text())
        self.assertEqual(config["users"][0]["user"], {"tokenFile": str(self.state / "admin.token"), "token": token})
        self.assertEqual(config["clusters"][0]["cluster"]["certificate-authority"], str(self.state / "tls.crt"))

    # ---- clients ----------------------------------------------------------------------------------------------------

    def log_in(self, command):
        """A client that prints how many nodes it sees."""
        done = self.run_here(command, env={**os.environ, "KUBECONFIG": str(self.state / "kubeconfig")}, timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip().splitlines()[-1:]), (0, ["6"]), done.stdout)

    def built(self, language):
        """The client's command, built once into the cache; skips the test where it cannot be had."""
        made = subprocess.run([ROOT / "tests/clients/login/build.sh", language], capture_output=True, text=True, check=False)
        if made.returncode == 77:
            self.skipTest(made.stderr.strip())
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout.split()

    def test_the_go_client_which_is_kubectl_logs_in(self):
        self.log_in(["bash", "-c", "${KUBECTL:-kubectl} get nodes -o name | wc -l"])

    def test_the_python_client_logs_in(self):
        found = subprocess.run([ROOT / ".ci/python", "--find"], capture_output=True, text=True, check=False)
        if found.returncode != 0:
            self.skipTest(found.stderr.strip())
        self.log_in([found.stdout.strip(), "-c", "from kubernetes import client, config; config.load_kube_config(); "
                     "print(len(client.CoreV1Api().list_node().items))"])

    def test_the_javascript_client_logs_in(self):
        self.log_in(self.built("javascript"))

    def test_the_java_client_logs_in(self):
        self.log_in(self.built("java"))

    def test_the_rust_client_logs_in(self):
        self.log_in(self.built("rust"))

    # ---- acting as another ------------------------------------------------------------------------------------------

    def test_an_admin_acts_as_another_user_and_nobody_else_does(self):
        for command, status, shown in (
                ("kubectl auth can-i delete nodes --as=jane", 1, "no"),
                ("kubectl auth whoami --as=jane -o jsonpath='{.status.userInfo.username}'", 0, "jane"),
                ("kubectl --as=jane create configmap x --from-literal=a=b", 1, 'User "jane" cannot create resource "configmaps"'),
                ("kubectl --as=jane --as-group=system:masters create configmap x --dry-run=server", 0, "configmap/x created"),
                ("kubectl --kubeconfig $NODES/trn2u-0/kubeconfig --as=admin get nodes", 1,
                 'User "system:node:trn2u-0" cannot impersonate resource "users"')):
            done = self.shell(command)
            self.assertEqual(done.returncode, status, done.stdout)
            self.assertIn(shown, done.stdout)

    # ---- what is printed --------------------------------------------------------------------------------------------

    def test_every_command_of_the_guides_runs_as_printed(self):
        ran, failed, left_out = 0, [], []
        for page in guide.PAGES:
            commands = list(guide.commands_of((ROOT / page).read_text()))
            here = [command for command in commands if guide.reason_against(page, command) is None]
            left_out += [command for command in commands if guide.reason_against(page, command)]
            # One shell for a page: variables and functions of a command are for the next ones.
            script = "set -o pipefail\n" + "".join(f"{command}\necho \"@@{i}:$?\"\n" for i, command in enumerate(here))
            done = self.shell(script, timeout=PAGE_SECONDS)
            for i, command in enumerate(here):
                if f"@@{i}:0\n" in done.stdout:
                    ran += 1
                else:
                    before, _, after = done.stdout.partition(f"@@{i - 1}:") if i else ("", "", done.stdout)
                    failed.append(f"{page}: {command}\n{(after or before).partition('@@')[0][-2000:]}")
            self.shell(FORGET, timeout=PAGE_SECONDS)
        print(f"guide_commands_run {ran} of {ran + len(failed)}; {len(left_out)} are for other places", file=sys.stderr)
        self.assertEqual(failed, [], "\n\n".join(failed))
        self.assertGreater(ran, 50)


if __name__ == "__main__":
    unittest.main()
