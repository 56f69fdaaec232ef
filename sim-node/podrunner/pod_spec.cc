#include "sim-node/podrunner/pod_spec.h"

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/object.h"

namespace tahoma::sim {
namespace {

using json = Json;

using kube::Field;

// Names and uids become folders here; Kubernetes' own alphabets for them hold nothing that could
// leave one.
bool IsFolderName(std::string_view text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
  return !text.empty() && text.size() <= 253 && text[0] != '.' &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::vector<ContainerSpec> ParseContainers(Field spec, std::string_view key) {
  const Field list = spec.At(key);
  std::vector<ContainerSpec> containers = kube::ParseContainers(list);
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string& name = containers[i].name;
    if (!IsFolderName(name)) {
      list.Items()[i].Fail(fmt::format("name \"{}\" is not a DNS label", name));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (containers[j].name == name) {
        spec.Fail(fmt::format("{} has two containers named {}", key, name));
      }
    }
  }
  return containers;
}

RestartPolicy ParseRestartPolicy(Field field) {
  const std::string_view text = field.Text();
  if (text == "OnFailure") return RestartPolicy::kOnFailure;
  if (text == "Never") return RestartPolicy::kNever;
  if (!text.empty() && text != "Always") {
    field.Fail(fmt::format("is {}; expected Always, OnFailure or Never", text));
  }
  return RestartPolicy::kAlways;
}

std::optional<std::chrono::seconds> Seconds(Field field) {
  if (!field.has_value()) return std::nullopt;
  // A year bounds the arithmetic with deadlines; nobody waits longer for a container.
  constexpr std::int64_t kYear = 365 * 24 * 3600;
  return std::chrono::seconds(std::clamp<std::int64_t>(field.Int(), 0, kYear));
}

// Calls `each` with the key and the field of every container.
template <typename F>
void ForEachContainer(Field spec, const F& each) {
  for (const char* key : {"initContainers", "containers"}) {
    for (const Field container : spec.At(key).Items()) each(key, container);
  }
}

// A process on this machine has no probes or hooks, and volumes of some kinds only; the list goes
// into an event.
std::vector<std::string> IgnoredFields(Field spec, const std::vector<VolumeSpec>& volumes) {
  std::vector<std::string> ignored;
  ForEachContainer(spec, [&](const char* key, Field container) {
    const std::string where = fmt::format("{}[{}]", key, container.At("name").Text());
    for (const char* name : {"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
      if (container.At(name).has_value()) ignored.push_back(where + "." + name);
    }
    // The containers of a pod share its user here.
    if (container.At("securityContext").At("runAsUser").has_value()) {
      ignored.push_back(where + ".securityContext.runAsUser");
    }
  });
  for (const VolumeSpec& volume : volumes) {
    if (volume.kind != VolumeSpec::Kind::kUnsupported) continue;
    ignored.push_back(fmt::format("volumes[{}].{}", volume.name, volume.what));
  }
  return ignored;
}

bool WantsNonRoot(Field spec) {
  const auto says = [](Field holder) {
    return holder.At("securityContext").At("runAsNonRoot").Bool();
  };
  bool wants = says(spec);
  ForEachContainer(spec, [&](const char*, Field container) { wants |= says(container); });
  return wants;
}

void CheckInitContainers(Field spec, const PodSpec& pod) {
  for (const ContainerSpec& container : pod.containers) {
    if (std::any_of(pod.init_containers.begin(), pod.init_containers.end(),
                    [&](const ContainerSpec& other) { return other.name == container.name; })) {
      spec.Fail(fmt::format("initContainers and containers have two containers named {}",
                            container.name));
    }
  }
  for (const Field init : spec.At("initContainers").Items()) {
    const Field policy = init.At("restartPolicy");
    if (!policy.Text().empty()) policy.Fail("sidecar containers cannot be run");
  }
}

void ReadClaims(Field object, PodSpec& pod) {
  const Field asked = object.At("spec").At("resourceClaims");
  const Field made = object.At("status").At("resourceClaimStatuses");
  asked.Items(kube::kPodClaimsMost);
  made.Items(kube::kPodClaimsMost);
  if (std::max(asked.size(), made.size()) > kube::kPodClaimsMost) return;
  pod.claims = kube::ParsePodClaims(object);
  const auto extended = kube::ParseExtendedClaimStatus(object.At("status"));
  if (!extended) return;
  // As with a kubelet, a container gets the requests that are mapped to it.
  for (auto* list : {&pod.init_containers, &pod.containers}) {
    for (ContainerSpec& container : *list) {
      for (const kube::ExtendedMapping& mapping : extended->mappings) {
        if (mapping.container != container.name) continue;
        container.claims.push_back({.claim = "", .request = mapping.request});
      }
    }
  }
}

StdinUse ParseStdinUse(Field container) {
  return {.open = container.At("stdin").Bool(),
          .once = container.At("stdinOnce").Bool(),
          .tty = container.At("tty").Bool()};
}

// Reads the ephemeral containers apart from the rest: the pod goes on and ends as without a
// container that cannot be read.
void ReadEphemeralContainers(const json& object, PodSpec& pod) {
  for (const json& one : kube::ListAt(object, {"spec", "ephemeralContainers"})) {
    if (pod.ephemeral_containers.size() == kube::kContainersMost) return;
    const json alone = json::array({one});
    kube::Reading reading(alone);
    std::vector<ContainerSpec> parsed = kube::ParseContainers(reading.root());
    if (!reading.status().ok() || parsed.size() != 1) continue;
    ContainerSpec& container = parsed.front();
    if (!IsFolderName(container.name) || pod.FindContainer(container.name) != nullptr) continue;
    const std::string target(kube::StringAt(one, {"targetContainerName"}));
    const ContainerSpec* shared =
        target.empty() && !pod.containers.empty() ? &pod.containers[0] : pod.FindContainer(target);
    if (shared != nullptr) container.claims = shared->claims;
    pod.stdin_uses[container.name] = ParseStdinUse(reading.root().Items()[0]);
    pod.mounts[container.name] = ParseMounts(reading.root().Items()[0]);
    if (reading.status().ok()) pod.ephemeral_containers.push_back(std::move(container));
  }
}

void ReadSpec(Field object, PodSpec& pod) {
  const Field spec = object.At("spec");
  pod.node_name = spec.At("nodeName").Text();
  pod.service_account = spec.At("serviceAccountName").Text();
  const Field user = spec.At("securityContext").At("runAsUser");
  if (user.has_value()) pod.run_as_user = user.Int();
  pod.run_as_non_root = WantsNonRoot(spec);
  pod.restart_policy = ParseRestartPolicy(spec.At("restartPolicy"));
  pod.grace = Seconds(spec.At("terminationGracePeriodSeconds")).value_or(std::chrono::seconds(30));
  pod.active_deadline = Seconds(spec.At("activeDeadlineSeconds"));
  pod.init_containers = ParseContainers(spec, "initContainers");
  pod.containers = ParseContainers(spec, "containers");
  ForEachContainer(spec, [&](const char*, Field container) {
    pod.stdin_uses[std::string(container.At("name").Text())] = ParseStdinUse(container);
    pod.mounts[std::string(container.At("name").Text())] = ParseMounts(container);
  });
  pod.volumes = ParseVolumes(spec, pod.name);
  CheckInitContainers(spec, pod);
  ReadClaims(object, pod);
  pod.ignored = IgnoredFields(spec, pod.volumes);
}

}  // namespace

const ContainerSpec* PodSpec::FindContainer(const std::string& container) const {
  for (const auto* list : {&init_containers, &containers, &ephemeral_containers}) {
    for (const ContainerSpec& spec : *list) {
      if (spec.name == container) return &spec;
    }
  }
  return nullptr;
}

absl::StatusOr<PodSpec> ParsePod(const json& object) {
  PodSpec pod;
  pod.name = kube::NameOf(object);
  pod.name_space = kube::NamespaceOf(object);
  pod.uid = kube::UidOf(object);
  pod.labels = kube::LabelsOf(object);
  pod.annotations = kube::AnnotationsOf(object);
  const std::string where = "pod " + pod.full_name();
  if (pod.name.empty() || pod.uid.empty()) {
    return InvalidArgument("{}: metadata.name or uid is missing", where);
  }
  if (!IsFolderName(pod.uid)) {
    return InvalidArgument("{}: metadata.uid \"{}\" is no uid", where, pod.uid);
  }
  kube::Reading reading(object);
  ReadSpec(reading.root(), pod);
  if (kube::IsBeingDeleted(object)) {
    const Field metadata = reading.root().At("metadata");
    pod.deletion_grace = Seconds(metadata.At("deletionGracePeriodSeconds")).value_or(pod.grace);
  }
  if (!reading.status().ok()) return Annotate(reading.status(), where);
  if (pod.containers.empty()) return InvalidArgument("{}: spec.containers is empty", where);
  ReadEphemeralContainers(object, pod);
  return pod;
}

}  // namespace tahoma::sim
