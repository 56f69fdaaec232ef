"""What the rows of run.py and cluster.py share: where our programs are, and what one of them takes of the machine."""

import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
BENCH = BIN.parent / "bench"


def output(*command):
    return subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def rss_mib(pid):
    line = re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    return int(line[1]) / 1024


def processor_seconds(pid):
    """What the process has used so far: utime and stime of /proc/PID/stat, which follow its name in brackets."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_percent(pid, seconds):
    """What the process uses of one processor in this time."""
    begin, used = time.monotonic(), processor_seconds(pid)
    time.sleep(seconds)
    return 100 * (processor_seconds(pid) - used) / (time.monotonic() - begin)
