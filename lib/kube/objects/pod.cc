#include "lib/kube/objects/pod.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "lib/base/utf8.h"

namespace tahoma::kube {
namespace {

std::vector<PodVolume> ParseVolumes(std::string_view pod, Field spec) {
  std::vector<PodVolume> volumes;
  for (const Field volume : spec.At("volumes").Items()) {
    if (const Field source = volume.At("persistentVolumeClaim"); source.has_value()) {
      volumes.push_back({.claim = std::string(source.At("claimName").Text()), .ephemeral = false});
    } else if (volume.At("ephemeral").has_value()) {
      const std::string name(volume.At("name").Text());
      volumes.push_back({.claim = std::string(pod) + "-" + name, .ephemeral = true});
    }
  }
  return volumes;
}

NodeSelection ParseSelection(Field spec) {
  NodeSelection selection;
  spec.At("nodeSelector").Entries([&](const std::string& key, Field value) {
    selection.all.push_back({.key = key, .values = {std::string(value.Text())}});
  });
  const Field affinity = spec.At("affinity").At("nodeAffinity");
  selection.any_term =
      ParseNodeTerms(affinity.At("requiredDuringSchedulingIgnoredDuringExecution"));
  for (const Field toleration : spec.At("tolerations").Items()) {
    selection.tolerations.push_back(ParseToleration(toleration));
  }
  return selection;
}

std::string UnschedulableMessage(Field status) {
  for (const Field condition : status.At("conditions").Items()) {
    if (condition.At("type").Text() == "PodScheduled" && condition.At("status").Text() == "False") {
      return std::string(condition.At("message").Text());
    }
  }
  return "";
}

std::optional<WallTime> ScheduledAt(Field status) {
  for (const Field condition : status.At("conditions").Items()) {
    if (condition.At("type").Text() == "PodScheduled" && condition.At("status").Text() == "True") {
      const auto since = ParseTime(condition.At("lastTransitionTime").Text());
      return since.ok() ? std::optional(*since) : std::nullopt;
    }
  }
  return std::nullopt;
}

bool IsReady(Field status, std::string_view phase) {
  for (const Field condition : status.At("conditions").Items()) {
    if (condition.At("type").Text() == "Ready") return condition.At("status").Text() == "True";
  }
  return phase == "Running";
}

bool IsControlled(Field metadata) {
  for (const Field owner : metadata.At("ownerReferences").Items()) {
    if (owner.At("controller").Bool()) return true;
  }
  return false;
}

std::string OneLine(std::string_view name, std::string_view reason, std::string_view message) {
  constexpr std::size_t kMost = 300;
  std::string text(name);
  for (const std::string_view part : {reason, message}) {
    if (!text.empty() && !part.empty()) text += ": ";
    text += part;
  }
  std::ranges::replace(text, '\n', ' ');
  return std::string(CutUtf8(text, kMost));
}

// Returns what keeps the pod from running: the reason of the pod, else that of its first container
// which ended badly or waits.
std::string TroubleOf(Field status) {
  if (const std::string_view reason = status.At("reason").Text(); !reason.empty()) {
    return OneLine("", reason, status.At("message").Text());
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Field container : status.At(list).Items()) {
      const std::string name = "container " + std::string(container.At("name").Text());
      const Field ended = container.At("state").At("terminated");
      if (ended.has_value() && ended.At("exitCode").Int() != 0) {
        return OneLine(name, "exit code " + std::to_string(ended.At("exitCode").Int()),
                       ended.At("message").Text());
      }
      const Field waiting = container.At("state").At("waiting");
      if (waiting.has_value()) {
        return OneLine(name, waiting.At("reason").Text(), waiting.At("message").Text());
      }
    }
  }
  return "";
}

}  // namespace

std::vector<PodClaim> ParsePodClaims(Field object) {
  std::vector<PodClaim> claims;
  const Field status = object.At("status");
  const FieldItems entries = object.At("spec").At("resourceClaims").Items();
  const FieldItems statuses = status.At("resourceClaimStatuses").Items();
  for (const Field entry : entries) {
    PodClaim& claim = claims.emplace_back();
    claim.entry = entry.At("name").Text();
    claim.claim = entry.At("resourceClaimName").Text();
    if (!claim.claim.empty()) continue;
    for (const Field made : statuses) {
      if (made.At("name").Text() != claim.entry) continue;
      claim.claim = made.At("resourceClaimName").Text();
      claim.none = claim.claim.empty();
    }
  }
  if (const Field extended = status.At("extendedResourceClaimStatus").At("resourceClaimName");
      !extended.Text().empty()) {
    claims.push_back({.entry = "", .claim = std::string(extended.Text()), .none = false});
  }
  return claims;
}

Pod ParsePod(Field object) {
  Pod pod;
  pod.metadata = ParseMetadata(object);
  const Field spec = object.At("spec");
  pod.node = spec.At("nodeName").Text();
  pod.priority = spec.At("priority").Int32();
  pod.grace_seconds = spec.At("terminationGracePeriodSeconds").Int(pod.grace_seconds);
  pod.gated = spec.At("schedulingGates").size() > 0;
  pod.selection = ParseSelection(spec);
  pod.claims = ParsePodClaims(object);
  pod.volumes = ParseVolumes(pod.metadata.name, spec);
  pod.extended_asks = ParseExtendedAsks(spec);
  const Field status = object.At("status");
  pod.extended_claim = ParseExtendedClaimStatus(status);
  pod.phase = status.At("phase").Text();
  pod.unschedulable_message = UnschedulableMessage(status);
  pod.scheduled_at = ScheduledAt(status);
  pod.ready = IsReady(status, pod.phase);
  if (!pod.ready && pod.phase != "Succeeded") pod.trouble = TroubleOf(status);
  pod.controlled = IsControlled(object.At("metadata"));
  return pod;
}

}  // namespace tahoma::kube
