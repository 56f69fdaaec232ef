"""Cases of conformance.py about priority classes, extended resources, and what of a CRD is immutable."""

from conformance_case import CELLS, MERGE, NS, POD, SERVICE_ACCOUNT, TABLE, case, renamed

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SETTLED = ["code", "message", "spec.priority", "spec.priorityClassName", "spec.preemptionPolicy"]


def named(name, value, **rest):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            **rest}


def pod(what, name, **spec):
    return case(what, "POST", f"{NS}/pods", renamed(POD, name, **spec), only=SETTLED)


def asking(what, resources):
    container = {**POD["spec"]["containers"][0], "resources": resources}
    return case(what, "POST", f"{NS}/pods?dryRun=All", renamed(POD, "asks", containers=[container]),
                ignore=["status", *SERVICE_ACCOUNT])


CASES = [
    case("a class of the system's", "GET", f"{CLASSES}/system-node-critical", only=["value", "description", "kind"]),
    case("which stays", "DELETE", f"{CLASSES}/system-cluster-critical"),
    case("a priority class", "POST", CLASSES, named("high", 1000, preemptionPolicy="Never")),
    case("as a table", "GET", f"{CLASSES}/high", headers=TABLE, ignore=CELLS),
    case("its value is settled", "PATCH", f"{CLASSES}/high", {"value": 5}, headers=MERGE),
    case("and its policy", "PATCH", f"{CLASSES}/high", {"preemptionPolicy": "PreemptLowerPriority"}, headers=MERGE),
    case("a description is not", "PATCH", f"{CLASSES}/high", {"description": "d"}, headers=MERGE),
    case("a value of the system's", "POST", CLASSES, named("huge", 1000000001)),
    case("a name of the system's", "POST", CLASSES, named("system-mine", 1)),
    pod("a pod of the class", "of-class", priorityClassName="high"),
    pod("a pod of a class that is not there", "of-none", priorityClassName="nope"),
    pod("a pod with another priority than its class", "of-class-2", priorityClassName="high", priority=7),
    pod("a pod with another policy than its class", "of-class-2", priorityClassName="high",
        preemptionPolicy="PreemptLowerPriority"),
    pod("a pod without a class", "without"),
    case("a default class", "POST", CLASSES, named("normal", 5, globalDefault=True)),
    case("a second default class", "POST", CLASSES, named("other", 6, globalDefault=True)),
    pod("a pod of the default class", "of-default"),
    case("the default class goes", "DELETE", f"{CLASSES}/normal"),

    asking("an extended resource without a limit", {"requests": {"example.com/chip": "1"}}),
    asking("an extended resource with another limit",
           {"requests": {"example.com/chip": "1"}, "limits": {"example.com/chip": "2"}}),
    asking("half an extended resource", {"limits": {"example.com/chip": "500m"}}),

    case("the scope of a CRD", "PATCH", f"{CRDS}/gangs.tahoma.dev", {"spec": {"scope": "Cluster"}}, headers=MERGE),
    case("the kind of a CRD", "PATCH", f"{CRDS}/gangs.tahoma.dev", {"spec": {"names": {"kind": "Other"}}},
         headers=MERGE, only=["code", "reason", "details.causes.field"]),
]
