#include "sim-node/emulator/collective/domains/nic_help.h"

#include <algorithm>
#include <string_view>

#include "lib/base/status.h"

namespace tahoma::sim {

using torus::ChipIndex;

absl::StatusOr<NicHelp> NicHelp::Of(NicDirection direction, const Step& sends, const DomainSet& set,
                                    const Fabric& fabric) {
  NicHelp help;
  std::map<ChipIndex, std::uint64_t> load;
  for (const Send& send : sends) {
    load[direction == NicDirection::kOut ? send.from : send.to] += send.bytes;
  }
  for (std::size_t group = 0; group < set.size(); ++group) {
    std::vector<std::pair<ChipIndex, std::uint64_t>> working;
    std::uint64_t all = 0;
    std::uint64_t most = 0;
    std::uint64_t stranded = 0;
    for (std::size_t place = 0; place < set.groups()[group].local.size(); ++place) {
      const ChipIndex chip = set.ChipOf(group, place);
      const std::uint64_t own = load[chip];
      all += own;
      most = std::max(most, own);
      if (fabric.capacity(fabric.NicOf(chip, direction)) != 0) {
        working.emplace_back(chip, own);
      } else {
        stranded += own;
        help.group_of_.emplace(chip, group);
      }
    }
    if (stranded > 0 && working.empty()) {
      const std::string_view act = direction == NicDirection::kOut ? "send" : "receive";
      return FailedPrecondition("none of the EFA NICs of the {} chips of domain {} can {}",
                                set.groups()[group].local.size(), set.groups()[group].domain, act);
    }
    help.groups_.push_back(Shared(working, stranded, most, all));
  }
  return help;
}

std::vector<HelpedPiece> NicHelp::Deal(ChipIndex chip, std::uint64_t begin,
                                       std::uint64_t end) const {
  const auto found = group_of_.find(chip);
  if (found == group_of_.end()) return {{.chip = chip, .begin = begin, .end = end}};
  const Help& help = groups_[found->second];
  std::vector<HelpedPiece> pieces;
  std::uint64_t dealt = 0;
  for (const auto& [helper, share] : help.shares) {
    const auto at = [&](std::uint64_t sum) {
      return begin + static_cast<std::uint64_t>(static_cast<Wide>(end - begin) * sum / help.sum);
    };
    const HelpedPiece piece{.chip = helper, .begin = at(dealt), .end = at(dealt + share)};
    if (piece.begin < piece.end) pieces.push_back(piece);
    dealt += share;
  }
  return pieces;
}

// Fills the working NICs up to one level, the first ones first.
NicHelp::Help NicHelp::Shared(const std::vector<std::pair<ChipIndex, std::uint64_t>>& working,
                              std::uint64_t stranded, std::uint64_t most, std::uint64_t all) {
  Help help;
  if (stranded == 0) return help;
  const std::uint64_t level = std::max(most, (all + working.size() - 1) / working.size());
  for (const auto& [chip, own] : working) {
    const std::uint64_t share = std::min(level - own, stranded - help.sum);
    if (share == 0) continue;
    help.shares.emplace_back(chip, share);
    help.sum += share;
  }
  return help;
}

}  // namespace tahoma::sim
