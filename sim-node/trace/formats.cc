#include "sim-node/trace/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace tahoma::sim {
namespace {

using Json = nlohmann::json;
using torus::Axis;
using torus::ChipIndex;
using torus::Coord;

double Microseconds(VirtualTime time) { return Nanoseconds(time.time_since_epoch()) / 1e3; }

LinkId LinkOf(int chip, Port port) {
  return TorusLinks::IdOf(ChipIndex(chip), port.axis, port.direction);
}

std::string Cell(const Occupancy& use, const TorusLinks& links, LinkId link) {
  if (!links.Exists(link)) return "-";
  if (links.capacity(link) == 0) return "down";
  return fmt::format("{:.0f}%", 100 * use.utilisation[link]);
}

// From white over yellow to dark red.
std::string Colour(const Occupancy& use, const TorusLinks& links, LinkId link) {
  if (links.capacity(link) == 0) return "#888888";
  struct Rgb {
    double red, green, blue;
  };
  constexpr std::array<Rgb, 4> kRamp = {
      Rgb{245, 245, 245}, {254, 217, 118}, {253, 118, 50}, {150, 0, 38}};
  const double at = std::clamp(use.utilisation[link], 0.0, 1.0) * (kRamp.size() - 1);
  const auto index = std::min(static_cast<std::size_t>(at), kRamp.size() - 2);
  const double part = at - static_cast<double>(index);
  const auto mix = [&](double from, double to) { return std::lround(from + (to - from) * part); };
  const Rgb& a = kRamp[index];
  const Rgb& b = kRamp[index + 1];
  return fmt::format("#{:02x}{:02x}{:02x}", mix(a.red, b.red), mix(a.green, b.green),
                     mix(a.blue, b.blue));
}

std::string XmlEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// Geometry of the picture, in pixels.
constexpr int kPitch = 90;   // between chips
constexpr int kMargin = 70;  // around a plane
constexpr int kTop = 50;     // for the title
constexpr int kChip = 14;    // half a chip

// The links of one chip of the picture, whose middle is at (x, y).
void AppendLinks(const Occupancy& use, const TorusLinks& links, int chip, int x, int y,
                 std::string& svg) {
  for (const Port port : kAllPorts) {
    const LinkId link = LinkOf(chip, port);
    if (!links.Exists(link)) continue;
    const std::string colour = Colour(use, links, link);
    const std::string tip =
        fmt::format("<title>{}: {}</title>", TorusLinks::Name(link), Cell(use, links, link));
    const int side = port.direction == torus::Direction::kPlus ? 1 : -1;
    if (port.axis != Axis::kZ) {
      const int dx = port.axis == Axis::kX ? side : 0;
      const int dy = port.axis == Axis::kY ? side : 0;
      fmt::format_to(std::back_inserter(svg),
                     "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" "
                     "stroke-width=\"8\">{}</line>\n",
                     x + dx * kChip, y + dy * kChip, x + dx * kPitch / 2, y + dy * kPitch / 2,
                     colour, tip);
    } else {
      fmt::format_to(std::back_inserter(svg),
                     "<circle cx=\"{}\" cy=\"{}\" r=\"6\" fill=\"{}\" "
                     "stroke=\"#444444\">{}</circle>\n",
                     x + side * 22, y - 22, colour, tip);
    }
  }
}

Json NameEvent(std::string_view what, int chip, std::size_t port, std::string name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", chip},
          {"tid", port},
          {"args", {{"name", std::move(name)}}}};
}

Json SliceEvent(std::string_view category, std::size_t step, int process, std::size_t thread,
                VirtualTime begin, VirtualTime end) {
  return {{"ph", "X"},
          {"cat", category},
          {"name", fmt::format("step {}", step)},
          {"pid", process},
          {"tid", thread},
          {"ts", Microseconds(begin)},
          {"dur", Microseconds(end) - Microseconds(begin)}};
}

