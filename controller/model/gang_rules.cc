#include "controller/model/gang_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/torus/box.h"

namespace tahoma::controller {
namespace {

// The bounds of the CustomResourceDefinition (charts/tahoma/crds).
constexpr std::int64_t kMembersMax = 4096;
constexpr std::int64_t kSlicesMax = 1024;
constexpr std::int64_t kChipsMax = 65536;
constexpr std::size_t kRuntimeBytesMax = 32;
constexpr std::ptrdiff_t kRuntimeDigitsMax = 9;  // so that a number has 32 bits

constexpr std::int64_t kDomainChips = torus::kUltraServerShape.chip_count();

bool InRange(std::int64_t value, std::int64_t most) { return value >= 1 && value <= most; }

bool FormBoxes(std::int64_t chips) {
  if (!InRange(chips, kChipsMax)) return false;
  return chips > kDomainChips ? chips % kDomainChips == 0
                              : !torus::ShapesOf(static_cast<int>(chips)).empty();
}

std::int64_t BoxesPerSlice(std::int64_t chips) {
  return std::max<std::int64_t>(1, chips / kDomainChips);
}

// Checks how the members are divided among slices, and among the boxes of a slice that has several.
void CheckDivision(const GangRequest& request, std::vector<GangFault>& faults) {
  if (request.members % request.slices != 0) {
    faults.push_back({"slices", fmt::format("{}", request.slices),
                      fmt::format("must divide spec.members ({}): every slice has the same number "
                                  "of pods",
                                  request.members)});
    return;
  }
  if (!request.shape.empty() || !request.chips || !FormBoxes(*request.chips)) return;
  const std::int64_t boxes = request.slices * BoxesPerSlice(*request.chips);
  if (request.members % boxes == 0) return;
  faults.push_back(
      {"chips", fmt::format("{}", *request.chips),
       fmt::format("the boxes of 64 chips must divide spec.members: every box has the same number "
                   "of pods; {} members, {} boxes",
                   request.members, boxes)});
}

// Checks the least number of members, which only a gang without pieces of the torus has.
void CheckLeast(const GangRequest& request, std::vector<GangFault>& faults) {
  if (!request.min_members) return;
  const auto add = [&](std::string why) {
    faults.push_back({"minMembers", fmt::format("{}", *request.min_members), std::move(why)});
  };
  if (!InRange(*request.min_members, request.members)) {
    add(fmt::format("must be 1 to spec.members ({})", request.members));
  } else if (!request.shape.empty() || request.chips || request.slices != 1) {
    add("may not be set together with spec.shape, spec.chips or spec.slices: the pods of a gang "
        "with pieces of the torus are placed together");
  }
}

}  // namespace

GangRequest ParseGangRequest(kube::Field spec) {
  GangRequest request;
  request.members = spec.At("members").Int(1);
  if (const kube::Field least = spec.At("minMembers"); least.has_value()) {
    request.min_members = least.Int();
  }
  request.shape = spec.At("shape").Text();
  if (const kube::Field chips = spec.At("chips"); chips.has_value()) request.chips = chips.Int();
  request.slices = spec.At("slices").Int(1);
  request.max_runtime = spec.At("maxRuntime").Text();
  request.min_runtime = spec.At("minRuntime").Text();
  request.preemption_policy = spec.At("preemptionPolicy").Text();
  if (const kube::Field policy = spec.At("failurePolicy"); policy.has_value()) {
    request.failure_policy = policy.Text();
  }
  if (const kube::Field within = spec.At("startWithin"); within.has_value()) {
    request.start_within = within.Text();
  }
  return request;
}

std::vector<GangFault> FaultsOf(const GangRequest& request) {
  std::vector<GangFault> faults;
  const auto add = [&](const char* field, const auto& value, std::string why) {
    faults.push_back({field, fmt::format("{}", value), std::move(why)});
  };
  const bool members = InRange(request.members, kMembersMax);
  const bool slices = InRange(request.slices, kSlicesMax);
  if (!members) add("members", request.members, fmt::format("must be 1 to {}", kMembersMax));
  if (!slices) add("slices", request.slices, fmt::format("must be 1 to {}", kSlicesMax));
  if (!request.shape.empty()) {
    const auto shape = torus::ParseOffered(request.shape);
    if (!shape.ok()) add("shape", request.shape, std::string(Message(shape.status())));
  }
  if (request.chips && !FormBoxes(*request.chips)) {
    add("chips", *request.chips,
        fmt::format("must be 1, 2, 4, 8, 16, 32 or 64, or a multiple of 64 up to {}", kChipsMax));
  }
  if (request.chips && !request.shape.empty()) {
    add("chips", *request.chips,
        "may not be set together with spec.shape, which says how many chips a slice has");
  }
  if (members && slices) CheckDivision(request, faults);
  if (members) CheckLeast(request, faults);
  if (!request.max_runtime.empty() && !ParseRuntime(request.max_runtime)) {
    add("maxRuntime", request.max_runtime,
        "must be numbers of at most nine digits, each with h, m or s, such as 90m or 1h30m");
  }
  if (!request.min_runtime.empty() && !ParseRuntime(request.min_runtime)) {
    add("minRuntime", request.min_runtime,
        "must be numbers of at most nine digits, each with h, m or s, such as 90m or 1h30m");
  }
  if (!request.preemption_policy.empty() && request.preemption_policy != kPreemptsNobody &&
      request.preemption_policy != kPreemptsLower) {
    add("preemptionPolicy", request.preemption_policy, "must be PreemptLowerPriority or Never");
  }
  if (!ParsePolicy(request.failure_policy)) {
    add("failurePolicy", request.failure_policy, "must be RestartAll, Replace or Fail");
  }
  if (!ParseRuntime(request.start_within)) {
    add("startWithin", request.start_within,
        "must be numbers of at most nine digits, each with h, m or s, such as 10m");
  }
  return faults;
}

std::optional<FailurePolicy> ParsePolicy(std::string_view text) {
  if (text == "RestartAll") return FailurePolicy::kRestartAll;
  if (text == "Replace") return FailurePolicy::kReplace;
  if (text == "Fail") return FailurePolicy::kFail;
  return std::nullopt;
}

std::string Describe(const std::vector<GangFault>& faults) {
  std::string text;
  for (const GangFault& fault : faults) {
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", fault.field,
                        CutUtf8(fault.value, 64), fault.why);
  }
  return text;
}

