#include "sim-node/serve/link_counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim-node/serve/communicator_of_instance.h"

namespace tahoma::sim {
namespace {

LinkId FirstLink(const Instance& instance) {
  const int first = NodeIdOf(instance) * torus::kInstanceShape.chip_count();
  return static_cast<LinkId>(first) * static_cast<LinkId>(kPorts);
}

}  // namespace

LinkCounters::LinkCounters(rest::Metrics& metrics, const LiveInstance& live)
    : live_(live), healthy_(live.Read(LinksAround)), first_(live.Read(FirstLink)) {
  const int chips = live.Read([](const Instance& node) { return node.chip_count(); });
  for (int chip = 0; chip < chips; ++chip) {
    for (const Port port : kAllPorts) {
      const LinkId link =
          first_ + TorusLinks::IdOf(torus::ChipIndex(chip), port.axis, port.direction);
      if (!healthy_.Exists(link)) continue;
      const rest::Labels labels = {{"chip", std::to_string(chip)}, {"port", PortName(port)}};
      links_[link] = {
          .bytes = &metrics.AddCounter("tahoma_link_bytes_total", "Bytes that a link has carried.",
                                       labels),
          .busy = &metrics.AddCounter("tahoma_link_busy_seconds_total",
                                      "Virtual time with something on the way.", labels),
          .use = &metrics.AddGauge(
              "tahoma_link_utilization_ratio",
              "Bytes carried in a link's last operation, divided by those it could have carried.",
              labels),
          .rate = &metrics.AddGauge("tahoma_link_rate_ratio",
                                    "A link's rate divided by its full rate; 0 is down.", labels)};
    }
  }
  ShowStates();
}

void LinkCounters::Add(const Communicators::Traffic& traffic) {
  const double seconds = Nanoseconds(traffic.time) / 1e9;
  for (const LinkLoad& load : traffic.loads) {
    const auto found = links_.find(load.link);
    if (found == links_.end()) continue;
    const Link& link = found->second;
    const auto times = static_cast<double>(traffic.times);
    link.bytes->Increment(static_cast<double>(load.bytes) * times);
    link.busy->Increment(static_cast<double>(load.busy.count()) / 1e12 * times);
    const double could = static_cast<double>(healthy_.capacity(load.link)) * seconds;
    if (could > 0) {
      link.use->Set(static_cast<double>(load.bytes) / could);
    }
  }
}

void LinkCounters::ShowStates() {
  live_.Read([&](const Instance& node) {
    for (const auto& [id, link] : links_) {
      const LinkId own = id - first_;
      const int chip = static_cast<int>(own / kPorts);
      link.rate->Set(node.LinkPermille(chip, kAllPorts[own % kPorts]) / 1000.0);
    }
    return true;
  });
}

std::string LinkCounters::HeatMap() const {
  std::string text = fmt::format("{:>6}", "chip");
  for (const Port port : kAllPorts) text += fmt::format("{:>7}", PortName(port));
  const int chips = live_.Read([](const Instance& node) { return node.chip_count(); });
  for (int chip = 0; chip < chips; ++chip) {
    text += fmt::format("\n{:>6}", chip);
    for (const Port port : kAllPorts) {
      const auto link =
          links_.find(first_ + TorusLinks::IdOf(torus::ChipIndex(chip), port.axis, port.direction));
      std::string cell = "-";
      if (link != links_.end()) {
        const bool down = link->second.rate->Value() == 0;
        cell = down ? "down" : fmt::format("{:.0f}%", 100 * link->second.use->Value());
      }
      text += fmt::format("{:>7}", cell);
    }
  }
  return text + "\n";
}

void InstallLinkRoutes(rest::Server& server, const LinkCounters& counters) {
  server.Route("GET", "/v1/links", [&counters](const rest::Request&) {
    return rest::Response::Text(200, counters.HeatMap());
  });
}

}  // namespace tahoma::sim
