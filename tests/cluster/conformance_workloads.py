"""Cases of conformance.py about kinds that make pods, in a namespace of their own."""

import json

from conformance_case import APPLY, CELLS, JSON_PATCH, MERGE, PARTIAL, STRATEGIC, TABLE, case

SPACE = "workloads"
APPS = f"/apis/apps/v1/namespaces/{SPACE}"
BATCH = f"/apis/batch/v1/namespaces/{SPACE}"
POLICY = f"/apis/policy/v1/namespaces/{SPACE}"
CORE = f"/api/v1/namespaces/{SPACE}"
PATHS = {"Deployment": f"{APPS}/deployments", "ReplicaSet": f"{APPS}/replicasets",
         "StatefulSet": f"{APPS}/statefulsets", "DaemonSet": f"{APPS}/daemonsets", "Job": f"{BATCH}/jobs",
         "PodDisruptionBudget": f"{POLICY}/poddisruptionbudgets", "Endpoints": f"{CORE}/endpoints",
         "ControllerRevision": f"{APPS}/controllerrevisions"}
GROUPS = {"Job": "batch/v1", "PodDisruptionBudget": "policy/v1", "Endpoints": "v1"}
MAKE_PODS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")

# kube-controller-manager works on the real server's objects meanwhile.
CONTROLLED = ["status", "metadata.annotations", "metadata.generation", "items.status", "items.metadata.annotations",
              "items.metadata.generation"]
# Go prints a struct of its own where we print the object's fields (docs/kubernetes-api.md).
FIELDS = ["code", "reason", "details.kind", "details.group", "details.causes"]
WHICH = ["code", "reason"]


def template(labels=None, **spec):
    return {"metadata": {"labels": {"app": "w"} if labels is None else labels},
            "spec": {"containers": [{"name": "main", "image": "tahoma.dev/workload:v1"}], **spec}}


def workload(kind, name, **spec):
    """One that makes no pods; a field that is None is left out."""
    whole = {"template": template(restartPolicy="Never") if kind == "Job" else template()}
    if kind == "Job":
        whole["suspend"] = True
    else:
        whole["selector"] = {"matchLabels": {"app": "w"}}
    if kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        whole["replicas"] = 0
    if kind == "StatefulSet":
        whole["serviceName"] = "svc"
    whole.update(spec)
    return {"apiVersion": GROUPS.get(kind, "apps/v1"), "kind": kind, "metadata": {"name": name},
            "spec": {field: value for field, value in whole.items() if value is not None}}


def other(kind, name, **content):
    return {"apiVersion": GROUPS.get(kind, "apps/v1"), "kind": kind, "metadata": {"name": name}, **content}


def make(what, kind, name, **spec):
    return case(what, "POST", PATHS[kind], workload(kind, name, **spec))


def bad(what, kind, only=None, **spec):
    rest = {"only": only} if only else {}
    return case(f"{kind}: {what}", "POST", f"{PATHS[kind]}?dryRun=All", workload(kind, "bad", **spec), **rest)


def bad_other(what, kind, only=None, **content):
    rest = {"only": only} if only else {}
    return case(f"{kind}: {what}", "POST", f"{PATHS[kind]}?dryRun=All", other(kind, "bad", **content), **rest)


def patch(what, kind, name, body, headers=MERGE, **rest):
    return case(f"{kind}: {what}", "PATCH", f"{PATHS[kind]}/{name}", body, headers=headers,
                **{"ignore": CONTROLLED, **rest})


def expression(**one):
    return {"matchExpressions": [one]}


