// The addresses of buffers that have none.
//
// In HBM all buffers lie one after the other. In SBUF and PSUM a buffer lives from the first
// instruction that names it to the last, and gets the place that has been free longest among those
// that have room; if that leaves a later buffer without room, all buffers get the lowest place.
//
// Thread safety: pure function.

#pragma once

#include <absl/status/status.h>

#include <cstdint>

#include "lib/isa/program.h"

namespace tahoma::isa {

// Bytes; addresses of HBM and SBUF are multiples, unless the program gives them.
inline constexpr std::int64_t kPlaceAlignment = 64;

// The program is checked. kResourceExhausted when the buffers do not fit.
absl::Status PlaceBuffers(Program& program);

}  // namespace tahoma::isa
