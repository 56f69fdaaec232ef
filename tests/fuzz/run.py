#!/usr/bin/env python3
"""Runs the fuzz targets of build/fuzz with libFuzzer and prints what came of it.

    tests/fuzz/run.py --time 60s                all targets, one after the other
    tests/fuzz/run.py --time 1h --jobs 2 api    two processes at a time; this target only
    tests/fuzz/run.py --keep api                adds to tests/fuzz/corpus/api what reaches more

Each target begins with tests/fuzz/corpus/TARGET and with what earlier runs found, which is kept in
the cache folder ($TAHOMA_CACHE or ~/.cache/tahoma) under fuzz/TARGET. An input that fails stays in
fuzz/findings there; the command that repeats it is printed, and the status is 1.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/fuzz/corpus"
DICTIONARIES = ROOT / "tests/fuzz/dictionaries"
PROGRAMS = ROOT / "build/fuzz/fuzz"

# What one input may take before it counts as a hang, and as a flood.
SECONDS_MAX = 20
MEGABYTES_MAX = 3072
# Of inputs that libFuzzer makes up, and of those that are kept in the tree.
BYTES_MAX = 8192


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("TAHOMA_CACHE") or os.path.join(home, "tahoma")) / "fuzz"


def seconds_of(text):
    match = re.fullmatch(r"(\d+)([smh]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is no time; write 90s, 5m or 1h")
    return int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def command_of(target, seconds):
    """The program's command line; new inputs go to the first folder."""
    found, findings = cache() / target, cache() / "findings"
    for folder in (found, findings):
        folder.mkdir(parents=True, exist_ok=True)
    command = [str(PROGRAMS / target), str(found)]
    if (CORPUS / target).is_dir():
        command.append(str(CORPUS / target))
    dictionary = DICTIONARIES / f"{target}.dict"
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    return command + [
        f"-max_total_time={seconds}", f"-timeout={SECONDS_MAX}", f"-rss_limit_mb={MEGABYTES_MAX}",
        f"-max_len={BYTES_MAX}", f"-artifact_prefix={findings}/{target}-", "-print_final_stats=1"
    ]


def number_in(pattern, log):
    found = re.findall(pattern, log)
    return int(found[-1]) if found else 0


def run(target, seconds):
    """(line of the summary, whether nothing failed)"""
    log_file = cache() / f"{target}.log"
    command = command_of(target, seconds)
    with open(log_file, "w") as out:
        status = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT).returncode
    log = log_file.read_text(errors="replace")
    inputs = sum(1 for _ in (cache() / target).iterdir())
    failed = re.findall(r"Test unit written to (\S+)", log)
    runs = number_in(r"number_of_executed_units: (\d+)", log)
    edges = number_in(r"cov: (\d+)", log)
    line = f"{target:12} {runs:12} {edges:8} {inputs:8} {len(failed):9}"
    for file in failed:
        line += f"\n  {file}\n  repeat: {PROGRAMS / target} {file}\n  log: {log_file}"
    if status != 0 and not failed:
        line += f"\n  ended with status {status}; log: {log_file}"
    return line, status == 0


def keep(target):
    """Inputs of the cache that reach what the corpus in the tree does not are copied there."""
    command = [str(PROGRAMS / target), "-merge=1", f"-max_len={BYTES_MAX}",
               str(CORPUS / target), str(cache() / target)]
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    before = len(list((CORPUS / target).iterdir()))
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    print(f"{target}: {len(list((CORPUS / target).iterdir())) - before} inputs added")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", type=seconds_of, default=60, help="for each target: 90s, 5m, 1h")
    parser.add_argument("--jobs", type=int, default=1, help="targets that run at the same time")
    parser.add_argument("--keep", action="store_true", help="only add found inputs to the tree")
    parser.add_argument("targets", nargs="*", help="all when none is named")
    options = parser.parse_args()
    targets = options.targets or sorted(file.name for file in PROGRAMS.iterdir())
    for target in targets:
        if not (PROGRAMS / target).exists():
            sys.exit(f"{PROGRAMS / target} is not there; `make fuzz` builds it")
    if options.keep:
        for target in targets:
            keep(target)
        return 0
    print(f"{'target':12} {'runs':>12} {'edges':>8} {'inputs':>8} {'findings':>9}", flush=True)
    right = True
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for line, well in pool.map(lambda target: run(target, options.time), targets):
            print(line, flush=True)
            right = right and well
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
