#include "controller/core/facts/window_object.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <utility>

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

// The bounds of charts/tahoma/crds/tahoma.dev_maintenancewindows.yaml.
constexpr std::size_t kHardwareNamesMost = 1024;
constexpr std::size_t kHardwareNameMost = 253;
constexpr std::size_t kReasonBytesMost = 1024;  // of 256 characters
constexpr std::size_t kWindowConditionsMost = 64;

std::vector<std::string> HardwareNames(Field field) {
  static const RE2 kName("[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?");
  std::vector<std::string> names;
  for (const Field item : field.Items(kHardwareNamesMost)) {
    std::string name(item.Text());
    if (name.size() > kHardwareNameMost || !RE2::FullMatch(name, kName)) {
      item.Fail(fmt::format("must be 1 to {} of a-z, A-Z, 0-9, - and .", kHardwareNameMost));
    }
    names.push_back(std::move(name));
  }
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) field.Fail("has a name twice");
  return names;
}

WallTime UtcTimeOf(Field field) {
  static const RE2 kUtc(
      "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
      "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z");
  if (!field.has_value()) {
    field.Fail("must be a time, such as 2026-12-01T01:00:00Z");
    return {};
  }
  const std::string_view text = field.Text();
  const auto time = ParseTime(text);
  if (!time.ok() || !RE2::FullMatch(text, kUtc)) {
    field.Fail("must be a time in UTC of this century, such as 2026-12-01T01:00:00Z");
    return {};
  }
  return *time;
}

void ReadWindow(Field root, WindowSpec& window) {
  const Field spec = root.Required("spec");
  window.nodes = HardwareNames(spec.At("nodes"));
  window.ultra_servers = HardwareNames(spec.At("ultraServers"));
  if (window.nodes.empty() && window.ultra_servers.empty()) {
    spec.Fail("must have nodes or ultraServers");
  }
  window.from = UtcTimeOf(spec.At("from"));
  window.until = UtcTimeOf(spec.At("until"));
  if (window.until <= window.from) spec.At("until").Fail("must be later than spec.from");
  if (const auto warning = TimeSpanOf(spec.At("warning"), "1h")) window.warning = *warning;
  window.reason = spec.At("reason").Text();
  if (window.reason.size() > kReasonBytesMost) spec.At("reason").Fail("is too long");
  window.drain = spec.At("drain").Bool();
}

// A status that cannot be read has no times.
WindowShown WindowShownBy(const Json& object, std::string resource_version) {
  WindowShown shown{.resource_version = std::move(resource_version),
                    .digest = StatusDigest(object)};
  kube::Reading reading(object);
  const Field conditions = reading.root().At("status").At("conditions");
  for (const Field condition : conditions.Items(kWindowConditionsMost)) {
    const auto since = ParseTime(condition.At("lastTransitionTime").Text());
    if (!since.ok()) continue;
    const WindowCondition value{.holds = condition.At("status").Text() == "True", .since = *since};
    if (condition.At("type").Text() == "Ready") shown.ready = value;
    if (condition.At("type").Text() == "Drained") shown.drained = value;
  }
  return shown;
}

}  // namespace

absl::StatusOr<WindowObject> ParseWindow(const Json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("maintenancewindow"));
  auto window = std::make_shared<WindowSpec>();
  window->name = std::move(metadata.name);
  window->uid = std::move(metadata.uid);
  window->generation = metadata.generation;
  kube::Reading spec_reading(object);
  ReadWindow(spec_reading.root(), *window);
  if (!spec_reading.status().ok()) window->invalid = Message(spec_reading.status());
  return WindowObject{.spec = std::move(window),
                      .shown = WindowShownBy(object, std::move(metadata.resource_version))};
}

WindowPhase PhaseAt(const WindowSpec& window, WallTime now) {
  if (!window.invalid.empty()) return WindowPhase::kInvalid;
  if (now >= window.until) return WindowPhase::kOver;
  if (now >= window.from) return WindowPhase::kActive;
  return now >= window.from - window.warning ? WindowPhase::kWarned : WindowPhase::kScheduled;
}

std::string_view ToString(WindowPhase phase) {
  switch (phase) {
    case WindowPhase::kScheduled:
      return "Scheduled";
    case WindowPhase::kWarned:
      return "Warned";
    case WindowPhase::kActive:
      return "Active";
    case WindowPhase::kOver:
      return "Over";
    case WindowPhase::kInvalid:
      return "Invalid";
  }
  TAHOMA_CHECK(false);
  return "";
}

std::string Describe(const WindowSpec& window) {
  return fmt::format("maintenance window {} ({} to {})", window.name, FormatTime(window.from),
                     FormatTime(window.until));
}

bool Says(const WindowStatus& a, const WindowStatus& b) {
  return a.observed_generation == b.observed_generation && a.phase == b.phase &&
         a.invalid == b.invalid && a.nodes == b.nodes && a.gangs == b.gangs &&
         a.gang_names == b.gang_names && a.missing == b.missing &&
         a.missing_names == b.missing_names && a.blocks == b.blocks;
}

}  // namespace tahoma::controller
