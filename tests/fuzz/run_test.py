#!/usr/bin/env python3
"""Tests of run.py, with programs in the place of fuzz targets."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
# Takes a tenth of a second of processor time, and says in what order targets ran. Told to merge, it copies each input
# of its last folder to the one before.
PROGRAM = """#!{python}
import pathlib, shutil, sys, time
name = pathlib.Path(sys.argv[0]).name
with open("{order}", "a") as order:
    order.write(name + " ")
while time.process_time() < 0.1:
    pass
if "-set_cover_merge=1" in sys.argv:
    shutil.copytree(sys.argv[-1], sys.argv[-2], dirs_exist_ok=True)
print("#7 DONE cov: 12 ft: 1\\nstat::number_of_executed_units: 34")
if name == "broken":
    print("Test unit written to /x/broken-crash-1")
    sys.exit(77)
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache/fuzz"
        self.kept = self.folder / "account.json"
        self.order = self.folder / "order"

    def run_py(self, targets, *options):
        """(status, what was printed) of a run with these targets."""
        programs = self.folder / "programs"
        programs.mkdir(exist_ok=True)
        for target in targets:
            file = programs / target
            file.write_text(PROGRAM.format(python=sys.executable, order=self.order))
            file.chmod(0o755)
        code = (f"import sys, pathlib; sys.path.insert(0, {str(HERE)!r}); import run; "
                f"run.PROGRAMS = pathlib.Path({str(programs)!r}); "
                f"run.corpus.CORPUS = pathlib.Path({str(self.folder)!r}) / 'corpus'; "
                f"run.KEPT_ACCOUNT = pathlib.Path({str(self.kept)!r}); sys.exit(run.main())")
        done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, text=True,
                              env={**os.environ, "TAHOMA_CACHE": str(self.cache.parent)})
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def ran(self):
        return self.order.read_text().split() if self.order.exists() else []

    def test_each_target_runs_once_and_the_table_says_what_came_of_it(self):
        status, table = self.run_py(["a", "b"], "--time", "1s")
        self.assertEqual(status, 0)
        self.assertEqual(self.ran(), ["a", "b"])
        head, first, second = [line.split() for line in table.splitlines()]
        self.assertEqual(head, ["target", "runs", "edges", "inputs", "cpu", "findings"])
        self.assertEqual(first, ["a", "34", "12", "0", "0.0m", "0"])
        self.assertEqual(second[0], "b")

    def test_processor_time_adds_up_over_runs(self):
        account = lambda: json.loads((self.cache / "account.json").read_text())["a"]
        self.run_py(["a"], "--time", "1s")
        once = account()
        self.assertGreaterEqual(once, 0.1)
        self.run_py(["a"], "--time", "1s")
        self.assertGreaterEqual(round(account() - once, 2), 0.1)

    def test_whoever_has_used_least_comes_next_until_all_have_used_enough(self):
        self.cache.mkdir(parents=True)
        (self.cache / "account.json").write_text('{"a": 0.95, "b": 7, "c": 0.5}')
        status, _ = self.run_py(["a", "b", "c"], "--least", "1s")
        self.assertEqual(status, 0)
        ran = self.ran()
        self.assertEqual(ran[0], "c")
        self.assertIn("a", ran)
        self.assertNotIn("b", ran)
        self.assertGreaterEqual(ran.count("c"), ran.count("a"))

    def test_time_of_other_machines_counts(self):
        self.kept.write_text('{"a": 7}')
        status, _ = self.run_py(["a", "b"], "--least", "1s")
        self.assertEqual(status, 0)
        self.assertNotIn("a", self.ran())
        self.assertIn("b", self.ran())

    def test_keeping_moves_the_time_into_the_tree(self):
        self.kept.write_text('{"a": 7, "b": 1}')
        self.cache.mkdir(parents=True)
        (self.cache / "account.json").write_text('{"a": 0.5, "c": 2}')
        (self.cache / "a").mkdir()
        for _ in range(2):
            self.assertEqual(self.run_py(["a"], "--keep"), (0, "a: 0 inputs added\n"))
        self.assertEqual(json.loads(self.kept.read_text()), {"a": 7.5, "b": 1})
        self.assertEqual(json.loads((self.cache / "account.json").read_text()), {"c": 2})

    def test_keeping_adds_new_inputs_to_the_archive(self):
        (self.cache / "a").mkdir(parents=True)
        (self.cache / "a/input").write_text("x")
        self.assertEqual(self.run_py(["a"], "--keep"), (0, "a: 1 inputs added\n"))
        self.assertEqual(self.run_py(["a"], "--keep"), (0, "a: 0 inputs added\n"))
        self.assertTrue((self.folder / "corpus/a.tar.gz").exists())

    def test_what_failed_does_not_run_again(self):
        status, table = self.run_py(["broken", "a"], "--least", "1s", "--jobs", "2")
        self.assertEqual(status, 1)
        self.assertEqual(self.ran().count("broken"), 1)
        self.assertGreater(self.ran().count("a"), 1)
        self.assertIn("/x/broken-crash-1\n  repeat:", table)

    def test_a_file_ends_the_run(self):
        self.cache.mkdir(parents=True)
        (self.cache / "stop").write_text("")
        status, table = self.run_py(["a"], "--least", "1h")
        self.assertEqual((status, self.ran()), (0, []))
        self.assertIn("remove it to go on", table)


if __name__ == "__main__":
    unittest.main()
