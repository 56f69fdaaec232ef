#!/usr/bin/env python3
"""Tests the images of images/Dockerfile as images/images.py makes them of a build tree.

    images_test.py          in the repository's root, with TAHOMA_BIN

What is in an image is read from its layer, and its programs are started in it, as the first process of a root of their
own. Libraries are compared with what the dynamic loader says, and packages with dpkg's own account.
"""

import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "images"))

import images  # noqa: E402

BIN = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
STAGES = images.read_stages(images.DOCKERFILE.read_text())
# By target: its tag's name, its programs, its user, and what a container of it starts.
TARGETS = {
    "controller": ("tahoma/controller", ["/usr/bin/controller", "/usr/bin/kubectl-tahoma"], "65532:65532", ["/usr/bin/controller"]),
    "dra-plugin": ("tahoma/dra-plugin", ["/usr/bin/dra-plugin"], "0:0", ["/usr/bin/dra-plugin"]),
    "sim-node": ("tahoma/sim-node", ["/usr/bin/sim-node"], "0:0", ["/usr/bin/sim-node"]),
    "workload": ("tahoma.dev/workload", [f"/usr/local/bin/{name}" for name in ("neuron-ls", "neuron-monitor", "neuron-top", "nccom-test", "trn-mem", "trn-run")],
                 "65532:65532", None)}
