#!/usr/bin/env python3
"""Stops everything that up.py started in DIR: SIGTERM, and SIGKILL to what ignores it for long.

    down.py DIR

Nodes go first, all at once: they end their pods, for which they need their plugins and the API.
"""

import os
import pathlib
import shutil
import signal
import sys
import time

GRACE_SECONDS = 45  # a sim-node gives its pods 10 s, and as much each to unprepare and to write


def alive(pid):
    """A zombie is not alive: its parent has not looked yet."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "\nState:\tZ" not in status


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def stop(entries):
    """Stops programs together. False when one of them had to be killed."""
    running = {entry.name: int(entry.read_text()) for entry in entries}
    for pid in running.values():
        send(pid, signal.SIGTERM)
    in_order = True
    deadline = time.monotonic() + GRACE_SECONDS
    for name, pid in running.items():
        while alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        if alive(pid):
            print(f"down.py: {name} ({pid}) ignored SIGTERM for {GRACE_SECONDS} s; killed", file=sys.stderr)
            send(pid, signal.SIGKILL)
            in_order = False
    for entry in entries:
        entry.unlink()
    return in_order


def remove_pods_folder(kept):
    """Removes what up.py made outside of DIR, and noted there."""
    if not kept.exists():
        return
    path = pathlib.Path(kept.read_text().strip())
    if path.parent == pathlib.Path("/tmp") and path.name.startswith("tahoma-pods-") and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    kept.unlink()


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    pids = pathlib.Path(sys.argv[1]) / "pids"
    entries = sorted(pids.iterdir(), key=lambda p: p.stat().st_mtime_ns) if pids.exists() else []
    stages = [[e for e in entries if e.suffix == kind] for kind in (".sim-node", ".dra-plugin")]
    stages += [[e] for e in reversed(entries) if e.suffix not in (".sim-node", ".dra-plugin")]
    results = [stop(stage) for stage in stages]
    remove_pods_folder(pathlib.Path(sys.argv[1]) / "pods-folder")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
