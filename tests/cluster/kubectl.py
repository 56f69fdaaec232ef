"""kubectl as tests run it, and how they wait for what a cluster does in its own time.

    kubectl("apply", "-f", "-", kubeconfig=path, given={"apiVersion": "v1", "kind": "Pod", …})
    self.assertIn("Forbidden", kubectl("get", "pods", environment={…, "KUBECONFIG": …}, fails=True))
    until("the pod is bound", lambda: "nodeName" in kubectl("get", "pod", "a", "-o", "json"), seconds=60)
"""

import json
import os
import subprocess
import time

from verdict import Failure

COMMAND_SECONDS = 240
PAUSE_SECONDS = 0.1


def kubectl(*arguments, kubeconfig=None, environment=None, given=None, fails=False, seconds=COMMAND_SECONDS):
    """Returns what it prints; with fails=True all that it says when it fails, as it must; with None whatever happens.

    `given` is its standard input: a text, or an object that becomes JSON. The cluster is that of `kubeconfig`, else of
    KUBECONFIG in `environment`, else of this process.
    """
    command = [os.environ.get("KUBECTL", "kubectl"), *(["--kubeconfig", kubeconfig] if kubeconfig else []), *arguments]
    done = subprocess.run([str(word) for word in command], env=environment, text=True, check=False, timeout=seconds,
                          input=given if given is None or isinstance(given, str) else json.dumps(given), capture_output=True)
    if fails is not None and (done.returncode != 0) != fails:
        raise Failure(f"kubectl {' '.join(map(str, arguments))} ended with status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr if fails else done.stdout


def until(what, holds, seconds, log=lambda: ""):
    """Waits, and returns what `holds` does; `log` says more of what went wrong."""
    deadline = time.monotonic() + seconds
    while not (result := holds()):
        if time.monotonic() > deadline:
            raise Failure(f"{what} did not happen within {seconds} s {log()}")
        time.sleep(PAUSE_SECONDS)
    return result
