#include "lib/hw/core_profile.h"

#include <array>

namespace tahoma::hw {

std::string_view Name(Confidence confidence) {
  static constexpr std::array<std::string_view, 4> kNames = {"measured", "published", "fitted",
                                                             "assumed"};
  return kNames.at(static_cast<std::size_t>(confidence));
}

std::vector<NamedFigure> FiguresOf(const CoreProfile& profile) {
  return {{"tensor_clock", profile.tensor_clock},
          {"vector_clock", profile.vector_clock},
          {"scalar_clock", profile.scalar_clock},
          {"gpsimd_clock", profile.gpsimd_clock},
          {"sync_clock", profile.sync_clock},
          {"least_interval", profile.least_interval},
          {"matmul_fill", profile.matmul_fill},
          {"fp32_passes", profile.fp32_passes},
          {"elements_overhead", profile.elements_overhead},
          {"gpsimd_start", profile.gpsimd_start},
          {"semaphore", profile.semaphore},
          {"dma_issue", profile.dma_issue},
          {"dma_start", profile.dma_start},
          {"dma_packet", profile.dma_packet},
          {"dma_packet_bytes", profile.dma_packet_bytes},
          {"dma_engine_rate", profile.dma_engine_rate},
          {"dma_engines", profile.dma_engines},
          {"dma_transpose_hbm", profile.dma_transpose_hbm},
          {"dma_transpose_sbuf", profile.dma_transpose_sbuf},
          {"hbm_stack_rate", profile.hbm_stack_rate},
          {"hbm_same_die", profile.hbm_same_die},
          {"hbm_other_die", profile.hbm_other_die}};
}

}  // namespace tahoma::hw
