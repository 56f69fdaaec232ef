#include "controller/ctl/calendar_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "controller/reserve/calendar.h"
#include "lib/base/utf8.h"

namespace tahoma::controller {
namespace {

constexpr double kWidth = 1200;
constexpr double kMargin = 16;
constexpr double kLabelWidth = 220;
constexpr double kTop = 96;  // of the first row
constexpr double kRow = 34;
constexpr double kBar = 20;
constexpr double kLegend = 40;
// A letter of the labels and of the bars is about so wide.
constexpr double kLabelLetter = 6.8;
constexpr double kBarLetter = 6.2;

struct Look {
  BlockState state;
  std::string_view fill;
  std::string_view text;  // legible on the fill
  std::string_view dash;  // of the border, for what is no promise (any more)
};

// Colours that differ in brightness too, for readers who do not see all of them.
constexpr std::array<Look, 7> kStyles = {{
    {BlockState::kPaymentPending, "#ffe08a", "#3d3000", "4 3"},
    {BlockState::kScheduled, "#3b6fb6", "#ffffff", ""},
    {BlockState::kActive, "#1c7a3e", "#ffffff", ""},
    {BlockState::kUnavailable, "#b3261e", "#ffffff", ""},
    {BlockState::kExpired, "#d3d7dc", "#3a4149", ""},
    {BlockState::kFailed, "#ffffff", "#8a1c16", "4 3"},
    {BlockState::kPaymentFailed, "#ffffff", "#8a1c16", "4 3"},
}};

const Look& LookOf(BlockState state) {
  return *std::ranges::find_if(kStyles, [&](const Look& look) { return look.state == state; });
}

// Escapes text for XML; what XML cannot hold becomes a question mark.
std::string Escaped(std::string_view text) {
  if (!IsUtf8(text)) text = "?";
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return escaped;
}

std::string CutTo(std::string_view text, double width, double letter) {
  const auto most = static_cast<std::size_t>(std::max(width / letter, 1.0));
  if (text.size() <= most) return Escaped(text);
  return Escaped(CutUtf8(text, most - 1)) + "…";
}

class Picture {
 public:
  explicit Picture(const Calendar& calendar)
      : calendar_(calendar), left_(kMargin + kLabelWidth), right_(kWidth - kMargin) {}

  std::string Draw() {
    const double rows = std::max<double>(1, static_cast<double>(calendar_.rows.size()));
    bottom_ = kTop + rows * kRow;
    const double height = bottom_ + kLegend + (calendar_.left_out != 0 ? 20 : 0);
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
        "height=\"{1:g}\" role=\"img\" font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, "
        "sans-serif\" font-size=\"12\" fill=\"#1f2328\">\n"
        "<title>Capacity Blocks</title>\n"
        "<defs><pattern id=\"pending\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff6d6\"/>"
        "<rect width=\"2\" height=\"6\" fill=\"#d9a400\"/></pattern></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        kWidth, height);
    Text(kMargin, 28, "Capacity Blocks", "font-size=\"17\" font-weight=\"600\"");
    Text(kMargin, 46,
         fmt::format("{} to {} UTC; days begin at 11:30", ShortTime(calendar_.from),
                     ShortTime(calendar_.to)),
         "fill=\"#57606a\"");
    DrawDays();
    DrawNow();
    for (std::size_t i = 0; i < calendar_.rows.size(); ++i) {
      DrawRow(calendar_.rows[i], kTop + kRow * static_cast<double>(i));
    }
    if (!calendar_.nothing.empty()) {
      Text(left_ + 12, kTop + kRow / 2 + 4, Escaped(calendar_.nothing), "fill=\"#57606a\"");
    }
    DrawLegend();
    return svg_ + "</svg>\n";
  }

 private:
  double XOf(WallTime time) const { return left_ + PartOf(calendar_, time) * (right_ - left_); }

  // `text` is escaped already.
  void Text(double x, double y, std::string_view text, std::string_view more = "") {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y,
                        more.empty() ? "" : " ", more, text);
  }
  void Rect(double x, double y, double width, double height, std::string_view more) {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>\n",
                        x, y, width, height, more);
  }

  // A line where each day begins, weekends shaded, and as many dates as there is room for.
  void DrawDays() {
    const double day_width = (right_ - left_) * std::chrono::duration<double>(kSlotLength) /
                             std::chrono::duration<double>(calendar_.to - calendar_.from);
    const int step = day_width >= 46 ? 1 : day_width >= 23 ? 2 : day_width >= 7 ? 7 : 28;
    int number = 0;
    for (WallTime day = calendar_.from; day < calendar_.to; day += kSlotLength, ++number) {
      const std::chrono::weekday weekday(std::chrono::floor<std::chrono::days>(day));
      if (weekday == std::chrono::Saturday || weekday == std::chrono::Sunday) {
        Rect(XOf(day), kTop, day_width, bottom_ - kTop, "fill=\"#f6f8fa\"");
      }
      svg_ += fmt::format("<path d=\"M{0:.1f} {1:g}V{2:g}\" stroke=\"{3}\" stroke-width=\"1\"/>\n",
                          XOf(day), number % step == 0 ? kTop - 8 : kTop, bottom_,
                          number % step == 0 ? "#d0d7de" : "#eaeef2");
      if (number % step != 0 || XOf(day) + 30 > right_) continue;
      constexpr std::array kNames = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
      Text(XOf(day) + 3, kTop - 12,
           day_width * step >= 64
               ? fmt::format("{} {}", kNames[weekday.c_encoding()], FormatTime(day).substr(5, 5))
               : FormatTime(day).substr(5, 5),
           "font-size=\"11\" fill=\"#57606a\"");
    }
  }

