#include "controller/core/forecast/cheapest_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "controller/core/facts/asked_gang.h"
#include "controller/model/gang_rules.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;

// The largest shape of each number of chips first.
constexpr std::array<const char*, 7> kShapes = {"4x4x4", "4x4x2", "4x4x1", "4x2x1",
                                                "2x2x1", "2x1x1", "1x1x1"};
// A maxRuntime below is no help to anybody.
constexpr seconds kRuntimeLeast{60};

// Returns the only request of a pod of an asked gang.
template <typename Member>
auto& RequestOf(Member& member) {
  return member.claims.front().requests.front().alternatives.front();
}

int ChipsOf(const std::string& shape) {
  return BoxesOf({.members = 1, .shape = shape}).shapes.front().chip_count();
}

// The part of the time that is not left, of a gang that would run for `of`.
double PartOf(seconds less, seconds of) {
  return static_cast<double>(less.count()) /
         static_cast<double>(std::max<std::int64_t>((less + of).count(), 1));
}

// Returns "8h", "1h30m", "45s", in the form of maxRuntime.
std::string RuntimeText(seconds runtime) {
  const auto hours = runtime.count() / 3600;
  const auto minutes = runtime.count() / 60 % 60;
  const auto rest = runtime.count() % 60;
  std::string text;
  if (hours != 0) text += fmt::format("{}h", hours);
  if (minutes != 0) text += fmt::format("{}m", minutes);
  if (rest != 0 || text.empty()) text += fmt::format("{}s", rest);
  return text;
}

class Changes {
 public:
  Changes(const ChangesAsked& asked, WallTime now) : asked_(asked), now_(now) {}

  Change Find() {
    Preempt();
    OtherQueue();
    Smaller();
    ShorterRuntime();
    Wait();
    return std::move(best_);
  }

 private:
  void Offer(Change change) {
    if (best_.kind == ChangeKind::kNothing || change.gives_up < best_.gives_up) {
      best_ = std::move(change);
    }
  }

  // Returns where the changed gang fits; nullopt also when enough was tried.
  std::optional<std::string> Fits(const std::shared_ptr<const GangSpec>& gang) {
    if (gang == nullptr || tried_++ >= kTriesMost) return std::nullopt;
    return asked_.fits(gang);
  }

  // Returns the gang with another size; nullptr when no such gang is valid.
  std::shared_ptr<const GangSpec> Resized(GangRequest request) const {
    const GangSpec& gang = *asked_.gang;
    request.members = 0;
    const auto made = GangOfRequest(std::move(request), gang.key, gang.block);
    if (!made.ok()) return nullptr;
    auto resized = std::make_shared<GangSpec>(gang);
    resized->shape_text = (*made)->shape_text;
    resized->chips = (*made)->chips;
    resized->slices = (*made)->slices;
    resized->members = (*made)->members;
    const auto& selectors = RequestOf(gang.members.front()).selectors;
    for (MemberSpec& member : resized->members) RequestOf(member).selectors = selectors;
    return resized;
  }

  void Preempt() {
    if (asked_.end_for_it == 0) return;
    Offer({.kind = ChangeKind::kPreempt,
           .value = "",
           .gives_up = 0,
           .message = fmt::format("none: {} {} for it", asked_.end_for_it,
                                  asked_.end_for_it == 1 ? "gang ends" : "gangs end")});
  }

  void OtherQueue() {
    constexpr std::size_t kQueuesMost = 8;
    std::size_t left = kQueuesMost;
    for (const std::string& queue : asked_.queues) {
      if (best_.gives_up == 0 || left-- == 0) return;
      auto gang = std::make_shared<GangSpec>(*asked_.gang);
      gang->queue = queue;
      const auto where = Fits(gang);
      if (!where) continue;
      Offer({.kind = ChangeKind::kQueue,
             .value = queue,
             .gives_up = 0,
             .message = fmt::format("use queue {}: there it fits now on {}", queue, *where)});
    }
  }

  void Smaller() {
    if (best_.gives_up == 0) return;
    const GangSpec& gang = *asked_.gang;
    if (gang.slices > 1) return FewerSlices();
    if (!gang.shape_text.empty()) return SmallerShape();
    if (gang.chips) FewerChips();
  }

  void SmallerShape() {
    const int wanted = ChipsOf(asked_.gang->shape_text);
    for (const char* shape : kShapes) {
      const int chips = ChipsOf(shape);
      if (chips >= wanted) continue;
      const auto where = Fits(Resized({.shape = shape}));
      if (!where) continue;
      return Offer({.kind = ChangeKind::kShape,
                    .value = shape,
                    .gives_up = 1 - static_cast<double>(chips) / wanted,
                    .message = fmt::format("ask for {} instead of {}: that fits now on {}", shape,
                                           asked_.gang->shape_text, *where)});
    }
  }

