#include "sim-node/podrunner/pod_spec.h"

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using json = Json;

const json& Member(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string Text(const json& object, const char* key) {
  const json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool Flag(const json& object, const char* key) {
  const json& value = Member(object, key);
  return value.is_boolean() && value.get<bool>();
}

// A list that may be absent; anything but a bounded list is an error that names the field.
absl::StatusOr<const json*> List(const json& object, const char* key, std::size_t limit) {
  static const json kEmpty = json::array();
  const json& value = Member(object, key);
  if (value.is_null()) return &kEmpty;
  if (!value.is_array()) return InvalidArgument("{} is not a list", key);
  if (value.size() > limit) {
    return InvalidArgument("{} has {} entries; at most {} are taken", key, value.size(), limit);
  }
  return &value;
}

absl::StatusOr<std::vector<std::string>> TextList(const json& object, const char* key) {
  TAHOMA_ASSIGN_OR_RETURN(const json* list, List(object, key, kMaxListEntries));
  std::vector<std::string> texts;
  for (const json& entry : *list) {
    if (!entry.is_string()) return InvalidArgument("{} has an entry that is not a string", key);
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

std::map<std::string, std::string> TextMap(const json& object, const char* key) {
  std::map<std::string, std::string> texts;
  const json& value = Member(object, key);
  if (!value.is_object()) return texts;
  for (const auto& [name, entry] : value.items()) {
    if (entry.is_string()) texts.emplace(name, entry.get<std::string>());
  }
  return texts;
}

EnvVar ParseEnvVar(const json& entry) {
  EnvVar var{.name = Text(entry, "name"), .value = Text(entry, "value")};
  const json& from = Member(entry, "valueFrom");
  if (!from.is_object() || from.empty()) return var;
  if (const json& field = Member(from, "fieldRef"); field.is_object()) {
    var.source = EnvVar::Source::kField;
    var.value = Text(field, "fieldPath");
    return var;
  }
  for (const char* kind : {"configMapKeyRef", "secretKeyRef"}) {
    const json& ref = Member(from, kind);
    if (!ref.is_object()) continue;
    var.source = kind[0] == 'c' ? EnvVar::Source::kConfigMapKey : EnvVar::Source::kSecretKey;
    var.object = Text(ref, "name");
    var.key = Text(ref, "key");
    var.optional = Flag(ref, "optional");
    return var;
  }
  var.source = EnvVar::Source::kUnsupported;
  var.value = from.begin().key();
  return var;
}

absl::Status ParseEnvironment(const json& object, ContainerSpec& container) {
  TAHOMA_ASSIGN_OR_RETURN(const json* env, List(object, "env", kMaxListEntries));
  for (const json& entry : *env) {
    container.env.push_back(ParseEnvVar(entry));
    if (container.env.back().name.empty()) return InvalidArgument("env has an entry without name");
  }
  TAHOMA_ASSIGN_OR_RETURN(const json* from, List(object, "envFrom", kMaxListEntries));
  for (const json& entry : *from) {
    const bool is_map = Member(entry, "configMapRef").is_object();
    const json& ref = Member(entry, is_map ? "configMapRef" : "secretRef");
    container.env_from.push_back(
        {.source = is_map ? EnvFrom::Source::kConfigMap : EnvFrom::Source::kSecret,
         .object = Text(ref, "name"),
         .prefix = Text(entry, "prefix"),
         .optional = Flag(ref, "optional")});
  }
  return absl::OkStatus();
}

// Names and uids become folders here; Kubernetes' own alphabets for them hold nothing that could
// leave one.
bool IsFolderName(std::string_view text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
  return !text.empty() && text.size() <= 253 && text[0] != '.' &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

absl::StatusOr<ContainerSpec> ParseContainer(const json& object) {
  ContainerSpec container{.name = Text(object, "name"),
                          .image = Text(object, "image"),
                          .working_dir = Text(object, "workingDir")};
  if (container.name.empty()) return InvalidArgument("name is missing");
  if (!IsFolderName(container.name)) {
    return InvalidArgument("name \"{}\" is not a DNS label", container.name);
  }
  TAHOMA_ASSIGN_OR_RETURN(container.command, TextList(object, "command"));
  TAHOMA_ASSIGN_OR_RETURN(container.args, TextList(object, "args"));
  TAHOMA_RETURN_IF_ERROR(ParseEnvironment(object, container));
  TAHOMA_ASSIGN_OR_RETURN(const json* claims,
                          List(Member(object, "resources"), "claims", kMaxClaimsPerPod));
  for (const json& entry : *claims) {
    container.claims.push_back({.claim = Text(entry, "name"), .request = Text(entry, "request")});
  }
  return container;
}

absl::StatusOr<std::vector<ContainerSpec>> ParseContainers(const json& spec, const char* key) {
  TAHOMA_ASSIGN_OR_RETURN(const json* list, List(spec, key, kMaxContainersPerPod));
  std::vector<ContainerSpec> containers;
  for (const json& entry : *list) {
    absl::StatusOr<ContainerSpec> container = ParseContainer(entry);
    if (!container.ok()) {
      return Annotate(container.status(), fmt::format("{}[{}]", key, containers.size()));
    }
    for (const ContainerSpec& other : containers) {
      if (other.name == container->name) {
        return InvalidArgument("{} has two containers named {}", key, other.name);
      }
    }
    containers.push_back(*std::move(container));
  }
  return containers;
}

absl::StatusOr<std::vector<PodClaim>> ParseClaims(const json& spec, const json& status) {
  TAHOMA_ASSIGN_OR_RETURN(const json* list, List(spec, "resourceClaims", kMaxClaimsPerPod));
  TAHOMA_ASSIGN_OR_RETURN(const json* made,
                          List(status, "resourceClaimStatuses", kMaxClaimsPerPod));
  std::vector<PodClaim> claims;
  for (const json& entry : *list) {
    PodClaim claim{.name = Text(entry, "name"), .object = Text(entry, "resourceClaimName")};
    for (const json& status_entry : *made) {
      if (!claim.object.empty() || Text(status_entry, "name") != claim.name) continue;
      claim.object = Text(status_entry, "resourceClaimName");
      claim.not_needed = claim.object.empty();
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

absl::StatusOr<RestartPolicy> ParseRestartPolicy(const std::string& text) {
  if (text.empty() || text == "Always") return RestartPolicy::kAlways;
  if (text == "OnFailure") return RestartPolicy::kOnFailure;
  if (text == "Never") return RestartPolicy::kNever;
  return InvalidArgument("spec.restartPolicy is {}; expected Always, OnFailure or Never", text);
}

std::optional<std::chrono::seconds> Seconds(const json& object, const char* key) {
  const json& value = Member(object, key);
  if (!value.is_number_integer()) return std::nullopt;
  // A year bounds the arithmetic with deadlines; nobody waits longer for a container.
  constexpr std::int64_t kYear = 365 * 24 * 3600;
  return std::chrono::seconds(std::clamp<std::int64_t>(value.get<std::int64_t>(), 0, kYear));
}

// A process on this machine has no volumes, probes or hooks; the list goes into an event.
std::vector<std::string> IgnoredFields(const json& spec) {
  std::vector<std::string> ignored;
  for (const char* list : {"initContainers", "containers"}) {
    const json& containers = Member(spec, list);
    if (!containers.is_array()) continue;
    for (const json& container : containers) {
      const std::string where = fmt::format("{}[{}]", list, Text(container, "name"));
      for (const char* key : {"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
        if (Member(container, key).is_object()) ignored.push_back(where + "." + key);
      }
      // The containers of a pod share its user here.
      if (Member(Member(container, "securityContext"), "runAsUser").is_number_integer()) {
        ignored.push_back(where + ".securityContext.runAsUser");
      }
    }
  }
  const json& volumes = Member(spec, "volumes");
  if (!volumes.is_array()) return ignored;
  for (const json& volume : volumes) {
    // Every real API server adds this one to every pod (the ServiceAccount admission plugin).
    const std::string name = Text(volume, "name");
    if (name.rfind("kube-api-access-", 0) != 0) ignored.push_back("volumes[" + name + "]");
  }
  return ignored;
}

bool WantsNonRoot(const json& spec) {
  const auto says = [](const json& holder) {
    return Flag(Member(holder, "securityContext"), "runAsNonRoot");
  };
  if (says(spec)) return true;
  for (const char* list : {"initContainers", "containers"}) {
    const json& containers = Member(spec, list);
    if (containers.is_array() && std::any_of(containers.begin(), containers.end(), says)) {
      return true;
    }
  }
  return false;
}

absl::Status ParseInto(const json& object, PodSpec& pod) {
  const json& spec = Member(object, "spec");
  if (pod.name.empty() || pod.uid.empty())
    return InvalidArgument("metadata.name or uid is missing");
  if (!IsFolderName(pod.uid)) return InvalidArgument("metadata.uid \"{}\" is no uid", pod.uid);
  pod.node_name = Text(spec, "nodeName");
  pod.service_account = Text(spec, "serviceAccountName");
  const json& user = Member(Member(spec, "securityContext"), "runAsUser");
  if (user.is_number_integer()) pod.run_as_user = user.get<std::int64_t>();
  pod.run_as_non_root = WantsNonRoot(spec);
  TAHOMA_ASSIGN_OR_RETURN(pod.restart_policy, ParseRestartPolicy(Text(spec, "restartPolicy")));
  pod.grace = Seconds(spec, "terminationGracePeriodSeconds").value_or(std::chrono::seconds(30));
  pod.active_deadline = Seconds(spec, "activeDeadlineSeconds");
  TAHOMA_ASSIGN_OR_RETURN(pod.init_containers, ParseContainers(spec, "initContainers"));
  TAHOMA_ASSIGN_OR_RETURN(pod.containers, ParseContainers(spec, "containers"));
  if (pod.containers.empty()) return InvalidArgument("spec.containers is empty");
  for (const ContainerSpec& container : pod.containers) {
    if (std::any_of(pod.init_containers.begin(), pod.init_containers.end(),
                    [&](const ContainerSpec& other) { return other.name == container.name; })) {
      return InvalidArgument("initContainers and containers have two containers named {}",
                             container.name);
    }
  }
  const json& init = Member(spec, "initContainers");
  for (std::size_t i = 0; i < pod.init_containers.size(); ++i) {
    if (!Text(init[i], "restartPolicy").empty()) {
      return InvalidArgument("initContainers[{}].restartPolicy: sidecar containers cannot be run",
                             i);
    }
  }
  TAHOMA_ASSIGN_OR_RETURN(pod.claims, ParseClaims(spec, Member(object, "status")));
  pod.ignored = IgnoredFields(spec);
  return absl::OkStatus();
}

}  // namespace

const ContainerSpec* PodSpec::FindContainer(const std::string& container) const {
  for (const auto* list : {&init_containers, &containers}) {
    for (const ContainerSpec& spec : *list) {
      if (spec.name == container) return &spec;
    }
  }
  return nullptr;
}

absl::StatusOr<PodSpec> ParsePod(const json& object) {
  const json& metadata = Member(object, "metadata");
  PodSpec pod;
  pod.name = Text(metadata, "name");
  pod.name_space = Text(metadata, "namespace");
  pod.uid = Text(metadata, "uid");
  pod.labels = TextMap(metadata, "labels");
  pod.annotations = TextMap(metadata, "annotations");
  if (const absl::Status parsed = ParseInto(object, pod); !parsed.ok()) {
    return Annotate(parsed, "pod " + pod.full_name());
  }
  if (!Text(metadata, "deletionTimestamp").empty()) {
    pod.deletion_grace = Seconds(metadata, "deletionGracePeriodSeconds").value_or(pod.grace);
  }
  return pod;
}

}  // namespace tahoma::sim
