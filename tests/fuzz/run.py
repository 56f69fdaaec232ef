#!/usr/bin/env python3
"""Runs the fuzz targets of build/fuzz with libFuzzer and prints what came of it.

    tests/fuzz/run.py --time 60s                all targets, one after the other
    tests/fuzz/run.py --time 1h --jobs 2 api    two processes at a time; this target only
    tests/fuzz/run.py --least 1h                until each has used an hour of processor time in all
    tests/fuzz/run.py --keep api                adds to the corpus of the tree what reaches more, and its time

Each target begins with the corpus of the tree, unpacked by the build (corpus.py), and with what earlier runs found, which is kept in
the cache folder ($TAHOMA_CACHE or ~/.cache/tahoma) under fuzz/TARGET. An input that fails stays in
fuzz/findings there; the command that repeats it is printed, and the status is 1.

fuzz/account.json there holds the seconds of processor time that each target has used; --keep moves them
to tests/fuzz/account.json, where the time of all machines adds up. With --least the target that has used least comes next, for --time at a time (5m unless given), but
none again that failed. A file fuzz/stop ends the run after the targets that are under way.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

import corpus

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT_ACCOUNT = ROOT / "tests/fuzz/account.json"
DICTIONARIES = ROOT / "tests/fuzz/dictionaries"
PROGRAMS = ROOT / "build/fuzz/fuzz"
UNPACKED = ROOT / "build/fuzz/corpus"

# The time and the memory beyond which one input counts as a hang, or as a flood. On a busy machine a minute is
# little; processor_time.h has the limit for work that ends.
SECONDS_MAX = 300
MEGABYTES_MAX = 3072
# The size of inputs that libFuzzer makes up, and of those that are kept in the tree.
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
    if (UNPACKED / target).is_dir():
        command.append(str(UNPACKED / target))
    dictionary = DICTIONARIES / f"{target}.dict"
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    return command + [
        f"-max_total_time={seconds}", f"-timeout={SECONDS_MAX}",
        f"-report_slow_units={SECONDS_MAX}", f"-rss_limit_mb={MEGABYTES_MAX}",
        f"-max_len={BYTES_MAX}", f"-artifact_prefix={findings}/{target}-", "-print_final_stats=1"
    ]


def write_account(file, seconds_of_target):
    new = file.with_suffix(".new")
    new.write_text(json.dumps(seconds_of_target, indent=1, sort_keys=True) + "\n")
    new.replace(file)


def read_account(file):
    return json.loads(file.read_text()) if file.exists() else {}


class Account:
    """Seconds of processor time by target: a file for this machine, one for what is kept. For several threads."""

    def __init__(self, file, kept_file):
        self.file, self.kept_file = file, kept_file
        self.lock = threading.Lock()

    def of(self, target):
        """The target's seconds in all runs."""
        return read_account(self.file).get(target, 0) + read_account(self.kept_file).get(target, 0)

    def add(self, target, seconds):
        """The target's seconds with these."""
        with self.lock:
            here = read_account(self.file)
            here[target] = round(here.get(target, 0) + seconds, 2)
            write_account(self.file, here)
            return self.of(target)

    def keep(self, target):
        """Moves the target's seconds to what is kept."""
        here, kept = read_account(self.file), read_account(self.kept_file)
        kept[target] = round(kept.get(target, 0) + here.pop(target, 0), 2)
        write_account(self.kept_file, kept)
        write_account(self.file, here)


class Turns:
    """Which target runs next; iterated by several threads, it names none that runs."""

    def __init__(self, targets, account, least, stop):
        self.targets, self.account, self.least, self.stop = list(targets), account, least, stop
        self.running, self.failed, self.lock = set(), set(), threading.Lock()

    def next(self):
        """None: no more, or not as long as what runs now goes on."""
        with self.lock:
            used = {target: self.account.of(target) for target in self.targets}
            open_ = [target for target in self.targets
                     if target not in self.running | self.failed
                     and (self.least is None or used[target] < self.least)]
            if not open_ or self.stop.exists():
                return None
            target = open_[0] if self.least is None else min(open_, key=used.get)
            self.running.add(target)
            if self.least is None:
                self.targets.remove(target)
            return target

    def ended(self, target, well):
        with self.lock:
            self.running.remove(target)
            if not well:
                self.failed.add(target)


def measured(command, log_file):
    """(status, seconds of processor time) of the command, also when it is interrupted."""
    with open(log_file, "w") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
    while True:
        try:
            _, status, usage = os.wait4(process.pid, 0)
            break
        except KeyboardInterrupt:
            process.terminate()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def number_in(pattern, log):
    found = re.findall(pattern, log)
    return int(found[-1]) if found else 0


def run(target, seconds, account):
    """(lines of the summary, whether nothing failed)"""
    log_file = cache() / f"{target}.log"
    status, used = measured(command_of(target, seconds), log_file)
    minutes = account.add(target, used) / 60
    log = log_file.read_text(errors="replace")
    inputs = sum(1 for _ in (cache() / target).iterdir())
    failed = re.findall(r"Test unit written to (\S+)", log)
    runs = number_in(r"number_of_executed_units: (\d+)", log)
    edges = number_in(r"cov: (\d+)", log)
    line = f"{target:12} {runs:12} {edges:8} {inputs:8} {minutes:7.1f}m {len(failed):9}"
    for file in failed:
        line += f"\n  {file}\n  repeat: {PROGRAMS / target} {file}\n  log: {log_file}"
    if status != 0 and not failed:
        line += f"\n  ended with status {status}; log: {log_file}"
    return line, status == 0


def run_all(targets, options):
    """Whether nothing failed."""
    print(f"{'target':12} {'runs':>12} {'edges':>8} {'inputs':>8} {'cpu':>8} {'findings':>9}",
          flush=True)
    cache().mkdir(parents=True, exist_ok=True)
    stop = cache() / "stop"
    account = Account(cache() / "account.json", KEPT_ACCOUNT)
    turns = Turns(targets, account, options.least, stop)
    seconds = options.time or (300 if options.least else 60)

    def work():
        while (target := turns.next()) is not None:
            line, well = run(target, seconds, account)
            turns.ended(target, well)
            print(line, flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for worker in [pool.submit(work) for _ in range(options.jobs)]:
            worker.result()
    if stop.exists():
        print(f"stopped by {stop}; remove it to go on")
    return not turns.failed


def keep(target):
    """Inputs of the cache that reach code that the corpus in the tree does not are copied there; the time is moved.

    As few as reach all of it, and not those that only go a loop more often: these are thousands."""
    with tempfile.TemporaryDirectory() as name:
        merged = pathlib.Path(name)
        corpus.unpack_target(target, merged)
        command = [str(PROGRAMS / target), "-set_cover_merge=1", "-use_counters=0", f"-max_len={BYTES_MAX}",
                   str(merged), str(cache() / target)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        added = corpus.add(target, {file.name: file.read_bytes() for file in merged.iterdir()})
    Account(cache() / "account.json", KEPT_ACCOUNT).keep(target)
    print(f"{target}: {added} inputs added")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", type=seconds_of, help="for each target: 90s, 5m, 1h")
    parser.add_argument("--least", type=seconds_of,
                        help="processor time that each target is to have used in all runs")
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
    return 0 if run_all(targets, options) else 1


if __name__ == "__main__":
    sys.exit(main())