GangBoxes BoxesOf(const GangRequest& request) {
  GangBoxes boxes;
  if (!request.shape.empty()) {
    const auto shape = torus::ParseOffered(request.shape);
    TAHOMA_CHECK_OK(shape.status());
    boxes.shapes = {*shape};
  } else if (request.chips) {
    TAHOMA_CHECK(FormBoxes(*request.chips));
    boxes.shapes = torus::ShapesOf(static_cast<int>(std::min(*request.chips, kDomainChips)));
    boxes.per_slice = static_cast<int>(BoxesPerSlice(*request.chips));
  }
  return boxes;
}

std::optional<std::chrono::seconds> ParseRuntime(std::string_view text) {
  if (text.empty() || text.size() > kRuntimeBytesMax) return std::nullopt;
  std::chrono::seconds total{0};
  while (!text.empty()) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    std::int32_t number = 0;
    const auto [domain, error] = std::from_chars(begin, end, number);
    if (error != std::errc() || domain == end || domain - begin > kRuntimeDigitsMax ||
        *begin == '-') {
      return std::nullopt;
    }
    if (*domain != 'h' && *domain != 'm' && *domain != 's') return std::nullopt;
    total += std::chrono::seconds(std::int64_t{number} * (*domain == 'h'   ? 3600
                                                          : *domain == 'm' ? 60
                                                                           : 1));
    text.remove_prefix(static_cast<std::size_t>(domain - begin) + 1);
  }
  return total;
}

}  // namespace tahoma::controller
