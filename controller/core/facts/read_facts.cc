#include "controller/core/facts/read_facts.h"

#include <absl/hash/hash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "controller/core/facts/gang_status.h"
#include "controller/core/facts/ultraserver_workload.h"
#include "controller/core/journal/block_record.h"
#include "controller/core/journal/gang_decision.h"
#include "controller/model/gang_rules.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::controller {
namespace {

using json = Json;
using kube::Field;

// What is nested deeper than any status of ours counts as one value.
constexpr int kDigestDepthMost = 16;

std::uint64_t DigestOf(const json& value, int depth = 0) {
  std::uint64_t digest = absl::HashOf(value.type());
  if (value.is_string()) return absl::HashOf(digest, value.get_ref<const std::string&>());
  if (value.is_boolean()) return absl::HashOf(digest, value.get<bool>());
  if (value.is_number_float()) return absl::HashOf(digest, value.get<double>());
  // Whether an integer has a sign is of how it was made.
  if (value.is_number()) return absl::HashOf(value.get<std::int64_t>());
  if (depth == kDigestDepthMost) return digest;
  if (value.is_array()) {
    for (const json& item : value) digest = absl::HashOf(digest, DigestOf(item, depth + 1));
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.get_ref<const json::object_t&>()) {
      if (!member.is_null()) digest = absl::HashOf(digest, name, DigestOf(member, depth + 1));
    }
  }
  return digest;
}

std::uint32_t Number(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

template <typename Fact>
void TakeIdentity(kube::ObjectMeta& metadata, Fact& fact) {
  fact.key = {std::move(metadata.ns), std::move(metadata.name)};
  fact.uid = std::move(metadata.uid);
  fact.resource_version = std::move(metadata.resource_version);
  fact.deleting = metadata.deleting;
}

// Reads milliseconds since 1970; nullopt for any other text, since anybody may write it.
std::optional<WallTime> Milliseconds(std::string_view text) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 1'000'000;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < 0 || number > kMost) return std::nullopt;
  return WallTime(std::chrono::milliseconds(number));
}

// Annotations of a Binding of ours (docs/design/0001-seams.md).
void ReadBinding(Field annotations, PodFact& pod) {
  if (!annotations.has_value()) return;
  pod.bound_gang_uid = annotations.At("tahoma.dev/gang-uid").Text();
  pod.bound_rank = Number(annotations.At("tahoma.dev/rank").Text());
  pod.bound_slice = Number(annotations.At("tahoma.dev/slice").Text());
  pod.bound_placement = annotations.At("tahoma.dev/placement").Text();
  pod.bound_reclaim = Milliseconds(annotations.At(kReclaimAnnotation).Text());
  pod.bound_reservation = annotations.At("tahoma.dev/capacity-reservation").Text();
}

// Reads a Gang's fields from the annotations of a pod without a Gang.
void ReadGangOfOne(const json& object, PodFact& pod) {
  GangTerms terms = ReadGangTerms(object, pod.spec_error);
  pod.block = std::move(terms.block);
  pod.preemptible = terms.preemptible;
  pod.checkpointable = terms.checkpointable;
  if (!terms.max_runtime.empty()) pod.max_runtime = ParseRuntime(terms.max_runtime);
  if (!terms.min_runtime.empty()) pod.min_runtime = ParseRuntime(terms.min_runtime);
}

// Returns nullopt for a text that is no time, since anybody may write it.
std::optional<WallTime> ReadCheckpoint(Field metadata) {
  const auto time = ParseTime(metadata.At("annotations").At(kCheckpointAnnotation).Text());
  return time.ok() ? std::optional(*time) : std::nullopt;
}

void TakeFinalizers(Field metadata, BlockFact& block) {
  for (const std::string& finalizer : metadata.At("finalizers").Texts()) {
    if (finalizer == kNoCancelFinalizer) {
      block.protected_by_finalizer = true;
    } else {
      block.other_finalizers.push_back(finalizer);
    }
  }
}

