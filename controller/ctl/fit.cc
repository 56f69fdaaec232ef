#include "controller/ctl/fit.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "controller/ctl/admin_reader.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"
#include "lib/kube/url.h"

namespace tahoma::controller {
namespace {

// A line names so many slices, nodes or gangs at most.
constexpr std::size_t kNamed = 8;

std::string Joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < std::min(parts.size(), kNamed); ++i) {
    text += (i == 0 ? "" : std::string(between)) + parts[i];
  }
  if (parts.size() > kNamed) text += fmt::format(" and {} more", parts.size() - kNamed);
  return text;
}

// Returns "us-0 4x4x2+0,0,0, 2 pods on us-0-n0, us-0-n1".
std::string PlaceText(const Json& placement) {
  std::vector<std::string> slices;
  for (const Json& slice : kube::ListAt(placement, {"slices"})) {
    slices.push_back(fmt::format("{} {}+{}", kube::StringAt(slice, {"domain"}),
                                 kube::StringAt(slice, {"shape"}),
                                 kube::StringAt(slice, {"origin"})));
  }
  const std::int64_t pods = kube::IntAt(placement, {"pods"});
  const std::string where = Joined(kube::StringsAt(placement, {"nodes"}), ", ");
  return fmt::format("{}{}{} {} on {}", Joined(slices, "; "), slices.empty() ? "" : ", ", pods,
                     pods == 1 ? "pod" : "pods", where);
}

std::string SpeedLine(const Json& placement) {
  const std::string_view time = kube::StringAt(placement, {"predictedAllReduce"});
  if (time.empty()) return "";
  return fmt::format("  An all-reduce of 256 MiB in each chip is predicted to take {}\n", time);
}

std::string EarliestLine(const Json& answer) {
  const Json* earliest = kube::ValueAt(answer, {"earliest"});
  if (earliest == nullptr) return "  Earliest start: not known\n";
  const Json* placement = kube::ValueAt(*earliest, {"placement"});
  return fmt::format("  Earliest start: {}{}{}{}\n", kube::StringAt(*earliest, {"time"}),
                     kube::BoolAt(*earliest, {"exact"}) ? "" : " or before",
                     placement == nullptr ? "" : " on ",
                     placement == nullptr ? "" : PlaceText(*placement));
}

// Returns "gang default/low of queue a, priority -10, loses 1.5 chip-hours".
std::string EndingText(const Json& gang) {
  const double hours = static_cast<double>(kube::IntAt(gang, {"lostChipSeconds"})) / 3600;
  const bool pod = kube::StringAt(gang, {"kind"}) == "Pod";
  const std::string_view queue = kube::StringAt(gang, {"queue"});
  return fmt::format(
      "{} {}/{}{}, priority {}, {}", pod ? "pod" : "gang", kube::StringAt(gang, {"namespace"}),
      kube::StringAt(gang, {"name"}), queue.empty() ? "" : fmt::format(" of queue {}", queue),
      kube::IntAt(gang, {"priority"}),
      kube::BoolAt(gang, {"ending"}) ? "ends already"
                                     : fmt::format("loses {:.1f} chip-hours", hours));
}

std::string EndingLines(const Json& answer) {
  const Json* ending = kube::ValueAt(answer, {"wouldEnd"});
  if (ending == nullptr) return "";
  const std::string_view place = kube::StringAt(*ending, {"place"});
  if (place.empty())
    return fmt::format("  Nobody ends for it: {}\n", kube::StringAt(*ending, {"why"}));
  std::string text = fmt::format("  Would have to end, for a place on {}:\n", place);
  std::size_t left = kNamed;
  const Json& gangs = kube::ListAt(*ending, {"gangs"});
  for (const Json& gang : gangs) {
    if (left-- == 0) break;
    text += fmt::format("    {}\n", EndingText(gang));
  }
  if (gangs.size() > kNamed) text += fmt::format("    and {} more\n", gangs.size() - kNamed);
  return text;
}

std::string MovingLines(const Json& answer) {
  const Json* moving = kube::ValueAt(answer, {"wouldMove"});
  if (moving == nullptr) return "";
  const std::string_view place = kube::StringAt(*moving, {"place"});
  if (place.empty()) {
    return fmt::format("  No moves make a place: {}\n", kube::StringAt(*moving, {"why"}));
  }
  std::string text = fmt::format("  Would have to move, for a place on {}:\n", place);
  for (const Json& move : kube::ListAt(*moving, {"moves"})) {
    const double hours = static_cast<double>(kube::IntAt(move, {"lostChipSeconds"})) / 3600;
    text += fmt::format("    gang {}/{} from {} to {}, loses {:.1f} chip-hours\n",
                        kube::StringAt(move, {"namespace"}), kube::StringAt(move, {"name"}),
                        kube::StringAt(move, {"from"}), kube::StringAt(move, {"to"}), hours);
  }
  return text;
}

}  // namespace

absl::StatusOr<Json> AskFit(kube::Transport& admin, const std::string& ns, const FitAsked& asked) {
  Json body = Json::object();
  const auto text = [&](const char* field, const std::string& value) {
    if (!value.empty()) body[field] = value;
  };
  const auto number = [&](const char* field, std::int64_t value) {
    if (value != 0) body[field] = value;
  };
  text("shape", asked.shape);
  number("chips", asked.chips);
  number("ultraServers", asked.ultra_servers);
  number("slices", asked.slices);
  number("members", asked.members);
  text("maxRuntime", asked.max_runtime);
  text("capacityBlock", asked.block);
  text("queue", asked.queue);
  text("instanceType", asked.instance_type);
  number("priority", asked.priority);
  if (asked.preemptible) body["preemptible"] = true;
  if (asked.moves) body["moves"] = true;
  return AskAdmin(admin, {.method = "POST",
                          .target = "/v1/placements/" + kube::PercentEncode(ns) + "/simulate",
                          .headers = {{"Content-Type", "application/json"}},
                          .body = body.dump()});
}

bool Fits(const Json& answer) { return kube::BoolAt(answer, {"fits"}); }

std::string FitText(const Json& answer) {
  const std::string_view queue = kube::StringAt(answer, {"queue"});
  const std::string in_queue = queue.empty() ? "" : fmt::format("  Queue {}\n", queue);
  if (const Json* placement = kube::ValueAt(answer, {"placement"}); placement && Fits(answer)) {
    return fmt::format("Fits now: {}\n{}{}", PlaceText(*placement), in_queue,
                       SpeedLine(*placement));
  }
  std::string text = fmt::format("Does not fit now, {}: {}\n{}", kube::StringAt(answer, {"reason"}),
                                 kube::StringAt(answer, {"message"}), in_queue);
  text += EarliestLine(answer) + EndingLines(answer) + MovingLines(answer);
  const std::string_view change = kube::StringAt(answer, {"cheapestChange", "message"});
  if (!change.empty()) text += fmt::format("  Cheapest change: {}\n", change);
  return text;
}

}  // namespace tahoma::controller
