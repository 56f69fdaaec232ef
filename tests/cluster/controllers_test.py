#!/usr/bin/env python3
"""Gangs whose pods are made by the controllers of others: JobSet's, the MPI operator, and Jobs that Kueue admits.

    controllers_test.py [Test.name]   in the repository's root, with KUBERNETES_BIN, JOBSET_BIN, MPI_BIN, TAHOMA_BIN
                                      and kubectl, as root; without KUEUE_BIN Kueue's test is skipped

The nodes are the four members of an UltraServer, with real kubelets. Manifests are those of examples/gangs.
"""

import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/scenarios", "tests/cluster", "examples/local"):
    sys.path.insert(0, str(ROOT / folder))

import ground as grounds  # noqa: E402
import others  # noqa: E402
from node_case import NodeCase  # noqa: E402

EXAMPLES = ROOT / "examples/gangs"
KUEUE = ("kueue",) if "KUEUE_BIN" in os.environ else ()
TOPOLOGY = {
    "networkLayers": ["nn-27951e8b5f0b6c4fe", "nn-e4ed5f6d14a986202", "nn-0f43aef49613f02d1"],
    "nodes": [{"name": f"trn2u-{place}", "instanceType": "trn2u.48xlarge",
               "ultraServer": {"id": "us-0123456789abcde0", "nodeId": place}} for place in range(4)]}
WAITS = ["sleep", "infinity"]
RESTART = "jobset.sigs.k8s.io/restart-attempt"
MADE = "jobsets.jobset.x-k8s.io,mpijobs.kubeflow.org,jobs,pods,resourceclaimtemplates"


def condition(of, kind):
    return next((one for one in of.get("status", {}).get("conditions", []) if one["type"] == kind), {"status": "", "message": ""})


def rank(pod):
    return int(pod["metadata"]["annotations"]["tahoma.dev/rank"])


