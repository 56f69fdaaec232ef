#!/usr/bin/env python3
"""Runs end-to-end scenarios in a test environment.

    run.py standalone|cluster|node|kind [SCENARIO …]  default: every *.scenario beside this file
    run.py kubeconfig [SCENARIO …]                    on the cluster of KUBECONFIG, as it is

A scenario is a text that reads as a session at a terminal and is the same in every test environment:

    # The first comment line is its title.
    $ COMMAND            must succeed (run by bash in the repository's root)
    $! COMMAND           must fail
    $~ COMMAND           is repeated until it succeeds and everything expected below holds, 60 s at most
    | REGEX              some line of the output matches, in this order
    |! REGEX             no line of the output matches

Lines that end in a backslash continue. KUBECONFIG, PATH (our programs, kubectl), GROUND (the kind of the environment),
NODES (the folder of the nodes' state), PODS (one whose files pods can read)
are set, NUMPY (a Python with numpy, where .ci/setup got one), and ADMIN_API where the kubeconfig knows the admin API; a
scenario that needs one of the last three is skipped where there is none. After each scenario everything that it made
is deleted, and no claim may still be allocated. The test environments are those of ground.py, installed_ground.py and
tests/cluster/kind_ground.py. The last line is "N passed, N failed, N skipped".
"""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import time

from ground import COMMAND_SECONDS, ROOT, Ground, execute, in_own_network

import kind_ground
from installed_ground import InstalledGround

HERE = pathlib.Path(__file__).resolve().parent
UNTIL_SECONDS = 60
CLEAN_UP = (
    "if kubectl get crd neuronultraserverworkloads.neuron.aws.com >/dev/null 2>&1; then "
    "kubectl delete neuronultraserverworkloads --all -n default --wait=true --timeout=60s >/dev/null; fi && "
    "kubectl delete pods,gangs.tahoma.dev,resourceclaims,resourceclaimtemplates --all -n default "
    "--wait=true --timeout=60s >/dev/null && "
    "test -z \"$(kubectl get resourceclaims -A -o jsonpath='{.items[*].metadata.name}')\"")


@dataclasses.dataclass
class Step:
    line: int
    kind: str  # "$", "$!" or "$~"
    command: str
    expected: list  # (wanted, regex)


class ScenarioError(Exception):
    pass


def parse(path):
    """The title and the steps of a scenario; a malformed line is an error that names it."""
    title, steps, number = "", [], 0
    lines = path.read_text().splitlines()
    while number < len(lines):
        line, start = lines[number], number + 1
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = line[:-1] + lines[number].lstrip()
        number += 1
        if line.startswith("#"):
            title = title or line.lstrip("# ")
        elif match := re.match(r"(\$[!~]?) (.+)", line):
            steps.append(Step(start, match[1], match[2], []))
        elif (match := re.match(r"\|(!?) (.+)", line)) and steps:
            steps[-1].expected.append((not match[1], match[2]))
        elif line.strip():
            raise ScenarioError(f"{path.name}:{start}: neither a comment, a command nor an expectation: {line}")
    return title or path.stem, steps


def unmet(step, status, lines):
    """The first expectation that does not hold, or None."""
    if step.kind == "$!" and status == 0:
        return "the command succeeded, but must fail"
    if step.kind != "$!" and status != 0:
        return f"the command ended with status {status}"
    at = 0
    for wanted, regex in step.expected:
        if not wanted:
            if any(re.search(regex, line) for line in lines):
                return f"a line matches, but must not: {regex}"
            continue
        while at < len(lines) and not re.search(regex, lines[at]):
            at += 1
        if at == len(lines):
            return f"no line (from here on) matches: {regex}"
        at += 1
    return None


def run_step(path, step, environment):
    deadline = time.monotonic() + (UNTIL_SECONDS if step.kind == "$~" else 0)
    while True:
        try:
            status, output = execute(step.command, environment)
        except subprocess.TimeoutExpired as timeout:
            raise ScenarioError(f"{path.name}:{step.line}: {step.command}\n  took over {COMMAND_SECONDS} s") from timeout
        problem = unmet(step, status, output.splitlines())
        if problem is None:
            return
        if time.monotonic() > deadline:
            raise ScenarioError(f"{path.name}:{step.line}: {step.command}\n  {problem}; it printed:\n{output}")
        time.sleep(0.2)


def run_scenario(path, environment):
    """What does not hold; None when all does."""
    title, steps = parse(path)
    began = time.monotonic()
    error = None
    try:
        for step in steps:
            run_step(path, step, environment)
    except ScenarioError as problem:
        error = str(problem)
        _, events = execute("kubectl get events -n default --sort-by=.lastTimestamp | tail -n 30", environment)
        error += f"\n  the last events:\n{events}"
    status, output = execute(CLEAN_UP, environment)
    if status != 0 and error is None:
        error = f"{path.name}: something is left after the scenario:\n{output}"
    print(f"{'FAILED' if error else 'passed'}  {path.stem}: {title} ({time.monotonic() - began:.1f} s)", flush=True)
    if error:
        print(error, flush=True)
    return error


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("standalone", "cluster", "node", "kind", "kubeconfig"):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "node":
        in_own_network()
    elif sys.argv[1] == "kind":
        kind_ground.in_own_network()
    paths = [pathlib.Path(p) for p in sys.argv[2:]] or sorted(HERE.glob("*.scenario"))
    bin_dir = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
    others = {"kind": kind_ground.KindGround, "kubeconfig": InstalledGround}
    ground = others[sys.argv[1]](bin_dir) if sys.argv[1] in others else Ground(sys.argv[1], bin_dir)
    with ground as environment:
        numpy = subprocess.run([ROOT / ".ci/python", "--find"], capture_output=True, text=True, check=False)
        if numpy.returncode == 0:
            environment["NUMPY"] = numpy.stdout.strip()
        needs = [name for name in ("PODS", "NUMPY", "ADMIN_API") if name not in environment]
        skipped = [path for path in paths if any("$" + name in path.read_text() for name in needs)]
        for path in skipped:
            print(f"SKIPPED  {path.stem}: one of {', '.join(needs)} is not there")
        errors = [run_scenario(path, environment) for path in paths if path not in skipped]
    if not ground.ended_in_order:
        errors.append("not everything has ended in order")  # down.py has said what
    failures = [error for error in errors if error]
    for error in failures:  # said again at the end, where a long output is looked at first
        print("FAILED", error)
    print(f"{len(errors) - len(failures)} passed, {len(failures)} failed, {len(skipped)} skipped")
    return 1 if failures or not errors else 0


if __name__ == "__main__":
    sys.exit(main())
