#!/usr/bin/env python3
"""clang-tidy on every source of ours, and only once on each state of it.

    clang_tidy.py BUILD_FOLDER        the folder has compile_commands.json

A source that was clean is not read again until it, a header of it, .clang-tidy or clang-tidy itself
changes: its preprocessed text is the key. A first run takes about 25 minutes on two cores.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ("lib/", "sim-node/", "dra-plugin/", "controller/")
# Paths that the analyzer follows through one function: the default, 225,000, triples the time.
NODES = ["--extra-arg=-Xclang", "--extra-arg=-analyzer-config", "--extra-arg=-Xclang", "--extra-arg=max-nodes=20000"]


def commands(build):
    """(source, compile command) of each source of ours, in the order of their paths."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
        if path.startswith(FOLDERS):
            found[path] = entry
    return sorted(found.items())


def key_of(entry, rules):
    words = shlex.split(entry["command"])
    for flag in ("-o", "-c", "-MF", "-MT"):
        while flag in words:
            at = words.index(flag)
            del words[at:at + (1 if flag == "-c" else 2)]
    words = words[next(i for i, word in enumerate(words) if "clang" in os.path.basename(word)):]
    words = [word for word in words if word not in ("-MD", "-MMD")] + ["-E", "-P", "-o", "-"]
    text = subprocess.run(words, cwd=entry["directory"], check=True, stdout=subprocess.PIPE).stdout
    return hashlib.sha256(rules + text).hexdigest()


def check(build, path, entry, rules):
    """Returns clang-tidy's findings in the source; empty when it is clean."""
    stamp = build / "clean" / key_of(entry, rules)
    if stamp.exists():
        return ""
    done = subprocess.run(["clang-tidy", "--quiet", *NODES, "-p", str(build), str(ROOT / path)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if done.returncode == 0:
        stamp.touch()
        return ""
    return done.stdout or f"{path}: clang-tidy ended with status {done.returncode}\n"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    (build / "clean").mkdir(exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], check=True, stdout=subprocess.PIPE).stdout
    rules = version + (ROOT / ".clang-tidy").read_bytes()
    sources = commands(build)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(check, build, path, entry, rules): path for path, entry in sources}
        for count, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            print(f"clang-tidy {count}/{len(sources)} {jobs[job]}", file=sys.stderr)
            if said := job.result():
                bad += 1
                print(said, end="", flush=True)
    print(f"clang-tidy: {len(sources) - bad} of {len(sources)} sources clean")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
