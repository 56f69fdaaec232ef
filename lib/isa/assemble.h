// Gives a checked program what the hardware needs and a kernel does not name: addresses, and who
// waits for whom.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Assembled ready, Assemble(program));
//   ready.waits[5];           // {2, 4}: instruction 5 starts when 2 and 4 have ended
//   ready.program.Of(id).address;   // set for each buffer
//
// Each engine takes its instructions in the order of the program: an instruction begins when the
// instruction before has ended (a DMA or a collective: has begun) and when all instructions to wait
// for have ended. So an engine with a DMA that waits takes no later instruction meanwhile. An
// instruction waits for an earlier one when their regions overlap and one of both writes: read
// after write, write after read, write after write. DMA and collectives are asynchronous to the
// engine that triggers them: later instructions of the same engine wait for them as those of other
// engines do. A wait that follows from the engines' order and from other waits is left out.
//
// Regions may be taken for larger than they are. In SBUF and PSUM a view is its partitions, and in
// each the bytes from the lowest to the highest element; in HBM the same with rows of the buffer's
// last dimension in the place of partitions.
//
// A buffer without an address lives from the first instruction that names it to the last, and gets
// the place that has been free longest, so that an instruction rarely waits for the buffer's
// predecessor. Nothing is moved or optimised: the order stays the program's.
//
// Two cores wait for each other in meetings alone (IsMeeting in instruction.h).
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
// memory, the instruction's line and the buffers that live there; or when views cut the buffers to
// pieces, and comparing all pieces would take many seconds.
absl::StatusOr<Assembled> Assemble(Program program);

}  // namespace tahoma::isa
