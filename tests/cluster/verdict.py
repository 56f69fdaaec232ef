"""How a test of one check reports: a line, the failure if there is one, and the runner's summary."""

import subprocess
import time


class Failure(AssertionError):
    """Something does not hold."""


def judge(name, holds, check):
    """Calls `check`, prints whether it passed (it raises on failure), and returns the exit status."""
    error, began = None, time.monotonic()
    try:
        check()
    except (AssertionError, OSError, subprocess.CalledProcessError) as problem:
        error = str(problem)
    print(f"{'FAILED' if error else 'passed'}  {name}: {holds} ({time.monotonic() - began:.1f} s)")
    if error:
        print(error)
    print(f"{0 if error else 1} passed, {1 if error else 0} failed, 0 skipped")
    return 1 if error else 0
