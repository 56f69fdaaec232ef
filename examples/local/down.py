#!/usr/bin/env python3
"""Stops everything that up.py started in DIR: SIGTERM in reverse order, SIGKILL after a while.

    down.py DIR
"""

import os
import pathlib
import signal
import sys
import time

GRACE_SECONDS = 15


def alive(pid):
    """A zombie is not alive: its parent has not looked yet."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "\nState:\tZ" not in status


def stop(name, pid):
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + GRACE_SECONDS
    while alive(pid):
        if time.monotonic() > deadline:
            print(f"down.py: {name} ({pid}) ignored SIGTERM for {GRACE_SECONDS} s; killed", file=sys.stderr)
            os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.02)
    return True


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    pids = pathlib.Path(sys.argv[1]) / "pids"
    entries = sorted(pids.iterdir(), key=lambda p: p.stat().st_mtime_ns) if pids.exists() else []
    in_order = True
    for entry in reversed(entries):
        in_order = stop(entry.name, int(entry.read_text())) and in_order
        entry.unlink()
    return 0 if in_order else 1


if __name__ == "__main__":
    sys.exit(main())
