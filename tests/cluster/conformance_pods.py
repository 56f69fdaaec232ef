"""Cases of conformance.py about what is asked of pods beside their own verbs: evictions, ephemeral containers,
tokens of service accounts; and about claims of volumes."""

from conformance_case import JSON_PATCH, MERGE, SERVICE_ACCOUNT, STRATEGIC, case

SPACE = "asked"
CORE = f"/api/v1/namespaces/{SPACE}"
BUDGETS = f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets"
TOKENS = f"{CORE}/serviceaccounts/builder/token"
WHICH = ["code", "reason"]
SPEC_ONLY = ["spec.ephemeralContainers", "code", "reason", "message", "details"]
DEBUGGER = {"name": "debugger", "image": "busybox", "command": ["sh"]}


def pod(name, **labels):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "main", "image": "tahoma.dev/workload:v1"}]}}


def make(name, **labels):
    return case(f"a pod {name}", "POST", f"{CORE}/pods", pod(name, **labels), ignore=["status", *SERVICE_ACCOUNT])


def evict(what, name, only=None, path=None, **content):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **content}
    rest = {"only": only} if only else {}
    return case(f"evict {what}", "POST", path or f"{CORE}/pods/{name}/eviction", body, **rest)


def evictions():
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    return [
        make("waits", app="b"),
        make("runs", app="b"),
        make("runs-too", app="b"),
        *(case(f"{name} is ready", "PATCH", f"{CORE}/pods/{name}/status", running, headers=MERGE, only=["status.phase"])
          for name in ("runs", "runs-too")),
        case("a budget that lets nothing go", "POST", BUDGETS,
             {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"},
              "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "b"}}}}, ignore=["status"]),
        case("the budget counts", "GET", f"{BUDGETS}/all", until=("status.conditions", 1),
             only=["status.currentHealthy", "status.desiredHealthy", "status.disruptionsAllowed"]),
        evict("a pod that the budget keeps", "runs"),
        evict("the same, dry", "runs", path=f"{CORE}/pods/runs/eviction?dryRun=All"),
        evict("with another name in the body", "other", path=f"{CORE}/pods/runs/eviction", only=WHICH),
        evict("with a wrong uid", "waits", deleteOptions={"preconditions": {"uid": "none"}}, only=WHICH),
        evict("a pod that does not run, dry", "waits", path=f"{CORE}/pods/waits/eviction?dryRun=All"),
        evict("a pod that does not run", "waits"),
        evict("a pod that is not there", "none"),
        case("evict by another kind", "POST", f"{CORE}/pods/runs/eviction", pod("runs"), only=WHICH),
        case("an eviction cannot be read", "GET", f"{CORE}/pods/runs/eviction", only=["code", "reason", "status"]),
    ]


def ephemeral():
    path = f"{CORE}/pods/runs/ephemeralcontainers"

    def add(what, container, **rest):
        return case(f"an ephemeral container {what}", "PATCH", path, {"spec": {"ephemeralContainers": [container]}},
                    headers=STRATEGIC, **{"only": SPEC_ONLY, **rest})

    return [
        case("ephemeral containers of a pod", "GET", path, only=SPEC_ONLY),
        case("one at the pod's making", "POST", f"{CORE}/pods",
             {**pod("bad"), "spec": {**pod("bad")["spec"], "ephemeralContainers": [DEBUGGER]}}, only=WHICH),
        add("with a port", {**DEBUGGER, "ports": [{"containerPort": 80}]}, only=WHICH),
        add("with a probe", {**DEBUGGER, "livenessProbe": {"exec": {"command": ["true"]}}}, only=WHICH),
        add("with resources", {**DEBUGGER, "resources": {"limits": {"cpu": "1"}}}, only=WHICH),
        add("with a container's name", {**DEBUGGER, "name": "main"}, only=WHICH),
        add("beside a container that is not there", {**DEBUGGER, "targetContainerName": "none"}, only=WHICH),
        add("without an image", {"name": "debugger"}, only=WHICH),
        add("with its defaults", DEBUGGER),
        add("that changes", {**DEBUGGER, "image": "other"}, only=WHICH),
        case("one goes", "PATCH", path, [{"op": "remove", "path": "/spec/ephemeralContainers"}], headers=JSON_PATCH,
             only=WHICH),
        case("one by the pod itself", "PATCH", f"{CORE}/pods/runs",
             {"spec": {"ephemeralContainers": [{**DEBUGGER, "name": "second"}]}}, headers=STRATEGIC, only=WHICH),
        add("beside the first", {**DEBUGGER, "name": "second"}),
        case("of a pod that is not there", "PATCH", f"{CORE}/pods/none/ephemeralcontainers", {"spec": {}},
             headers=STRATEGIC),
    ]


def tokens():
    def request(what, only=None, path=TOKENS, **spec):
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return case(f"a token {what}", "POST", path, body, only=only or ["code", "reason", "message", "details"])

    shown = ["kind", "apiVersion", "spec.expirationSeconds", "spec.boundObjectRef.kind", "spec.boundObjectRef.name"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "runs"}
    return [
        case("a service account", "POST", f"{CORE}/serviceaccounts",
             {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "builder"}}),
        request("as it comes", shown),
        request("for ten minutes", shown, expirationSeconds=600),
        request("for too short", expirationSeconds=599),
        request("for ever", expirationSeconds=2 ** 32 + 1),
        request("for a text", WHICH, expirationSeconds="600"),
        request("for a pod that is not there", WHICH, boundObjectRef={**bound, "name": "none"}),
        request("for a pod with a wrong uid", WHICH, boundObjectRef={**bound, "uid": "none"}),
        request("for another kind", WHICH, boundObjectRef={"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}),
        request("of an account that is not there", path=f"{CORE}/serviceaccounts/none/token"),
        case("a review of no token", "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
             {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}}, only=WHICH),
        case("a review of a wrong token", "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
             {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "a.b.c"}},
             only=["kind", "status.authenticated"]),
    ]


def claims():
    path = f"{CORE}/persistentvolumeclaims"

    def claim(what, name="c1", only=None, **spec):
        whole = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
                 "resources": {"requests": {"storage": "1Gi"}}, **spec}
        body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
                "spec": {field: value for field, value in whole.items() if value is not None}}
        return case(f"a claim of storage {what}", "POST", path, body, **({"only": only} if only else {}))

    return [
        claim("with its defaults"),
        claim("without modes", "bad", accessModes=None),
        claim("with an unknown mode", "bad", WHICH, accessModes=["Often"]),
        claim("without a size", "bad", WHICH, resources={}),
        claim("of nothing", "bad", WHICH, resources={"requests": {"storage": "0"}}),
        claim("of a wrong volume mode", "bad", WHICH, volumeMode="Tape"),
        case("its size shrinks", "PATCH", f"{path}/c1", {"spec": {"resources": {"requests": {"storage": "1Mi"}}}},
             headers=MERGE, only=WHICH),
        case("its modes change", "PATCH", f"{path}/c1", {"spec": {"accessModes": ["ReadOnlyMany"]}}, headers=MERGE,
             only=WHICH),
        case("it goes", "DELETE", f"{path}/c1", only=WHICH),
    ]


CASES = [
    case("a namespace of pods that are asked", "POST", "/api/v1/namespaces",
         {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, ignore=["status"]),
    *evictions(),
    *ephemeral(),
    *tokens(),
    *claims(),
    case("its namespace goes", "DELETE", f"/api/v1/namespaces/{SPACE}", only=["kind", "metadata.name"]),
]
