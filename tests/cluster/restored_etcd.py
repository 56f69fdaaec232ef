#!/usr/bin/env python3
"""A real etcd is restored from a backup under a controller that runs: the journal is published again.

    restored_etcd.py        needs what the cluster's scenarios need: KUBERNETES_BIN, TAHOMA_BIN, kubectl

The backup is of the moment when the objects of a gang were made and the controller had not seen them. Then the
gang gets its chips and runs, and kube-apiserver, kube-controller-manager and etcd are stopped, restored and
started again, while the controller, which is the leader, the plugins and the nodes run on. Afterwards the
claims must be allocated as before and the pods bound as before, with no chip in two claims, no pod bound before
all claims of its gang are allocated, and a new gang must get chips of its own.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/scenarios"))
import run as scenarios  # noqa: E402
import kubectl  # noqa: E402
from verdict import Failure, judge  # noqa: E402

UNTIL_SECONDS = 90


class Cluster:
    def __init__(self, ground, environment):
        self.plane = ground.directory / "k"
        self.environment = environment
        self.controller = int((ground.directory / "t/pids/controller").read_text())
        self.log = ground.directory / "t/log/controller.log"

    def shell(self, command):
        status, output = scenarios.execute(command, self.environment)
        if status != 0:
            raise Failure(f"{command}\n  ended with status {status}:\n{output}")
        return output

    def items(self, kind):
        """The objects of a kind; None when the API server does not answer."""
        status, output = scenarios.execute(f"kubectl get {kind} -o json 2>/dev/null", self.environment)
        return json.loads(output)["items"] if status == 0 else None

    def control_plane(self, *arguments):
        subprocess.run([sys.executable, HERE / "control_plane.py", arguments[0], self.plane, *arguments[1:]],
                       check=True)

    def make_gang(self, name, shape, members):
        self.shell(f"examples/gangs/make_gang.py {name} {shape} {members} --command 'sleep 1000' | kubectl apply -f -")

    def claims(self, gang):
        """The chips of each of the gang's claims, by the claim's name; None: not allocated."""
        return {claim["metadata"]["name"]: chips_of(claim) for claim in self.items("resourceclaims") or []
                if claim["metadata"]["name"].startswith(f"{gang}-")}

    def nodes(self, gang):
        """The node of each of the gang's pods, by the pod's name; None: not bound."""
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in self.items("pods") or []
                if pod["metadata"]["labels"].get("tahoma.dev/gang") == gang}

    def runs(self, gang, members):
        pods = [pod for pod in self.items("pods") or [] if pod["metadata"]["labels"].get("tahoma.dev/gang") == gang]
        return len(pods) == members and all(pod["status"].get("phase") == "Running" for pod in pods)

    def until(self, what, holds):
        def holds_by_rules():
            held = holds()
            self.check_rules()
            return held
        kubectl.until(what, holds_by_rules, UNTIL_SECONDS, lambda: (
            self.shell("kubectl get gangs,pods,resourceclaims -o wide; kubectl get events | tail -20") + self.log.read_text()[-4000:]))

    def check_rules(self):
        """No chip in two claims. A bound pod's gang has all its claims: pods are read first, and stay bound."""
        pods, claims = self.items("pods"), self.items("resourceclaims")
        if pods is None or claims is None:
            return
        owner = {}
        for claim in claims:
            name = claim["metadata"]["name"]
            for chip in chips_of(claim) or []:
                if owner.setdefault(chip, name) != name:
                    raise Failure(f"chip {chip} is in the claims {owner[chip]} and {name}")
        without = {claim["metadata"]["name"] for claim in claims if chips_of(claim) is None}
        for pod in pods:
            gang = pod["metadata"]["labels"].get("tahoma.dev/gang")
            partial = [name for name in without if gang and name.startswith(f"{gang}-")]
            if pod["spec"].get("nodeName") and partial:
                raise Failure(f"pod {pod['metadata']['name']} is bound, and {partial} are not allocated")

    def expect(self, what, actual, expected):
        if actual != expected:
            raise Failure(f"{what} are\n  {actual}\nand were\n  {expected}")


def chips_of(claim):
    allocation = claim.get("status", {}).get("allocation")
    if allocation is None:
        return None
    return sorted(f"{result['pool']}/{result['device']}" for result in allocation["devices"]["results"])


def made_but_not_seen(cluster, backup):
    """Makes a gang while the controller stands still, and a backup of that moment."""
    os.kill(cluster.controller, signal.SIGSTOP)
    try:
        cluster.make_gang("after", "4x4", 2)
        cluster.until("kube-controller-manager makes the claims", lambda: len(cluster.claims("after")) == 2)
        cluster.control_plane("save", backup)
    finally:
        os.kill(cluster.controller, signal.SIGCONT)


def check(cluster):
    backup = cluster.plane / "backup.db"
    cluster.make_gang("before", "4x4", 2)
    cluster.until("the gang that the backup knows runs", lambda: cluster.runs("before", 2))
    made_but_not_seen(cluster, backup)
    cluster.until("the gang runs that the backup has unplaced", lambda: cluster.runs("after", 2))
    known = {gang: (cluster.claims(gang), cluster.nodes(gang)) for gang in ("before", "after")}
    cluster.control_plane("restore", backup)
    for gang, (_, nodes) in known.items():
        cluster.until(f"the pods of gang {gang} are bound again",
                      lambda gang=gang, nodes=nodes: cluster.nodes(gang) == nodes)
    for gang, (claims, _) in known.items():
        cluster.expect(f"the claims of gang {gang}", cluster.claims(gang), claims)
        cluster.until(f"gang {gang} runs again", lambda gang=gang: cluster.runs(gang, 2))
    os.kill(cluster.controller, 0)  # it runs on: nobody has started another
    if "reading everything anew" not in cluster.log.read_text():
        raise Failure(f"the controller has not noticed:\n{cluster.log.read_text()[-4000:]}")
    cluster.make_gang("next", "4x4", 2)
    cluster.until("a new gang runs", lambda: cluster.runs("next", 2))
    for gang, (claims, nodes) in known.items():
        cluster.expect(f"the claims of gang {gang}", cluster.claims(gang), claims)
        cluster.expect(f"the nodes of gang {gang}", cluster.nodes(gang), nodes)


def check_in_a_cluster():
    bin_dir = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
    ground = scenarios.Ground("cluster", bin_dir)
    with ground as environment:
        try:
            check(Cluster(ground, environment))
        finally:
            status, output = scenarios.execute(scenarios.CLEAN_UP, environment)
        if status != 0:
            raise Failure(f"something is left after the test:\n{output}")
    if not ground.ended_in_order:
        raise Failure("a program did not end in order")  # down.py has said which


if __name__ == "__main__":
    sys.exit(judge("restored-etcd", "what the journal decided is published again", check_in_a_cluster))
