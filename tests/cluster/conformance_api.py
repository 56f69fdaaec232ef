"""Cases of conformance.py about the API itself: paths, discovery, lists, watches, namespaces, CRDs."""

from conformance_case import CELLS, CONFIG, DRA, GANGS, MERGE, NS, STRATEGIC, TABLE, case

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
WIDGETS = "/apis/conformance.example.com/v1/namespaces/default/widgets"
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
       "metadata": {"name": "widgets.conformance.example.com"},
       "spec": {"group": "conformance.example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wg"]},
                "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                              "additionalPrinterColumns": [{"name": "Size", "type": "integer",
                                                            "jsonPath": ".spec.size"}],
                              "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                                  "spec": {"type": "object", "required": ["size"], "properties": {
                                      "size": {"type": "integer", "minimum": 1, "maximum": 9},
                                      "color": {"type": "string", "default": "red", "pattern": "^[a-z]+$"},
                                      "list": {"type": "array", "maxItems": 2, "items": {"type": "string"},
                                               "x-kubernetes-list-type": "set"},
                                      "any": {"x-kubernetes-int-or-string": True},
                                      "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                      "when": {"type": "string", "format": "date-time"},
                                      "maybe": {"type": "string", "nullable": True}}},
                                  "status": {"type": "object", "properties": {"done": {"type": "boolean"}}}}}}}]}}


