// The built-in kinds: names, verbs, subresources and columns as a real API server has them.
// Source: the discovery documents of Kubernetes 1.36 and its printers.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "controller/apiserver/schema/kind.h"
#include "controller/apiserver/schema/schema_table.h"
#include "lib/base/check.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

const std::vector<std::string> kAllVerbs = {"create", "delete", "deletecollection", "get",
                                            "list",   "patch",  "update",           "watch"};

Column NameColumn() {
  return {.name = "Name", .type = "string", .format = "name", .description = "The name."};
}
Column Text(std::string name, std::string description, std::int32_t priority = 0) {
  return {.name = std::move(name),
          .type = "string",
          .description = std::move(description),
          .priority = priority};
}
Column Number(std::string name, std::string description) {
  return {.name = std::move(name), .type = "integer", .description = std::move(description)};
}
Column AgeColumn() { return Text("Age", "Time since the object was created."); }

Kind Make(std::string group, std::string version, std::string kind, std::string plural) {
  Kind made;
  made.group = std::move(group);
  made.version = std::move(version);
  made.list_kind = kind + "List";
  made.singular = kind;
  for (char& c : made.singular) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  made.kind = std::move(kind);
  made.plural = std::move(plural);
  made.built_in = true;
  made.verbs = kAllVerbs;
  made.columns = {NameColumn(), AgeColumn()};
  return made;
}

Kind PodKind() {
  Kind pod = Make("", "v1", "Pod", "pods");
  pod.short_names = {"po"};
  pod.categories = {"all"};
  pod.has_status = true;
  pod.has_generation = true;
  pod.subresources = {{"attach", {"", "v1", "PodAttachOptions"}, {"create", "get"}},
                      {"binding", {"", "v1", "Binding"}, {"create"}},
                      {"ephemeralcontainers", {"", "v1", "Pod"}, {"get", "patch", "update"}},
                      {"eviction", {"policy", "v1", "Eviction"}, {"create"}},
                      {"exec", {"", "v1", "PodExecOptions"}, {"create", "get"}},
                      {"log", {"", "v1", "Pod"}, {"get"}},
                      {"portforward", {"", "v1", "PodPortForwardOptions"}, {"create", "get"}}};
  pod.selectable = {{"spec.nodeName", {"spec", "nodeName"}},
                    {"spec.restartPolicy", {"spec", "restartPolicy"}},
                    {"spec.schedulerName", {"spec", "schedulerName"}},
                    {"spec.serviceAccountName", {"spec", "serviceAccountName"}},
                    {"spec.hostNetwork", {"spec", "hostNetwork"}},
                    {"status.phase", {"status", "phase"}},
                    {"status.podIP", {"status", "podIP"}},
                    {"status.nominatedNodeName", {"status", "nominatedNodeName"}}};
  pod.columns = {NameColumn(),
                 Text("Ready", "Ready containers of all containers."),
                 Text("Status", "What the pod is doing."),
                 Text("Restarts", "How often containers were started again, and when last."),
                 AgeColumn(),
                 Text("IP", "The pod's address.", 1),
                 Text("Node", "The node that runs it.", 1),
                 Text("Nominated Node", "The node for which room is being made.", 1),
                 Text("Readiness Gates", "Readiness gates that are passed.", 1)};
  return pod;
}

Kind NodeKind() {
  Kind node = Make("", "v1", "Node", "nodes");
  node.short_names = {"no"};
  node.namespaced = false;
  node.has_status = true;
  node.selectable = {{"spec.unschedulable", {"spec", "unschedulable"}}};
  node.columns = {NameColumn(),
                  Text("Status", "Whether it is ready."),
                  Text("Roles", "Roles by its labels."),
                  AgeColumn(),
                  Text("Version", "The node agent's version."),
                  Text("Internal-IP", "Its address inside.", 1),
                  Text("External-IP", "Its address outside.", 1),
                  Text("OS-Image", "The system's name.", 1),
                  Text("Kernel-Version", "The kernel.", 1),
                  Text("Container-Runtime", "The container runtime.", 1)};
  return node;
}

