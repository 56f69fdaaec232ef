#!/usr/bin/env python3
"""Runs the NKI kernels of a checkout of somebody else's on an emulated core, and says of each file how far it came.

    tests/nki/public.py FOLDER [--only REGEX] [--cases 1] [--seconds 30] [--verbose]

A kernel's arguments come from the checkout: its tests, of which the smallest cases run, and programs
(`if __name__ == "__main__"`); for aws-neuron/nki-library and nki-samples from our tests, too, which compare with numpy. It
prints a line for each file with code of kernels, and counts:

    agreed       results are those of a reference
    ran          no reference was compared, and why
    wrong        a reference differs
    recorded     the program was made and did not run, and why
    failed       the first error
    not tried    nothing in the checkout calls its kernels

In a pod the kernels run on the claim's first core. Elsewhere a sim-node is started from TAHOMA_BIN (build/release/bin). The
machine needs Python 3.10 and numpy; what else a checkout imports, if it is installed, is used (ml_dtypes and torch, say).
Each file runs in a process of its own, with a bound on its time and memory, but as the user who starts this program: read
a checkout before you run it.
"""

import argparse
import ast
import collections
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from node import ROOT, core

HERE = pathlib.Path(__file__).resolve().parent
OURS = [ROOT / "tests/integration" / name for name in ("nki_aws_test.py", "nki_indirect_test.py")]
CASES_OF_A_FILE = 10  # so many times the time of a case is a file's
MEMORY = 8 << 30
MODULES = ("nki.isa", "nki.language", "neuronxcc.nki.isa", "neuronxcc.nki.language")


