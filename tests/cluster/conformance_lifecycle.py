"""Cases of conformance.py about how objects end and how they are asked for: owners and their dependents, options of
deletes, writes and reads, scale, logs, and watches in every form."""

from conformance_case import (APPLY, CELLS, CONFIG, GANG, GANGS, JSON_PATCH, MERGE, NS, PARTIAL, POD, TABLE, case,
                              renamed)

MAPS = f"{NS}/configmaps"
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "sc"}}
WATCH_ALL = "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def config(name, **metadata):
    return {**CONFIG, "metadata": {"name": name, **metadata}}


def dependent(name, owner, **metadata):
    """Makes a dependent of the config map `owner`, whose uid was remembered; in the foreground the owner may not go before it."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": "{%s}" % owner,
                 "blockOwnerDeletion": True}
    return config(name, ownerReferences=[reference], **metadata)


def owner(name, **metadata):
    return case(f"an owner, {name}", "POST", MAPS, config(name, **metadata), remember={name: "metadata.uid"})


def gone(name):
    return case(f"{name} goes", "GET", f"{MAPS}/{name}", until=("", 0))


def options(**fields):
    return {"kind": "DeleteOptions", "apiVersion": "v1", **fields}


CASES = [
    # Owners and dependents.
    owner("fore"),
    case("a dependent that holds on", "POST", MAPS, dependent("fore-held", "fore", finalizers=["example.com/hold"])),
    case("one that does not block", "POST", MAPS,
         {**dependent("fore-free", "fore"), "metadata": {
             "name": "fore-free", "finalizers": ["example.com/hold"],
             "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "fore", "uid": "{fore}"}]}}),
    case("delete the owner in the foreground", "DELETE", f"{MAPS}/fore", options(propagationPolicy="Foreground")),
    case("its dependent is marked", "GET", f"{MAPS}/fore-held", until=("metadata.deletionTimestamp", 1)),
    case("and so is the other", "GET", f"{MAPS}/fore-free", until=("metadata.deletionTimestamp", 1)),
    case("the owner waits", "GET", f"{MAPS}/fore"),
    case("the dependent lets go", "PATCH", f"{MAPS}/fore-held", {"metadata": {"finalizers": None}}, headers=MERGE,
         only=["metadata.name"]),
    gone("fore"),
    gone("fore-held"),
    case("the one that does not block is still there", "GET", f"{MAPS}/fore-free"),
    case("it goes too", "PATCH", f"{MAPS}/fore-free", {"metadata": {"finalizers": None}}, headers=MERGE,
         only=["metadata.name"]),
    owner("orph"),
    case("a dependent to be orphaned", "POST", MAPS, dependent("orph-child", "orph")),
    case("delete the owner alone", "DELETE", f"{MAPS}/orph", options(propagationPolicy="Orphan")),
    gone("orph"),
    case("the orphan has no owner", "GET", f"{MAPS}/orph-child"),
    case("delete the orphan", "DELETE", f"{MAPS}/orph-child"),
    owner("back"),
    case("a dependent that follows", "POST", MAPS, dependent("back-child", "back")),
    case("delete the owner in the background", "DELETE", f"{MAPS}/back", options(propagationPolicy="Background")),
    gone("back-child"),
    case("a dependent of nobody", "POST", MAPS, config("ghost", ownerReferences=[
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "11111111-2222-4333-8444-555555555555"}])),
    gone("ghost"),
    owner("solid"),
    owner("loose"),
    case("a dependent of two", "POST", MAPS, config("both", ownerReferences=[
        {"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": "{%s}" % n, "blockOwnerDeletion": True}
        for n in ("solid", "loose")])),
    case("delete one of them in the foreground", "DELETE", f"{MAPS}/loose?propagationPolicy=Foreground"),
    gone("loose"),
    case("the other one keeps it", "GET", f"{MAPS}/both"),
    case("delete the other", "DELETE", f"{MAPS}/solid"),
    gone("both"),

    # Finalizers of the garbage collector, set by hand.
    case("it wants its dependents to go first", "POST", MAPS, config("fg", finalizers=["foregroundDeletion"])),
    case("delete it as it wants", "DELETE", f"{MAPS}/fg"),
    gone("fg"),
    case("it wants its dependents to stay", "POST", MAPS, config("or", finalizers=["orphan"])),
    case("but is told not to", "DELETE", f"{MAPS}/or", options(propagationPolicy="Background")),
    case("it wants both", "POST", MAPS, config("or", finalizers=["orphan", "foregroundDeletion"])),

    # Options of a delete.
    case("something to delete", "POST", MAPS, config("del")),
    case("orphans by the old name and the new", "DELETE", f"{MAPS}/del",
         options(orphanDependents=True, propagationPolicy="Foreground")),
    case("orphans by the old name", "DELETE", f"{MAPS}/del", options(orphanDependents=True, dryRun=["All"])),
    case("a dry run that is none", "DELETE", f"{MAPS}/del", options(dryRun=["Some"])),
    case("a dry run of a collection", "DELETE", f"{MAPS}?dryRun=All&fieldSelector=metadata.name%3Ddel",
         only=["kind", "apiVersion"]),
    case("a grace that is no number", "DELETE", f"{MAPS}/del", options(gracePeriodSeconds="x"), only=["code", "reason"]),
    case("a stale precondition", "DELETE", f"{MAPS}/del", options(preconditions={"resourceVersion": "1"}),
         ignore=["message"]),  # holds the version of the record
    case("another's uid", "DELETE", f"{MAPS}/del", options(preconditions={"uid": "u"})),
    case("it is still there", "GET", f"{MAPS}/del"),
    case("an option that is not known", "DELETE", f"{MAPS}/del?propagationPolicy=Background&whatever=1"),

    # Options of a write.
    case("force without an apply", "PATCH", f"{MAPS}/cm?force=true", {"data": {}}, headers=MERGE),
    case("a field manager that is too long", "POST", f"{MAPS}?fieldManager={'m' * 129}", config("fm")),
    case("a put of a dry run", "POST", MAPS, config("w"), remember={"w": "metadata.resourceVersion"}),
    case("changes nothing", "PUT", f"{MAPS}/w?dryRun=All", {**config("w"), "data": {"a": "9"}}),
    case("a put without a name", "PUT", f"{MAPS}/w", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
    case("as a read shows", "GET", f"{MAPS}/w"),
    case("a dry run of a patch", "PATCH", f"{MAPS}/w?dryRun=All", [{"op": "add", "path": "/data/z", "value": "1"}],
         headers=JSON_PATCH),
    case("a JSON patch of every kind", "PATCH", f"{MAPS}/w",
         [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "copy", "from": "/data/a", "path": "/data/c"},
          {"op": "move", "from": "/data/b", "path": "/data/d"}, {"op": "remove", "path": "/data/a"},
          {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}}], headers=JSON_PATCH),
    case("an apply of a dry run", "PATCH", f"{MAPS}/dry?fieldManager=one&dryRun=All", config("dry"), headers=APPLY),
    case("made nothing", "GET", f"{MAPS}/dry"),
    case("a put with an unknown field, strict", "PUT", f"{MAPS}/w?fieldValidation=Strict",
         {**config("w"), "dota": {}}),
    case("a duplicate field, warned", "PUT", f"{MAPS}/w?fieldValidation=Warn",
         '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"w"},"data":{"a":"1","a":"2"}}',
         headers={"Content-Type": "application/json"}),
    case("an unknown field, ignored", "PUT", f"{MAPS}/w?fieldValidation=Ignore", {**config("w"), "dota": {}}),
    case("a gang with an unknown field, warned", "POST", f"{GANGS}?fieldValidation=Warn&dryRun=All",
         renamed(GANG, "x", shap="4x4")),
    case("an apply of a gang with an unknown field, strict", "PATCH",
         f"{GANGS}/x?fieldManager=one&fieldValidation=Strict&dryRun=All", renamed(GANG, "x", shap="4x4"),
         headers=APPLY, only=["code", "reason"]),
    case("a create in a name's path", "PUT", f"{GANGS}/sc", GANG, only=["code", "reason", "message"]),

    # Scale and status.
    case("a gang to scale", "POST", GANGS, {**GANG, "metadata": {"name": "sc"}}),
    case("put its scale", "PUT", f"{GANGS}/sc/scale", {**SCALE, "spec": {"replicas": 8}}),
    case("put a stale scale", "PUT", f"{GANGS}/sc/scale",
         {**SCALE, "metadata": {"name": "sc", "resourceVersion": "1"}, "spec": {"replicas": 2}}),
    case("put a negative scale", "PUT", f"{GANGS}/sc/scale", {**SCALE, "spec": {"replicas": -1}}),
    case("put another's scale", "PUT", f"{GANGS}/sc/scale", {**SCALE, "metadata": {"name": "sd"}}),
    case("scale as a dry run", "PATCH", f"{GANGS}/sc/scale?dryRun=All", {"spec": {"replicas": 2}}, headers=MERGE),
    case("scale by a JSON patch", "PATCH", f"{GANGS}/sc/scale",
         [{"op": "replace", "path": "/spec/replicas", "value": 4}], headers=JSON_PATCH),
    case("scale what is missing", "GET", f"{GANGS}/none/scale"),
    case("scale what is missing by a patch", "PATCH", f"{GANGS}/none/scale", {"spec": {"replicas": 2}}, headers=MERGE),
    case("delete a scale", "DELETE", f"{GANGS}/sc/scale", only=["code", "reason"]),
    case("a scale as a table", "GET", f"{GANGS}/sc/scale", headers=TABLE, ignore=CELLS),
    case("the status alone", "GET", f"{GANGS}/sc/status", only=["metadata.name", "metadata.generation"]),
    case("a status of what is missing", "PATCH", f"{GANGS}/none/status", {"status": {}}, headers=MERGE),
    case("a status as a dry run", "PATCH", f"{GANGS}/sc/status?dryRun=All", {"status": {"phase": "Placed"}},
         headers=MERGE, only=["metadata.name", "status.phase", "spec"]),
    case("apply a status", "PATCH", f"{GANGS}/sc/status?fieldManager=st&force=true",
         {"apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang", "metadata": {"name": "sc"},
          "status": {"phase": "Placed"}}, headers=APPLY, only=["metadata.name", "status.phase"]),
    case("a gang of fewer than none", "POST", GANGS, renamed(GANG, "neg", members=-1)),
    case("another gang's uid", "DELETE", f"{GANGS}/sc", options(preconditions={"uid": "u"})),
    case("delete the scaled gang", "DELETE", f"{GANGS}/sc"),

    # Logs.
    case("a pod to read", "POST", f"{NS}/pods", renamed(POD, "lg"), only=["metadata.name"]),
    case("its log before it is bound", "GET", f"{NS}/pods/lg/log"),
    case("the log of a missing container", "GET", f"{NS}/pods/lg/log?container=none"),
    case("the log of a missing pod", "GET", f"{NS}/pods/none/log"),
    case("fewer lines than none", "GET", f"{NS}/pods/lg/log?tailLines=-1"),
    case("no bytes", "GET", f"{NS}/pods/lg/log?limitBytes=0"),
    case("since no seconds", "GET", f"{NS}/pods/lg/log?sinceSeconds=0"),
    case("since two times", "GET", f"{NS}/pods/lg/log?sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z"),
    case("lines that are no number", "GET", f"{NS}/pods/lg/log?tailLines=x"),
    case("a write of a log", "POST", f"{NS}/pods/lg/log", {}, only=["code", "reason"]),
    case("delete the pod that was read", "DELETE", f"{NS}/pods/lg", only=["metadata.name"]),

    # Selectors.
    case("one of a set", "POST", MAPS, config("s1", labels={"sel": "a", "n": "5"})),
    case("two of a set", "POST", MAPS, config("s2", labels={"sel": "b"})),
    *(case(f"labels {selector}", "GET", f"{MAPS}?labelSelector={selector}")
      for selector in ("sel%20notin%20(a),sel", "sel,!n", "sel%3D%3Da", "sel!%3Da,sel", "n%3E4", "n%3C4,sel",
                       "sel%20in%20(a,%20b)", "sel%20in%20(b,)", "sel%3D")),
    *(case(f"labels that cannot be, {selector}", "GET", f"{MAPS}?labelSelector={selector}", ignore=["message"])
      for selector in ("sel%20in", "sel%20in%20()%20x", "n%3Ea", "%2Fx%3Dy", "a,,b", "!", "sel%20among%20(a)")),
    case("fields that exclude", "GET", f"{MAPS}?labelSelector=sel&fieldSelector=metadata.name!%3Ds1"),
    case("fields of a name and a namespace", "GET",
         f"/api/v1/configmaps?fieldSelector=metadata.name%3Ds1,metadata.namespace%3Ddefault"),
    case("fields that cannot be", "GET", f"{MAPS}?fieldSelector=metadata.name"),
    case("a gang by a field it has not", "GET", f"{GANGS}?fieldSelector=spec.shape%3D4x4"),
    case("pods by node and phase", "GET", f"{NS}/pods?fieldSelector=spec.nodeName%3Dx,status.phase%3DRunning"),
    case("metadata of a list", "GET", f"{MAPS}?labelSelector=sel",
         headers={"Accept": PARTIAL["Accept"].replace("Metadata;", "MetadataList;")}),
    case("a page of a table", "GET", f"{MAPS}?labelSelector=sel&limit=1&includeObject=None", headers=TABLE, ignore=CELLS),

    # Watches.
    case("a table's initial events and their end", "GET", f"{MAPS}?{WATCH_ALL}&labelSelector=sel", watch=True,
         headers=TABLE, ignore=["object.rows.cells", "object.columnDefinitions.description"]),
    case("metadata's initial events and their end", "GET", f"{MAPS}?{WATCH_ALL}&labelSelector=sel", watch=True,
         headers=PARTIAL),
    case("a custom resource's initial events", "GET", f"{GANGS}?{WATCH_ALL}&fieldSelector=metadata.name%3Dnone",
         watch=True),
    case("initial events that are not wanted", "GET",
         f"{MAPS}?watch=1&timeoutSeconds=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&labelSelector=sel",
         watch=True),
    case("a watch with a continue token", "GET",
         f"{MAPS}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x"),
    case("where a watch begins", "GET", f"{MAPS}/s1", remember={"s1": "metadata.resourceVersion"}),
    case("out of the selection", "PATCH", f"{MAPS}/s1", {"metadata": {"labels": {"sel": None}}}, headers=MERGE,
         only=["metadata.labels"]),
    case("and back", "PATCH", f"{MAPS}/s1", {"metadata": {"labels": {"sel": "c"}}}, headers=MERGE,
         only=["metadata.labels"]),
    case("and changed", "PATCH", f"{MAPS}/s1", {"data": {"a": "7"}}, headers=MERGE, only=["data"]),
    case("what a selection saw of it", "GET",
         f"{MAPS}?watch=1&timeoutSeconds=1&labelSelector=sel&resourceVersion={{s1}}", watch=True),
    case("what a table saw of it", "GET",
         f"{MAPS}?watch=1&timeoutSeconds=1&labelSelector=sel&resourceVersion={{s1}}&includeObject=None", watch=True,
         headers=TABLE, ignore=["object.rows.cells", "object.columnDefinitions.description"]),
    case("delete the set", "DELETE", f"{MAPS}?labelSelector=sel"),
    case("delete the rest", "DELETE", f"{MAPS}?fieldSelector=metadata.name%3Dw", only=["kind"]),
]