// Reads one of the words that a field may have, the first of which is the default.
template <typename Enum, std::size_t n>
Enum Word(Field field, const std::array<std::pair<std::string_view, Enum>, n>& words) {
  const std::string_view text = field.Text();
  if (text.empty()) return words.front().second;
  std::string names;
  for (const auto& [name, value] : words) {
    if (name == text) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  field.Fail(fmt::format("is {}, must be one of {}", text, names));
  return words.front().second;
}

// Returns since when the condition Purchased is as it is; nullopt when that cannot be read.
std::optional<WallTime> RefusedAt(const json& object) {
  kube::Reading reading(object);
  for (const Field condition : reading.root().At("status").At("conditions").Items()) {
    if (condition.At("type").Text() != "Purchased") continue;
    const auto since = ParseTime(condition.At("lastTransitionTime").Text());
    if (since.ok()) return *since;
  }
  return std::nullopt;
}

std::optional<WallTime> TimeOr(Field field) {
  const auto time = ParseTime(field.Text());
  return time.ok() ? std::optional<WallTime>(*time) : std::nullopt;
}

// Returns nullptr for a status without a time of the start.
std::shared_ptr<const GangPast> ReadPast(Field status) {
  const std::optional<WallTime> start = TimeOr(status.At("startTime"));
  if (!start) return nullptr;
  GangPast past{.placement = std::string(status.At("placement").Text()),
                .start_time = start,
                .completion_time = TimeOr(status.At("completionTime")),
                .queue = std::string(status.At("queue").Text())};
  for (const Field slice : status.At("slices").Items()) {
    DecidedSlice& read = past.slices.emplace_back();
    read.domain = slice.At("domain").Text();
    read.shape = slice.At("shape").Text();
    read.origin = slice.At("origin").Text();
    for (const Field node : slice.At("nodes").Items()) read.nodes.emplace_back(node.Text());
  }
  return std::make_shared<const GangPast>(std::move(past));
}

// Returns the message of the condition Failed=True; "" without that condition.
std::string FailedMessage(Field status) {
  for (const Field condition : status.At("conditions").Items()) {
    if (condition.At("type").Text() != ToString(ConditionType::kFailed)) continue;
    if (condition.At("status").Text() != ToString(ConditionStatus::kTrue)) continue;
    const std::string_view message = condition.At("message").Text();
    return std::string(message.empty() ? "the gang has failed" : message);
  }
  return "";
}

PurchaseOrder ParseOrder(Field spec) {
  PurchaseOrder order{.offering_id = std::string(spec.Required("capacityBlockOfferingId").Text())};
  if (const Field platform = spec.At("instancePlatform"); platform.has_value()) {
    order.platform = platform.Text();
  }
  order.token = spec.At("clientToken").Text();
  spec.At("tags").Entries(
      [&](const std::string& name, Field value) { order.tags.emplace_back(name, value.Text()); });
  order.terms.replace = Word(spec.At("replacePolicy"), kReplacePolicies);
  order.terms.binding = Word(spec.At("bindingMode"), kBindingModes);
  order.terms.lend_idle = spec.At("lendIdle").Bool();
  order.terms.magnetic = spec.At("magnetic").Bool();
  order.terms.access = spec.At("access").At("namespaces").Texts();
  std::sort(order.terms.access.begin(), order.terms.access.end());
  return order;
}

std::shared_ptr<ClaimFact> MakeClaim(Field object) {
  kube::ResourceClaim claim = kube::ParseResourceClaim(object);
  auto fact = std::make_shared<ClaimFact>();
  TakeIdentity(claim.metadata, *fact);
  fact->protected_by_finalizer = claim.protected_by_finalizer;
  fact->other_finalizers = std::move(claim.other_finalizers);
  fact->reserved_for = std::move(claim.reserved_for);
  if (claim.allocation) {
    fact->allocation = std::make_shared<const Allocation>(*std::move(claim.allocation));
  }
  return fact;
}

// An unknown term keeps the pod from being placed, and not from being known.
void ReadAffinity(const json& object, PodFact& fact) {
  kube::Reading reading(object);
  kube::PodAffinity affinity = kube::ParsePodAffinity(reading.root().At("spec"));
  if (!reading.status().ok()) {
    if (fact.spec_error.empty()) fact.spec_error = Message(reading.status());
  } else if (!affinity.empty()) {
    fact.affinity = std::make_shared<const kube::PodAffinity>(std::move(affinity));
  }
  kube::Reading again(object);
  kube::PodPreferences preferences = kube::ParsePodPreferences(again.root().At("spec"));
  if (again.status().ok() && !preferences.empty()) {
    fact.preferences = std::make_shared<const kube::PodPreferences>(std::move(preferences));
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PodFact>> ParsePod(const json& object) {
  kube::Reading reading(object);
  kube::Pod pod = kube::ParsePod(reading.root());
  auto fact = std::make_shared<PodFact>();
  TakeIdentity(pod.metadata, *fact);
  const Field metadata = reading.root().At("metadata");
  fact->gang = metadata.At("labels").At("tahoma.dev/gang").Text();
  fact->node = std::move(pod.node);
  fact->succeeded = pod.phase == "Succeeded";
  fact->finished = fact->succeeded || pod.phase == "Failed";
  fact->running = pod.phase == "Running";
  fact->ready = pod.ready;
  fact->controlled = pod.controlled;
  fact->trouble = std::move(pod.trouble);
  fact->gated = pod.gated;
  fact->created = pod.metadata.created;
  fact->priority = pod.priority;
  fact->preempts = reading.root().At("spec").At("preemptionPolicy").Text() != kPreemptsNobody;
  fact->checkpoint = ReadCheckpoint(metadata);
  fact->grace_seconds = pod.grace_seconds;
  fact->scheduled_at = pod.scheduled_at;
  fact->demand = {std::move(pod.selection)};
  fact->needs = std::make_shared<const kube::PodNeeds>(kube::ParsePodNeeds(reading.root()));
  fact->labels = kube::ParseLabels(metadata);
  fact->claims = std::move(pod.claims);
  fact->volumes = std::move(pod.volumes);
  if (!pod.extended_asks.empty()) {
    fact->extended_asks =
        std::make_shared<const std::vector<kube::ExtendedAsk>>(std::move(pod.extended_asks));
  }
  fact->extended_claim = std::move(pod.extended_claim);
  ReadBinding(metadata.At("annotations"), *fact);
  fact->tells_gang = true;
  if (auto wish = ReadGangWish(object)) {
    fact->spec_error = wish->fault;
    if (wish->fault.empty()) {
      fact->gang = wish->gang;
      fact->wish = std::make_shared<const GangWish>(*std::move(wish));
    }
  } else if (fact->gang.empty()) {
    ReadGangOfOne(object, *fact);
    fact->tells_gang = false;
  }
  fact->templates = ReadTemplates(object);
  ReadAffinity(object, *fact);
  fact->unschedulable_message = std::move(pod.unschedulable_message);
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("pod"));
  return fact;
}

absl::StatusOr<std::shared_ptr<const ClaimFact>> ParseClaimState(const json& object) {
  kube::Reading reading(object);
  std::shared_ptr<ClaimFact> fact = MakeClaim(reading.root());
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("claim"));
  return fact;
}

absl::StatusOr<std::shared_ptr<const ClaimFact>> ParseClaim(const json& object) {
  kube::Reading reading(object);
  std::shared_ptr<ClaimFact> fact = MakeClaim(reading.root());
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("claim"));
  kube::Reading spec_reading(object);
  kube::ResourceClaimSpec spec = kube::ParseClaimSpec(spec_reading.root().At("spec"));
  if (spec_reading.status().ok()) {
    fact->spec = std::make_shared<const kube::ResourceClaimSpec>(std::move(spec));
  } else {
    fact->spec_error = Message(spec_reading.status());
  }
  return fact;
}

