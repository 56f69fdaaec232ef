"""Cases of conformance.py about the configurations of admission webhooks, and a webhook that is not there."""

from conformance_case import APPLY, CELLS, MERGE, NS, STRATEGIC, TABLE, case

GROUP = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{GROUP}/mutatingwebhookconfigurations"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations"
RULE = {"operations": ["CREATE"], "apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["things"]}


def webhook(name="a.example.com", **rest):
    return {"name": name, "clientConfig": {"url": "https://127.0.0.1:1/a"}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [RULE], **rest}


def configuration(name, *webhooks, kind="Validating"):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration", "metadata": {"name": name},
            "webhooks": list(webhooks)}


def refused(what, **rest):
    return case(what, "POST", VALIDATING, configuration("wrong", webhook(**rest)))


def rule(what, **rest):
    return refused(what, rules=[{**RULE, **rest}])


def client(what, **config):
    return refused(what, clientConfig=config)


def service(what, **rest):
    return client(what, service={"name": "s", "namespace": "n", **rest})


CASES = [
    case("a mutating configuration and its defaults", "POST", MUTATING, configuration("m", webhook(), kind="Mutating")),
    case("a validating configuration and its defaults", "POST", VALIDATING, configuration("v", webhook())),
    case("as a table", "GET", MUTATING + "/m", headers=TABLE, ignore=CELLS),
    case("a configuration without webhooks", "POST", VALIDATING, {"metadata": {"name": "empty"}}),
    case("a service and its port", "POST", VALIDATING, configuration("s", webhook(
        clientConfig={"service": {"name": "s", "namespace": "n"}, "caBundle": "YQ=="}))),
    case("a change counts", "PATCH", f"{MUTATING}/m", {"webhooks": [webhook(timeoutSeconds=3)]}, headers=MERGE),
    case("webhooks merge by name", "PATCH", f"{MUTATING}/m", {"webhooks": [webhook("b.example.com")]}, headers=STRATEGIC),
    case("and apply by name", "PATCH", f"{MUTATING}/m?fieldManager=me", configuration("m", webhook("c.example.com"), kind="Mutating"),
         headers=APPLY, ignore=["metadata.managedFields"]),
    case("conditions", "POST", VALIDATING, configuration("c", webhook(matchConditions=[
        {"name": "a", "expression": "object.metadata.name != 'x' && request.operation == 'CREATE' && oldObject == null"}]))),
    refused("no name", name=""),
    refused("a name without a domain", name="short"),
    refused("a name that is none", name="a_b.example.com"),
    refused("no side effects", sideEffects=None),
    refused("side effects", sideEffects="Some"),
    refused("no time", timeoutSeconds=0),
    refused("too much time", timeoutSeconds=31),
    refused("a policy", failurePolicy="Maybe"),
    refused("a match policy", matchPolicy="Maybe"),
    refused("no versions", admissionReviewVersions=[]),
    refused("unknown versions", admissionReviewVersions=["v7"]),
    refused("a version twice", admissionReviewVersions=["v1", "v1"]),
    refused("a version that is none", admissionReviewVersions=["v1", "V"]),
    refused("a selector", objectSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
    refused("labels", namespaceSelector={"matchLabels": {"a b": "c"}}),
    refused("an empty condition", matchConditions=[{"name": "a", "expression": " "}]),
    refused("a condition without a name", matchConditions=[{"name": "", "expression": "true"}]),
    case("a condition that does not compile", "POST", VALIDATING, configuration("wrong", webhook(
        matchConditions=[{"name": "a", "expression": "object.x +"}])), only=["code", "reason", "details.causes.field"]),
    refused("a condition twice", matchConditions=[{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]),
    case("a webhook twice", "POST", VALIDATING, configuration("wrong", webhook(), webhook())),
    case("a policy of the other kind", "POST", MUTATING, configuration("wrong", webhook(reinvocationPolicy="Maybe"), kind="Mutating")),
    rule("no operations", operations=[]),
    rule("an operation", operations=["READ"]),
    rule("all operations and another", operations=["*", "CREATE"]),
    rule("no groups", apiGroups=[]),
    rule("all groups and another", apiGroups=["*", "a"]),
    rule("no versions of a rule", apiVersions=[]),
    rule("an empty version", apiVersions=[""]),
    rule("all versions and another", apiVersions=["*", "v1"]),
    rule("no resources", resources=[]),
    rule("an empty resource", resources=[""]),
    rule("all resources and another", resources=["*", "pods"]),
    rule("all of all and another", resources=["*/*", "pods"]),
    rule("all subresources and another", resources=["pods/*", "pods/status"]),
    rule("a subresource of all and of another", resources=["*/status", "pods/status"]),
    rule("a scope", scope="Everywhere"),
    client("nowhere"),
    client("two places", url="https://a", service={"name": "s", "namespace": "n"}),
    client("no https", url="http://a.example.com"),
    client("no host", url="https:///a"),
    client("a query", url="https://a.example.com/?x=1"),
    client("a fragment", url="https://a.example.com/#x"),
    client("a user", url="https://me@a.example.com/"),
    service("a port", port=70000),
    service("a path without a slash", path="a"),
    service("an empty segment", path="/a//b"),
    service("a segment that is none", path="/a_b"),
    service("a path of slashes", path="//"),
    service("no service name", name=""),
    case("a webhook that is not there", "POST", VALIDATING, configuration("dead", webhook(
        objectSelector={"matchLabels": {"asks": "dead"}}, rules=[{**RULE, "apiGroups": [""], "resources": ["configmaps"], "operations": ["*"]}]))),
    case("stops what it is asked about", "POST", f"{NS}/configmaps?dryRun=All", {"metadata": {"name": "dead", "labels": {"asks": "dead"}}},
         only=["code", "reason"], after_seconds=1),
    case("but not what it is not", "POST", f"{NS}/configmaps?dryRun=All", {"metadata": {"name": "dead"}}),
    case("a deletion of the configurations", "DELETE", VALIDATING, ignore=["items", "metadata"]),
    case("and of the others", "DELETE", MUTATING, ignore=["items", "metadata"]),
]