def bad_templates(kind):
    """What each kind says of a selector and a template."""
    return [
        bad("no selector", kind, selector=None),
        bad("an empty selector", kind, selector={}, only=FIELDS),
        bad("a selector of other labels", kind, selector={"matchLabels": {"app": "other"}}),
        bad("a selector with an unknown operator", kind, selector=expression(key="app", operator="Is", values=["w"]),
            only=WHICH),
        bad("In without values", kind, selector=expression(key="app", operator="In"), only=WHICH),
        bad("Exists with values", kind, selector=expression(key="app", operator="Exists", values=["w"]), only=WHICH),
        bad("a selector that matches by expressions", kind,
            selector=expression(key="app", operator="In", values=["v", "w"])),
        bad("a selector with a bad value", kind, selector={"matchLabels": {"app": "-w-"}}, only=WHICH),
        bad("a template with a bad label", kind, template=template({"app": "w", "b": "-"})),
        bad("a restart policy", kind, template=template(restartPolicy="Never")),
        bad("a deadline", kind, template=template(activeDeadlineSeconds=5)),
        bad("no containers", kind, template=template(containers=[])),
        bad("no image", kind, template=template(containers=[{"name": "main"}])),
        bad("a bad container name", kind, template=template(containers=[{"name": "Main", "image": "i"}])),
        bad("a limit below the request", kind, template=template(containers=[{
            "name": "main", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}])),
        bad("negative seconds", kind, minReadySeconds=-1),
        bad("a text for a number", kind, minReadySeconds="1"),
        bad("a list for a template", kind, template=[]),
    ]