def widget(name, **spec):
    return {"apiVersion": "conformance.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def group_crd(group, approval):
    """A CRD of a group of Kubernetes itself."""
    annotations = {"api-approved.kubernetes.io": approval} if approval else {}
    return {**CRD, "metadata": {"name": f"gadgets.{group}", "annotations": annotations},
            "spec": {**CRD["spec"], "group": group, "names": {"plural": "gadgets", "kind": "Gadget"}}}


def labelled(name):
    return {**CONFIG, "metadata": {"name": name, "labels": {"set": "pages"}}}


PAGES = f"{NS}/configmaps?labelSelector=set%3Dpages"

CASES = [
    # Paths.
    case("an unknown version of a known group", "GET", "/apis/resource.k8s.io/v9/resourceclaims"),
    case("an unknown resource of a custom group", "GET", "/apis/tahoma.dev/v1alpha1/namespaces/default/things"),
    case("an unknown resource of a built-in group", "GET", f"{DRA}/things"),
    case("an unknown group's document", "GET", "/apis/nothing.example.com"),
    case("an unknown version's document", "GET", "/apis/nothing.example.com/v1"),
    case("an unknown root", "GET", "/nothing"),
    case("an unknown subresource", "GET", f"{NS}/configmaps/cm/nothing"),
    case("an unknown subresource of ours", "GET", f"{GANGS}/g/nothing"),
    case("a post to a list of everything", "POST", "/api/v1/configmaps", CONFIG),
    case("a delete of every namespace", "DELETE", "/api/v1/namespaces", only=["code", "reason", "message"]),
    case("a post with a text body", "POST", f"{NS}/configmaps", "hello", headers={"Content-Type": "text/plain"}),
    case("a yaml body", "POST", f"{NS}/configmaps?dryRun=All",
         "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yy\ndata:\n  a: b\n",
         headers={"Content-Type": "application/yaml"}),
    case("an empty body", "POST", f"{NS}/configmaps", "", headers={"Content-Type": "application/json"},
         ignore=["message"]),  # Go's decoder
    case("an array as a body", "POST", f"{NS}/configmaps", [1], only=["code", "reason"]),
    case("a field validation that is none", "POST", f"{NS}/configmaps?fieldValidation=Some", CONFIG),
    case("a duplicate field", "POST", f"{NS}/configmaps?fieldValidation=Strict",
         '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"q"},"data":{"a":"1","a":"2"}}',
         headers={"Content-Type": "application/json"}),
    case("two unknown fields", "POST", f"{NS}/pods?fieldValidation=Strict",
         {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q", "labelz": {}},
          "spec": {"containers": [{"name": "a", "image": "b", "imagee": "c"}]}}),
    case("two unknown fields, warned", "POST", f"{NS}/pods?dryRun=All",
         {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q", "labelz": {}},
          "spec": {"containers": [{"name": "a", "image": "b", "imagee": "c"}]}}, only=["metadata.name"]),
    case("an unknown field in a patch, strict", "PATCH", f"{NS}/configmaps/one?fieldValidation=Strict", {"dota": {}},
         headers=MERGE, only=["code", "reason"]),
    case("the version", "GET", "/version", only=["major", "minor"]),
    case("liveness", "GET", "/livez"),

    # Discovery: what we serve is in what a real server serves.
    case("the core's versions", "GET", "/api", only=["kind", "versions"]),
    # resource.k8s.io/v1beta1 is off by default in a real server; we serve its DeviceClass for AWS's manifest.
    case("the groups", "GET", "/apis", subset=True, without=["resource.k8s.io/v1beta1", "metrics.k8s.io"]),
    case("the core", "GET", "/api/v1", subset=True),
    case("the resources of DRA", "GET", DRA, subset=True),
    case("our resources", "GET", "/apis/tahoma.dev/v1alpha1", any_order="resources",
         ignore=["resources.storageVersionHash", "resources.verbs"]),  # verbs in another order
    case("our group", "GET", "/apis/tahoma.dev"),
    case("the group of leases", "GET", "/apis/coordination.k8s.io/v1", subset=True),
    case("the core, aggregated", "GET", "/api", headers=AGGREGATED, subset=True),
    case("the groups, aggregated", "GET", "/apis", headers=AGGREGATED, subset=True, without=["v1beta1", "metrics.k8s.io"]),
    case("who may what", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
         {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
          "spec": {"resourceAttributes": {"namespace": "default", "verb": "list", "resource": "pods"}}},
         ignore=["status.reason"]),
    case("the OpenAPI of gangs", "GET", "/openapi/v3/apis/tahoma.dev/v1alpha1",
         only=["openapi"], subset=True),

    # Lists.
    case("page one", "POST", f"{NS}/configmaps", labelled("page-a")),
    case("page two", "POST", f"{NS}/configmaps", labelled("page-b")),
    case("page three", "POST", f"{NS}/configmaps", labelled("page-c"), remember={"rv": "metadata.resourceVersion"}),
    case("the first page", "GET", f"{PAGES}&limit=2", remember={"next": "metadata.continue"}),
    case("a change between pages", "DELETE", f"{NS}/configmaps/page-c", only=["status"]),
    case("the second page shows the first page's state", "GET", f"{PAGES}&limit=2&continue={{next}}"),
    case("a continue token with a version", "GET", f"{PAGES}&limit=2&resourceVersion=5&continue={{next}}"),
    case("a list of an exact version", "GET", f"{PAGES}&resourceVersion={{rv}}&resourceVersionMatch=Exact"),
    case("a list not older than", "GET", f"{PAGES}&resourceVersion={{rv}}&resourceVersionMatch=NotOlderThan"),
    case("a match that is none", "GET", f"{PAGES}&resourceVersion={{rv}}&resourceVersionMatch=Near"),
    case("exactly version 0", "GET", f"{PAGES}&resourceVersion=0&resourceVersionMatch=Exact"),
    case("any version", "GET", f"{PAGES}&resourceVersion=0"),
    case("a version to come", "GET", f"{PAGES}&resourceVersion=999999999", ignore=["message"]),
    case("an exact version to come", "GET", f"{PAGES}&resourceVersion=999999999&resourceVersionMatch=Exact",
         ignore=["message"]),
    case("one object of a version to come", "GET", f"{NS}/configmaps/page-a?resourceVersion=999999999",
         ignore=["message"]),
    case("a negative limit", "GET", f"{NS}/configmaps?limit=-1", only=["code", "reason", "kind"]),
    case("a limit that is no number", "GET", f"{NS}/configmaps?limit=x"),
    case("a timeout that is no number", "GET", f"{NS}/configmaps?watch=1&timeoutSeconds=x"),

    # Watches.
    case("a watch sees a change", "GET",
         f"{PAGES}&watch=1&timeoutSeconds=1&resourceVersion={{rv}}", watch=True),
    case("a watch of a table", "GET", f"{PAGES}&watch=1&timeoutSeconds=1&resourceVersion={{rv}}", watch=True,
         headers=TABLE, ignore=["object.rows.cells", "object.columnDefinitions.description"]),
    case("a watch of one object", "GET",
         f"{NS}/configmaps/page-a?watch=1&timeoutSeconds=1", watch=True),
    case("a watch by its own path", "GET",
         "/api/v1/watch/namespaces/default/configmaps/page-a?timeoutSeconds=1", watch=True),
    case("a watch from a version to come", "GET",
         f"{NS}/configmaps?watch=1&timeoutSeconds=6&resourceVersion=999999999", watch=True,
         ignore=["message", "object.message"]),
    case("a watch from no number", "GET", f"{NS}/configmaps?watch=1&resourceVersion=abc"),
    case("a watch with a match", "GET", f"{NS}/configmaps?watch=1&resourceVersion=1&resourceVersionMatch=Exact"),
    case("a watch of initial events not older", "GET",
         f"{NS}/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact"),
    case("clear the pages", "DELETE", PAGES, only=["kind"]),

    # Namespaces.
    case("a namespace", "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                                       "metadata": {"name": "conf"}}),
    case("a namespace of a bad name", "POST", "/api/v1/namespaces", {"metadata": {"name": "A.b"}}),
    case("its finalizer stays on an update", "PATCH", "/api/v1/namespaces/conf",
         {"metadata": {"labels": {"x": "y"}}, "spec": {"finalizers": []}}, headers=MERGE),
    case("a namespace as a table", "GET", "/api/v1/namespaces/conf?includeObject=None", headers=TABLE,
         ignore=CELLS),
    case("hold a namespace", "POST", "/api/v1/namespaces/conf/configmaps",
         {**CONFIG, "metadata": {"name": "hold", "finalizers": ["example.com/hold"]}}),
    case("delete a namespace", "DELETE", "/api/v1/namespaces/conf"),
    case("no new objects in it", "POST", "/api/v1/namespaces/conf/configmaps", CONFIG),
    case("delete the default namespace", "DELETE", "/api/v1/namespaces/default"),
    case("let it go", "PATCH", "/api/v1/namespaces/conf/configmaps/hold", {"metadata": {"finalizers": None}},
         headers=MERGE, only=["metadata.name"]),

    # CRDs.
    case("a CRD", "POST", CRDS, CRD, only=["metadata.name", "spec"]),
    case("a CRD of another name", "POST", CRDS, {**CRD, "metadata": {"name": "x.conformance.example.com"}}),
    case("a CRD without a schema", "POST", CRDS,
         {**CRD, "metadata": {"name": "wodgets.conformance.example.com"},
          "spec": {**CRD["spec"], "names": {"plural": "wodgets", "kind": "Wodget"},
                   "versions": [{"name": "v1", "served": True, "storage": True}]}}),
    case("a CRD of a group of Kubernetes without an approval", "POST", CRDS, group_crd("conformance.k8s.io", None)),
    case("with one that is no URL", "POST", CRDS, group_crd("conformance.k8s.io", "yes")),
    case("a CRD of a group of Kubernetes that is not approved", "POST", CRDS,
         group_crd("conformance.k8s.io", "unapproved, a test"), only=["metadata.name", "spec"]),
    case("a condition says so", "GET", f"{CRDS}/gadgets.conformance.k8s.io", until=("status.conditions", 3),
         only=["status.acceptedNames"]),
    case("an approval is taken away", "PATCH", f"{CRDS}/gadgets.conformance.k8s.io",
         {"metadata": {"annotations": {"api-approved.kubernetes.io": None}}}, headers=MERGE),
    case("delete that CRD", "DELETE", f"{CRDS}/gadgets.conformance.k8s.io", only=["code"]),
    case("it is established", "GET", f"{CRDS}/widgets.conformance.example.com", until=("status.conditions", 2),
         only=["status.acceptedNames", "status.storedVersions"]),
    case("its kind is served", "GET", WIDGETS, until=("kind", 1)),
    case("a widget", "POST", WIDGETS, widget("w", size=1, any="5%", free={"a": [1]}, unknown=1)),
    case("a widget of every fault", "POST", WIDGETS,
         widget("x", size=10, color="R", list=["a", "a", "b"], any=True, when="soon", maybe=None), unordered=True),
    case("a widget without its size", "POST", WIDGETS, widget("x")),
    case("a widget whose spec is text", "POST", WIDGETS, {**widget("x"), "spec": "no"}),
    case("null is dropped for a default", "POST", f"{WIDGETS}?dryRun=All", widget("x", size=2, color=None)),
    case("widgets as a table", "GET", f"{WIDGETS}?includeObject=None", headers=TABLE, ignore=CELLS),
    case("widgets", "GET", WIDGETS),
    case("a widget's status", "PATCH", f"{WIDGETS}/w/status", {"spec": {"size": 5}, "status": {"done": True}},
         headers=MERGE),
    case("a widget has no scale", "GET", f"{WIDGETS}/w/scale"),
    case("a put without a version", "PUT", f"{WIDGETS}/w", widget("w", size=3)),
    case("an unknown field of a widget, warned", "POST", f"{WIDGETS}?dryRun=All&fieldValidation=Warn",
         widget("x", size=2, nothing=1)),
    case("a strategic patch", "PATCH", f"{WIDGETS}/w", {"spec": {"size": 2}}, headers=STRATEGIC),
    # A real server removes its objects later and answers with the CRD that is going; we do it at once.
    case("delete the CRD", "DELETE", f"{CRDS}/widgets.conformance.example.com", only=["code"]),
    case("its kind is gone", "GET", WIDGETS, until=("", 0)),
]