  void DrawRow(const CalendarRow& row, double y) {
    svg_ += fmt::format("<path d=\"M{:g} {:g}H{:g}\" stroke=\"{}\"/>\n",
                        row.label.empty() ? left_ : kMargin, y, right_,
                        row.label.empty() ? "#eaeef2" : "#d0d7de");
    if (!row.label.empty()) {
      Text(kMargin, y + 15, CutTo(row.label, kLabelWidth - 8, kLabelLetter), "font-weight=\"600\"");
      Text(kMargin, y + 28, CutTo(row.detail, kLabelWidth - 8, kBarLetter),
           "font-size=\"10.5\" fill=\"#57606a\"");
    }
    for (const CalendarBar& bar : row.bars) DrawBar(bar, y + (kRow - kBar) / 2);
  }

  void DrawBar(const CalendarBar& bar, double y) {
    const Look& look = LookOf(bar.state);
    const double x = XOf(bar.start);
    const double width = std::max(XOf(bar.end) - x - 1, 2.0);
    svg_ += fmt::format("<g><title>{}</title>\n", Escaped(bar.detail));
    if (bar.extended_end > bar.end) {
      Rect(x + width, y, std::max(XOf(bar.extended_end) - x - width, 2.0), kBar,
           "rx=\"3\" fill=\"url(#pending)\" stroke=\"#b08800\" stroke-dasharray=\"4 3\"");
    }
    const std::string border =
        look.dash.empty()
            ? ""
            : fmt::format(" stroke=\"{}\" stroke-dasharray=\"{}\"", look.text, look.dash);
    Rect(x, y, width, kBar, fmt::format("rx=\"3\" fill=\"{}\"{}", look.fill, border));
    // The time in which the hardware is taken back.
    const double reclaimed = x + width - XOf(bar.reclaim);
    if (HoldsCapacity(bar.state) && reclaimed >= 1) {
      Rect(XOf(bar.reclaim), y, reclaimed, kBar, "rx=\"2\" fill=\"#000000\" opacity=\"0.35\"");
    }
    if (static_cast<double>(bar.text.size()) * kBarLetter + 10 <= width) {
      Text(x + 6, y + 14, Escaped(bar.text),
           fmt::format("font-size=\"11\" fill=\"{}\"", look.text));
    }
    svg_ += "</g>\n";
  }

  void DrawNow() {
    if (calendar_.now < calendar_.from || calendar_.now >= calendar_.to) return;
    const double x = XOf(calendar_.now);
    svg_ +=
        fmt::format("<path d=\"M{0:.1f} {1:g}V{2:g}\" stroke=\"#d1242f\" stroke-width=\"1.5\"/>\n",
                    x, kTop - 26, bottom_);
    Text(std::min(x + 4, right_ - 70), kTop - 26,
         fmt::format("now {} UTC", FormatTime(calendar_.now).substr(11, 5)),
         "font-size=\"11\" font-weight=\"600\" fill=\"#d1242f\"");
  }

  void DrawLegend() {
    double x = left_;
    const double y = bottom_ + 14;
    for (const Look& look : kStyles) {
      if (look.state == BlockState::kPaymentFailed) continue;  // is not shown
      const std::string border =
          look.dash.empty()
              ? ""
              : fmt::format(" stroke=\"{}\" stroke-dasharray=\"{}\"", look.text, look.dash);
      Rect(x, y, 14, 12, fmt::format("rx=\"2\" fill=\"{}\"{}", look.fill, border));
      Text(x + 20, y + 10, StateName(look.state), "font-size=\"11\"");
      x += 38 + kBarLetter * static_cast<double>(StateName(look.state).size());
    }
    Rect(x, y, 14, 12,
         "rx=\"2\" fill=\"url(#pending)\" stroke=\"#b08800\" stroke-dasharray=\"4 3\"");
    Text(x + 20, y + 10, "extension, not paid yet", "font-size=\"11\"");
    Rect(x + 170, y, 14, 12, "rx=\"2\" fill=\"#000000\" opacity=\"0.35\"");
    Text(x + 190, y + 10, "hardware is taken back", "font-size=\"11\"");
    if (calendar_.left_out == 0) return;
    Text(kMargin, bottom_ + kLegend + 6, fmt::format("and {} rows more", calendar_.left_out),
         "fill=\"#57606a\"");
  }

  const Calendar& calendar_;
  const double left_, right_;
  double bottom_ = 0;
  std::string svg_;
};

}  // namespace

std::string DrawCalendarSvg(const Calendar& calendar) { return Picture(calendar).Draw(); }

}  // namespace tahoma::controller