def deployments():
    path = PATHS["Deployment"]
    return [
        make("a Deployment with its defaults", "Deployment", "d1"),
        case("again", "POST", path, workload("Deployment", "d1")),
        case("read", "GET", f"{path}/d1", ignore=CONTROLLED),
        case("one that is not there", "GET", f"{path}/none"),
        *bad_templates("Deployment"),
        bad("negative replicas", "Deployment", replicas=-1),
        bad("a negative history", "Deployment", revisionHistoryLimit=-1),
        bad("a deadline before it is ready", "Deployment", minReadySeconds=600),
        bad("an unknown strategy", "Deployment", strategy={"type": "Blue"}, only=WHICH),
        bad("recreate, rolling", "Deployment", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
        bad("recreate", "Deployment", strategy={"type": "Recreate"}),
        bad("no room at all", "Deployment", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
        bad("a bad percentage", "Deployment", strategy={"rollingUpdate": {"maxUnavailable": "half"}}),
        bad("too many percent", "Deployment", strategy={"rollingUpdate": {"maxUnavailable": "101%"}}),
        bad("a negative surge", "Deployment", strategy={"rollingUpdate": {"maxSurge": -1}}),
        bad("nothing", "Deployment", selector=None, template=None, replicas=None, only=WHICH),
        case("a name in capitals", "POST", path, workload("Deployment", "Bad")),
        case("an unknown field", "POST", f"{path}?fieldValidation=Strict&dryRun=All",
             workload("Deployment", "bad", replica=1)),
        case("a warning of it", "POST", f"{path}?fieldValidation=Warn&dryRun=All",
             workload("Deployment", "bad", replica=1)),
        patch("another selector", "Deployment", "d1", {"spec": {"selector": {"matchLabels": {"tier": "x"}}}}, only=WHICH),
        patch("a selector that still matches", "Deployment", "d1",
              {"spec": {"selector": {"matchLabels": {"tier": "x"}},
                        "template": {"metadata": {"labels": {"tier": "x"}}}}}),
        patch("a merge", "Deployment", "d1", {"spec": {"minReadySeconds": 2}}),
        patch("a strategic merge of containers", "Deployment", "d1",
              {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]},
                                                             {"name": "side", "image": "i"}]}}}}, STRATEGIC),
        patch("a container goes", "Deployment", "d1",
              {"spec": {"template": {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}}}, STRATEGIC),
        patch("keys of the strategy are kept", "Deployment", "d1",
              {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}, STRATEGIC),
        patch("a JSON patch", "Deployment", "d1",
              [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other:v2"}], JSON_PATCH),
        patch("a status through the object", "Deployment", "d1", {"status": {"replicas": 9}}),
        case("the scale", "GET", f"{path}/d1/scale"),
        case("scale it by a patch", "PATCH", f"{path}/d1/scale?dryRun=All", {"spec": {"replicas": 3}}, headers=MERGE),
        case("scale it below nothing", "PATCH", f"{path}/d1/scale", {"spec": {"replicas": -3}}, headers=MERGE,
             only=WHICH),
        case("scale it by a put", "PUT", f"{path}/d1/scale?dryRun=All",
             {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d1"}, "spec": {"replicas": 2}}),
        case("the status", "GET", f"{path}/d1/status", ignore=CONTROLLED),
        case("a status with more ready than there are", "PATCH", f"{path}/d1/status",
             {"status": {"replicas": 1, "readyReplicas": 2}}, headers=MERGE),
        case("a status with more available than ready", "PATCH", f"{path}/d1/status",
             {"status": {"replicas": 3, "readyReplicas": 1, "availableReplicas": 2}}, headers=MERGE),
        case("a status below nothing", "PATCH", f"{path}/d1/status", {"status": {"replicas": -1}}, headers=MERGE,
             only=WHICH),
        case("a status leaves the spec alone", "PATCH", f"{path}/d1/status?dryRun=All",
             {"spec": {"minReadySeconds": 7}, "status": {"observedGeneration": 1}}, headers=MERGE, ignore=CONTROLLED),
        case("as a table", "GET", f"{path}/d1", headers=TABLE, ignore=["columnDefinitions.description", "rows.object"],
             only=["columnDefinitions"]),
        case("metadata alone", "GET", f"{path}/d1", headers=PARTIAL, ignore=CONTROLLED),
        case("by a field that is not selectable", "GET", f"{path}?fieldSelector=spec.replicas%3D1"),
        case("by a name", "GET", f"{path}?fieldSelector=metadata.name%3Dd1", ignore=CONTROLLED),
        case("by labels", "GET", f"{path}?labelSelector=no%3Dsuch"),
    ]


def applied(name, **spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def applies():
    path = f"{PATHS['Deployment']}/a1?fieldManager="
    containers = [{"name": "main", "image": "i:1", "ports": [{"containerPort": 80}]}]
    whole = {"replicas": 0, "selector": {"matchLabels": {"app": "w"}}, "template": template(containers=containers)}
    side = template(containers=[{"name": "side", "image": "i:2"}])
    return [
        case("apply", "PATCH", f"{path}one", applied("a1", **whole), headers=APPLY, ignore=CONTROLLED),
        case("apply again", "PATCH", f"{path}one", applied("a1", **whole), headers=APPLY, ignore=CONTROLLED),
        case("apply a container beside", "PATCH", f"{path}two", applied("a1", template=side), headers=APPLY,
             ignore=CONTROLLED),
        case("apply another's field", "PATCH", f"{path}two", applied("a1", replicas=0, template=side, minReadySeconds=1),
             headers=APPLY, ignore=CONTROLLED),
        case("a conflict", "PATCH", f"{path}three", applied("a1", template=template(
            containers=[{"name": "main", "image": "i:9"}])), headers=APPLY),
        case("by force", "PATCH", f"{path}three&force=true", applied("a1", template=template(
            containers=[{"name": "main", "image": "i:9"}])), headers=APPLY, ignore=CONTROLLED),
        case("a field is given up", "PATCH", f"{path}two", applied("a1", template=side), headers=APPLY,
             ignore=CONTROLLED),
        case("a container is given up", "PATCH", f"{path}two", applied("a1", replicas=0), headers=APPLY,
             ignore=CONTROLLED),
        case("an applied selector", "PATCH", f"{path}one", applied("a1", **{**whole, "selector": {}}), headers=APPLY,
             only=WHICH),
        case("an unknown field in an apply", "PATCH", f"{path}one", applied("a1", replica=1), headers=APPLY,
             only=WHICH),
    ]


def replica_sets():
    path = PATHS["ReplicaSet"]
    return [
        make("a ReplicaSet with its defaults", "ReplicaSet", "r1"),
        *bad_templates("ReplicaSet"),
        bad("negative replicas", "ReplicaSet", replicas=-1),
        patch("another selector", "ReplicaSet", "r1", {"spec": {"selector": {"matchLabels": {"tier": "x"}}}},
              only=WHICH),
        patch("a template", "ReplicaSet", "r1", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}),
        case("the scale of a ReplicaSet", "GET", f"{path}/r1/scale"),
        case("more ready than there are", "PATCH", f"{path}/r1/status",
             {"status": {"replicas": 1, "readyReplicas": 2, "fullyLabeledReplicas": 2}}, headers=MERGE),
        case("ReplicaSets as a table", "GET", path, headers=TABLE, only=["columnDefinitions"],
             ignore=["columnDefinitions.description"]),
    ]


def claim_template(**spec):
    return [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                   "resources": {"requests": {"storage": "1Gi"}}, **spec}}]


def stateful_sets():
    path = PATHS["StatefulSet"]
    mounting = template(containers=[{"name": "main", "image": "i",
                                     "volumeMounts": [{"name": "data", "mountPath": "/data"}]}])
    return [
        make("a StatefulSet with its defaults", "StatefulSet", "s1"),
        make("a StatefulSet with claims", "StatefulSet", "s2", volumeClaimTemplates=claim_template(), template=mounting),
        *bad_templates("StatefulSet"),
        bad("a volume without a claim", "StatefulSet", template=mounting),
        bad("a claim without modes", "StatefulSet", volumeClaimTemplates=claim_template(accessModes=[])),
        bad("no service", "StatefulSet", serviceName=None),
        bad("a bad service", "StatefulSet", serviceName="Bad_Name"),
        bad("an unknown management", "StatefulSet", podManagementPolicy="Any"),
        bad("parallel", "StatefulSet", podManagementPolicy="Parallel"),
        bad("an unknown strategy", "StatefulSet", updateStrategy={"type": "Blue"}, only=WHICH),
        bad("on delete, rolling", "StatefulSet", updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}},
            only=WHICH),
        bad("a negative partition", "StatefulSet", updateStrategy={"type": "RollingUpdate",
                                                                   "rollingUpdate": {"partition": -1}}),
        bad("a partition", "StatefulSet", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}),
        bad("a strategy without its part", "StatefulSet", updateStrategy={"type": "RollingUpdate"}),
        bad("an unknown retention", "StatefulSet", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Burn"}),
        bad("a negative start", "StatefulSet", ordinals={"start": -1}),
        bad("a start", "StatefulSet", ordinals={"start": 3}),
        bad("negative replicas", "StatefulSet", replicas=-1),
        case("a name with dots", "POST", path, workload("StatefulSet", "a.b")),
        patch("another service", "StatefulSet", "s1", {"spec": {"serviceName": "other"}}),
        patch("another selector", "StatefulSet", "s1", {"spec": {"selector": {"matchLabels": {"tier": "x"}}}}, only=WHICH),
        patch("a partition", "StatefulSet", "s1", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 3}}}}),
        patch("a retention", "StatefulSet", "s1",
              {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}),
        case("the scale of a StatefulSet", "GET", f"{path}/s1/scale"),
        case("more current than there are", "PATCH", f"{path}/s1/status",
             {"status": {"replicas": 1, "currentReplicas": 2}}, headers=MERGE),
        case("StatefulSets as a table", "GET", path, headers=TABLE, only=["columnDefinitions"],
             ignore=["columnDefinitions.description"]),
    ]


