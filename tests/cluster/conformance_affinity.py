"""Cases of conformance.py about a pod's affinity: what is refused, and what matchLabelKeys become."""

from conformance_case import DRA, NS, POD, SERVICE_ACCOUNT, case, renamed

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(**rest):
    return {"topologyKey": "rack", **rest}


def expressions(*requirements):
    return {"matchExpressions": [dict(zip(("key", "operator", "values"), one)) for one in requirements]}


# Of an empty key we name one mistake, kube-apiserver names two.
EMPTY_KEY = {"only": ["code", "reason", "status"]}


def pods(name, affinity, **rest):
    """Creates a pod whose affinity is this."""
    return case(f"affinity: {name}", "POST", f"{NS}/pods?dryRun=All", renamed(POD, "a", affinity=affinity),
                ignore=["status", *SERVICE_ACCOUNT], **rest)


def apart(name, *terms, **rest):
    return pods(name, {"podAntiAffinity": {REQUIRED: list(terms)}}, **rest)


def selects(name, *requirements, **rest):
    return apart(name, term(labelSelector=expressions(*requirements)), **rest)


def shared(name, *terms, **rest):
    """Creates a slice of the nodes that these terms select."""
    manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "shared"},
                "spec": {"driver": "x.example.com", "nodeSelector": {"nodeSelectorTerms": list(terms)},
                         "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}
    return case(f"node selector of a slice: {name}", "POST", f"{DRA}/resourceslices?dryRun=All", manifest, **rest)


def on_nodes(name, **one):
    return pods(name, {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [one]}}})


def spread(name, *constraints, **rest):
    """Creates a pod that is spread so; each constraint is complete but for what is given."""
    whole = [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}} | one
             for one in constraints]
    return case(f"spread: {name}", "POST", f"{NS}/pods?dryRun=All",
                renamed(POD, "a", topologySpreadConstraints=whole), ignore=["status", *SERVICE_ACCOUNT], **rest)


CASES = [
    selects("every operator", ("a", "In", ["1", "2"]), ("b", "NotIn", ["3"]), ("c", "Exists"), ("d", "DoesNotExist")),
    selects("an operator of nodes", ("a", "Gt", ["1"])),
    selects("no operator", ("a", "")),
    selects("In without values", ("a", "In", [])),
    selects("Exists with values", ("a", "Exists", ["1"])),
    selects("a key that is none", ("a b", "Exists")),
    selects("no key", ("", "Exists"), **EMPTY_KEY),
    selects("a value that is none", ("a", "In", ["1", "x),b in (y"])),
    apart("labels that are none", term(labelSelector={"matchLabels": {"a b": "c d"}})),
    apart("no topology key", {"topologyKey": "", "labelSelector": {}}, **EMPTY_KEY),
    apart("a topology key that is none", {"topologyKey": "a b", "labelSelector": {}}),
    apart("no selector", term(), ignore_headers=["Warning"]),  # that it selects no pod
    apart("a namespace that is none", term(labelSelector={}, namespaces=["No"])),
    apart("a selector of namespaces", term(labelSelector={}, namespaceSelector=expressions(("a", "Is", ["b"])))),
    apart("the second term", term(labelSelector={}), term(labelSelector=expressions(("a", "In", [])))),
    apart("keys whose labels must be equal", term(labelSelector=expressions(("x", "Exists")), matchLabelKeys=["app"])),
    apart("keys whose labels must differ", term(labelSelector={}, mismatchLabelKeys=["app", "tier"])),
    apart("a key that the pod does not have", term(labelSelector={}, matchLabelKeys=["none"])),
    apart("keys without a selector", term(matchLabelKeys=["app"])),
    apart("a key that is none in keys", term(labelSelector={}, matchLabelKeys=["a b"])),
    apart("a key in both lists", term(labelSelector={}, matchLabelKeys=["app"], mismatchLabelKeys=["app"])),
    apart("a key that the selector has already", term(labelSelector={"matchLabels": {"app": "c"}},
                                                      matchLabelKeys=["app"])),
    pods("beside others", {"podAffinity": {REQUIRED: [term(labelSelector={"matchLabels": {"a": "1"}})]}}),
    pods("a wish", {"podAffinity": {PREFERRED: [
        {"weight": 5, "podAffinityTerm": term(labelSelector={}, matchLabelKeys=["app"])}]}}),
    pods("weights out of range", {"podAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": term()}]},
                                  "nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}),
    pods("a wish that is none", {"podAntiAffinity": {PREFERRED: [
        {"weight": 1, "podAffinityTerm": term(labelSelector=expressions(("a", "Near", ["b"])))}]}}),
    on_nodes("numbers of nodes", **expressions(("a", "Gt", ["1"]), ("b", "Lt", ["2"]))),
    on_nodes("two numbers of nodes", **expressions(("a", "Gt", ["1", "2"]))),
    on_nodes("an unknown operator of nodes", **expressions(("a", "Near", ["b"]))),
    on_nodes("NotIn without values of nodes", **expressions(("a", "NotIn"))),
    on_nodes("a field of nodes", matchFields=[{"key": "metadata.name", "operator": "In", "values": ["n0"]}]),
    on_nodes("an unknown field of nodes", matchFields=[{"key": "metadata.uid", "operator": "Exists"}]),
    on_nodes("two names of nodes", matchFields=[{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]),
    pods("no terms for nodes", {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}),
    pods("a preference that is none", {"nodeAffinity": {PREFERRED: [
        {"weight": 1, "preference": expressions(("a", "Exists", ["b"]))}]}}),

    spread("over racks", {"labelSelector": {"matchLabels": {"a": "1"}}, "minDomains": 2,
                          "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}),
    spread("no skew", {"maxSkew": 0}),
    spread("a negative skew", {"maxSkew": -1}),
    spread("no topology key", {"topologyKey": ""}),
    spread("a topology key that is none", {"topologyKey": "a b"}),
    spread("an unknown action", {"whenUnsatisfiable": "Maybe"}),
    spread("no least number of domains", {"minDomains": 0}),
    spread("a least number of domains for a wish", {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}),
    spread("unknown policies", {"nodeAffinityPolicy": "Maybe", "nodeTaintsPolicy": "Always"}),
    spread("an unknown operator", {"labelSelector": expressions(("a", "Near", ["b"]))}),
    spread("labels that are none", {"labelSelector": {"matchLabels": {"a b": "c d"}}}),
    spread("one key twice", {}, {"maxSkew": 2}, only=["code", "reason", "status"]),  # in the words of a list's keys
    spread("one key with each action", {}, {"whenUnsatisfiable": "ScheduleAnyway"}),
    spread("keys whose labels must be equal", {"matchLabelKeys": ["app", "none"]}),
    spread("keys without a selector", {"labelSelector": None, "matchLabelKeys": ["app"]}),
    spread("a key that the selector has already", {"labelSelector": {"matchLabels": {"app": "c"}},
                                                   "matchLabelKeys": ["app"]}),
    spread("a key that is none in keys", {"matchLabelKeys": ["a b"]}),

    shared("one term", expressions(("a", "In", ["b"]))),
    shared("an unknown operator", expressions(("a", "Near", ["b"]))),
    shared("two terms", {}, {}, only=["code", "reason", "details.causes.field"]),  # whose values Go prints in its form
]
