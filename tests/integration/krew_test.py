#!/usr/bin/env python3
"""Tests the manifest and the archive that krew installs `kubectl tahoma` from, field by field as krew reads them, and
`make install`.

    krew_test.py
"""

import hashlib
import io
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest
import urllib.parse

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The fields that krew knows (its internal/index/validation and pkg/index/types.go); others are ignored there.
SPEC_FIELDS = {"version", "shortDescription", "description", "caveats", "platforms"}
PLATFORM_FIELDS = {"uri", "sha256", "files", "bin", "selector"}


class KrewTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        program = cls.folder / "program"
        program.write_text("#!/bin/sh\necho plugin\n")
        program.chmod(0o755)
        cls.made = [cls.folder / "a", cls.folder / "b"]
        for out in cls.made:
            subprocess.run([ROOT / "packaging/krew/krew.py", out, "--program", program, "--url", "https://example.org/v1"],
                           check=True, stdout=subprocess.PIPE)
        cls.manifest = yaml.safe_load((cls.made[0] / "tahoma.yaml").read_text())
        cls.platform = cls.manifest["spec"]["platforms"][0]
        cls.archive = cls.made[0] / pathlib.PurePath(urllib.parse.urlparse(cls.platform["uri"]).path).name

    def test_the_manifest_has_every_field_that_krew_demands(self):
        self.assertEqual(self.manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2")
        self.assertEqual(self.manifest["kind"], "Plugin")
        self.assertEqual(self.manifest["metadata"], {"name": "tahoma"})
        spec = self.manifest["spec"]
        self.assertEqual(set(spec), SPEC_FIELDS)
        self.assertRegex(spec["version"], r"^v\d+\.\d+\.\d+$")
        self.assertNotIn("\n", spec["shortDescription"])
        self.assertLessEqual(len(spec["shortDescription"]), 50)  # krew's own limit for its index
        self.assertEqual(len(spec["platforms"]), 1)
        self.assertEqual(set(self.platform), PLATFORM_FIELDS)
        self.assertEqual(self.platform["selector"]["matchLabels"]["os"], "linux")
        self.assertIn(self.platform["selector"]["matchLabels"]["arch"], ("amd64", "arm64"))

    def test_the_version_is_that_of_the_programs(self):
        self.assertIn(f'kVersion = "{self.manifest["spec"]["version"][1:]}"', (ROOT / "lib/base/version.h").read_text())

    def test_the_archive_is_the_one_that_the_manifest_names_and_holds_its_files(self):
        content = self.archive.read_bytes()
        self.assertEqual(hashlib.sha256(content).hexdigest(), self.platform["sha256"])
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            self.assertEqual(sorted(tar.getnames()), sorted(f["from"] for f in self.platform["files"]))
            self.assertEqual(tar.getmember(self.platform["bin"]).mode, 0o755)
        self.assertTrue(all(f["to"] == "." for f in self.platform["files"]))

    def test_the_same_program_makes_the_same_bytes(self):
        self.assertEqual(*[(out / self.archive.name).read_bytes() for out in self.made])

    def test_make_install_puts_the_program_and_its_completion_in_place(self):
        subprocess.run(["make", "-s", "install", f"DESTDIR={self.folder}/root", "PREFIX=/opt/t", f"BIN={os.environ['TAHOMA_BIN']}"],
                       cwd=ROOT, check=True, stdout=subprocess.PIPE)
        bin_folder = self.folder / "root/opt/t/bin"
        version = subprocess.run([bin_folder / "kubectl-tahoma", "version", "--client"], check=True, capture_output=True, text=True)
        self.assertEqual(version.stdout, f"Client: {self.manifest['spec']['version'][1:]}\n")
        completed = subprocess.run([bin_folder / "kubectl_complete-tahoma", "top"], check=True, capture_output=True, text=True)
        self.assertRegex(completed.stdout, r"^topology\t.*\n:4\n$")
        for script in ("bash-completion/completions/kubectl-tahoma", "zsh/site-functions/_kubectl-tahoma"):
            self.assertIn("__complete", (self.folder / "root/opt/t/share" / script).read_text())


if __name__ == "__main__":
    unittest.main()