def daemon_sets():
    path = PATHS["DaemonSet"]
    return [
        make("a DaemonSet with its defaults", "DaemonSet", "n1"),
        *bad_templates("DaemonSet"),
        bad("an unknown strategy", "DaemonSet", updateStrategy={"type": "Blue"}, only=WHICH),
        bad("on delete", "DaemonSet", updateStrategy={"type": "OnDelete"}),
        bad("a surge beside", "DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1}}),
        bad("a surge alone", "DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
        bad("no room at all", "DaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
        bad("too many percent", "DaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": "200%"}}),
        bad("a negative history", "DaemonSet", revisionHistoryLimit=-1),
        patch("another template", "DaemonSet", "n1", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}},
              ignore=["status"]),
        patch("another selector", "DaemonSet", "n1", {"spec": {"selector": {"matchLabels": {"tier": "x"}}}}, only=WHICH),
        case("no scale", "GET", f"{path}/n1/scale"),
        case("DaemonSets as a table", "GET", path, headers=TABLE, only=["columnDefinitions"],
             ignore=["columnDefinitions.description"]),
    ]


def revisions():
    path = PATHS["ControllerRevision"]
    return [
        # Written without spaces: kube-apiserver compares the text of the data with what is patched.
        case("a revision", "POST", path,
             json.dumps(other("ControllerRevision", "c1", data={"a": {"b": [1]}}, revision=3), separators=(",", ":")),
             headers={"Content-Type": "application/json"}),
        bad_other("no data", "ControllerRevision", revision=1),
        bad_other("a list as data", "ControllerRevision", revision=1, data=[1]),
        bad_other("a negative number", "ControllerRevision", revision=-1, data={}),
        patch("another number", "ControllerRevision", "c1", {"revision": 4}, ignore=[]),
        patch("other data", "ControllerRevision", "c1", {"data": {"a": 2}}, only=WHICH),
        case("revisions as a table", "GET", f"{path}?fieldSelector=metadata.name%3Dc1", headers=TABLE,
             ignore=[*CELLS, "rows.object"]),
        case("a revision goes", "DELETE", f"{path}/c1"),
    ]


