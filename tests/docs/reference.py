#!/usr/bin/env python3
"""Pages of docs/reference that are made of the code: flags.md of the programs' help, errors.md of their error codes.

    TAHOMA_BIN=build/release/bin tests/docs/reference.py            checks the pages; status 1 if one differs
    TAHOMA_BIN=build/release/bin tests/docs/reference.py --write    writes them anew
    TAHOMA_BIN=build/release/bin tests/docs/reference.py --self     checks the checker: planted differences must be found

What a field of our kinds means stands in tables that tests/tidy/crd_fields.py makes.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "docs/reference"
BIN = pathlib.Path(os.environ.get("TAHOMA_BIN", "build/release/bin"))
MADE = "Made by `tests/docs/reference.py --write`; a test compares.\n"

# Programs and where they run.
PROGRAMS = {
    "On nodes and beside the API server": ("controller", "dra-plugin", "sim-node"),
    "In pods": ("neuron-ls", "neuron-monitor", "neuron-top", "nccom-test", "trn-run", "trn-mem"),
    "Anywhere": ("trn-trace", "trn-checkpoint"),
}
CONTROLLER_COMMANDS = ("backup", "restore", "--check")


def help_of(*command):
    shown = subprocess.run([BIN / command[0], *command[1:]], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {shown.stderr}")
    text = re.sub(r"^(.*?) \d+\.\d+\.\d+:", r"\1:", shown.stdout or shown.stderr)
    return "".join(f"    {line}".rstrip() + "\n" for line in text.rstrip("\n").split("\n"))


def flags_page():
    parts = [f"# Flags\n\nWhat each program prints for `--help`. {MADE}"]
    for where, programs in PROGRAMS.items():
        parts.append(f"\n## {where}\n")
        for program in programs:
            parts.append(f"\n### {program}\n\n{help_of(program, '--help')}")
            if program == "controller":
                parts += [f"\n### controller {name}\n\n{help_of(program, name, '--help')}" for name in CONTROLLER_COMMANDS]
    general = help_of("kubectl-tahoma", "--help")
    parts.append(f"\n## kubectl tahoma\n\n{general}")
    for name in re.findall(r"^      (\w+) +\S", re.search(r"Commands:\n((?:      .*\n)+)", general)[1], re.M):
        if name != "help":
            own = help_of("kubectl-tahoma", "help", name).split("    Flags of every command:")[0].rstrip()
            parts.append(f"\n### kubectl tahoma {name}\n\n{own}\n")
    return "".join(parts)


def sources(*folders):
    """The sources as texts in which adjacent literals are one."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.cc")) + sorted((ROOT / folder).rglob("*.h")):
            yield re.sub(r'(?<!\\)"\s*\n\s*"', "", file.read_text())


def said_by(texts):
    """The first message of each code of EC2, with … for its values: constant -> message."""
    found = {}
    for text in texts:
        for name, message in re.findall(r'Refuse\(\s*(?:ec2::)?(k\w+),\s*"((?:[^"\\]|\\.)*)"', text):
            message = re.sub(r"\{[^}]*\}", "…", message.replace('\\"', '"'))
            found.setdefault(name, message.replace("|", "\\|"))
    return found


def ec2_rows():
    statuses = (ROOT / "controller/ec2/error.cc").read_text()
    of_name = dict(re.findall(r"\{(k\w+)\.name, (\d+)\}", statuses))
    said = said_by(sources("controller/ec2", "controller/reserve", "controller/core/blocks"))
    for header in ("controller/ec2/error.h", "controller/reserve/refusal.h"):
        for name, code in re.findall(r'Ec2Code (k\w+)\{"([^"]+)"', (ROOT / header).read_text()):
            yield code, of_name.get(name, "400"), said.get(name, "")
    for code, status in re.findall(r'\{"(\w+)", (\d+)\}', statuses):
        yield code, status, ""
    yield "InternalError", of_name.get("kInternalError", "500"), "an internal error occurred; the controller's log has it"


def kubernetes_rows():
    texts = list(sources("controller/apiserver", "controller/access"))
    pairs = {(code, reason) for text in texts
             for code, reason in re.findall(r'(?:Failure|Envelope|GenericError)\(\s*(\d{3}),\s*"([A-Za-z]+)"', text)}
    return sorted(pairs)


def errors_page():
    rows = sorted(set(ec2_rows()))
    lines = ["# Error codes\n", f"What clients test for. {MADE}", "## Kubernetes' API, standalone\n",
             "A failure is a `Status` with `code` and `reason` as Kubernetes has them; `message` and `details` say what is wrong.\n",
             "| code | reason |", "|---|---|", *(f"| {code} | `{reason}` |" for code, reason in kubernetes_rows()), "",
             "## EC2's API, REST and the conditions of Capacity Blocks\n",
             "The message is one of those that the sources have for the code; `…` stands for a value. "
             "[ec2-api.md](../formats/ec2-api.md#errors) says how errors are sent.\n",
             "| code | HTTP | a message |", "|---|---|---|",
             *(f"| `{code}` | {status} | {message} |" for code, status, message in rows)]
    return "\n".join(lines) + "\n"


def differing(pages):
    return [name for name, text in pages.items() if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text]


def main():
    pages = {"flags.md": flags_page(), "errors.md": errors_page()}
    if sys.argv[1:] == ["--write"]:
        for name, text in pages.items():
            (FOLDER / name).write_text(text)
        return 0
    if sys.argv[1:] == ["--self"]:
        planted = {name: text.replace("controller", "kontroller").replace("NotFound", "NotFond") for name, text in pages.items()}
        return 0 if sorted(differing(planted)) == sorted(pages) else 1
    wrong = differing(pages)
    for name in wrong:
        print(f"docs/reference/{name} differs from the code; tests/docs/reference.py --write mends it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
