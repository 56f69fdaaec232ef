#include "controller/core/facts/queue_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "controller/core/facts/read_facts.h"
#include "controller/core/facts/spec_fields.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::controller {
namespace {

using kube::Field;

// The bounds of charts/tahoma/crds/tahoma.dev_queues.yaml.
constexpr std::int64_t kWeightMost = 1'000'000;
constexpr std::int64_t kGangsMost = 1'000'000;
constexpr std::int64_t kPatienceMost = 1'000'000'000;
constexpr std::size_t kNamespacesMost = 256;
constexpr std::size_t kLabelsMost = 64;
constexpr std::size_t kConditionsMost = 64;

// Refuses a type of which `chips` has more than `most`; of a type that `most` lacks, too, unless
// such a type has no bound.
void CheckWithin(Field field, const ChipCounts& chips, const ChipCounts& most, bool lacks_bound,
                 std::string_view of) {
  for (const auto& [type, count] : chips) {
    const auto bound = most.find(type);
    if (bound == most.end() ? lacks_bound : count <= bound->second) continue;
    field.Fail(fmt::format("must be at most {} of the same instance type, but has {} chips of {}",
                           of, count, type));
  }
}

std::optional<std::int64_t> CountOf(Field field, std::int64_t most) {
  if (!field.has_value()) return std::nullopt;
  return IntWithin(field, 0, most);
}

enum class Items : std::uint8_t { kNames, kNamesOrAll, kLabelValues };

std::vector<std::string> SetOf(Field field, std::size_t most, Items kind) {
  std::vector<std::string> texts;
  for (const Field item : field.Items(most)) {
    std::string text(item.Text());
    if (std::ranges::find(texts, text) != texts.end()) item.Fail("is there twice");
    if (kind == Items::kLabelValues) {
      if (text.empty() || text.size() > kQueueNameMost) item.Fail("must have 1 to 63 characters");
    } else if (!IsQueueName(text) && !(kind == Items::kNamesOrAll && text == kEveryNamespace)) {
      item.Fail(kind == Items::kNames ? kQueueNameRule : "must be the name of a namespace, or *");
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

QueueStop StopOf(Field field) {
  const std::string_view text = field.Text();
  for (const QueueStop stop : {QueueStop::kHold, QueueStop::kDrain}) {
    if (text == ToString(stop)) return stop;
  }
  if (field.has_value()) field.Fail(fmt::format("is {}, must be Hold or Drain", text));
  return QueueStop::kNo;
}

void ReadChips(Field spec, QueueSpec& queue) {
  queue.guaranteed = ReadChipCounts(spec.At("guaranteed"));
  queue.limit = ReadChipCounts(spec.At("limit"));
  queue.borrowing_limit = ReadChipCounts(spec.At("borrowingLimit"));
  queue.lending_limit = ReadChipCounts(spec.At("lendingLimit"));
  CheckWithin(spec.At("guaranteed"), queue.guaranteed, queue.limit, true, "spec.limit");
  CheckWithin(spec.At("lendingLimit"), queue.lending_limit, queue.guaranteed, false,
              "spec.guaranteed");
}

void ReadTimes(Field spec, QueueSpec& queue) {
  queue.half_life = TimeSpanOf(spec.At("halfLife"), "168h");
  queue.default_max_runtime = TimeSpanOf(spec.At("defaultMaxRuntime"), "36h");
  queue.max_runtime = TimeSpanOf(spec.At("maxRuntime"), "36h");
  if (queue.default_max_runtime && queue.max_runtime &&
      *queue.default_max_runtime > *queue.max_runtime) {
    spec.At("defaultMaxRuntime").Fail("must be at most spec.maxRuntime");
  }
}

void ReadUsers(Field spec, QueueSpec& queue) {
  queue.namespaces = SetOf(spec.At("namespaces"), kNamespacesMost, Items::kNamesOrAll);
  queue.default_for = SetOf(spec.At("defaultFor"), kNamespacesMost, Items::kNames);
  queue.kueue_names = SetOf(spec.At("kueueNames"), kLabelsMost, Items::kLabelValues);
  queue.volcano_names = SetOf(spec.At("volcanoNames"), kLabelsMost, Items::kLabelValues);
  const auto may_use = [&](const std::string& ns) {
    return std::ranges::find(queue.namespaces, ns) != queue.namespaces.end();
  };
  if (spec.At("defaultFor").has_value() && !may_use(kEveryNamespace) &&
      !(spec.At("namespaces").has_value() && std::ranges::all_of(queue.default_for, may_use))) {
    spec.At("defaultFor").Fail("must be among spec.namespaces, or these must have *");
  }
}

void ReadSpec(Field root, QueueSpec& queue) {
  if (!IsQueueName(queue.name)) {
    root.At("metadata").Fail(fmt::format("{}, as gangs name it in spec.queue", kQueueNameRule));
  }
  const Field spec = root.Required("spec");
  const Field parent = spec.At("parent");
  queue.parent = parent.Text();
  if (parent.has_value() && !IsQueueName(queue.parent)) parent.Fail(kQueueNameRule);
  if (queue.parent == queue.name) parent.Fail("must name another queue");
  queue.weight = IntWithin(spec.At("weight"), 1, kWeightMost);
  ReadChips(spec, queue);
  ReadTimes(spec, queue);
  ReadUsers(spec, queue);
  queue.most_waiting = CountOf(spec.At("maxWaiting"), kGangsMost);
  queue.most_running = CountOf(spec.At("maxRunning"), kGangsMost);
  queue.patience = CountOf(spec.At("patience"), kPatienceMost);
  queue.stop = StopOf(spec.At("stop"));
}

std::int64_t PercentOf(double part) {
  return std::isfinite(part) ? std::llround(std::clamp(part, 0.0, 1.0) * 100) : 0;
}

}  // namespace

QueueShown ShownBy(const Json& object, std::string resource_version) {
  QueueShown shown{.resource_version = std::move(resource_version), .digest = StatusDigest(object)};
  kube::Reading reading(object);
  for (const Field condition :
       reading.root().At("status").At("conditions").Items(kConditionsMost)) {
    const auto since = ParseTime(condition.At("lastTransitionTime").Text());
    if (!since.ok()) continue;
    const QueueCondition value{.holds = condition.At("status").Text() == "True", .since = *since};
    if (condition.At("type").Text() == "Ready") shown.ready = value;
    if (condition.At("type").Text() == "Stopped") shown.stopped = value;
  }
  return shown;
}

absl::StatusOr<QueueObject> ParseQueue(const Json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("queue"));
  auto queue = std::make_shared<QueueSpec>();
  queue->name = std::move(metadata.name);
  queue->uid = std::move(metadata.uid);
  queue->generation = metadata.generation;
  kube::Reading spec_reading(object);
  ReadSpec(spec_reading.root(), *queue);
  if (!spec_reading.status().ok()) queue->invalid = Message(spec_reading.status());
  return QueueObject{.spec = std::move(queue),
                     .shown = ShownBy(object, std::move(metadata.resource_version))};
}

QueueStatus StatusOf(const QueueView& view) {
  TAHOMA_CHECK(view.spec != nullptr);
  constexpr double kHoursMost = 1e15;
  QueueStatus status;
  status.observed_generation = view.spec->generation;
  status.trouble = view.trouble;
  status.message = view.message;
  status.stop = view.spec->stop;
  status.waiting = view.waiting;
  status.running = view.running;
  status.held = view.held;
  status.borrowed = view.borrowed;
  status.guaranteed_chips = TotalOf(view.spec->guaranteed);
  status.period = view.period;
  status.next_change = view.next_change;
  status.share_percent = PercentOf(view.share);
  status.place = view.place;
  status.used_chip_hours = std::isfinite(view.used_chip_hours)
                               ? std::llround(std::clamp(view.used_chip_hours, 0.0, kHoursMost))
                               : 0;
  status.used_share_percent = PercentOf(view.used_share);
  return status;
}

bool SaysButForPast(const QueueStatus& a, const QueueStatus& b) {
  return a.observed_generation == b.observed_generation && a.trouble == b.trouble &&
         a.message == b.message && a.stop == b.stop && a.waiting == b.waiting &&
         a.running == b.running && a.held == b.held && a.borrowed == b.borrowed &&
         a.guaranteed_chips == b.guaranteed_chips && a.period == b.period &&
         a.next_change == b.next_change && a.share_percent == b.share_percent && a.place == b.place;
}

bool Says(const QueueStatus& a, const QueueStatus& b) {
  return SaysButForPast(a, b) && a.used_chip_hours == b.used_chip_hours &&
         a.used_share_percent == b.used_share_percent;
}

std::string_view ToString(QueueTrouble trouble) {
  switch (trouble) {
    case QueueTrouble::kNone:
      return "Ready";
    case QueueTrouble::kNoParent:
      return "NoParent";
    case QueueTrouble::kCircle:
      return "Circle";
    case QueueTrouble::kGuarantees:
      return "Guarantees";
    case QueueTrouble::kInvalid:
      return "Invalid";
  }
  TAHOMA_CHECK(false);
  return "";
}

std::string_view ToString(QueueStop stop) {
  switch (stop) {
    case QueueStop::kNo:
      return "";
    case QueueStop::kHold:
      return "Hold";
    case QueueStop::kDrain:
      return "Drain";
  }
  TAHOMA_CHECK(false);
  return "";
}

std::int64_t TotalOf(const ChipCounts& chips) {
  std::int64_t total = 0;
  for (const auto& [type, count] : chips) total += count;
  return total;
}

}  // namespace tahoma::controller
