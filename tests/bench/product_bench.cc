// Prints how fast an emulated core computes a product of 1,024 x 1,024 x 1,024 in bf16, numbers
// included, over oneDNN's product of the same numbers in fp32: the ratio of their processor times.
//
//   OMP_NUM_THREADS=1 build/release/bench/product_bench
//
// Both results must be equal: the numbers are small integers, so no sum is rounded.

#include <dnnl.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/isa/assemble.h"
#include "lib/isa/text.h"
#include "sim-node/emulator/core/core_memory.h"
#include "sim-node/emulator/core/engines.h"
#include "sim-node/emulator/core/execute.h"

namespace tahoma::sim {
namespace {

constexpr int kSide = 1024;
constexpr int kRuns = 5;
constexpr std::size_t kElements = std::size_t{kSide} * kSide;

class Hbm final : public HbmPort {
 public:
  explicit Hbm(std::size_t bytes) : bytes_(bytes) {}
  absl::Status Read(std::uint64_t address, std::span<std::byte> to) override {
    std::memcpy(to.data(), &bytes_.at(address), to.size());
    return absl::OkStatus();
  }
  absl::Status Write(std::uint64_t address, std::span<const std::byte> from) override {
    std::memcpy(&bytes_.at(address), from.data(), from.size());
    return absl::OkStatus();
  }

 private:
  std::vector<std::byte> bytes_;
};

// c = a^T b, whose tiles are all in SBUF before the first product.
std::string Text() {
  std::string text = fmt::format(
      "tensor a bf16 [{0}, {0}] in @ 0\ntensor b bf16 [{0}, {0}] in @ {1}\n"
      "tensor c fp32 [{0}, {0}] out @ {2}\npsum p fp32 [128, 512]\nsbuf s fp32 [128, 512]\n",
      kSide, 2 * kElements, 4 * kElements);
  for (int z = 0; z < kSide / 128; ++z) {
    text += fmt::format(
        "sbuf a{0} bf16 [128, {1}]\nsbuf b{0} bf16 [128, {1}]\ndma_copy a{0} <- a[{2}:{3}, :]\n"
        "dma_copy b{0} <- b[{2}:{3}, :]\n",
        z, kSide, z * 128, z * 128 + 128);
  }
  for (int y = 0; y < kSide; y += 128) {
    for (int x = 0; x < kSide; x += 512) {
      for (int z = 0; z < kSide / 128; ++z) {
        text += fmt::format("nc_matmul p <- a{0}[:, {1}:{2}] b{0}[:, {3}:{4}]{5}\n", z, y, y + 128,
                            x, x + 512, z == 0 ? "" : " accumulate");
      }
      text += fmt::format("tensor_copy s <- p\ndma_copy c[{}:{}, {}:{}] <- s\n", y, y + 128, x,
                          x + 512);
    }
  }
  return text;
}

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Writes a matrix of small integers as bf16 and returns the matrix.
std::vector<float> Fill(Rng& rng, Hbm& hbm, std::uint64_t address) {
  std::vector<float> matrix(kElements);
  std::vector<std::uint16_t> short_form(kElements);
  for (std::size_t at = 0; at < kElements; ++at) {
    matrix[at] = static_cast<float>(rng.Next() % 9) - 4;
    short_form[at] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(matrix[at]) >> 16U);
  }
  TAHOMA_CHECK(hbm.Write(address, std::as_bytes(std::span(short_form))).ok());
  return matrix;
}

double Ratio() {
  const auto program = isa::ParseText(Text(), "product");
  TAHOMA_CHECK(program.ok());
  const auto ready = isa::Assemble(*program);
  TAHOMA_CHECK(ready.ok());
  Rng rng(1);
  Hbm hbm(8 * kElements);
  const std::vector<float> a = Fill(rng, hbm, 0);
  const std::vector<float> b = Fill(rng, hbm, 2 * kElements);
  std::vector<float> expected(kElements);
  std::vector<float> found(kElements);
  double ours = std::numeric_limits<double>::infinity();
  double theirs = ours;
  for (int run = 0; run < kRuns; ++run) {
    double begin = ProcessorSeconds();
    CoreMemory memory;
    const auto done =
        RunCore(*ready, hw::kTrainium2Core, {}, [&](const auto& one, const auto* other) {
          return Execute(ready->program, one, other, {&memory, 1}, hbm);
        });
    TAHOMA_CHECK(done.ok());
    ours = std::min(ours, ProcessorSeconds() - begin);
    begin = ProcessorSeconds();
    TAHOMA_CHECK(dnnl_sgemm('T', 'N', kSide, kSide, kSide, 1, a.data(), kSide, b.data(), kSide, 0,
                            expected.data(), kSide) == dnnl_success);
    theirs = std::min(theirs, ProcessorSeconds() - begin);
  }
  TAHOMA_CHECK(hbm.Read(4 * kElements, std::as_writable_bytes(std::span(found))).ok());
  TAHOMA_CHECK(found == expected);
  return theirs / ours;
}

}  // namespace
}  // namespace tahoma::sim

int main() { fmt::print("{}\n", tahoma::sim::Ratio()); }
