// What is shown of a Capacity Block: the block, the health of its hosts, or why it was not bought.
//
//   const BlockView view = ViewOf(block, book.hosts());
//   view.available;         // instances that are healthy and unused
//
// Scope: values. publish/render_block.h makes a status of it.
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
  std::shared_ptr<const Block> block = {};  // nullptr: it was not bought
  bool keeps_record = false;                // … and what the object says of one is left there
  int available = 0;                        // instances that are healthy and unused
  int unavailable = 0;                      // instances that failed
  Interconnect interconnect = Interconnect::kInsufficientData;
  std::int64_t time_scale = 1;  // of the clock that it lives by
  std::int64_t generation = 0;  // of the spec that was looked at
  std::string refusal = {};     // EC2's code for why it was not bought; empty when it was
  std::string message = {};     // … as a sentence
  WallTime refused_at = {};     // … and when, in the book's time

  friend bool operator==(const BlockView& a, const BlockView& b);
};

BlockView ViewOf(std::shared_ptr<const Block> block, const HostTable& hosts);

}  // namespace tahoma::controller