absl::StatusOr<std::shared_ptr<const VolumeClaimFact>> ParseVolumeClaim(const json& object) {
  TAHOMA_ASSIGN_OR_RETURN(kube::VolumeClaim claim, kube::ParseVolumeClaim(object));
  auto fact = std::make_shared<VolumeClaimFact>();
  TakeIdentity(claim.metadata, *fact);
  fact->volume = std::move(claim.volume);
  fact->bound = claim.bound;
  fact->lost = claim.lost;
  fact->storage_class = std::move(claim.storage_class);
  fact->selected_node = std::move(claim.selected_node);
  fact->owner = std::move(claim.owner);
  return fact;
}

absl::StatusOr<std::shared_ptr<const GangFact>> ParseGang(const json& object) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  auto gang = std::make_shared<GangFact>();
  TakeIdentity(metadata, *gang);
  gang->created = metadata.created;
  gang->generation = metadata.generation;
  const Field spec = reading.root().At("spec");
  const GangRequest request = ParseGangRequest(spec);
  // The rules say why a number beyond these bounds cannot be used.
  gang->members = static_cast<std::int32_t>(std::clamp(request.members, -kMost, kMost));
  if (request.min_members) {
    gang->min_members = static_cast<std::int32_t>(std::clamp(*request.min_members, -kMost, kMost));
  }
  gang->slices = static_cast<int>(std::clamp(request.slices, -kMost, kMost));
  gang->shape = request.shape;
  gang->chips = request.chips;
  if (const Field queue = spec.At("queue"); !queue.Text().empty()) gang->queue = queue.Text();
  if (const Field priority = spec.At("priority"); priority.has_value()) {
    gang->priority = priority.Int32();
  }
  gang->block = spec.At("capacityBlock").Text();
  gang->made = !reading.root().At("metadata").At("labels").At(kMadeGangLabel).Text().empty();
  gang->preemptible = spec.At("preemptible").Bool();
  if (!request.preemption_policy.empty()) {
    gang->preempts = request.preemption_policy != kPreemptsNobody;
  }
  gang->checkpoint = ReadCheckpoint(reading.root().At("metadata"));
  const Field checkpointable = spec.At("checkpointable");
  gang->checkpointable = !checkpointable.has_value() || checkpointable.Bool();
  if (!request.max_runtime.empty()) gang->max_runtime = ParseRuntime(request.max_runtime);
  if (!request.min_runtime.empty()) gang->min_runtime = ParseRuntime(request.min_runtime);
  gang->failure_policy = ParsePolicy(request.failure_policy).value_or(FailurePolicy::kRestartAll);
  gang->start_within = ParseRuntime(request.start_within).value_or(kStartWithin);
  gang->spec_error = Describe(FaultsOf(request));
  gang->failed = FailedMessage(reading.root().At("status"));
  gang->past = ReadPast(reading.root().At("status"));
  gang->shown = StatusDigest(object);
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("gang"));
  return gang;
}