BUILD_TOOLS = re.compile(r"(^|/)(g?cc|[gc]\+\+|clang.*|ld(\..*)?|as|make|cmake|ninja|git|apt(-get)?|dpkg|python3.*|perl)$")
VERSION = re.search(r"project\(tahoma VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


class Image:
    """An image that was made, unpacked."""

    def __init__(self, target, folder):
        self.file = folder / f"{target}.tar"
        self.tag = images.make(self.file, target, BIN, STAGES)
        self.root = folder / target
        self.root.mkdir()
        with tarfile.open(self.file) as archive:
            self.manifest, = json.load(archive.extractfile("manifest.json"))
            self.config = json.load(archive.extractfile(self.manifest["Config"]))["config"]
            layer = archive.extractfile(self.manifest["Layers"][0]).read()
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            self.entries = {f"/{entry.name}": entry for entry in tar}
        subprocess.run(["tar", "--extract", "--directory", self.root], input=layer, check=True)

    def run(self, *command):
        """In the image's root, where nothing else of this machine is seen."""
        enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot"]
        return subprocess.run([*enter, self.root, *command], capture_output=True, text=True, check=False)


class ImagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ti")
        cls.addClassCleanup(scratch.cleanup)
        cls.images = {target: Image(target, pathlib.Path(scratch.name)) for target in TARGETS}

    def for_each(self):
        for target, expected in TARGETS.items():
            with self.subTest(target=target):
                yield self.images[target], *expected

    def test_every_target_of_the_dockerfile_is_known_here(self):
        self.assertEqual(images.targets(STAGES), list(TARGETS))

    def test_an_image_has_the_name_that_the_chart_and_the_examples_use(self):
        for made, name, *_ in self.for_each():
            self.assertEqual(made.manifest["RepoTags"], [made.tag])
            self.assertEqual(made.tag, f"{name}:v1" if name == "tahoma.dev/workload" else f"{name}:{VERSION}")

    def test_an_image_has_labels_a_user_and_an_entry_point(self):
        for made, name, _, user, entrypoint in self.for_each():
            labels = {key.removeprefix("org.opencontainers.image."): value for key, value in made.config["Labels"].items()}
            self.assertEqual(labels.pop("title"), name)
            self.assertTrue(labels.pop("description"))
            self.assertEqual(labels, {"vendor": "Tahoma", "licenses": "Apache-2.0", "version": VERSION})
            self.assertEqual(made.config["User"], user)
            self.assertEqual(made.config.get("Entrypoint"), entrypoint)

    def test_the_chart_has_the_version_of_the_images(self):
        chart = ROOT / "charts/tahoma/Chart.yaml"
        self.assertEqual(re.search(r"^appVersion: \"?([^\s\"]+)", chart.read_text(), re.MULTILINE)[1], VERSION)

    def test_programs_start_where_nothing_but_the_image_is(self):
        for made, _, programs, *_ in self.for_each():
            for program in programs:
                done = made.run(program, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, pathlib.Path(program).name)
            self.assertEqual(made.run("/bin/bash", "-c", "for i in a b; do cat /usr/share/doc/tahoma/LICENSE; done | { read -r; sleep 0; }").returncode, 0)

    def test_nothing_that_builds_or_installs_is_in_an_image(self):
        for made, *_ in self.for_each():
            self.assertEqual([name for name in made.entries if BUILD_TOOLS.search(name)], [])

    def test_the_libraries_are_those_that_the_programs_load_and_no_others(self):
        for made, *_ in self.for_each():
            needed = set()
            for name, entry in made.entries.items():
                if entry.isfile() and "/bin/" in name and (made.root / name[1:]).read_bytes().startswith(b"\x7fELF"):
                    loader = made.run("/lib64/ld-linux-x86-64.so.2", "--list", name)
                    self.assertEqual(loader.returncode, 0, loader.stderr)
                    self.assertNotIn("not found", loader.stdout)
                    needed.update(re.findall(r"(/\S+) \(0x", loader.stdout))
            self.assertEqual({name for name in made.entries if re.search(r"\.so(\.|$)", name)} - needed, set())

    def test_only_root_can_change_what_is_in_an_image(self):
        for made, *_ in self.for_each():
            for name, entry in made.entries.items():
                self.assertEqual((entry.uid, entry.gid), (0, 0), name)
                self.assertEqual(entry.mode, 0o1777 if name == "/tmp" else entry.mode & 0o755, name)

    def test_the_same_programs_make_the_same_bytes(self):
        made = self.images["dra-plugin"]
        with tempfile.TemporaryDirectory() as folder:
            again = pathlib.Path(folder, "again.tar")
            images.make(again, "dra-plugin", BIN, STAGES)
            self.assertEqual(again.read_bytes(), made.file.read_bytes())

    def owners(self, libraries):
        """The packages that libraries are of; dpkg knows a file by its name before /lib was a link."""
        found = set()
        for library in libraries:
            for path in dict.fromkeys((library, os.path.realpath(library), os.path.realpath(library).removeprefix("/usr"), f"/usr{library}")):
                done = subprocess.run(["dpkg", "--search", path], capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    found.add(done.stdout.split(":")[0])
                    break
            else:
                self.fail(f"no package has {library}")
        return found

    def with_dependencies(self, packages):
        seen, wanted = set(), list(packages)
        while wanted:
            package = wanted.pop()
            if package in seen:
                continue
            seen.add(package)
            done = subprocess.run(["dpkg-query", "--show", "--showformat", "${Depends}, ${Pre-Depends}", package],
                                  capture_output=True, text=True, check=False)
            wanted += [re.split(r"[ :(]", one.strip())[0] for one in re.split("[,|]", done.stdout) if one.strip()]
        return seen

    def test_the_packages_of_the_dockerfile_have_every_library(self):
        if subprocess.run(["sh", "-c", "command -v dpkg"], capture_output=True, check=False).returncode != 0:
            self.skipTest("there is no dpkg")
        packages = images.resolve(STAGES, "controller").packages
        programs = [program for _, programs, *_ in TARGETS.values() for program in programs]
        libraries = {library for program in programs for library in images.image.libraries(str(BIN / pathlib.Path(program).name))}
        there = self.with_dependencies([*packages, "bash", "libc6"])
        self.assertEqual(self.owners(libraries) - there, set())


class DockerfileTest(unittest.TestCase):
    def check_refused(self, text, message):
        with self.assertRaisesRegex(images.DockerfileError, message):
            images.read_stages(text)

    def test_what_it_does_not_know_is_refused_with_its_line(self):
        self.check_refused("FROM a AS b\n\nVOLUME /x\n", "Dockerfile:3: VOLUME is none of the instructions")
        self.check_refused("FROM a\n", "Dockerfile:1: FROM is not of the form")
        self.check_refused("# none\nLABEL a=b\n", "Dockerfile:2: LABEL comes before any FROM")
        self.check_refused("FROM a AS b\nCOPY --chmod=755 x y\n", "Dockerfile:2: COPY has other words")
        self.check_refused("FROM a AS b\nENTRYPOINT bash\n", "Dockerfile:2: ")

    def test_a_stage_has_what_the_stages_below_it_have(self):
        stages = images.read_stages("FROM debian AS one\nLABEL a=1 \\\n  b=2\nCOPY x /x\nUSER 5\n"
                                    "FROM one AS two\nLABEL b=3\nCOPY --from=one /y /z\nENTRYPOINT [\"/z\", \"-v\"]\n")
        two = images.resolve(stages, "two")
        self.assertEqual(two.labels, {"a": "1", "b": "3"})
        self.assertEqual(two.copies, [(None, "x", "/x"), ("one", "/y", "/z")])
        self.assertEqual((two.user, two.entrypoint), ("5", ["/z", "-v"]))

    def test_a_missing_program_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, ROOT / "images/images.py", folder, "sim-node", "--bin", folder],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"there is no \S+/sim-node; `make programs` builds the programs")

    def test_an_unknown_target_is_answered_with_the_known_ones(self):
        done = subprocess.run([sys.executable, ROOT / "images/images.py", "/nonexistent", "plugin"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no target plugin; there are controller, dra-plugin, sim-node, workload", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
