// Measures the emulated NeuronCore: products with data, and instructions of which only the time is
// worked out.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "lib/base/check.h"
#include "lib/isa/assemble.h"
#include "lib/isa/binary.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"
#include "sim-node/emulator/core/core_memory.h"
#include "sim-node/emulator/core/engines.h"
#include "sim-node/emulator/core/execute.h"

namespace tahoma::sim {
namespace {

constexpr int kProducts = 100;
constexpr int kTiles = 20'000;

isa::Program Parsed(const std::string& text) {
  auto program = isa::ParseText(text, "bench");
  TAHOMA_CHECK(program.ok());
  return *std::move(program);
}

class NoHbm final : public HbmPort {
 public:
  absl::Status Read(std::uint64_t, std::span<std::byte> to) override {
    std::ranges::fill(to, std::byte{1});
    return absl::OkStatus();
  }
  absl::Status Write(std::uint64_t, std::span<const std::byte>) override {
    return absl::OkStatus();
  }
};

// Products of 128 x 128 x 512 in bf16, added up.
void Matmuls(benchmark::State& state) {
  std::string text =
      "tensor a bf16 [128, 128] in\ntensor b bf16 [128, 512] in\nsbuf at bf16 [128, 128]\n"
      "sbuf bt bf16 [128, 512]\npsum p fp32 [128, 512]\ndma_copy at <- a\ndma_copy bt <- b\n"
      "nc_matmul p <- at bt\n";
  for (int i = 1; i < kProducts; ++i) text += "nc_matmul p <- at bt accumulate\n";
  const auto ready = isa::Assemble(Parsed(text));
  NoHbm hbm;
  for (auto unused : state) {
    CoreMemory memory;
    auto run = RunCore(*ready, hw::kTrainium2Core, {}, [&](const auto& one, const auto* other) {
      return Execute(ready->program, one, other, {&memory, 1}, hbm);
    });
    TAHOMA_CHECK(run.ok());
    benchmark::DoNotOptimize(run);
  }
  state.counters["matmuls"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * kProducts, benchmark::Counter::kIsRate);
}
BENCHMARK(Matmuls)->Name("core_matmuls_per_s")->Unit(benchmark::kMillisecond);

// Each tile has two loads, a product, a copy and a store: what a pod sends is decoded, checked,
// assembled and timed.
void TimedInstructions(benchmark::State& state) {
  std::string text = "tensor a bf16 [128, 512] in\ntensor c bf16 [128, 512] out\n";
  for (int i = 0; i < kTiles; ++i) {
    const std::string n = std::to_string(i);
    text += "sbuf l" + n + " bf16 [128, 128]\nsbuf r" + n + " bf16 [128, 512]\npsum p" + n +
            " fp32 [128, 512]\nsbuf o" + n + " bf16 [128, 512]\ndma_copy l" + n +
            " <- a[:, 0:128]\ndma_copy r" + n + " <- a\nnc_matmul p" + n + " <- l" + n + " r" + n +
            "\ntensor_copy o" + n + " <- p" + n + "\ndma_copy c <- o" + n + "\n";
  }
  const std::string bytes = isa::Encode(Parsed(text));
  for (auto unused : state) {
    auto program = isa::Decode(bytes);
    TAHOMA_CHECK(program.ok() && isa::CheckProgram(*program).ok());
    const auto ready = isa::Assemble(*std::move(program));
    auto run = RunCore(*ready, hw::kTrainium2Core, {},
                       [](const auto&, const auto*) { return absl::OkStatus(); });
    TAHOMA_CHECK(run.ok());
    benchmark::DoNotOptimize(run);
  }
  state.counters["instructions"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * kTiles * 5, benchmark::Counter::kIsRate);
}
BENCHMARK(TimedInstructions)->Name("core_timed_instructions_per_s")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::sim

BENCHMARK_MAIN();