// A process of its own, after those of the chips: what all chips do at the same times.
void AppendWork(const std::vector<ChipWork>& work, int process, Json& events) {
  if (work.empty()) return;
  constexpr std::size_t kMemoryThread = 0;
  std::size_t slices = 0;
  for (const ChipWork& one : work) slices = std::max(slices, one.slice + 1);
  events.push_back(NameEvent("process_name", process, 0, "in every chip"));
  events.push_back(NameEvent("thread_name", process, kMemoryThread, "HBM"));
  for (std::size_t slice = 0; slice < slices; ++slice) {
    events.push_back(NameEvent("thread_name", process, 1 + slice,
                               fmt::format("CC-cores and DMA start, slice {}", slice)));
  }
  for (const ChipWork& one : work) {
    events.push_back(
        SliceEvent("start", one.step, process, 1 + one.slice, one.start_begin, one.start_end));
    if (one.memory_end > one.memory_begin) {
      events.push_back(
          SliceEvent("memory", one.step, process, kMemoryThread, one.memory_begin, one.memory_end));
    }
  }
}

}  // namespace

std::string ChromeTrace(const Occupancy& use, const TorusLinks& links, std::string_view title) {
  Json events = Json::array();
  for (int chip = 0; chip < links.torus().chip_count(); ++chip) {
    const Coord at = links.torus().CoordOf(ChipIndex(chip));
    events.push_back(
        NameEvent("process_name", chip, 0, fmt::format("chip {} ({})", chip, torus::ToString(at))));
    for (const Port port : kAllPorts) {
      if (!links.Exists(LinkOf(chip, port))) continue;
      events.push_back(NameEvent("thread_name", chip, PortIndex(port), PortName(port)));
    }
  }
  for (const LinkUse& one : use.uses) {
    const torus::Hop hop = links.HopOf(one.link);
    events.push_back(SliceEvent("link", one.step, hop.from.value(),
                                PortIndex({hop.axis, hop.direction}), one.begin, one.end));
    events.back()["args"] = {{"bytes", one.bytes}};
  }
  AppendWork(use.work, links.torus().chip_count(), events);
  const Json trace = {{"displayTimeUnit", "ns"},
                      {"otherData", {{"title", title}}},
                      {"traceEvents", std::move(events)}};
  return trace.dump() + "\n";
}

std::string HeatMapText(const Occupancy& use, const TorusLinks& links) {
  const torus::Shape& torus = links.torus();
  std::vector<bool> busy(static_cast<std::size_t>(torus.extent(Axis::kZ)));
  for (const LinkUse& one : use.uses) {
    busy[torus.CoordOf(links.HopOf(one.link).from).z] = true;
  }
  std::string text;
  const auto out = std::back_inserter(text);
  for (int chip = 0; chip < torus.chip_count(); ++chip) {
    const Coord at = torus.CoordOf(ChipIndex(chip));
    if (!busy[at.z]) continue;
    if (at.x == 0 && at.y == 0) {
      fmt::format_to(out, "{}plane z={}\n{:>6}", text.empty() ? "" : "\n", at.z, "chip");
      for (const Port port : kAllPorts) fmt::format_to(out, "{:>7}", PortName(port));
      text += '\n';
    }
    fmt::format_to(out, "{:>6}", chip);
    for (const Port port : kAllPorts) {
      fmt::format_to(out, "{:>7}", Cell(use, links, LinkOf(chip, port)));
    }
    text += '\n';
  }
  return text.empty() ? "no link is used\n" : text;
}

std::string HeatMapSvg(const Occupancy& use, const TorusLinks& links, std::string_view title) {
  const torus::Shape& torus = links.torus();
  const int plane_width = (torus.extent(Axis::kX) - 1) * kPitch + 2 * kMargin;
  const int width = plane_width * torus.extent(Axis::kZ);
  const int height = (torus.extent(Axis::kY) - 1) * kPitch + 2 * kMargin + kTop;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"16\" y=\"28\" font-size=\"16\">{2}</text>\n",
      width, height, XmlEscaped(title));
  for (int chip = 0; chip < torus.chip_count(); ++chip) {
    const Coord at = torus.CoordOf(ChipIndex(chip));
    const int x = at.z * plane_width + kMargin + at.x * kPitch;
    const int y = kTop + kMargin + at.y * kPitch;
    AppendLinks(use, links, chip, x, y, svg);
    fmt::format_to(std::back_inserter(svg),
                   "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"#dde6ee\" "
                   "stroke=\"#445566\"/>\n<text x=\"{}\" y=\"{}\" "
                   "text-anchor=\"middle\">{}</text>\n",
                   x - kChip, y - kChip, 2 * kChip, 2 * kChip, x, y + 4, chip);
  }
  return svg + "</svg>\n";
}

}  // namespace tahoma::sim