Kind NamespaceKind() {
  Kind space = Make("", "v1", "Namespace", "namespaces");
  space.short_names = {"ns"};
  space.namespaced = false;
  space.has_status = true;
  // A real server has no deletecollection of namespaces.
  space.verbs = {"create", "delete", "get", "list", "patch", "update", "watch"};
  space.subresources = {{"finalize", {"", "v1", "Namespace"}, {"update"}}};
  space.selectable = {{"status.phase", {"status", "phase"}}};
  space.columns = {NameColumn(), Text("Status", "Active or Terminating."), AgeColumn()};
  return space;
}

Kind CoreEventKind() {
  Kind event = Make("", "v1", "Event", "events");
  event.short_names = {"ev"};
  for (const char* field :
       {"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"}) {
    event.selectable.push_back({std::string("involvedObject.") + field, {"involvedObject", field}});
  }
  for (const char* field : {"reason", "reportingComponent", "type"}) {
    event.selectable.push_back({field, {field}});
  }
  event.selectable.push_back({"source", {"source", "component"}});
  event.columns = {Text("Last Seen", "When it was last seen."),
                   Text("Type", "Normal or Warning."),
                   Text("Reason", "Why, in one word."),
                   Text("Object", "What it is about."),
                   Text("Subobject", "Which part of it.", 1),
                   Text("Source", "Who reports.", 1),
                   Text("Message", "Why, in a sentence."),
                   Text("First Seen", "When it was first seen.", 1),
                   {.name = "Count", .type = "string", .description = "How often.", .priority = 1},
                   {.name = "Name",
                    .type = "string",
                    .format = "name",
                    .description = "The name.",
                    .priority = 1}};
  return event;
}

Kind EventsEventKind() {
  Kind event = CoreEventKind();
  event.group = "events.k8s.io";
  // Stored once, as core/v1; served in this form by the same fields under other names is not
  // possible without conversion, so events.k8s.io keeps objects of its own.
  event.selectable = {{"regarding.kind", {"regarding", "kind"}},
                      {"regarding.name", {"regarding", "name"}},
                      {"regarding.namespace", {"regarding", "namespace"}},
                      {"regarding.uid", {"regarding", "uid"}},
                      {"reason", {"reason"}},
                      {"reportingController", {"reportingController"}},
                      {"type", {"type"}}};
  return event;
}

// Stored only: nothing gives out addresses or routes to pods.
Kind ServiceKind() {
  Kind service = Make("", "v1", "Service", "services");
  service.short_names = {"svc"};
  service.categories = {"all"};
  service.has_status = true;
  service.selectable = {{"spec.clusterIP", {"spec", "clusterIP"}}, {"spec.type", {"spec", "type"}}};
  service.columns = {NameColumn(),
                     Text("Type", "How it is reached."),
                     Text("Cluster-IP", "Its address inside."),
                     Text("External-IP", "Its addresses outside."),
                     Text("Port(s)", "Its ports."),
                     AgeColumn(),
                     Text("Selector", "The labels of its pods.", 1)};
  return service;
}

