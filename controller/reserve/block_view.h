// The status to show of a Capacity Block: the block, the health of its hosts, or why it was not
// bought.
//
//   const BlockView view = ViewOf(block, book.hosts());
//   view.available;         // instances that are healthy and unused
//
// Scope: values. publish/render_block.h renders a status from a view.
//
// Thread safety: values; a pure function.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "controller/reserve/block.h"
#include "controller/reserve/host_table.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class Interconnect : std::uint8_t { kInsufficientData, kOk, kImpaired };
// Returns EC2's word: "insufficient-data".
std::string_view InterconnectName(Interconnect interconnect);

struct BlockView {
  std::shared_ptr<const Block> block = {};  // nullptr: no block was bought
  bool keeps_record = false;                // … and the object's status of an earlier block stays
  int available = 0;                        // instances that are healthy and unused
  int unavailable = 0;                      // instances that failed
  Interconnect interconnect = Interconnect::kInsufficientData;
  std::int64_t time_scale = 1;  // of the clock that the block lives by
  std::int64_t generation = 0;  // of the spec that was read
  std::string refusal = {};     // EC2's code for why no block was bought; empty otherwise
  std::string message = {};     // … as a sentence
  WallTime refused_at = {};     // … and when, in the book's time

  friend bool operator==(const BlockView& a, const BlockView& b);
};

BlockView ViewOf(std::shared_ptr<const Block> block, const HostTable& hosts);

}  // namespace tahoma::controller
