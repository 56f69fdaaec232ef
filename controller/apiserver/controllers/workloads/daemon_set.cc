// DaemonSets: a pod on each node that the template allows.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/controllers/workloads/revisions.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/field.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/node.h"
#include "lib/kube/objects/pod.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr char kHashLabel[] = "controller-revision-hash";

// The taints that a daemon tolerates besides those of its template.
constexpr std::array<std::pair<const char*, const char*>, 6> kTolerated = {
    {{"node.kubernetes.io/not-ready", "NoExecute"},
     {"node.kubernetes.io/unreachable", "NoExecute"},
     {"node.kubernetes.io/disk-pressure", "NoSchedule"},
     {"node.kubernetes.io/memory-pressure", "NoSchedule"},
     {"node.kubernetes.io/pid-pressure", "NoSchedule"},
     {"node.kubernetes.io/unschedulable", "NoSchedule"}}};

Json Toleration(const char* key, const char* effect) {
  return {{"key", key}, {"operator", "Exists"}, {"effect", effect}};
}

// Returns the node that a daemon's pod is on, or is made for.
std::string NodeOf(const Json& pod) {
  if (const std::string bound = TextAt(pod, {"spec", "nodeName"}); !bound.empty()) return bound;
  const Json& terms =
      kube::ListAt(pod, {"spec", "affinity", "nodeAffinity",
                         "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  for (const Json& term : terms) {
    for (const Json& field : kube::ListAt(term, {"matchFields"})) {
      const auto values = kube::StringsAt(field, {"values"});
      if (TextAt(field, {"key"}) == "metadata.name" && values.size() == 1) return values.front();
    }
  }
  return "";
}

struct Fit {
  bool runs = false;   // a pod shall be made on the node
  bool stays = false;  // a pod that is there may stay
};

class DaemonSetSync {
 public:
  DaemonSetSync(const Json& set, WallTime now)
      : set_(set),
        spec_(PartOf(set, "spec")),
        now_(now),
        name_(kube::NameOf(set)),
        template_(ValueAt(spec_, {"template"})) {
    Json tolerations = kube::ListAt(template_, {"spec", "tolerations"});
    for (const auto& [key, effect] : kTolerated) tolerations.push_back(Toleration(key, effect));
    if (kube::BoolAt(template_, {"spec", "hostNetwork"})) {
      tolerations.push_back(Toleration("node.kubernetes.io/network-unavailable", "NoSchedule"));
    }
    template_["spec"]["tolerations"] = std::move(tolerations);
    kube::Reading reading(template_);
    selection_ = kube::ParsePod(reading.root()).selection;
  }

  Decision Run(const Bodies& children, const Bodies& revisions, const Bodies& nodes) {
    const Bodies pods = Claimed(set_, "apps/v1", "DaemonSet", ValueAt(spec_, {"selector"}),
                                children, kube::kPods, decision_.writes);
    for (const auto& pod : pods) by_node_[NodeOf(*pod)].push_back(pod);
    for (auto& [node, of_node] : by_node_) {
      std::ranges::sort(of_node, [](const auto& a, const auto& b) { return GoesFirst(*b, *a); });
    }
    const History history(set_, "DaemonSet", revisions, decision_);
    hash_ = history.newest().substr(std::min(name_.size() + 1, history.newest().size()));
    for (const auto& node : nodes) {
      const auto parsed = kube::ParseNode(*node);
      if (parsed.ok()) fits_[parsed->name] = FitOf(*parsed);
    }
    if (!kube::IsBeingDeleted(set_)) {
      Place();
      if (TextAt(spec_, {"updateStrategy", "type"}) != "OnDelete") Roll();
    }
    WriteStatus(kDaemonSets, set_, Status(), decision_);
    history.Forget(Used(), decision_);
    return std::move(decision_);
  }

 private:
  Fit FitOf(const kube::Node& node) const {
    Fit fit = {.runs = true, .stays = true};
    if (!kube::MeetsAll(selection_.all, node.name, node.labels) ||
        (!selection_.any_term.empty() &&
         !kube::MeetsOne(selection_.any_term, node.name, node.labels))) {
      return {};
    }
    for (const kube::Taint& taint : node.taints) {
      if (taint.effect == kube::TaintEffect::kNone) continue;
      const bool tolerated = std::ranges::any_of(
          selection_.tolerations,
          [&](const kube::Toleration& toleration) { return kube::Tolerates(toleration, taint); });
      if (tolerated) continue;
      fit.runs = false;
      if (taint.effect == kube::TaintEffect::kNoExecute) fit.stays = false;
    }
    return fit;
  }

  void Delete(const Json& pod) {
    DeletePod(pod, decision_);
    deleted_.insert(std::string(kube::UidOf(pod)));
  }

  void Place() {
    for (const auto& [node, fit] : fits_) {
      const auto at = by_node_.find(node);
      if (at == by_node_.end()) {
        if (fit.runs && decision_.writes.size() < kBurst) Create(node);
        continue;
      }
      bool kept = false;
      for (const auto& pod : at->second) {
        if (kube::IsBeingDeleted(*pod)) continue;
        if (!fit.stays || kept || !IsActive(*pod)) {
          Delete(*pod);
        } else {
          kept = true;
        }
      }
    }
    // Pods that wait for a node that is gone.
    for (const auto& [node, pods] : by_node_) {
      if (fits_.contains(node)) continue;
      for (const auto& pod : pods) {
        if (!kube::IsBeingDeleted(*pod)) Delete(*pod);
      }
    }
  }

  void Create(const std::string& node) {
    Json pod = PodOf(set_, "apps/v1", "DaemonSet", template_);
    pod["metadata"]["generateName"] = name_.substr(0, 57) + "-";
    pod["metadata"]["labels"][kHashLabel] = hash_;
    pod["metadata"]["labels"]["pod-template-generation"] =
        fmt::format("{}", kube::GenerationOf(set_));
    const Json term = {{"matchFields", Json::array({{{"key", "metadata.name"},
                                                     {"operator", "In"},
                                                     {"values", Json::array({node})}}})}};
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
        {"nodeSelectorTerms", Json::array({term})}};
    CreatePod(std::move(pod), decision_);
  }

  bool IsNew(const Json& pod) const { return kube::LabelOf(pod, kHashLabel) == hash_; }

  bool IsAvailable(const Json& pod) {
    const auto since = AvailableAt(pod, kube::IntAt(spec_, {"minReadySeconds"}), now_);
    if (since && *since > now_) Wake(decision_, *since);
    return since && *since <= now_;
  }

  // Replaces pods of other revisions: those that are not available at once, others as far as
  // maxUnavailable allows.
  void Roll() {
    std::int64_t wanted = 0;
    std::int64_t unavailable = 0;
    Bodies old;
    for (const auto& [node, fit] : fits_) {
      if (!fit.runs) continue;
      ++wanted;
      bool available = false;
      for (const auto& pod : PodsOn(node)) {
        if (!IsActive(*pod) || deleted_.contains(std::string(kube::UidOf(*pod)))) continue;
        if (IsAvailable(*pod)) {
          available = true;
          if (!IsNew(*pod)) old.push_back(pod);
        } else if (!IsNew(*pod)) {
          Delete(*pod);
        }
      }
      unavailable += available ? 0 : 1;
    }
    const Json& limit = ValueAt(spec_, {"updateStrategy", "rollingUpdate", "maxUnavailable"});
    const std::int64_t allowed =
        limit.is_null() ? 1 : std::max<std::int64_t>(Scaled(limit, wanted, true), 1);
    for (const auto& pod : old) {
      if (unavailable++ >= allowed) return;
      Delete(*pod);
    }
  }

  Bodies PodsOn(const std::string& node) const {
    const auto at = by_node_.find(node);
    return at == by_node_.end() ? Bodies() : at->second;
  }

  std::set<std::string> Used() const {
    std::set<std::string> used;
    for (const auto& [node, pods] : by_node_) {
      for (const auto& pod : pods) {
        used.insert(fmt::format("{}-{}", name_, kube::LabelOf(*pod, kHashLabel).value_or("")));
      }
    }
    return used;
  }

  Json Status() {
    std::map<std::string, std::int64_t> counts;
    for (const auto& [node, fit] : fits_) {
      std::shared_ptr<const Json> shown;
      for (const auto& pod : PodsOn(node)) {
        if (!shown) shown = pod;
      }
      if (fit.runs) ++counts["desiredNumberScheduled"];
      if (!shown) continue;
      ++counts[fit.runs ? "currentNumberScheduled" : "numberMisscheduled"];
      if (!fit.runs) continue;
      const bool ready = IsActive(*shown) && IsTrue(*shown, "Ready");
      if (ready) ++counts["numberReady"];
      if (ready && IsAvailable(*shown)) ++counts["numberAvailable"];
      if (IsNew(*shown)) ++counts["updatedNumberScheduled"];
    }
    counts["numberUnavailable"] = counts["desiredNumberScheduled"] - counts["numberAvailable"];
    Json status = PartOf(set_, "status");
    for (const char* field : {"currentNumberScheduled", "numberMisscheduled",
                              "desiredNumberScheduled", "numberReady"}) {
      status[field] = counts[field];
    }
    for (const char* field : {"updatedNumberScheduled", "numberAvailable", "numberUnavailable"}) {
      status.erase(field);
      if (counts[field] > 0) status[field] = counts[field];
    }
    status["observedGeneration"] = kube::GenerationOf(set_);
    return status;
  }

  const Json& set_;
  const Json& spec_;
  const WallTime now_;
  const std::string name_;
  Json template_;  // with the daemon's tolerations
  kube::NodeSelection selection_;
  std::string hash_;
  std::map<std::string, Bodies> by_node_;  // the pod that shall stay first
  std::map<std::string, Fit> fits_;
  std::set<std::string> deleted_;  // uids of pods that this decision deletes
  Decision decision_;
};

}  // namespace

Decision SyncDaemonSet(const Json& set, const Bodies& pods, const Bodies& revisions,
                       const Bodies& nodes, WallTime now) {
  return DaemonSetSync(set, now).Run(pods, revisions, nodes);
}

}  // namespace tahoma::controller::apiserver