// Stored only: nothing binds a claim or makes a volume.
std::vector<Kind> VolumeKinds() {
  const Column mode = Text("VolumeMode", "Filesystem or Block.", 1);
  const Column attributes = Text("VolumeAttributesClass", "The VolumeAttributesClass.");
  Kind volume = Make("", "v1", "PersistentVolume", "persistentvolumes");
  volume.short_names = {"pv"};
  volume.namespaced = false;
  volume.has_status = true;
  volume.columns = {NameColumn(),
                    Text("Capacity", "The size."),
                    Text("Access Modes", "By how many nodes or pods it is used."),
                    Text("Reclaim Policy", "What becomes of it without its claim."),
                    Text("Status", "Where it is in its life."),
                    Text("Claim", "The claim that is bound to it."),
                    Text("StorageClass", "The StorageClass."),
                    attributes,
                    Text("Reason", "Why, in one word."),
                    AgeColumn(),
                    mode};
  Kind claim = Make("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
  claim.short_names = {"pvc"};
  claim.has_status = true;
  claim.columns = {NameColumn(),
                   Text("Status", "Whether it is bound."),
                   Text("Volume", "The volume that is bound to it."),
                   Text("Capacity", "The size of the volume."),
                   Text("Access Modes", "By how many nodes or pods it is used."),
                   Text("StorageClass", "The StorageClass."),
                   attributes,
                   AgeColumn(),
                   mode};
  Kind storage_class = Make("storage.k8s.io", "v1", "StorageClass", "storageclasses");
  storage_class.short_names = {"sc"};
  storage_class.namespaced = false;
  storage_class.columns = {NameColumn(),
                           Text("Provisioner", "Who makes the volumes."),
                           Text("ReclaimPolicy", "What becomes of a volume without its claim."),
                           Text("VolumeBindingMode", "When a claim gets its volume."),
                           {.name = "AllowVolumeExpansion",
                            .type = "boolean",
                            .description = "Whether a volume may become larger."},
                           AgeColumn()};
  return {volume, claim, storage_class};
}

// The columns of whatever makes pods from a template: `own` between name and age, then those of the
// template. A StatefulSet shows no selector.
std::vector<Column> TemplateColumns(std::vector<Column> own, bool has_selector = true) {
  std::vector<Column> columns = {NameColumn()};
  std::ranges::move(own, std::back_inserter(columns));
  columns.push_back(AgeColumn());
  columns.push_back(Text("Containers", "The names of the containers.", 1));
  columns.push_back(Text("Images", "The images of the containers.", 1));
  if (has_selector) columns.push_back(Text("Selector", "The labels of the pods.", 1));
  return columns;
}

Kind WorkloadKind(const std::string& group, std::string kind, std::string plural,
                  std::vector<std::string> short_names) {
  Kind made = Make(group, "v1", std::move(kind), std::move(plural));
  made.short_names = std::move(short_names);
  made.categories = {"all"};
  made.has_status = true;
  made.has_generation = true;
  return made;
}

std::vector<Kind> AppsKinds() {
  const ScalePaths scale = {{"spec", "replicas"}, {"status", "replicas"}, {"spec", "selector"}};
  Kind deployment = WorkloadKind("apps", "Deployment", "deployments", {"deploy"});
  deployment.scale = scale;
  deployment.columns = TemplateColumns({Text("Ready", "Ready pods of all pods."),
                                        Text("Up-to-date", "Pods of the present template."),
                                        Text("Available", "Pods that are available.")});
  Kind replica_set = WorkloadKind("apps", "ReplicaSet", "replicasets", {"rs"});
  replica_set.scale = scale;
  replica_set.columns =
      TemplateColumns({Number("Desired", "Pods that are wanted."),
                       Number("Current", "Pods that there are."), Number("Ready", "Ready pods.")});
  Kind stateful_set = WorkloadKind("apps", "StatefulSet", "statefulsets", {"sts"});
  stateful_set.scale = scale;
  stateful_set.columns = TemplateColumns({Text("Ready", "Ready pods of all pods.")}, false);
  Kind daemon_set = WorkloadKind("apps", "DaemonSet", "daemonsets", {"ds"});
  daemon_set.columns =
      TemplateColumns({Number("Desired", "Nodes that should have a pod."),
                       Number("Current", "Nodes of these that have one."),
                       Number("Ready", "Nodes of these whose pod is ready."),
                       Number("Up-to-date", "Nodes with a pod of the present template."),
                       Number("Available", "Nodes whose pod is available."),
                       Text("Node Selector", "The labels of the nodes.")});
  Kind revision = Make("apps", "v1", "ControllerRevision", "controllerrevisions");
  revision.columns = {NameColumn(), Text("Controller", "Whose revision it is."),
                      Text("Revision", "The number of the revision."), AgeColumn()};
  return {deployment, replica_set, stateful_set, daemon_set, revision};
}

std::vector<Kind> BatchKinds() {
  Kind job = WorkloadKind("batch", "Job", "jobs", {});
  job.selectable = {{"status.successful", {"status", "succeeded"}, "0"}};
  job.columns = TemplateColumns({Text("Status", "Where it is in its life."),
                                 Text("Completions", "Pods that have succeeded of all."),
                                 Text("Duration", "How long it has taken.")});
  Kind budget = Make("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
  budget.short_names = {"pdb"};
  budget.has_status = true;
  budget.has_generation = true;
  budget.columns = {NameColumn(), Text("Min Available", "The least pods that must stay."),
                    Text("Max Unavailable", "The most pods that may be missing."),
                    Number("Allowed Disruptions", "Pods that may be evicted now."), AgeColumn()};
  return {job, budget};
}

std::vector<Kind> CoreKinds() {
  Kind config_map = Make("", "v1", "ConfigMap", "configmaps");
  config_map.short_names = {"cm"};
  config_map.columns = {NameColumn(), Text("Data", "How many entries."), AgeColumn()};
  Kind secret = Make("", "v1", "Secret", "secrets");
  secret.selectable = {{"type", {"type"}}};
  secret.columns = {NameColumn(), Text("Type", "What it is for."),
                    Text("Data", "How many entries."), AgeColumn()};
  Kind account = Make("", "v1", "ServiceAccount", "serviceaccounts");
  account.short_names = {"sa"};
  account.subresources = {{"token", {"authentication.k8s.io", "v1", "TokenRequest"}, {"create"}}};
  account.columns = {NameColumn(), Text("Secrets", "How many secrets."), AgeColumn()};
  Kind component = Make("", "v1", "ComponentStatus", "componentstatuses");
  component.short_names = {"cs"};
  component.namespaced = false;
  component.computed = true;
  component.verbs = {"get", "list"};
  component.columns = {NameColumn(), Text("Status", "Healthy or Unhealthy."),
                       Text("Message", "How it is."), Text("Error", "What went wrong.")};
  Kind endpoints = Make("", "v1", "Endpoints", "endpoints");
  endpoints.short_names = {"ep"};
  endpoints.columns = {NameColumn(), Text("Endpoints", "The addresses."), AgeColumn()};
  return {PodKind(), NodeKind(), NamespaceKind(), CoreEventKind(), config_map,
          secret,    account,    ServiceKind(),   component,       endpoints};
}

// Kinds of kubectl top, made when they are read. Clients of metrics-server read JSON.
std::vector<Kind> MetricsKinds() {
  const std::string group = "metrics.k8s.io";
  const auto at_path = [](Column column, std::string path) {
    column.json_path = std::move(path);
    return column;
  };
  Kind node = Make(group, "v1beta1", "NodeMetrics", "nodes");
  node.namespaced = false;
  node.columns = {NameColumn(), at_path(Text("CPU", "Processor cores in use."), ".usage.cpu"),
                  at_path(Text("Memory", "Memory in use."), ".usage.memory")};
  Kind pod = Make(group, "v1beta1", "PodMetrics", "pods");
  pod.columns = {
      NameColumn(),
      at_path(Text("CPU", "Processor cores in use, by container."), ".containers[*].usage.cpu"),
      at_path(Text("Memory", "Memory in use, by container."), ".containers[*].usage.memory")};
  std::vector<Kind> made = {std::move(node), std::move(pod)};
  for (Kind& kind : made) {
    kind.built_in = false;
    kind.computed = true;
    kind.verbs = {"get", "list"};
    kind.columns.push_back(at_path(Text("Window", "The time of the measurement."), ".window"));
  }
  return made;
}

std::vector<Kind> ResourceKinds() {
  const std::string group = "resource.k8s.io";
  Kind slice = Make(group, "v1", "ResourceSlice", "resourceslices");
  slice.namespaced = false;
  slice.has_generation = true;
  slice.selectable = {{"spec.nodeName", {"spec", "nodeName"}}, {"spec.driver", {"spec", "driver"}}};
  slice.columns = {NameColumn(), Text("Node", "The node that can use the devices."),
                   Text("Driver", "The driver."), Text("Pool", "The pool."), AgeColumn()};
  Kind claim = Make(group, "v1", "ResourceClaim", "resourceclaims");
  claim.has_status = true;
  claim.columns = {NameColumn(), Text("State", "Whether it is allocated and reserved."),
                   AgeColumn()};
  Kind claim_template = Make(group, "v1", "ResourceClaimTemplate", "resourceclaimtemplates");
  Kind device_class = Make(group, "v1", "DeviceClass", "deviceclasses");
  device_class.namespaced = false;
  device_class.has_generation = true;
  // AWS's published class is of v1beta1, whose DeviceClass has the fields of v1's.
  Kind beta_class = device_class;
  beta_class.version = "v1beta1";
  beta_class.storage = false;
  return {slice, claim, claim_template, device_class, beta_class};
}

std::vector<Kind> OtherKinds() {
  Kind lease = Make("coordination.k8s.io", "v1", "Lease", "leases");
  lease.columns = {NameColumn(), Text("Holder", "Who holds it."), AgeColumn()};
  Kind crd =
      Make("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
  crd.short_names = {"crd", "crds"};
  crd.categories = {"api-extensions"};
  crd.namespaced = false;
  crd.has_status = true;
  crd.has_generation = true;
  crd.columns = {NameColumn(), Text("Created At", "When it was created.")};
  Kind priority = Make("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses");
  priority.short_names = {"pc"};
  priority.namespaced = false;
  priority.has_generation = true;
  priority.columns = {NameColumn(),
                      {.name = "Value", .type = "integer", .description = "The priority."},
                      {.name = "Global-Default",
                       .type = "boolean",
                       .description = "Whether pods that name no class are of this one."},
                      AgeColumn(),
                      Text("PreemptionPolicy", "Whether its pods may displace others.")};
  return {lease, crd, EventsEventKind(), priority};
}

// The configurations of admission webhooks (controller/apiserver/webhooks).
std::vector<Kind> WebhookKinds() {
  std::vector<Kind> kinds;
  for (const char* name : {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}) {
    Kind& kind = kinds.emplace_back(Make("admissionregistration.k8s.io", "v1", name, ""));
    kind.plural = kind.singular + "s";
    kind.categories = {"api-extensions"};
    kind.namespaced = false;
    kind.has_generation = true;
    kind.columns = {NameColumn(),
                    {.name = "Webhooks", .type = "integer", .description = "How many webhooks."},
                    AgeColumn()};
  }
  return kinds;
}

Kind Review(std::string group, std::string kind, bool namespaced) {
  Kind review = Make(std::move(group), "v1", std::move(kind), "");
  review.plural = review.singular + "s";
  review.namespaced = namespaced;
  review.verbs = {"create"};
  return review;
}

// The types of v1: what is served of other versions has the same fields.
std::string TypePackage(const Kind& kind) {
  if (kind.group.empty()) return "io.k8s.api.core.v1";
  if (kind.group == "metrics.k8s.io") return "io.k8s.metrics.pkg.apis.metrics.v1beta1";
  if (kind.group == "apiextensions.k8s.io") {
    return "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
  }
  return fmt::format("io.k8s.api.{}.{}", kind.group.substr(0, kind.group.find('.')), "v1");
}

const std::map<std::string, SchemaPtr, std::less<>>& BuiltInTypes() {
  static const auto* const types = [] {
    auto read = ParseSchemaTables(BuiltInSchemaTables());
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): once, for its message
    TAHOMA_CHECK_OK(read.status());
    return new std::map<std::string, SchemaPtr, std::less<>>(*std::move(read));
  }();
  return *types;
}

std::vector<std::shared_ptr<const Kind>> MakeBuiltInKinds() {
  std::vector<std::shared_ptr<const Kind>> made;
  for (const auto& group : {CoreKinds(), VolumeKinds(), AppsKinds(), BatchKinds(), ResourceKinds(),
                            MetricsKinds(), OtherKinds(), WebhookKinds()}) {
    for (Kind kind : group) {
      const auto type = BuiltInTypes().find(TypePackage(kind) + "." + kind.kind);
      TAHOMA_CHECK(type != BuiltInTypes().end());
      kind.schema = type->second;
      made.push_back(std::make_shared<const Kind>(std::move(kind)));
    }
  }
  return made;
}

}  // namespace

const std::vector<std::shared_ptr<const Kind>>& BuiltInKinds() {
  static const auto* const kinds = new std::vector<std::shared_ptr<const Kind>>(MakeBuiltInKinds());
  return *kinds;
}

const std::vector<std::shared_ptr<const Kind>>& ReviewKinds() {
  static const auto* const kinds = [] {
    const std::string authorization = "authorization.k8s.io";
    auto* const made = new std::vector<std::shared_ptr<const Kind>>;
    for (Kind kind : {Review("authentication.k8s.io", "SelfSubjectReview", false),
                      Review("authentication.k8s.io", "TokenReview", false),
                      Review(authorization, "LocalSubjectAccessReview", true),
                      Review(authorization, "SelfSubjectAccessReview", false),
                      Review(authorization, "SelfSubjectRulesReview", false),
                      Review(authorization, "SubjectAccessReview", false)}) {
      made->push_back(std::make_shared<const Kind>(std::move(kind)));
    }
    return made;
  }();
  return *kinds;
}

const Schema& BuiltInType(std::string_view name) {
  const auto found = BuiltInTypes().find(name);
  TAHOMA_CHECK(found != BuiltInTypes().end());
  return *found->second;
}

}  // namespace tahoma::controller::apiserver
