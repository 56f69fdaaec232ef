"""The commands that README, the pages of docs/tasks and some others print for `make up`, as a shell finds them.

    for page in PAGES:
        for command in commands_of((ROOT / page).read_text()): …
    reason_against("README.md", "make demo")      # why it is not run on `make up`, or None

A command is a line of an indented block that begins as a shell's command does, with the lines that finish it.
"""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

PROGRAMS = ("kubectl", "curl", "aws", "helm", "make", "pip", "python3", "echo", "printf", "export", "nccom-test", "neuron-ls",
            "neuron-monitor", "neuron-top", "trn-run", "trn-mem", "trn-trace", "trn-checkpoint", "sim-node", "controller",
            "dra-plugin")
BEGINS = re.compile(rf"(?:[A-Za-z_]+=\S* +)*(?:(?:{'|'.join(PROGRAMS)}) |examples/\S|tests/\S|v/bin/|\. \S|\$\(\.ci/|\w+=\S"
                    r"|\w+\(\) \{|for \w+ in |(?:api|cause|node) \S)")

# Pages about other installations: the programs by hand, thousands of nodes, a real kubelet.
ELSEWHERE = {"docs/tasks/emulated-nodes.md", "docs/tasks/real-kubelet.md", "docs/tasks/virtual-fleets.md"}
# The last ones sell the hardware.
SELLING = ("docs/tasks/capacity-blocks.md", "docs/tasks/ec2.md")
TASKS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/tasks").glob("*.md"))
PAGES = ["README.md", "docs/coming-from-device-plugin.md", *(page for page in TASKS if page not in {*ELSEWHERE, *SELLING}), *SELLING]

# The commands that are not for the shell that `. build/up/tahoma.env` logs in, and why.
NOT_HERE = (
    (None, r"make ", "starts, ends or replaces what the commands run on"),
    ("README.md", r"helm install ", "for a cluster"),
    (None, r"(nccom-test|trn-run) ", "the command of a pod with a claim"),
    ("docs/tasks/collectives.md", r"echo '\{\"replica_groups\"", "writes a file for the command of a pod"),
    ("docs/tasks/replay.md", r"controller --replay NASA", "reads a trace that is not in the repository"),
    ("docs/tasks/kernels.md", r"pip install |python3 -m venv |v/bin/python |examples/kernels/matmul_nki\.py", "installs packages of Python"),
)


def is_whole(command):
    """Whether a shell needs no further line."""
    if command.endswith("\\") or not command.strip():
        return False
    checked = subprocess.run(["bash", "-n"], input=command + "\n", capture_output=True, text=True, check=False)
    return checked.returncode == 0 and not checked.stderr


def blocks_of(text):
    """The indented blocks, as lists of lines; those of lists belong to their sentences."""
    block, before = [], ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("    ") and (block or not before):
            block.append(line[4:])
        elif block:
            yield block
            block = []
        before = line


def commands_of(text):
    for block in blocks_of(text):
        lines = iter(block)
        for line in lines:
            command = line.removeprefix("$ ")
            if not BEGINS.match(command):
                continue
            while not is_whole(command):
                command += "\n" + next(lines)
            yield command


def reason_against(page, command):
    return next((why for where, pattern, why in NOT_HERE if where in (None, page) and re.match(pattern, command)), None)
