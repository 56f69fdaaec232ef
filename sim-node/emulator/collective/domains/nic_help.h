// Which chips of a topology domain send, or receive, for those whose NICs are down, and how much.
//
//   TAHOMA_ASSIGN_OR_RETURN(const NicHelp out,
//                           NicHelp::Of(NicDirection::kOut, sends, set, fabric));
//   for (const HelpedPiece& piece : out.Deal(chip, 0, bytes)) …   // piece.chip carries it
//
// Messages are dealt out such that the NICs that work share the bytes of the domain evenly; but a
// next one is asked for help only when one has as much as the fullest chip had, so that a NIC that
// is down makes nothing faster.
//
// Thread safety: immutable after construction.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

// A range of a message's bytes, and the chip whose NIC carries it.
struct HelpedPiece {
  torus::ChipIndex chip;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class NicHelp {
 public:
  // The sends are between domains of the set. kFailedPrecondition when no chip of a domain has a
  // NIC that is up for what it must send, or receive.
  static absl::StatusOr<NicHelp> Of(NicDirection direction, const Step& sends, const DomainSet& set,
                                    const Fabric& fabric);

  bool IsNeededBy(torus::ChipIndex chip) const { return group_of_.contains(chip); }
  // The bytes of a message that the chip sends or gets, dealt out.
  std::vector<HelpedPiece> Deal(torus::ChipIndex chip, std::uint64_t begin,
                                std::uint64_t end) const;

 private:
  // The chips that relay for the chips of a domain that cannot send, or receive, themselves.
  struct Help {
    std::vector<std::pair<torus::ChipIndex, std::uint64_t>> shares;
    std::uint64_t sum = 0;
  };

  static Help Shared(const std::vector<std::pair<torus::ChipIndex, std::uint64_t>>& working,
                     std::uint64_t stranded, std::uint64_t most, std::uint64_t all);

  std::map<torus::ChipIndex, std::size_t> group_of_;  // of chips that need help
  std::vector<Help> groups_;
};

}  // namespace tahoma::sim
