// How long the parts of a NeuronCore take: every figure of the emulator's timing, with its unit,
// its source and how far the figure can be trusted.
//
//   const CoreProfile& profile = kTrainium2Core;
//   profile.matmul_fill.value;            // 400
//   for (const NamedFigure& one : FiguresOf(profile)) …      // the table of docs/tasks/kernels.md
//
// Sources: those of catalogue.h, and Q = a time that AWS measured on a Trainium2 (aws-neuron-sdk
// nki/guides/tutorials/kernel-optimization.rst), O = aws-neuron-sdk nki/api/nki/isa/__init__.py as
// of November 2025, the last that printed a cost for each instruction.
//
// Scope: figures. How a time follows from them is in sim-node/emulator/core/cost.h.
//
// Thread safety: immutable.

#pragma once

#include <string_view>
#include <vector>

namespace tahoma::hw {

enum class Confidence { kMeasured, kPublished, kFitted, kAssumed };
std::string_view Name(Confidence confidence);  // "measured", …

struct Figure {
  double value;
  std::string_view unit;
  std::string_view source;
  Confidence confidence;
};

struct CoreProfile {
  std::string_view name;
  Figure tensor_clock, vector_clock, scalar_clock, gpsimd_clock, sync_clock;
  Figure least_interval;     // from an instruction of an engine to its next
  Figure matmul_fill;        // from the last row in to the last result in PSUM
  Figure fp32_passes;        // of an fp32 matmul
  Figure elements_overhead;  // of an instruction that works element by element
  Figure gpsimd_start;       // of an instruction on GpSimd
  Figure semaphore;          // from an engine's result to the engine that waits for it
  Figure dma_issue;          // of a descriptor queue, an instruction
  Figure dma_start;          // from the trigger to the first byte
  Figure dma_packet;         // beside the packet's bytes
  Figure dma_packet_bytes;
  Figure dma_engine_rate;
  Figure dma_engines;                            // of a core
  Figure dma_transpose_hbm, dma_transpose_sbuf;  // by where the source is
  Figure hbm_stack_rate;
  Figure hbm_same_die, hbm_other_die;  // another core's stack
};

struct NamedFigure {
  std::string_view name;  // as in CoreProfile
  Figure figure;
};
std::vector<NamedFigure> FiguresOf(const CoreProfile& profile);

inline constexpr CoreProfile kTrainium2Core = {
    .name = "trainium2-1",
    .tensor_clock = {2.4, "GHz", "D trainium2_arch.rst", Confidence::kPublished},
    .vector_clock = {0.96, "GHz", "D trainium2_arch.rst", Confidence::kPublished},
    .scalar_clock = {1.2, "GHz", "D trainium2_arch.rst", Confidence::kPublished},
    .gpsimd_clock = {1.2, "GHz", "D trainium2_arch.rst", Confidence::kPublished},
    .sync_clock = {1.2, "GHz", "the clock of time stamps, D profile-schema-reference.rst",
                   Confidence::kAssumed},
    .least_interval = {64, "cycles", "O", Confidence::kPublished},
    .matmul_fill = {400, "cycles of the tensor engine", "Q: bars 165 to 230 ns longer",
                    Confidence::kFitted},
    .fp32_passes = {4, "passes", "O; Q: two instructions of 1,031 cycles for N = 512",
                    Confidence::kMeasured},
    .elements_overhead = {19, "cycles", "Q: 531 cycles for 512 elements on the vector engine",
                          Confidence::kMeasured},
    .gpsimd_start = {150, "cycles", "O", Confidence::kPublished},
    .semaphore = {40, "cycles of the engine that waits", "D trainium_inferentia2_arch.rst",
                  Confidence::kAssumed},
    .dma_issue = {600, "ns", "D nki-dge.rst; Q: 66,048 instructions in 39.9 ms",
                  Confidence::kMeasured},
    .dma_start = {1300, "ns", "D nki-dma-bandwidth-guide.rst", Confidence::kPublished},
    .dma_packet = {16, "ns", "Q: packet time of 16 engines", Confidence::kFitted},
    .dma_packet_bytes = {4096, "bytes", "D compute-comm-overlap.rst", Confidence::kPublished},
    .dma_engine_rate = {27.2, "GB/s", "D nki-dma-overview.rst", Confidence::kPublished},
    .dma_engines = {16, "engines", "D trainium2_arch.rst", Confidence::kPublished},
    .dma_transpose_hbm = {0.9, "of a copy's rate", "D trainium2_arch.rst", Confidence::kPublished},
    .dma_transpose_sbuf = {0.5, "of a copy's rate", "D trainium2_arch.rst", Confidence::kPublished},
    .hbm_stack_rate = {716, "GB/s", "1,024 bits at 5.6 Gb/s; Q: memory utilisation",
                       Confidence::kMeasured},
    .hbm_same_die = {0.9, "of a copy's rate", "none", Confidence::kAssumed},
    .hbm_other_die = {0.75, "of a copy's rate", "none", Confidence::kAssumed},
};

}  // namespace tahoma::hw
