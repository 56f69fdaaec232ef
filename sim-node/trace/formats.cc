#include "sim-node/trace/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "lib/base/json.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Coord;

double Microseconds(VirtualTime time) { return Nanoseconds(time.time_since_epoch()) / 1e3; }

// Chips and links by their numbers in the fabric.
bool Exists(const Fabric& fabric, ChipIndex chip, Port port) {
  return fabric.domain(Fabric::DomainOf(chip))
      .Exists(TorusLinks::IdOf(Fabric::LocalOf(chip), port.axis, port.direction));
}
LinkId LinkOf(const Fabric& fabric, ChipIndex chip, Port port) {
  return fabric.LinkOf(chip, port.axis, port.direction);
}

bool HasEfa(const Fabric& fabric) { return fabric.efa().id_count() > 0; }

constexpr std::array kNicDirections = {NicDirection::kOut, NicDirection::kIn};
std::string_view NicName(NicDirection direction) {
  return direction == NicDirection::kOut ? "efa out" : "efa in";
}

// A node of the network layers, by the domain with the lowest number below it.
struct NetworkNode {
  int layer = 1;
  int domain = 0;
  std::string name;  // "layer 3 node 2"
};

// Layer 3, the nearest to the domains, comes first.
std::vector<NetworkNode> NetworkNodes(const Fabric& fabric) {
  std::vector<NetworkNode> nodes;
  if (!HasEfa(fabric)) return nodes;
  std::set<LinkId> seen;
  for (int layer = static_cast<int>(kNetworkLayers); layer > 0; --layer) {
    for (int domain = 0; domain < fabric.domain_count(); ++domain) {
      const LinkId up = fabric.UplinkOf(domain, layer, NicDirection::kOut);
      if (!seen.insert(up).second) continue;
      std::string name = fabric.Name(up);
      name.resize(name.rfind(' '));  // without "up"
      nodes.push_back({.layer = layer, .domain = domain, .name = std::move(name)});
    }
  }
  return nodes;
}

std::string Cell(const Occupancy& use, const Fabric& fabric, LinkId link) {
  if (fabric.capacity(link) == 0) return "down";
  return fmt::format("{:.0f}%", 100 * use.utilisation[link]);
}

