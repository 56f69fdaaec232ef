#include "controller/replay/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "controller/replay/measures.h"

namespace tahoma::controller {
namespace {

constexpr double kWidth = 1000;
constexpr double kHeight = 420;
constexpr double kLeft = 70;
constexpr double kRight = kWidth - 20;
constexpr double kTop = 64;
constexpr double kBottom = kHeight - 50;
constexpr int kColumns = 455;  // of the use's line: two units of the picture each

// Colours that differ in brightness too, for readers who do not see all of them.
constexpr std::array<std::string_view, 4> kColours = {"#b3261e", "#d99a00", "#3b6fb6", "#1c7a3e"};

std::string_view ColourOf(PolicyKind kind) { return kColours[static_cast<std::size_t>(kind)]; }

// The paper with axes, onto which lines are drawn.
class Chart {
 public:
  explicit Chart(std::string_view title) {
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
        "height=\"{1:g}\" role=\"img\" font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, "
        "sans-serif\" font-size=\"12\" fill=\"#1f2328\">\n<title>{2}</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        kWidth, kHeight, title);
    Text(kLeft, 26, title, "font-size=\"17\" font-weight=\"600\"");
  }

  static double XOf(double part) { return kLeft + part * (kRight - kLeft); }
  static double YOf(double part) { return kBottom - part * (kBottom - kTop); }

  void Text(double x, double y, std::string_view text, std::string_view more) {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more, text);
  }
  // Lines across the paper at that part of its height, and down at that part of its width.
  void Across(double part, std::string_view label) {
    svg_ += fmt::format("<path d=\"M{:g} {:.1f}H{:g}\" stroke=\"#eaeef2\"/>\n", kLeft, YOf(part),
                        kRight);
    Text(kLeft - 8, YOf(part) + 4, label, "text-anchor=\"end\" fill=\"#57606a\"");
  }
  void Down(double part, std::string_view label) {
    svg_ += fmt::format("<path d=\"M{:.1f} {:g}V{:g}\" stroke=\"#eaeef2\"/>\n", XOf(part), kTop,
                        kBottom);
    Text(XOf(part), kBottom + 18, label, "text-anchor=\"middle\" fill=\"#57606a\"");
  }
  void Line(const std::string& path, PolicyKind kind) {
    svg_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path,
                        ColourOf(kind));
    const double x = kLeft + 130 * static_cast<double>(lines_++);
    svg_ += fmt::format("<path d=\"M{:g} 44h18\" stroke=\"{}\" stroke-width=\"3\"/>\n", x,
                        ColourOf(kind));
    Text(x + 24, 48, NameOf(kind), "fill=\"#57606a\"");
  }
  std::string Done() && { return std::move(svg_) + "</svg>\n"; }

 private:
  std::string svg_;
  int lines_ = 0;
};

// Returns the mean use in each of the columns from `from` on.
std::vector<double> MeanUse(const ReplayRun& run, WallTime from, std::chrono::nanoseconds column) {
  std::vector<double> use(kColumns);
  std::size_t moment = 0;
  const auto& moments = run.moments;
  for (std::size_t i = 0; i < use.size(); ++i) {
    const WallTime begin = from + column * static_cast<std::int64_t>(i);
    const WallTime end = begin + column;
    while (moment + 1 < moments.size() && moments[moment + 1].when <= begin) ++moment;
    for (std::size_t at = moment; at + 1 < moments.size() && moments[at].when < end; ++at) {
      const auto part = std::min(moments[at + 1].when, end) - std::max(moments[at].when, begin);
      use[i] += static_cast<double>(moments[at].used) * static_cast<double>(part.count()) /
                static_cast<double>(column.count());
    }
  }
  return use;
}

std::string DurationText(double seconds) {
  if (seconds < 60) return fmt::format("{:g} s", seconds);
  if (seconds < 3600) return fmt::format("{:g} min", seconds / 60);
  if (seconds < 86400) return fmt::format("{:g} h", seconds / 3600);
  return fmt::format("{:g} d", seconds / 86400);
}

}  // namespace

std::string DrawUse(const Workload& workload, const std::vector<ReplayRun>& runs) {
  Chart chart("Chips in use");
  const WallTime from = workload.requests.front().submitted;
  WallTime to = from + std::chrono::seconds(kColumns);
  for (const ReplayRun& run : runs) {
    if (!run.moments.empty()) to = std::max(to, run.moments.back().when);
  }
  const double chips = static_cast<double>(std::max<std::int64_t>(1, runs.front().chips));
  constexpr int kLines = 4;
  for (int i = 0; i <= kLines; ++i) {
    chart.Across(1.0 * i / kLines, fmt::format("{:g}", chips * i / kLines));
  }
  constexpr int kDates = 6;
  for (int i = 0; i <= kDates; ++i) {
    const WallTime when = from + (to - from) / kDates * i;
    const std::string text = FormatTime(when);
    chart.Down(1.0 * i / kDates, text.substr(5, 5) + " " + text.substr(11, 5));
  }
  for (const ReplayRun& run : runs) {
    std::string path;
    const std::vector<double> use = MeanUse(run, from, (to - from) / kColumns);
    for (std::size_t i = 0; i < use.size(); ++i) {
      path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? 'M' : 'L',
                          Chart::XOf((static_cast<double>(i) + 0.5) / kColumns),
                          Chart::YOf(use[i] / chips));
    }
    chart.Line(path, run.policy);
  }
  return std::move(chart).Done();
}

std::string DrawWaits(const Workload& workload, const std::vector<ReplayRun>& runs) {
  Chart chart("Jobs that waited no longer");
  constexpr std::array kTimes = {1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0};
  const auto part_of = [&](double seconds) {
    const double most = std::log(kTimes.back());
    return std::clamp(std::log(std::max(seconds, 1.0)) / most, 0.0, 1.0);
  };
  for (int i = 0; i <= 4; ++i) chart.Across(i / 4.0, fmt::format("{} %", 25 * i));
  for (const double time : kTimes) chart.Down(part_of(time), DurationText(time));
  for (const ReplayRun& run : runs) {
    const std::vector<double> waits = WaitsOf(workload, run);
    const double all = static_cast<double>(std::max<std::size_t>(1, run.outcomes.size()));
    std::string path;
    for (int i = 0; i <= kColumns; ++i) {
      const double part = 1.0 * i / kColumns;
      const double seconds = std::exp(part * std::log(kTimes.back()));
      const auto within = std::ranges::upper_bound(waits, seconds) - waits.begin();
      path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? 'M' : 'L', Chart::XOf(part),
                          Chart::YOf(static_cast<double>(within) / all));
    }
    chart.Line(path, run.policy);
  }
  return std::move(chart).Done();
}

}  // namespace tahoma::controller
