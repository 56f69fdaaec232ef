#include "controller/reserve/block_view.h"

#include <tuple>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::controller {

std::string_view InterconnectName(Interconnect interconnect) {
  switch (interconnect) {
    case Interconnect::kInsufficientData:
      return "insufficient-data";
    case Interconnect::kOk:
      return "ok";
    case Interconnect::kImpaired:
      return "impaired";
  }
  TAHOMA_CHECK(false);
  return "";
}

bool operator==(const BlockView& a, const BlockView& b) {
  const auto rest = [](const BlockView& view) {
    return std::tie(view.keeps_record, view.available, view.unavailable, view.interconnect,
                    view.time_scale, view.generation, view.refusal, view.message, view.refused_at);
  };
  if (rest(a) != rest(b)) return false;
  if (a.block == b.block) return true;
  return a.block != nullptr && b.block != nullptr && *a.block == *b.block;
}

BlockView ViewOf(std::shared_ptr<const Block> block, const HostTable& hosts) {
  BlockView view{.block = std::move(block)};
  if (!IsDelivered(view.block->state)) return view;
  view.interconnect = Interconnect::kOk;
  for (const std::string& name : view.block->hosts) {
    const HostState* host = hosts.Find(name);
    const int instances = view.block->product().instances;
    if (host == nullptr || !host->healthy) view.unavailable += instances;
    if (host != nullptr && host->healthy && !host->held) view.available += instances;
    if (host == nullptr || !host->links_ok) view.interconnect = Interconnect::kImpaired;
  }
  return view;
}

}  // namespace tahoma::controller
