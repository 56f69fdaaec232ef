// Measures the emulated NeuronCore: products with data, instructions of which only the time is
// worked out, and the rates that programs reach in virtual time.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

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
constexpr int kBlockedInstructions = 131'655;  // of AWS's blocked product, on the tensor engine

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

// A program of so many instructions. Each tile has two loads, a product, a copy and a store.
std::string Tiles(int instructions) {
  std::string text = "tensor a bf16 [128, 512] in\ntensor c bf16 [128, 512] out\n";
  for (int i = 0; i < instructions / 5; ++i) {
    text += fmt::format(
        "sbuf l{0} bf16 [128, 128]\nsbuf r{0} bf16 [128, 512]\npsum p{0} fp32 [128, 512]\n"
        "sbuf o{0} bf16 [128, 512]\ndma_copy l{0} <- a[:, 0:128]\ndma_copy r{0} <- a\n"
        "nc_matmul p{0} <- l{0} r{0}\ntensor_copy o{0} <- p{0}\ndma_copy c <- o{0}\n",
        i);
  }
  return isa::Encode(Parsed(text));
}

// The time of a program whose numbers nobody looks at: what a pod sends is decoded, checked,
// assembled and timed.
CoreRun Timed(const std::string& bytes) {
  auto program = isa::Decode(bytes);
  TAHOMA_CHECK(program.ok() && isa::CheckProgram(*program).ok());
  const auto ready = isa::Assemble(*std::move(program));
  auto run = RunCore(*ready, hw::kTrainium2Core, {},
                     [](const auto&, const auto*) { return absl::OkStatus(); });
  TAHOMA_CHECK(run.ok());
  return *std::move(run);
}

void TimedInstructions(benchmark::State& state) {
  const std::string bytes = Tiles(kTiles * 5);
  for (auto unused : state) benchmark::DoNotOptimize(Timed(bytes));
  state.counters["instructions"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * kTiles * 5, benchmark::Counter::kIsRate);
}
BENCHMARK(TimedInstructions)->Name("timing_instructions_per_s")->Unit(benchmark::kMillisecond);

void TimedBlockedProduct(benchmark::State& state) {
  const std::string bytes = Tiles(kBlockedInstructions);
  for (auto unused : state) benchmark::DoNotOptimize(Timed(bytes));
}
BENCHMARK(TimedBlockedProduct)
    ->Name("timing_131655_instructions_wall_ms")
    ->Unit(benchmark::kMillisecond);

// Products one after the other of tiles that stay in SBUF, in TFLOPS of virtual time. A partition
// has `rows` rows of the sum.
void TensorRate(benchmark::State& state, const std::string& type, int rows) {
  const std::string form = rows == 1 ? type + " [128, " : fmt::format("{} [128, {}, ", type, rows);
  const std::string product = rows == 1 ? "nc_matmul p <- s m" : "nc_matmul p <- s m double_row";
  std::string text = fmt::format(
      "tensor a {0}128] in\ntensor b {0}512] in\nsbuf s {0}128]\nsbuf m {0}512]\n"
      "psum p fp32 [128, 512]\ndma_copy s <- a\ndma_copy m <- b\n{1}\n",
      form, product);
  for (int i = 1; i < kTiles; ++i) text += fmt::format("{} accumulate\n", product);
  const std::string bytes = isa::Encode(Parsed(text));
  for (auto unused : state) {
    const CoreRun run = Timed(bytes);
    state.counters["tflops"] = 2.0 * rows * 128 * 128 * 512 * kTiles / Nanoseconds(run.time) / 1e3;
  }
}
BENCHMARK_CAPTURE(TensorRate, bf16, "bf16", 1)->Name("emulated_bf16_tflops_per_core");
BENCHMARK_CAPTURE(TensorRate, fp8, "fp8_e4m3", 2)->Name("emulated_fp8_tflops_per_core");
BENCHMARK_CAPTURE(TensorRate, fp32, "fp32", 1)->Name("emulated_fp32_tflops_per_core");

// Loads of 128 rows of 4 KiB each, in GB/s of virtual time.
void DmaRate(benchmark::State& state) {
  std::string text = "tensor a bf16 [1024, 2048] in\n";
  for (int i = 0; i < 8; ++i) text += fmt::format("sbuf t{} bf16 [128, 2048]\n", i);
  for (int i = 0; i < kTiles; ++i) {
    const int row = i % 8 * 128;
    text += fmt::format("dma_copy t{} <- a[{}:{}, :]\n", i % 8, row, row + 128);
  }
  const std::string bytes = isa::Encode(Parsed(text));
  for (auto unused : state) {
    const CoreRun run = Timed(bytes);
    state.counters["gb_per_s"] = static_cast<double>(run.work[0].hbm_bytes) / Nanoseconds(run.time);
  }
}
BENCHMARK(DmaRate)->Name("emulated_dma_gb_per_s_per_core");

// Copies from HBM to HBM by both cores of a logical core, which share a stack: bytes read and
// written, in GB/s of virtual time.
void HbmRate(benchmark::State& state) {
  std::string text = "tensor a bf16 [1024, 2048] in\ntensor c bf16 [1024, 2048] out\n";
  for (int core = 0; core < 2; ++core) {
    if (core == 1) text += "core 1\n";
    for (int i = 0; i < kProducts; ++i) {
      text += core == 0 ? "dma_copy c[0:512, :] <- a[0:512, :]\n"
                        : "dma_copy c[512:1024, :] <- a[512:1024, :]\n";
    }
  }
  const std::string bytes = isa::Encode(Parsed(text));
  for (auto unused : state) {
    const CoreRun run = Timed(bytes);
    state.counters["gb_per_s"] = static_cast<double>(run.hbm_bytes) / Nanoseconds(run.time);
  }
}
BENCHMARK(HbmRate)->Name("emulated_hbm_gb_per_s_per_stack");

}  // namespace
}  // namespace tahoma::sim

BENCHMARK_MAIN();