class ControllersTest(NodeCase):
    @classmethod
    def setUpClass(cls):
        ground = cls.bring_up(TOPOLOGY)
        for name in ("jobset", "mpi") + KUEUE:
            others.start(ground.directory / "k", name)

    def setUp(self):
        self.until("the webhooks answer", lambda: self.kubectl(
            "create", "--dry-run=server", *(part for name in ("jobset",) + KUEUE for part in ("-f", EXAMPLES / f"{name}.yaml")),
            fails=None))
        self.addCleanup(self.until, "nothing is left", self.nothing_left)
        self.addCleanup(self.kubectl, "delete", MADE, "--all", "--timeout=90s")

    def nothing_left(self):
        left = self.get(f"gangs,resourceclaims,{MADE}")["items"]
        return not left and not any(node.claims() or node.cdi_claims() for node in self.nodes)

    def objects(self, file):
        return list(others.objects_of(self.kubectl("create", "--dry-run=client", "-o", "json", "-f", EXAMPLES / file)))

    def jobset_that_runs_on(self, **annotations):
        """The objects of the example, whose pods do not end; `annotations` of theirs that differ."""
        made = self.objects("jobset.yaml")
        template = made[-1]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        template["spec"]["containers"][0]["command"] = WAITS
        template["metadata"]["annotations"].update({f"tahoma.dev/gang-{key.replace('_', '-')}": value for key, value in annotations.items()})
        return made

    def members(self, gang):
        """The pods that were bound as members of the Gang and are not being deleted."""
        uid = gang["metadata"]["uid"]
        return [pod for pod in self.get("pods")["items"] if "deletionTimestamp" not in pod["metadata"] and
                pod["metadata"].get("annotations", {}).get("tahoma.dev/gang-uid") == uid]

    def running(self, name, members):
        """The Gang and its members by rank, when all run."""
        def whole():
            gang = next((one for one in self.get("gangs")["items"] if one["metadata"]["name"] == name), None)
            if gang is None or gang.get("status", {}).get("phase") != "Running":
                return None
            pods = sorted(self.members(gang), key=rank)
            return (gang, pods) if len(pods) == members else None
        gang, pods = self.until(f"gang {name} runs", whole)
        self.assertEqual([rank(pod) for pod in pods], list(range(members)))
        self.assertEqual(len({pod["spec"]["nodeName"] for pod in pods}), members)
        return gang, pods

    def test_the_pods_of_all_jobs_of_a_jobset_are_one_gang(self):
        self.kubectl("apply", "-f", EXAMPLES / "jobset.yaml")
        self.until("the JobSet is completed", lambda: condition(self.get("jobset", "train-set"), "Completed")["status"] == "True")
        pods = self.get("pods")["items"]
        self.assertEqual(len(pods), 4)
        self.assertEqual({pod["metadata"]["annotations"]["tahoma.dev/world-size"] for pod in pods}, {"4"})
        self.assertEqual(len({pod["metadata"]["annotations"]["tahoma.dev/gang-uid"] for pod in pods}), 1)
        # Job after Job, and in each by the pods' indexes.
        def index(pod):
            labels = pod["metadata"]["labels"]
            return int(labels["jobset.sigs.k8s.io/job-index"]), int(labels["batch.kubernetes.io/job-completion-index"])
        self.assertEqual([index(pod) for pod in sorted(pods, key=rank)], [(0, 0), (0, 1), (1, 0), (1, 1)])
        self.assertEqual(self.get("jobset", "train-set")["status"].get("restarts", 0), 0)

    def test_a_jobset_that_loses_a_pod_begins_again_on_the_same_chips(self):
        self.apply(*self.jobset_that_runs_on())
        before, pods = self.running("train-set", 4)
        self.kubectl("delete", "pod", pods[2]["metadata"]["name"], "--wait=false")
        self.until("all Jobs are of the next attempt", lambda: {
            job["metadata"]["labels"][RESTART] for job in self.get("jobs")["items"]} == {"1"})
        after, anew = self.running("train-set", 4)
        self.assertFalse({pod["metadata"]["uid"] for pod in pods} & {pod["metadata"]["uid"] for pod in anew})
        self.assertEqual(after["metadata"]["uid"], before["metadata"]["uid"], "the Gang is the JobSet's, not a Job's")
        self.assertEqual([pod["spec"]["nodeName"] for pod in anew], [pod["spec"]["nodeName"] for pod in pods])
        self.assertEqual(self.get("jobset", "train-set")["status"]["restarts"], 1, "one loss is one restart")

    def test_each_job_of_a_jobset_may_be_a_gang_of_its_own(self):
        self.apply(*self.jobset_that_runs_on(group_label="batch.kubernetes.io/job-name", members="2", shape="4x4x2"))
        for job in range(2):
            _, pods = self.running(f"train-set-workers-{job}", 2)
            self.assertEqual({pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"] for pod in pods}, {str(job)})

    def test_the_workers_of_an_mpijob_are_a_gang_and_its_launcher_is_none_of_them(self):
        self.apply(*self.objects("mpijob.yaml"))
        gang, pods = self.running("train-mpi", 2)
        self.assertEqual(gang["status"]["slices"][0]["shape"], "4x4x2")
        self.assertEqual([pod["metadata"]["name"] for pod in pods], ["train-mpi-worker-0", "train-mpi-worker-1"])
        self.until("the MPIJob has succeeded", lambda: condition(self.get("mpijob", "train-mpi"), "Succeeded")["status"] == "True")
        launcher, = self.get("pods", "-l", "training.kubeflow.org/job-role=launcher")["items"]
        said = self.kubectl("logs", launcher["metadata"]["name"])
        self.assertEqual([line.split(".")[0] for line in said.splitlines()], [pod["metadata"]["name"] for pod in pods])
        self.until("the Gang's claims are given back", lambda: not any(node.claims() for node in self.nodes))

    def test_a_launcher_runs_while_its_workers_wait_for_chips(self):
        self.apply(*self.jobset_that_runs_on())
        self.running("train-set", 4)
        objects = self.objects("mpijob.yaml")
        objects[-1]["spec"]["launcherCreationPolicy"] = "AtStartup"
        objects[-1]["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"] = WAITS
        self.apply(*objects)
        self.until("the launcher runs", lambda: [pod["status"]["phase"] for pod in self.get(
            "pods", "-l", "training.kubeflow.org/job-role=launcher")["items"]] == ["Running"])
        waiting = self.until("the workers know why they wait", lambda: condition(self.get("gang", "train-mpi"), "Placed")["message"])
        self.assertFalse([pod for pod in self.get("pods", "-l", "training.kubeflow.org/job-role=worker")["items"]
                          if pod["spec"].get("nodeName")], waiting)
        self.kubectl("delete", "jobset", "train-set", "--timeout=90s")
        self.running("train-mpi", 2)

    @unittest.skipUnless(KUEUE, "KUEUE=1 runs it")
    def test_kueue_admits_a_job_whose_chips_its_quota_has_and_the_next_one_when_it_ends(self):
        self.addCleanup(self.kubectl, "delete", "-f", EXAMPLES / "kueue.yaml", "--ignore-not-found", "--timeout=90s")
        self.kubectl("apply", "-f", EXAMPLES / "kueue.yaml")
        gang, pods = self.running("queued-first", 2)
        self.assertEqual(gang["status"]["slices"][0]["shape"], "4x4x2")
        self.assertEqual({pod["spec"]["nodeSelector"]["node.kubernetes.io/instance-type"] for pod in pods}, {"trn2u.48xlarge"})
        second = self.until("the second Job waits for quota", lambda: next((one for one in self.get("workloads")["items"] if
            one["metadata"]["ownerReferences"][0]["name"] == "queued-second" and "insufficient" in condition(one, "QuotaReserved")["message"]), None))
        self.assertIn("tahoma.dev/chips", condition(second, "QuotaReserved")["message"])
        self.assertTrue(self.get("job", "queued-second")["spec"]["suspend"])
        # Thirty-two chips are free: the quota alone is in its way.
        self.assertEqual([one["metadata"]["name"] for one in self.get("gangs")["items"]], ["queued-first"])
        self.kubectl("delete", "job", "queued-first", "--timeout=90s")
        self.running("queued-second", 2)


if __name__ == "__main__":
    grounds.in_own_network()
    unittest.main(verbosity=2, warnings="ignore")  # programs that are started outlive the objects that started them
