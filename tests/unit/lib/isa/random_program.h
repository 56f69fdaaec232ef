// Small random programs that CheckProgram lets pass, of every instruction, memory and kind of view.

#pragma once

#include "lib/base/rng.h"
#include "lib/isa/program.h"

namespace tahoma::isa {

struct RandomOptions {
  int buffers = 8;
  int instructions = 20;
  // Some buffers have an address, at which others may lie, too.
  bool addresses = true;
  bool two_cores = false;
};

Program RandomProgram(Rng& rng, const RandomOptions& options);

}  // namespace tahoma::isa