def policy(**rule):
    return {"podFailurePolicy": {"rules": [rule]}}


def indexed(**spec):
    return {"completionMode": "Indexed", "completions": 3, **spec}


CODES = {"operator": "In", "values": [1, 2]}


def jobs():
    path = PATHS["Job"]
    return [
        make("a Job with its defaults", "Job", "j1"),
        case("a Job with labels", "POST", path, {**workload("Job", "j2"), "metadata": {"name": "j2", "labels": {"a": "b"}}}),
        make("a Job without labels", "Job", "j3", template={"spec": template(restartPolicy="Never")["spec"]}),
        make("an indexed Job", "Job", "j4", **indexed(backoffLimitPerIndex=1)),
        bad("a restart policy", "Job", template=template(restartPolicy="Always")),
        bad("no restart policy", "Job", template=template()),
        bad("restarts on failure", "Job", template=template(restartPolicy="OnFailure")),
        bad("no image", "Job", template=template(restartPolicy="Never", containers=[{"name": "main"}])),
        *(bad(f"negative {field}", "Job", **{field: -1})
          for field in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                        "ttlSecondsAfterFinished")),
        bad("a selector of the user's", "Job", selector={"matchLabels": {"app": "w"}}),
        bad("a selector without manualSelector", "Job", selector={"matchLabels": {"app": "x"}}, only=WHICH),
        bad("a manual selector", "Job", manualSelector=True, selector={"matchLabels": {"app": "w"}}),
        bad("a manual selector that is not there", "Job", manualSelector=True),
        bad("a manual selector that does not match", "Job", manualSelector=True, selector={"matchLabels": {"app": "x"}}),
        bad("a label of the server's", "Job", template=template({"job-name": "mine"}, restartPolicy="Never"),
            only=WHICH),
        bad("an unknown mode", "Job", completionMode="Some"),
        bad("indexed without completions", "Job", completionMode="Indexed"),
        bad("parallelism alone", "Job", parallelism=3),
        bad("indexed", "Job", **indexed(parallelism=2)),
        bad("indexed, of too many", "Job", **indexed(parallelism=100001)),
        bad("more failures than indexes", "Job", **indexed(backoffLimitPerIndex=1, maxFailedIndexes=4)),
        bad("failures by index without indexes", "Job", backoffLimitPerIndex=1),
        bad("failures without a limit", "Job", **indexed(maxFailedIndexes=1)),
        bad("very many", "Job", **indexed(completions=100001, backoffLimitPerIndex=1, parallelism=10001)),
        bad("a policy", "Job", **policy(action="FailJob", onExitCodes=CODES)),
        bad("a policy by conditions", "Job", **policy(action="Ignore", onPodConditions=[{"type": "DisruptionTarget"}])),
        bad("a policy of both", "Job", **policy(action="Ignore", onExitCodes=CODES, onPodConditions=[{"type": "A"}])),
        bad("a policy of neither", "Job", **policy(action="Ignore")),
        bad("an unknown action", "Job", **policy(action="Cry", onExitCodes=CODES)),
        bad("no action", "Job", **policy(onExitCodes=CODES), only=WHICH),
        bad("an action for indexes", "Job", **policy(action="FailIndex", onExitCodes=CODES)),
        bad("exit code 0", "Job", **policy(action="Ignore", onExitCodes={"operator": "In", "values": [0, 1]})),
        bad("exit codes out of order", "Job", **policy(action="Ignore", onExitCodes={"operator": "In", "values": [2, 1]})),
        bad("an unknown operator", "Job", **policy(action="Ignore", onExitCodes={"operator": "Is", "values": [1]})),
        bad("an unknown container", "Job", **policy(action="Ignore", onExitCodes={**CODES, "containerName": "none"})),
        bad("a policy and restarts", "Job", template=template(restartPolicy="OnFailure"),
            **policy(action="Ignore", onExitCodes=CODES)),
        bad("a success policy", "Job", **indexed(successPolicy={"rules": [{"succeededIndexes": "0,2"}]})),
        bad("a success policy without indexes", "Job", successPolicy={"rules": [{"succeededCount": 1}]}, only=WHICH),
        bad("a success policy of nothing", "Job", **indexed(successPolicy={"rules": [{}]})),
        bad("bad indexes", "Job", **indexed(successPolicy={"rules": [{"succeededIndexes": "2-0"}]})),
        bad("indexes that are too large", "Job", **indexed(successPolicy={"rules": [{"succeededIndexes": "5"}]})),
        bad("a count that is too large", "Job", **indexed(successPolicy={"rules": [{"succeededCount": 4}]})),
        bad("an unknown replacement", "Job", podReplacementPolicy="Never"),
        bad("a manager", "Job", managedBy="example.com/mine"),
        bad("a bad manager", "Job", managedBy="mine"),
        patch("completions", "Job", "j1", {"spec": {"completions": 5}}),
        patch("completions of an indexed one", "Job", "j4", {"spec": {"completions": 5}}, only=WHICH),
        patch("completions in tandem", "Job", "j4", {"spec": {"completions": 5, "parallelism": 5}}),
        patch("parallelism", "Job", "j1", {"spec": {"parallelism": 2}}),
        patch("the mode", "Job", "j1", {"spec": {"completionMode": "Indexed"}}, only=WHICH),
        patch("the image", "Job", "j1", {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}}},
              STRATEGIC, only=WHICH),
        patch("the node selector while suspended", "Job", "j1",
              {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}),
        patch("the policy", "Job", "j1", {"spec": {"podFailurePolicy": {"rules": [
            {"action": "Ignore", "onExitCodes": CODES}]}}}, only=WHICH),
        patch("a limit", "Job", "j1", {"spec": {"backoffLimit": 9}}),
        case("jobs by success", "GET", f"{path}?fieldSelector=status.successful%3D0,metadata.name%3Dj1",
             ignore=CONTROLLED),
        case("jobs by another field", "GET", f"{path}?fieldSelector=status.failed%3D0"),
        case("a job's status with too many ready", "PATCH", f"{path}/j1/status", {"status": {"ready": 3}}, headers=MERGE),
        case("complete without more", "PATCH", f"{path}/j1/status",
             {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, headers=MERGE, unordered=True),
        case("failed without more", "PATCH", f"{path}/j1/status",
             {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}, headers=MERGE, unordered=True),
        case("indexes of a job without", "PATCH", f"{path}/j1/status", {"status": {"completedIndexes": "0"}},
             headers=MERGE),
        case("jobs as a table", "GET", path, headers=TABLE, only=["columnDefinitions"],
             ignore=["columnDefinitions.description"]),
        case("a job is deleted by default", "DELETE", f"{path}/j3", only=["kind", "metadata.finalizers"]),
        case("in the background", "DELETE", f"{path}/j2?propagationPolicy=Background"),
        case("orphaning by hand", "DELETE", f"{path}/j4?propagationPolicy=Orphan", only=["kind", "metadata.finalizers"]),
        case("jobs of a label", "DELETE", f"{path}?labelSelector=app%3Dnone", only=["kind", "items"]),
    ]