  void FewerChips() {
    const std::int64_t wanted = *asked_.gang->chips;
    for (std::int64_t chips = wanted / 2; chips > 0; chips /= 2) {
      const auto where = Fits(Resized({.chips = chips}));
      if (!where) continue;
      const double part = static_cast<double>(chips) / static_cast<double>(wanted);
      return Offer({.kind = ChangeKind::kChips,
                    .value = std::to_string(chips),
                    .gives_up = 1 - part,
                    .message = fmt::format("ask for {} chips instead of {}: they fit now on {}",
                                           chips, wanted, *where)});
    }
  }

  // Halves between a number of slices with room and a number without.
  void FewerSlices() {
    const GangSpec& gang = *asked_.gang;
    const auto fits = [&](std::int64_t slices) {
      return Fits(Resized({.shape = gang.shape_text, .chips = gang.chips, .slices = slices}));
    };
    std::int64_t room = 0;
    std::string where;
    for (std::int64_t none = gang.slices; none - room > 1;) {
      const std::int64_t middle = room + (none - room) / 2;
      if (auto place = fits(middle)) {
        room = middle;
        where = *std::move(place);
      } else {
        none = middle;
      }
    }
    if (room == 0) return;
    Offer({.kind = ChangeKind::kSlices,
           .value = std::to_string(room),
           .gives_up = 1 - static_cast<double>(room) / gang.slices,
           .message = fmt::format("ask for {} slices instead of {}: they fit now on {}", room,
                                  gang.slices, where)});
  }

  // Halves the run times: what fits for long fits for a shorter time, too.
  void ShorterRuntime() {
    if (best_.gives_up == 0) return;
    const auto& asked = asked_.gang->max_runtime;
    std::vector<seconds> runtimes;
    for (const seconds one : asked_.runtimes) {
      const seconds whole = std::chrono::floor<std::chrono::minutes>(one);
      if (whole >= kRuntimeLeast && (!asked || whole < *asked)) runtimes.push_back(whole);
    }
    std::ranges::sort(runtimes);
    std::optional<std::string> where;
    std::size_t first = 0;  // those below fit
    for (std::size_t last = runtimes.size(); first < last;) {
      const std::size_t middle = first + (last - first) / 2;
      auto gang = std::make_shared<GangSpec>(*asked_.gang);
      gang->max_runtime = runtimes[middle];
      if (auto place = Fits(gang)) {
        where = std::move(place);
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    if (!where) return;
    const seconds runtime = runtimes[first - 1];
    const double gives_up =
        asked ? 1 - static_cast<double>(runtime.count()) / static_cast<double>(asked->count())
              : PartOf(kUsualRuntime, runtime);
    Offer({.kind = ChangeKind::kMaxRuntime,
           .value = RuntimeText(runtime),
           .gives_up = gives_up,
           .message = fmt::format("say maxRuntime {}: then it fits now on {}", RuntimeText(runtime),
                                  *where)});
  }

  void Wait() {
    if (!asked_.earliest || best_.gives_up == 0) return;
    const seconds wait = std::chrono::ceil<seconds>(std::max(*asked_.earliest, now_) - now_);
    Offer({.kind = ChangeKind::kWait,
           .value = FormatTime(*asked_.earliest),
           .gives_up = PartOf(wait, asked_.gang->max_runtime.value_or(kUsualRuntime)),
           .message = fmt::format("none: wait until {}", FormatTime(*asked_.earliest))});
  }

  const ChangesAsked& asked_;
  const WallTime now_;
  std::size_t tried_ = 0;
  Change best_{.kind = ChangeKind::kNothing,
               .value = "",
               .gives_up = 1,
               .message = "none is known: no other queue, size or run time fits now"};
};

}  // namespace

std::string_view ToString(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kPreempt:
      return "Preempt";
    case ChangeKind::kQueue:
      return "Queue";
    case ChangeKind::kShape:
      return "Shape";
    case ChangeKind::kChips:
      return "Chips";
    case ChangeKind::kSlices:
      return "Slices";
    case ChangeKind::kMaxRuntime:
      return "MaxRuntime";
    case ChangeKind::kWait:
      return "Wait";
    case ChangeKind::kNothing:
      return "Nothing";
  }
  TAHOMA_CHECK(false);
  return "";
}

Change FindChange(const ChangesAsked& asked, WallTime now) { return Changes(asked, now).Find(); }

}  // namespace tahoma::controller
