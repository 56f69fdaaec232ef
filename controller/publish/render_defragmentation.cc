#include "controller/publish/render_defragmentation.h"

#include <optional>
#include <utility>
#include <vector>

#include "controller/core/facts/defragmentation.h"
#include "controller/model/cordoned_chips.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

using json = Json;

json MomentOrNull(const std::optional<WallTime>& time) {
  return time ? json(FormatTime(*time)) : json(nullptr);
}

json NodeChipsJson(const std::vector<NodeChips>& chips) {
  json list = json::array();
  for (const NodeChips& one : chips) {
    list.push_back({{"node", one.node}, {"chips", CordonedChipsText(one.chips)}});
  }
  return list;
}

json MoveJson(const GangMove& move) {
  json row = {{"namespace", move.gang.ns},
              {"name", move.gang.name},
              {"run", move.run},
              {"from", move.from},
              {"to", move.to},
              {"chips", NodeChipsJson(move.chips)},
              {"lostChipSeconds", move.lost},
              {"state", ToString(move.state)}};
  if (move.start) row["startTime"] = FormatTime(*move.start);
  if (move.end) row["endTime"] = FormatTime(*move.end);
  return row;
}

}  // namespace

kube::Request RenderDefragmentationStatus(const DefragmentationStatusWrite& write) {
  const DefragmentationStatus& status = *write.status;
  json moves = json::array();
  std::int64_t moved = 0;
  for (const GangMove& move : status.moves) {
    moves.push_back(MoveJson(move));
    moved += move.state == MoveState::kMoved ? 1 : 0;
  }
  json body = {{"observedGeneration", status.observed_generation},
               {"phase", ToString(status.phase)},
               {"message", status.message},
               {"place", status.place},
               {"chips", NodeChipsJson(status.chips)},
               {"lostChipSeconds", status.lost},
               {"plannedMoves", status.moves.size()},
               {"moved", moved},
               {"moves", std::move(moves)},
               {"startTime", MomentOrNull(status.start)},
               {"endTime", MomentOrNull(status.end)},
               {"keptUntil", MomentOrNull(status.kept_until)}};
  return kube::PatchRequest(kDefragmentations, {"", write.name}, kube::PatchType::kMerge,
                            {{"metadata", {{"uid", write.uid}}}, {"status", std::move(body)}},
                            {.subresource = "status"});
}

}  // namespace tahoma::controller