def budgets():
    path = PATHS["PodDisruptionBudget"]
    chosen = {"matchLabels": {"app": "w"}}

    def bad_budget(what, only=None, **spec):
        return bad_other(what, "PodDisruptionBudget", only, spec=spec)

    return [
        case("a budget", "POST", path, other("PodDisruptionBudget", "b1", spec={"minAvailable": 1, "selector": chosen})),
        bad_budget("both limits", only=WHICH, minAvailable=1, maxUnavailable=1),
        bad_budget("a percentage", maxUnavailable="50%", selector=chosen),
        bad_budget("too many percent", maxUnavailable="150%"),
        bad_budget("a bad percentage", minAvailable="most"),
        bad_budget("a negative limit", minAvailable=-1),
        bad_budget("an unknown policy", unhealthyPodEvictionPolicy="Sometimes", minAvailable=1),
        bad_budget("a policy", unhealthyPodEvictionPolicy="AlwaysAllow", minAvailable=1),
        bad_budget("a bad selector", minAvailable=1, selector=expression(key="app", operator="In")),
        bad_budget("nothing"),
        patch("another limit", "PodDisruptionBudget", "b1", {"spec": {"minAvailable": 2}}, ignore=["status"]),
        case("a put without a version", "PUT", f"{path}/b1",
             other("PodDisruptionBudget", "b1", spec={"minAvailable": 3})),
        case("a status below nothing", "PATCH", f"{path}/b1/status", {"status": {"expectedPods": -1}}, headers=MERGE),
        patch("another selector", "PodDisruptionBudget", "b1", {"spec": {"selector": {"matchLabels": {"b": "c"}}}},
              STRATEGIC, ignore=["status"]),
        case("budgets as a table", "GET", path, headers=TABLE, only=["columnDefinitions"],
             ignore=["columnDefinitions.description"]),
        case("a budget goes", "DELETE", f"{path}/b1"),
    ]


