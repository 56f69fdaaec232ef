// A cluster of a few objects in memory: takes the writes of decisions as an API server does, and
// ends pods as a kubelet does.
//
//   SmallCluster cluster(seed);
//   cluster.Put(kJobs, job);
//   cluster.Take(SyncJob(cluster.Get(kJobs, "a"), cluster.All(kube::kPods), cluster.now()));
//
// Scope: tests. Thread safety: one test, one thread.

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {

class SmallCluster {
 public:
  explicit SmallCluster(unsigned seed = 0)
      : random_(seed), now_(*ParseTime("2026-01-01T00:00:00Z")) {}

  WallTime now() const { return now_; }
  void Advance(std::chrono::seconds by) { now_ += by; }
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  std::size_t Below(std::size_t bound) { return random_() % bound; }

  // The last version of an object; null when it is gone.
  Json Get(const kube::Resource& resource, const std::string& name) const {
    const auto at = objects_.find({resource.plural, name});
    return at == objects_.end() ? Json() : *at->second;
  }
  Bodies All(const kube::Resource& resource) const {
    Bodies found;
    for (const auto& [key, object] : objects_) {
      if (key.first == resource.plural) found.push_back(object);
    }
    return found;
  }
  void Put(const kube::Resource& resource, Json object) {
    const std::string name = object["metadata"]["name"];
    object["metadata"]["resourceVersion"] = fmt::format("{}", ++version_);
    objects_[{resource.plural, name}] = std::make_shared<const Json>(std::move(object));
  }
  void Create(const kube::Resource& resource, Json object) {
    Json& metadata = object["metadata"];
    if (!metadata.contains("name")) {
      metadata["name"] =
          fmt::format("{}{}", metadata["generateName"].get<std::string>(), ++version_);
    }
    if (!Get(resource, metadata["name"]).is_null()) return;
    metadata["namespace"] = "default";
    metadata["uid"] = fmt::format("uid-{}", ++version_);
    metadata["creationTimestamp"] = FormatTime(now_);
    metadata["generation"] = 1;
    if (resource.plural == "pods") object["status"]["phase"] = "Pending";
    Put(resource, std::move(object));
  }

  // Carries out the writes, each with the given chance: the others are lost. Returns how many were
  // carried out.
  int Take(const Decision& decision, int percent = 100) {
    int taken = 0;
    for (const Write& write : decision.writes) {
      if (!Chance(percent)) continue;
      ++taken;
      if (write.verb == Write::Verb::kCreate) {
        Create(write.resource, *write.object);
      } else if (write.verb == Write::Verb::kDelete) {
        Delete(write.resource, std::string(kube::NameOf(*write.object)));
      } else {
        Update(write);
      }
    }
    return taken;
  }

  // A pod that runs ends first; an object with finalizers stays.
  void Delete(const kube::Resource& resource, const std::string& name) {
    Json object = Get(resource, name);
    if (object.is_null()) return;
    object["metadata"]["deletionTimestamp"] = FormatTime(now_);
    Put(resource, object);
    if (!HasPhase(object, "Running")) Collect(resource, name);
  }

  void Run(const std::string& name) {
    Json pod = Get(kube::kPods, name);
    pod["spec"]["nodeName"] = "n";
    pod["status"] = {
        {"phase", "Running"},
        {"conditions",
         Json::array(
             {{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", FormatTime(now_)}}})}};
    Put(kube::kPods, std::move(pod));
  }
  void End(const std::string& name, int exit_code) {
    Json pod = Get(kube::kPods, name);
    pod["status"] = {
        {"phase", exit_code == 0 ? "Succeeded" : "Failed"},
        {"containerStatuses",
         Json::array(
             {{{"name", "c"},
               {"state",
                {{"terminated", {{"exitCode", exit_code}, {"finishedAt", FormatTime(now_)}}}}}}})}};
    Put(kube::kPods, pod);
    if (kube::IsBeingDeleted(pod)) Collect(kube::kPods, name);
  }

 private:
  void Update(const Write& write) {
    const std::string name(kube::NameOf(*write.object));
    Json current = Get(write.resource, name);
    if (current.is_null() ||
        kube::ResourceVersionOf(current) != kube::ResourceVersionOf(*write.object)) {
      return;
    }
    if (write.verb == Write::Verb::kUpdateStatus) {
      current["status"] = write.object->at("status");
    } else {
      Json status = current.contains("status") ? current["status"] : Json();
      const Json spec = current.contains("spec") ? current["spec"] : Json();
      current = *write.object;
      if (!status.is_null()) current["status"] = std::move(status);
      if (current.contains("spec") && current["spec"] != spec) {
        current["metadata"]["generation"] = kube::GenerationOf(current) + 1;
      }
    }
    Put(write.resource, std::move(current));
    Collect(write.resource, name);
  }

  void Collect(const kube::Resource& resource, const std::string& name) {
    const Json object = Get(resource, name);
    if (!kube::IsBeingDeleted(object) || !kube::FinalizersOf(object).empty()) return;
    if (HasPhase(object, "Running")) return;
    objects_.erase({resource.plural, name});
  }

  std::mt19937 random_;
  WallTime now_;
  int version_ = 0;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Json>> objects_;
};

// Returns an object of a kind with a pod template of one container.
inline Json WorkloadOf(const char* kind, const char* name, Json spec) {
  spec["selector"] = {{"matchLabels", {{"app", name}}}};
  spec["template"]["metadata"]["labels"]["app"] = name;
  spec["template"]["spec"]["containers"] = Json::array({{{"name", "c"}, {"image", "i"}}});
  return {
      {"kind", kind},
      {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "owner"}, {"generation", 1}}},
      {"spec", std::move(spec)}};
}

}  // namespace tahoma::controller::apiserver