absl::StatusOr<std::shared_ptr<const BlockFact>> ParseBlock(const json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  auto block = std::make_shared<BlockFact>();
  block->generation = metadata.generation;
  block->created = metadata.created;
  TakeIdentity(metadata, *block);
  TakeFinalizers(reading.root().At("metadata"), *block);
  block->replace = reading.root().At("metadata").At("annotations").At(kReplaceAnnotation).Text();
  const Field status = reading.root().At("status");
  block->record = status.At("record").Text();
  block->record_version = ParseVersion(status.At("recordVersion").Text()).value_or(BlockVersion{});
  block->refusal = status.At("reason").Text();
  block->message = status.At("message").Text();
  block->refused_at = RefusedAt(object);
  block->shown = StatusDigest(object);
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("capacityblock"));
  kube::Reading spec_reading(object);
  block->order = ParseOrder(spec_reading.root().At("spec"));
  block->order.key = block->key;
  block->order.uid = block->uid;
  if (block->order.token.empty()) block->order.token = block->uid;
  if (!spec_reading.status().ok()) block->spec_error = Message(spec_reading.status());
  return block;
}

std::uint64_t StatusDigest(const json& object) {
  const auto status = object.find("status");
  const std::uint64_t digest = status == object.end() || status->empty() ? 1 : DigestOf(*status);
  return digest == 0 ? 1 : digest;
}

}  // namespace tahoma::controller