# EndpointSlices, which the warning recommends, are not served here.
NO_WARNING = {"ignore_headers": ["Warning"]}


def endpoints():
    path = PATHS["Endpoints"]
    subset = {"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 80}]}

    def bad_endpoints(what, **content):
        return {**bad_other(what, "Endpoints", **content), **NO_WARNING}

    return [
        case("Endpoints", "POST", path, other("Endpoints", "e1", subsets=[subset]), **NO_WARNING),
        bad_endpoints("no addresses", subsets=[{"ports": [{"port": 80}]}]),
        bad_endpoints("a large port", subsets=[{**subset, "ports": [{"port": 70000}]}]),
        bad_endpoints("ports without names", subsets=[{**subset, "ports": [{"port": 1}, {"port": 2}]}]),
        case("Endpoints as a table", "GET", f"{path}/e1", headers=TABLE,
             ignore=["columnDefinitions.description", "rows.object"], only=["columnDefinitions"], **NO_WARNING),
        case("put where there are none", "PUT", f"{path}/e2", other("Endpoints", "e2", subsets=[subset]), **NO_WARNING),
        case("Endpoints go", "DELETE", f"{path}/e1", **NO_WARNING),
    ]


def ends():
    """How what was made goes: the last state of an object that waits for its finalizers, then nothing."""
    deployed, sets = PATHS["Deployment"], PATHS["StatefulSet"]
    return [
        case("in the foreground", "DELETE", f"{deployed}/d1?propagationPolicy=Foreground",
             only=["kind", "metadata.finalizers"]),
        case("by default", "DELETE", f"{deployed}/a1"),
        case("with a wrong uid", "DELETE", f"{sets}/s1", {"kind": "DeleteOptions", "apiVersion": "v1",
                                                         "preconditions": {"uid": "none"}}, only=WHICH),
        case("with an unknown policy", "DELETE", f"{sets}/s1?propagationPolicy=Never"),
        case("a StatefulSet goes", "DELETE", f"{sets}/s1"),
        case("a collection goes", "DELETE", f"{sets}?labelSelector=no%3Dsuch", only=["kind", "items"]),
        case("a DaemonSet goes", "DELETE", f"{PATHS['DaemonSet']}/n1"),
        case("a ReplicaSet goes", "DELETE", f"{PATHS['ReplicaSet']}/r1"),
        case("the namespace goes", "DELETE", f"/api/v1/namespaces/{SPACE}", only=["kind", "metadata.name"]),
    ]


CASES = [
    case("a namespace for workloads", "POST", "/api/v1/namespaces",
         {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, ignore=["status"]),
    *deployments(),
    *applies(),
    *replica_sets(),
    *stateful_sets(),
    *daemon_sets(),
    *revisions(),
    *jobs(),
    *budgets(),
    *endpoints(),
    *ends(),
    *(case(f"the resources of {group}", "GET", f"/apis/{group}", subset=True)
      for group in ("apps/v1", "batch/v1", "policy/v1", "apps", "batch", "policy")),
    *(case(f"the OpenAPI types of {group} are there", "GET", f"/openapi/v3/apis/{group}", only=["openapi"])
      for group in ("apps/v1", "batch/v1", "policy/v1")),
]
