#include "sim-node/trace/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "lib/base/json.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

using LinksByKind = std::map<std::string, std::vector<LinkId>>;

bool HasEfa(const Fabric& fabric) { return fabric.efa().id_count() > 0; }

void AddChip(const Fabric& fabric, ChipIndex chip, LinksByKind& kinds) {
  for (const Port port : kAllPorts) {
    const LinkId link = fabric.LinkOf(chip, port.axis, port.direction);
    if (!fabric.Exists(link)) continue;
    kinds[std::string(1, PortName(port).front())].push_back(link);  // "x" of "x+"
  }
  if (!HasEfa(fabric)) return;
  kinds["efaOut"].push_back(fabric.NicOf(chip, NicDirection::kOut));
  kinds["efaIn"].push_back(fabric.NicOf(chip, NicDirection::kIn));
}

LinksByKind KindsOf(const Fabric& fabric) {
  LinksByKind kinds;
  std::set<LinkId> uplinks;  // nodes of the layers are above several domains
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    const int chips = fabric.domain(domain).torus().chip_count();
    for (int chip = 0; chip < chips; ++chip) AddChip(fabric, Fabric::ChipOf(domain, chip), kinds);
    for (int layer = 1; HasEfa(fabric) && layer <= static_cast<int>(kNetworkLayers); ++layer) {
      for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
        const LinkId link = fabric.UplinkOf(domain, layer, direction);
        if (uplinks.insert(link).second) kinds[fmt::format("layer{}", layer)].push_back(link);
      }
    }
  }
  return kinds;
}

Json KindJson(const Traced& traced, const std::vector<LinkId>& links) {
  std::vector<LinkId> up;
  for (const LinkId link : links) {
    if (traced.fabric.capacity(link) > 0) up.push_back(link);
  }
  Json kind = {{"count", links.size()}, {"down", links.size() - up.size()}};
  if (up.empty()) return kind;
  const auto use = [&](LinkId link) { return traced.use.utilisation[link]; };
  const auto [least, most] = std::ranges::minmax_element(up, {}, use);
  double sum = 0;
  for (const LinkId link : up) sum += use(link);
  kind["leastUtilisation"] = use(*least);
  kind["meanUtilisation"] = sum / static_cast<double>(up.size());
  kind["mostUtilisation"] = use(*most);
  if (use(*most) > 0) kind["fullest"] = traced.fabric.Name(*most);
  return kind;
}

}  // namespace

std::string JsonSummary(const Traced& traced) {
  const TraceAnswer& answer = traced.answer;
  Json summary = {{"operation", Name(answer.request.operation)},
                  {"bytes", answer.request.bytes},
                  {"type", Name(answer.request.type)},
                  {"domains", traced.fabric.domain_count()},
                  {"box", answer.box},
                  {"algorithm", Name(answer.algorithm)},
                  {"level", Name(answer.level)},
                  {"steps", answer.steps},
                  {"timeUs", Nanoseconds(answer.time) / 1e3}};
  summary["startUpUs"] = Nanoseconds(answer.start_up) / 1e3;
  summary["algbwGiBps"] = answer.AlgorithmBandwidth();
  summary["busbwGiBps"] = answer.BusBandwidth();
  if (answer.bound) summary["boundUs"] = Nanoseconds(*answer.bound) / 1e3;
  if (const auto over = OverBound(answer)) summary["overBound"] = *over;
  Json links = Json::object();
  for (const auto& [kind, of_kind] : KindsOf(traced.fabric)) {
    links[kind] = KindJson(traced, of_kind);
  }
  summary["links"] = std::move(links);
  return summary.dump(2) + "\n";
}

}  // namespace tahoma::sim