def parsed(file):
    try:
        return ast.parse(file.read_text(errors="replace"))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def imported(tree):
    """[(module or its member, the name by which the file knows it)]."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, one.asname or one.name.split(".")[0]) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module or ''}.{one.name}", one.asname or one.name) for one in node.names)


def has_kernels(tree):
    """Whether a function uses nki.isa or nki.language."""
    names = {name for module, name in imported(tree) if module.startswith(MODULES)}
    whole = {name for module, name in imported(tree) if module in ("nki", "neuronxcc.nki")}
    for function in ast.walk(tree):
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(node, ast.Name) and node.id in names and node.id not in whole:
                return True
            if isinstance(node, ast.Attribute) and node.attr in ("isa", "language") and ast.unparse(node.value) in whole:
                return True
    return False


def is_program(tree):
    return any(isinstance(node, ast.If) and "__main__" in ast.dump(node.test) for node in tree.body)


def is_test(file):
    return file.name.startswith("test_") or file.name.endswith("_test.py")


def run(checkout, file, kind, options, scratch, environment):
    """Runs a file in its own process. Returns its lines, and how the process ended if that was not of itself."""
    report = scratch / "report"
    report.write_text("")
    work = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    command = [sys.executable, HERE / "run_file.py", checkout, file, kind, str(options.cases), str(options.seconds), report]
    environment = {**environment, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT / "sim-node/nki/src"),
                   "NKI_THIS_PYTHON": "1", "NKI_LIBRARY": str(checkout), "NKI_SAMPLES": str(checkout)}
    child = subprocess.Popen(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, start_new_session=True,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
    end = ""
    try:
        _, errors = child.communicate(timeout=options.seconds * (1 if kind == "main" else CASES_OF_A_FILE) + 10)
        if child.returncode != 0:
            last = (errors.decode(errors="replace").strip().splitlines() or [""])[-1][:120]
            end = f"ended with status {child.returncode} {last}".strip()
    except subprocess.TimeoutExpired:
        end = "time is over"
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    shutil.rmtree(work, ignore_errors=True)
    lines = []
    for line in report.read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            lines.append(json.loads(line))
    return lines, end


class Account:
    """How far one file with kernels came."""

    def __init__(self):
        self.calls, self.ran, self.time_us = 0, 0, None
        self.verdicts, self.errors = collections.Counter(), []  # (state, why)

    def add(self, line, verdict, why):
        self.calls += 1
        if line["state"] != "ran":
            self.verdicts[line["state"]] += 1
            self.errors.append((line["state"], line["error"]))
            return
        self.ran += 1
        self.time_us = line["time_us"] if self.time_us is None else self.time_us
        state = verdict if verdict in ("agreed", "wrong") and line["data"] else "ran"
        self.verdicts[state] += 1
        if why:
            self.errors.append((state, why))

    def state(self):
        for state in ("wrong", "agreed", "ran", "recorded", "failed"):
            if self.verdicts[state]:
                return state
        return "failed" if any(not why.startswith("needs ") for _, why in self.errors) else "not tried"

    def row(self):
        state = self.state()
        calls = f"{self.ran} of {self.calls} calls" if self.calls else ""
        time_us = "" if self.time_us is None else f"{self.time_us:.1f} us"
        # Why the state is that one, else what else is to say.
        whys = [why for of, why in self.errors if of == state] or [why for _, why in self.errors]
        why = whys[0] if whys else "nothing gives its arguments" if state == "not tried" else ""
        return f"{state:10}{calls:>16}{time_us:>13}  {why}"


def add_lines(accounts, lines, end):
    """Shares the verdict of each case with the kernels that were called in it."""
    called = []
    for line in [*lines, {"case": "", "verdict": "failed", "error": end}]:
        if "kernel" in line:
            called.append(line)
            continue
        for call in called:
            for file in call["files"]:
                if file in accounts:
                    accounts[file].add(call, line["verdict"], line["error"])
        called = []


class Survey:
    """Of all files of a checkout."""

    def __init__(self, checkout, options, scratch, environment):
        self.checkout, self.options, self.scratch, self.environment = checkout, options, scratch, environment
        files = [file for file in sorted(checkout.rglob("*.py")) if file.is_file() and ".git" not in file.parts]
        wanted = re.compile(options.only)
        self.tests = [file for file in files if is_test(file) and wanted.search(str(file))]
        if any((checkout / folder).is_dir() for folder in ("src/nkilib_src", "src/nki_samples")):
            self.tests += OURS
        self.sources = {str(file.relative_to(checkout)): parsed(file) for file in files
                        if not is_test(file) and not {"test", "tests"} & set(file.relative_to(checkout).parts[:-1])}
        self.accounts = {name: Account() for name, tree in self.sources.items() if has_kernels(tree) and wanted.search(name)}
        self.broken = []  # (tests, why they could not be run)

    def run_file(self, file, kind):
        lines, end = run(self.checkout, file, kind, self.options, self.scratch, self.environment)
        for line in lines if self.options.verbose else ():
            if line.get("files") != []:  # else our own test's kernel
                print(os.path.relpath(file, self.checkout), *line.values(), file=sys.stderr, flush=True)
        return lines, end

    def run(self):
        for file in self.tests:
            lines, end = self.run_file(file, "test")
            add_lines(self.accounts, lines, end)
            if end or any(line.get("case") == "import" for line in lines):
                self.broken.append((os.path.relpath(file, self.checkout), end or lines[-1]["error"]))
        for name, tree in self.sources.items():
            about = self.programs_of(name, tree)
            if about and (is_program(tree) or not self.accounts[name].calls):
                self.main(name, about)

    def programs_of(self, name, tree):
        """The files with kernels that hear of what happens when this file is run or imported: the file itself, and those that a
        program imports.
        """
        modules = {f"/{one.replace('.', '/')}.py" for module, _ in imported(tree) for one in (module, module.rpartition(".")[0])}
        return [one for one in self.accounts
                if one == name or (is_program(tree) and any(f"/{one}".endswith(module) for module in modules if module != "/.py"))]

    def main(self, name, about):
        lines, end = self.run_file(self.checkout / name, "main")
        add_lines(self.accounts, lines, end)
        for error in [end, *(line["error"] for line in lines if line.get("verdict") in ("failed", "wrong"))]:
            for one in about if error else ():
                if not self.accounts[one].calls:
                    self.accounts[one].errors.append(("failed", error))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="files, of kernels and of tests, whose path matches")
    parser.add_argument("--cases", type=int, default=1, help="of each test, the smallest")
    parser.add_argument("--seconds", type=int, default=30, help="for a case; a file of tests has ten times as long")
    parser.add_argument("--verbose", action="store_true", help="each call of a kernel and each case, on stderr")
    options = parser.parse_args()
    checkout = options.folder.resolve()
    if not checkout.is_dir():
        sys.exit(f"{checkout} is no folder")
    with tempfile.TemporaryDirectory(prefix="nki") as scratch, core() as environment:
        survey = Survey(checkout, options, pathlib.Path(scratch), environment)
        survey.run()
    accounts = survey.accounts
    width = max(map(len, accounts), default=0)
    for name, account in sorted(accounts.items()):
        print(f"{name:{width}}  {account.row()}".rstrip())
    for name, why in survey.broken:
        print(f"tests {name}: {why}")
    counts = collections.Counter(account.state() for account in accounts.values())
    print(f"{len(accounts)} files: " + ", ".join(f"{counts[state]} {state}" for state in (
        "agreed", "ran", "wrong", "recorded", "failed", "not tried") if counts[state]))


if __name__ == "__main__":
    main()