// Returns a colour from white over yellow to dark red.
std::string Colour(const Occupancy& use, const Fabric& fabric, LinkId link) {
  if (fabric.capacity(link) == 0) return "#888888";
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
constexpr int kBox = 10;     // a NIC or an uplink
constexpr int kNode = 130;   // between network nodes
constexpr int kLetter = 8;   // of the title

// A box for a link that is no line, with what it is when the mouse is on it.
void AppendBox(const Occupancy& use, const Fabric& fabric, LinkId link, std::string_view name,
               int x, int y, std::string& svg) {
  fmt::format_to(std::back_inserter(svg),
                 "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
                 "stroke=\"#444444\"><title>{}: {}</title></rect>\n",
                 x, y, kBox, kBox, Colour(use, fabric, link), name, Cell(use, fabric, link));
}

// The links of one chip of the picture, whose middle is at (x, y).
void AppendLinks(const Occupancy& use, const Fabric& fabric, ChipIndex chip, int x, int y,
                 std::string& svg) {
  for (const Port port : kAllPorts) {
    if (!Exists(fabric, chip, port)) continue;
    const LinkId link = LinkOf(fabric, chip, port);
    const std::string colour = Colour(use, fabric, link);
    const std::string tip =
        fmt::format("<title>{}: {}</title>", fabric.Name(link), Cell(use, fabric, link));
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
  if (!HasEfa(fabric)) return;
  for (const NicDirection direction : kNicDirections) {
    const LinkId nic = fabric.NicOf(chip, direction);
    AppendBox(use, fabric, nic, fabric.Name(nic),
              direction == NicDirection::kOut ? x + kChip + 3 : x - kChip - 3 - kBox, y + kChip + 3,
              svg);
  }
}

// Draws a domain's planes side by side; y is the top of the row.
void AppendDomain(const Occupancy& use, const Fabric& fabric, int domain, int top,
                  std::string& svg) {
  const torus::Shape& torus = fabric.domain(domain).torus();
  const int plane_width = (torus.extent(Axis::kX) - 1) * kPitch + 2 * kMargin;
  for (int number = 0; number < torus.chip_count(); ++number) {
    const Coord at = torus.CoordOf(ChipIndex(number));
    const int x = at.z * plane_width + kMargin + at.x * kPitch;
    const int y = top + kMargin + at.y * kPitch;
    AppendLinks(use, fabric, Fabric::ChipOf(domain, number), x, y, svg);
    fmt::format_to(std::back_inserter(svg),
                   "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"#dde6ee\" "
                   "stroke=\"#445566\"/>\n<text x=\"{}\" y=\"{}\" "
                   "text-anchor=\"middle\">{}</text>\n",
                   x - kChip, y - kChip, 2 * kChip, 2 * kChip, x, y + 4, number);
  }
}

Json NameEvent(std::string_view what, int chip, std::size_t port, std::string name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", chip},
          {"tid", port},
          {"args", {{"name", std::move(name)}}}};
}

Json TimedEvent(std::string_view category, std::size_t step, int process, std::size_t thread,
                VirtualTime begin, VirtualTime end) {
  return {{"ph", "X"},
          {"cat", category},
          {"name", fmt::format("step {}", step)},
          {"pid", process},
          {"tid", thread},
          {"ts", Microseconds(begin)},
          {"dur", Microseconds(end) - Microseconds(begin)}};
}

// A process of its own, after all others: what all chips do at the same times.
void AppendWork(const std::vector<ChipWork>& work, int process, Json& events) {
  if (work.empty()) return;
  std::size_t rows = 0;
  std::set<int> domains;
  for (const ChipWork& one : work) {
    rows = std::max(rows, one.row + 1);
    domains.insert(one.domain);
  }
  const auto memory_thread = [rows](int domain) {
    return domain == 0 ? 0 : rows + static_cast<std::size_t>(domain);
  };
  events.push_back(NameEvent("process_name", process, 0, "in every chip"));
  for (const int domain : domains) {
    events.push_back(
        NameEvent("thread_name", process, memory_thread(domain),
                  domains.size() == 1 ? "HBM" : fmt::format("HBM, domain {}", domain)));
  }
  for (std::size_t row = 0; row < rows; ++row) {
    events.push_back(NameEvent("thread_name", process, 1 + row,
                               fmt::format("CC-cores and DMA start, row {}", row)));
  }
  for (const ChipWork& one : work) {
    events.push_back(
        TimedEvent("start", one.step, process, 1 + one.row, one.start_begin, one.start_end));
    if (one.memory_end > one.memory_begin) {
      events.push_back(TimedEvent("memory", one.step, process, memory_thread(one.domain),
                                  one.memory_begin, one.memory_end));
    }
  }
}

// Process and thread of a link.
struct Track {
  int process = 0;
  std::size_t thread = 0;
};

// Names of all processes and threads; a track for each link.
std::map<LinkId, Track> AppendNames(const Fabric& fabric, Json& events) {
  std::map<LinkId, Track> tracks;
  const auto add = [&](LinkId link, Track track, std::string_view name) {
    events.push_back(NameEvent("thread_name", track.process, track.thread, std::string(name)));
    tracks.emplace(link, track);
  };
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    const torus::Shape& torus = fabric.domain(domain).torus();
    for (int number = 0; number < torus.chip_count(); ++number) {
      const ChipIndex chip = Fabric::ChipOf(domain, number);
      const std::string at = torus::ToString(torus.CoordOf(ChipIndex(number)));
      events.push_back(NameEvent(
          "process_name", chip.value(), 0,
          fmt::format("{}chip {} ({})", HasEfa(fabric) ? fmt::format("domain {} ", domain) : "",
                      number, at)));
      for (const Port port : kAllPorts) {
        if (!Exists(fabric, chip, port)) continue;
        add(LinkOf(fabric, chip, port), {chip.value(), PortIndex(port)}, PortName(port));
      }
      for (std::size_t direction = 0; HasEfa(fabric) && direction < kNicDirections.size();
           ++direction) {
        add(fabric.NicOf(chip, kNicDirections.at(direction)), {chip.value(), kPorts + direction},
            NicName(kNicDirections.at(direction)));
      }
    }
  }
  int process = fabric.domain_count() * Fabric::kChipsPerDomain;
  for (const NetworkNode& node : NetworkNodes(fabric)) {
    events.push_back(NameEvent("process_name", process, 0, "network " + node.name));
    add(fabric.UplinkOf(node.domain, node.layer, NicDirection::kOut), {process, 0}, "up");
    add(fabric.UplinkOf(node.domain, node.layer, NicDirection::kIn), {process, 1}, "down");
    ++process;
  }
  return tracks;
}

// Returns the tables of one domain's planes with a chip that is busy.
void AppendPlanes(const Occupancy& use, const Fabric& fabric, int domain,
                  const std::set<ChipIndex>& busy, std::string& text) {
  const auto out = std::back_inserter(text);
  const torus::Shape& torus = fabric.domain(domain).torus();
  std::set<int> planes;
  for (auto chip = busy.lower_bound(Fabric::ChipOf(domain, 0));
       chip != busy.end() && Fabric::DomainOf(*chip) == domain; ++chip) {
    planes.insert(torus.CoordOf(Fabric::LocalOf(*chip)).z);
  }
  for (int number = 0; number < torus.chip_count(); ++number) {
    const Coord at = torus.CoordOf(ChipIndex(number));
    if (!planes.contains(at.z)) continue;
    if (at.x == 0 && at.y == 0) {
      fmt::format_to(out, "{}{}plane z={}\n{:>6}", text.empty() ? "" : "\n",
                     HasEfa(fabric) ? fmt::format("domain {} ", domain) : "", at.z, "chip");
      for (const Port port : kAllPorts) fmt::format_to(out, "{:>7}", PortName(port));
      for (const NicDirection direction : kNicDirections) {
        if (HasEfa(fabric)) fmt::format_to(out, "{:>9}", NicName(direction));
      }
      text += '\n';
    }
    const ChipIndex chip = Fabric::ChipOf(domain, number);
    fmt::format_to(out, "{:>6}", number);
    for (const Port port : kAllPorts) {
      fmt::format_to(
          out, "{:>7}",
          Exists(fabric, chip, port) ? Cell(use, fabric, LinkOf(fabric, chip, port)) : "-");
    }
    for (const NicDirection direction : kNicDirections) {
      if (HasEfa(fabric))
        fmt::format_to(out, "{:>9}", Cell(use, fabric, fabric.NicOf(chip, direction)));
    }
    text += '\n';
  }
}

