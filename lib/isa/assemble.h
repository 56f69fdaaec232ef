// Gives a checked program what the hardware needs and a kernel does not name: addresses, and who
// waits for whom.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Assembled ready, Assemble(program));
//   ready.waits[5];           // {2, 4}: instruction 5 starts when 2 and 4 have ended
//   ready.program.Of(id).address;   // set for each buffer
//
// Each engine takes its instructions in the order of the program. An instruction waits for an
// earlier one of another engine when their regions overlap and one of both writes: read after write,
// write after read, write after write. DMA is asynchronous to the engine that triggers it, so the
// same holds between a DMA and later instructions of its engine. A wait that follows from others
// is left out.
//
// A buffer without an address lives from the first instruction that names it to the last, and gets
// the place that has been free longest, so that an instruction rarely waits for the buffer's
// predecessor. Nothing is moved or optimised: the order stays the program's.
//
// Thread safety: pure function.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "lib/isa/program.h"

namespace tahoma::isa {

struct Assembled {
  Program program;                                // each buffer has an address
  std::vector<std::vector<std::uint32_t>> waits;  // of each instruction: earlier ones, ascending
  std::int64_t hbm_bytes = 0;                     // of all buffers in HBM
};

// `program` must be checked. kResourceExhausted when its buffers do not fit: the message names the
// memory, the instruction's line and the buffers that live there.
absl::StatusOr<Assembled> Assemble(Program program);

}  // namespace tahoma::isa
