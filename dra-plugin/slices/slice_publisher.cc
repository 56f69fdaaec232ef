#include "dra-plugin/slices/slice_publisher.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "dra-plugin/slices/counter_support.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/resource.h"

namespace tahoma::dra {
namespace {

using json = Json;

constexpr int kAttempts = 5;
constexpr std::size_t kMaxSlicesInPool = 256;  // their index has two hex digits
constexpr std::size_t kSlicesOfAnyPool = 8;    // at least the slices of all devices of any instance

std::int64_t GenerationOf(const json& slice) {
  return kube::IntAt(slice, {"spec", "pool", "generation"});
}

std::int64_t CountOf(const json& slice) {
  return kube::IntAt(slice, {"spec", "pool", "resourceSliceCount"});
}

// The existing slices, sorted into obsolete slices, to be deleted, and slices to be updated in
// place.
struct SlicePlan {
  std::vector<json> obsolete;
  std::vector<std::optional<json>> existing;  // by index
  std::int64_t newest = 0;                    // highest generation seen
};

SlicePlan Match(std::vector<json> slices, const SliceOwner& owner, std::size_t count) {
  SlicePlan plan;
  plan.existing.resize(count);
  // The newest of several slices with the same index stays; ties go by name, so two plugins decide
  // alike.
  std::sort(slices.begin(), slices.end(), [](const json& a, const json& b) {
    const std::int64_t ga = GenerationOf(a);
    const std::int64_t gb = GenerationOf(b);
    return ga != gb ? ga > gb : kube::NameOf(a) < kube::NameOf(b);
  });
  for (json& slice : slices) {
    plan.newest = std::max(plan.newest, GenerationOf(slice));
    std::size_t place = 0;
    while (place < count && (plan.existing[place].has_value() ||
                             !kube::NameOf(slice).starts_with(SliceGenerateName(owner, place)))) {
      ++place;
    }
    if (place < count) {
      plan.existing[place] = std::move(slice);
    } else {
      plan.obsolete.push_back(std::move(slice));
    }
  }
  return plan;
}

bool SameContent(const json& existing, const json& wanted) {
  json a = existing.at("spec");
  json b = wanted.at("spec");
  a.erase("pool");
  b.erase("pool");
  return a == b && existing.at("metadata").value("ownerReferences", json()) ==
                       wanted.at("metadata").at("ownerReferences");
}

// Whether a slice has the greatest possible generation, as a stranger may write: no generation
// follows, so the pool must begin anew.
bool HasLastGeneration(const std::vector<json>& slices) {
  return std::any_of(slices.begin(), slices.end(),
                     [](const json& slice) { return GenerationOf(slice) == INT64_MAX; });
}

}  // namespace

SliceOwner SlicePublisher::OwnerOf(const std::string& node_uid) const {
  return {.node_name = node_name_, .node_uid = node_uid, .driver = options_.driver};
}

absl::StatusOr<std::string> SlicePublisher::ReadNode() {
  absl::StatusOr<json> node = api_.Get(kube::kNodes, {"", node_name_});
  if (!node.ok()) return Annotate(node.status(), fmt::format("reading node {}", node_name_));
  std::string uid(kube::UidOf(*node));
  if (uid.empty()) return Internal("node {} has no uid", node_name_);
  node_ = std::make_shared<const json>(*std::move(node));
  return uid;
}

absl::StatusOr<std::vector<json>> SlicePublisher::List() {
  std::vector<json> out;
  const absl::Status read =
      api_.ForEach(kube::kResourceSlices,
                   {.field_selector = fmt::format("spec.nodeName={},spec.driver={}", node_name_,
                                                  options_.driver)},
                   [&](const json& item) {
                     if (kube::StringAt(item, {"spec", "driver"}) == options_.driver &&
                         kube::StringAt(item, {"spec", "nodeName"}) == node_name_) {
                       out.push_back(item);
                     }
                     return absl::OkStatus();
                   });
  if (!read.ok()) return Annotate(read, "listing this node's ResourceSlices");
  return out;
}

// Each slice of a pool names the pool's number of slices, so slices beyond the wanted number are
// found.
absl::StatusOr<std::vector<json>> SlicePublisher::ReadByName(std::size_t wanted) {
  std::vector<json> out;
  std::size_t count = wanted;
  for (std::size_t i = 0; i < count; ++i) {
    absl::StatusOr<json> slice = api_.Get(kube::kResourceSlices, {"", SliceName(OwnerOf(""), i)});
    if (absl::IsNotFound(slice.status())) {
      // the missing slice may be the slice that names the number
      count = std::max(count, kSlicesOfAnyPool);
      continue;
    }
    if (!slice.ok()) return Annotate(slice.status(), "reading this node's ResourceSlices");
    const auto told = static_cast<std::size_t>(std::max<std::int64_t>(CountOf(*slice), 0));
    count = std::max(count, std::min(told, kMaxSlicesInPool));
    out.push_back(*std::move(slice));
  }
  return out;
}

absl::Status SlicePublisher::Delete(const json& slice) {
  const std::string name(kube::NameOf(slice));
  const absl::Status status =
      api_.Delete(kube::kResourceSlices, {"", name},
                  {.uid = std::string(kube::UidOf(slice)),
                   .resource_version = std::string(kube::ResourceVersionOf(slice))})
          .status();
  if (status.ok() && options_.log_writes) spdlog::info("deleted ResourceSlice {}", name);
  return absl::IsNotFound(status) ? absl::OkStatus()
                                  : Annotate(status, fmt::format("deleting {}", name));
}

absl::Status SlicePublisher::Write(const json& slice) {
  const std::string name(kube::NameOf(slice));
  const bool is_new = kube::ResourceVersionOf(slice).empty();
  const absl::StatusOr<json> kept = is_new ? api_.Create(kube::kResourceSlices, "", slice)
                                           : api_.Update(kube::kResourceSlices, slice);
  if (!kept.ok()) {
    return Annotate(kept.status(),
                    is_new ? "creating a ResourceSlice" : fmt::format("updating {}", name));
  }
  if (!kept->is_object()) return Unavailable("{}: the answer is no object", name);
  const json sent = {{"spec", slice.at("spec")}};
  for (const std::string& path : DroppedFields(sent, *kept)) {
    if (!server_->dropped_fields.insert(path).second) continue;
    spdlog::warn(
        "the API server dropped {} of a ResourceSlice: its version or a disabled feature "
        "gate does not know the field",
        path);
  }
  if (HasCounters(server_->dropped_fields) && !options_.server) {
    std::erase_if(server_->dropped_fields,
                  [](const std::string& path) { return HasCounters({path}); });
    server_->counters = CounterSupport::kNone;
    return absl::AbortedError("the API server that was written to keeps no counters");
  }
  if (options_.log_writes) {
    spdlog::info("{} ResourceSlice {} (generation {}, {} slices)", is_new ? "created" : "updated",
                 kube::NameOf(*kept), GenerationOf(*kept), CountOf(*kept));
  }
  return absl::OkStatus();
}

absl::Status SlicePublisher::LookAtCounters(const SliceOwner& owner) {
  TAHOMA_ASSIGN_OR_RETURN(const ServerCounters found, FindCounterSupport(api_, owner));
  looked_ = true;
  const CounterSupport now = found.support;
  ServerSupport support{.counters = now, .minor = found.minor};
  const bool same_counters = server_ && server_->counters == now;
  // Another minor version may know more fields.
  if (same_counters && server_->minor == found.minor) {
    support.dropped_fields = std::move(server_->dropped_fields);
  }
  const bool known = std::exchange(server_, std::move(support)).has_value();
  if (same_counters) return absl::OkStatus();
  if (now == CounterSupport::kNone) {
    spdlog::warn(
        "the API server keeps no counters of devices (feature gate DRAPartitionableDevices): "
        "devices that overlap are left out");
  } else if (now == CounterSupport::kTogether) {
    spdlog::warn(
        "Kubernetes before 1.35 keeps few counters: NeuronCores of LNC 1 are left out where chips "
        "are shown");
  }
  return known ? absl::AbortedError("the API server's counters have changed") : absl::OkStatus();
}

// Only a write shows which fields the server drops, and an unchanged pool is not written.
absl::Status SlicePublisher::LookForMore(const SliceOwner& owner) {
  if (!server_ || options_.server) return absl::OkStatus();
  if (server_->counters == CounterSupport::kApart && server_->dropped_fields.empty()) {
    return absl::OkStatus();  // the server keeps everything
  }
  // Looks before forgetting: otherwise unhealthy devices would be shown as healthy for a moment.
  bool drops_taints = server_->dropped_fields.contains(kTaintsField);
  if (drops_taints) {
    TAHOMA_ASSIGN_OR_RETURN(const bool keeps_taints, FindTaintSupport(api_, owner));
    drops_taints = !keeps_taints;
  }
  const absl::Status looked = LookAtCounters(owner);
  if (!looked.ok() && !absl::IsAborted(looked)) return looked;
  server_->dropped_fields.erase(kTaintsField);
  if (drops_taints) server_->dropped_fields.insert(kTaintsField);
  return absl::OkStatus();
}

bool SlicePublisher::DropsTaints() const {
  return server_ && server_->dropped_fields.contains(kTaintsField);
}

DevicePool SlicePublisher::Shown(const DevicePool& pool) const {
  DevicePool shown = ShownPool(pool, server_ ? server_->counters : CounterSupport::kNone);
  return DropsTaints() ? WithoutUnhealthy(std::move(shown)) : shown;
}

absl::Status SlicePublisher::PublishOnce(const std::string& node_uid, const DevicePool& pool,
                                         Known known) {
  const SliceOwner owner = OwnerOf(node_uid);
  if (!server_) TAHOMA_RETURN_IF_ERROR(LookAtCounters(owner));
  const std::vector<SliceContent> contents = CutIntoSlices(Shown(pool));
  slices_ = contents.size();
  std::vector<json> slices;
  if (known == Known::kNothing) {
    TAHOMA_ASSIGN_OR_RETURN(slices, options_.fixed_names ? ReadByName(contents.size()) : List());
  }
  if (HasLastGeneration(slices)) {
    for (const json& slice : slices) TAHOMA_RETURN_IF_ERROR(Delete(slice));
    slices.clear();
  }
  SlicePlan plan = Match(std::move(slices), owner, contents.size());
  std::vector<json> wanted;
  std::vector<std::size_t> changed;
  bool consistent = plan.obsolete.empty();
  for (std::size_t i = 0; i < contents.size(); ++i) {
    json object = SliceObject(owner, {.generation = plan.newest, .slice_count = contents.size()},
                              contents[i], i);
    RemoveFields(server_->dropped_fields, object);
    const std::optional<json>& existing = plan.existing[i];
    if (existing.has_value()) {
      KeepTaintTimes(*existing, object);
      if (!SameContent(*existing, object)) changed.push_back(i);
      consistent = consistent && GenerationOf(*existing) == plan.newest &&
                   CountOf(*existing) == static_cast<std::int64_t>(contents.size());
      json metadata = existing->at("metadata");
      metadata["ownerReferences"] = object["metadata"]["ownerReferences"];
      metadata.erase("managedFields");
      object["metadata"] = std::move(metadata);
    } else {
      if (options_.fixed_names) {
        object["metadata"].erase("generateName");
        object["metadata"]["name"] = SliceName(owner, i);
      }
      consistent = false;
    }
    wanted.push_back(std::move(object));
  }
  if (consistent && changed.empty()) return absl::OkStatus();
  // The server may have been upgraded, or downgraded, since.
  if (!looked_ && !options_.server) TAHOMA_RETURN_IF_ERROR(LookAtCounters(owner));
  if (consistent && changed.size() == 1) return Write(wanted[changed[0]]);
  for (const json& slice : plan.obsolete) TAHOMA_RETURN_IF_ERROR(Delete(slice));
  for (const bool create : {false, true}) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (create == plan.existing[i].has_value()) continue;
      wanted[i]["spec"]["pool"]["generation"] = plan.newest + 1;
      TAHOMA_RETURN_IF_ERROR(Write(wanted[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status SlicePublisher::Publish(const DevicePool& pool) {
  TAHOMA_ASSIGN_OR_RETURN(const std::string node_uid, ReadNode());
  return PublishFor(node_uid, pool, Known::kNothing);
}

absl::Status SlicePublisher::PublishFor(const std::string& node_uid, const DevicePool& pool,
                                        Known known) {
  looked_ = false;
  absl::Status status = LookForMore(OwnerOf(node_uid));
  if (!status.ok()) return status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const bool had_taints = !DropsTaints();
    status = PublishOnce(node_uid, pool, attempt == 0 ? known : Known::kNothing);
    // Taints were dropped: unhealthy devices have been shown as healthy, so publish without them.
    if (status.ok() && had_taints && DropsTaints()) continue;
    // Looks again after a 409 (somebody wrote meanwhile) and after a slice vanished under an
    // update.
    const bool moved = kube::OutcomeOf(status) == kube::Outcome::kConflict ||
                       (absl::IsNotFound(status) && attempt == 0);
    if (!moved) return status;
  }
  return status;
}

}  // namespace tahoma::dra