// Chips that send, and those whose NIC gets something.
std::set<ChipIndex> BusyChips(const Occupancy& use, const Fabric& fabric) {
  const auto carries = [&](LinkId link) { return use.utilisation[link] > 0; };
  std::set<ChipIndex> busy;
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    for (int number = 0; number < fabric.domain(domain).torus().chip_count(); ++number) {
      const ChipIndex chip = Fabric::ChipOf(domain, number);
      bool used = false;
      for (const Port port : kAllPorts) {
        used = used || (Exists(fabric, chip, port) && carries(LinkOf(fabric, chip, port)));
      }
      for (const NicDirection direction : kNicDirections) {
        used = used || (HasEfa(fabric) && carries(fabric.NicOf(chip, direction)));
      }
      if (used) busy.insert(chip);
    }
  }
  return busy;
}

}  // namespace

std::string ChromeTrace(const Occupancy& use, const Fabric& fabric, std::string_view title) {
  Json events = Json::array();
  const std::map<LinkId, Track> tracks = AppendNames(fabric, events);
  int last = 0;
  for (const auto& [link, track] : tracks) last = std::max(last, track.process);
  for (const LinkUse& one : use.uses) {
    const Track& track = tracks.at(one.link);
    events.push_back(TimedEvent("link", one.step, track.process, track.thread, one.begin, one.end));
    events.back()["args"] = {{"bytes", one.bytes}};
  }
  AppendWork(use.work, last + 1, events);
  const Json trace = {{"displayTimeUnit", "ns"},
                      {"otherData", {{"title", title}}},
                      {"traceEvents", std::move(events)}};
  return trace.dump() + "\n";
}

std::string HeatMapText(const Occupancy& use, const Fabric& fabric) {
  const std::set<ChipIndex> busy = BusyChips(use, fabric);
  std::string text;
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    AppendPlanes(use, fabric, domain, busy, text);
  }
  if (text.empty()) return "no link is used\n";
  const std::vector<NetworkNode> nodes = NetworkNodes(fabric);
  if (!nodes.empty()) text += fmt::format("\n{:<20}{:>7}{:>7}\n", "network", "up", "down");
  for (const NetworkNode& node : nodes) {
    text +=
        fmt::format("{:<20}{:>7}{:>7}\n", node.name,
                    Cell(use, fabric, fabric.UplinkOf(node.domain, node.layer, NicDirection::kOut)),
                    Cell(use, fabric, fabric.UplinkOf(node.domain, node.layer, NicDirection::kIn)));
  }
  return text;
}

std::string HeatMapSvg(const Occupancy& use, const Fabric& fabric, std::string_view title) {
  const std::vector<NetworkNode> nodes = NetworkNodes(fabric);
  int width = nodes.empty() ? 0 : 2 * kMargin + static_cast<int>(nodes.size()) * kNode;
  int height = kTop;
  std::string rows;
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    const torus::Shape& torus = fabric.domain(domain).torus();
    const int plane_width = (torus.extent(Axis::kX) - 1) * kPitch + 2 * kMargin;
    width = std::max(width, plane_width * torus.extent(Axis::kZ));
    if (HasEfa(fabric)) {
      rows += fmt::format("<text x=\"16\" y=\"{}\">domain {}</text>\n", height + 16, domain);
    }
    AppendDomain(use, fabric, domain, height, rows);
    height += (torus.extent(Axis::kY) - 1) * kPitch + 2 * kMargin;
  }
  int x = kMargin;
  for (const NetworkNode& node : nodes) {
    rows += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x, height + kBox, node.name);
    for (const NicDirection direction : kNicDirections) {
      const LinkId uplink = fabric.UplinkOf(node.domain, node.layer, direction);
      AppendBox(use, fabric, uplink, fabric.Name(uplink),
                direction == NicDirection::kOut ? x : x + 2 * kBox, height + 2 * kBox, rows);
    }
    x += kNode;
  }
  if (!nodes.empty()) height += kMargin;
  width = std::max(width, 2 * kMargin + kLetter * static_cast<int>(title.size()));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"16\" y=\"28\" font-size=\"16\">{2}</text>\n",
      width, height, XmlEscaped(title));
  return svg + rows + "</svg>\n";
}

}  // namespace tahoma::sim
