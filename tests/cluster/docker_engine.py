"""A Docker engine for kind: the machine's, or Debian's dockerd in this process' network namespace.

    engine = docker_engine.find()                  # None: the machine has no engine that answers
    engine = engine or docker_engine.start(folder)
    subprocess.run(["docker", "ps"], env=engine.environment)
    engine.stop()

dockerd is started where no engine runs: as root, with docker.io of Debian, in a network namespace of its own (unshare
--net), which takes its bridges and rules away at the end. Images stay in the cache for the next time.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import kind_image

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS = 60
STOP_SECONDS = 60
CAP_SYS_RESOURCE = 24  # include/uapi/linux/capability.h


class Engine:
    """`environment`: for programs that use it. `own`: started here, and stop() ends it."""

    def __init__(self, environment, process=None):
        self.environment = environment
        self.own = process is not None
        self.process = process

    def stop(self):
        if not self.own:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            sys.exit(f"dockerd did not end within {STOP_SECONDS} s")


def answers(environment):
    return subprocess.run(["docker", "version"], env=environment, capture_output=True, check=False).returncode == 0


def find():
    """The machine's engine, if one answers."""
    return Engine(dict(os.environ)) if shutil.which("docker") and answers(os.environ) else None


def why_not():
    """Why no engine can be started here; None: one can."""
    if os.geteuid() != 0:
        return "no Docker engine answers, and only root can start one"
    for program in ("docker", "dockerd", "iptables", "runc"):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            return f"no Docker engine answers, and there is no {program} (.ci/setup kind installs it)"
    done = subprocess.run(["unshare", "--net", "ip", "link", "add", "probe", "type", "bridge"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"no Docker engine answers, and one of our own needs a network namespace with bridges: {done.stderr.strip()}"
    return None


def may_raise_limits():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"CapBnd:\s*(\w+)", status)[1], 16) >> CAP_SYS_RESOURCE & 1 == 1


def start(folder):
    """dockerd, whose socket and log are in `folder`. Containers that an earlier one has left are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    socket = f"unix://{folder}/docker.sock"
    environment = {**os.environ, "DOCKER_HOST": socket, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    environment.pop("DOCKER_CONTEXT", None)
    # dockerd 20.10 gives a privileged container every capability, one that this machine's root lacks too.
    runtime = [] if may_raise_limits() else ["--add-runtime", f"filter={HERE / 'runc_filter.sh'}", "--default-runtime", "filter"]
    with open(folder / "dockerd.log", "ab") as log:
        process = subprocess.Popen(
            ["dockerd", "--host", socket, "--data-root", kind_image.cache() / "docker", "--exec-root", folder / "exec",
             "--pidfile", folder / "dockerd.pid", "--bip", "172.31.99.1/24", *runtime],
            env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    engine = Engine(environment, process)
    try:
        wait_for_answer(engine, folder / "dockerd.log")
        left = subprocess.run(["docker", "ps", "--all", "--quiet"], env=environment, capture_output=True, text=True, check=True).stdout.split()
        if left:
            subprocess.run(["docker", "rm", "--force", "--volumes", *left], env=environment, capture_output=True, check=True)
    except BaseException:
        engine.stop()
        raise
    return engine


def wait_for_answer(engine, log):
    deadline = time.monotonic() + START_SECONDS
    while not answers(engine.environment):
        if engine.process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"dockerd does not answer:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)
