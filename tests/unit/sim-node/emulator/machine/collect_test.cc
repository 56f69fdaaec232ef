// Collectives on the tensors of their ranks, against sums and copies by hand.

#include "sim-node/emulator/machine/collect.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/isa/assemble.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"

namespace tahoma::sim {
namespace {

class VectorPort final : public HbmPort {
 public:
  explicit VectorPort(std::size_t bytes) : bytes_(bytes) {}
  absl::Status Read(std::uint64_t address, std::span<std::byte> to) override {
    TAHOMA_CHECK(address + to.size() <= bytes_.size());
    std::memcpy(to.data(), bytes_.data() + address, to.size());
    return absl::OkStatus();
  }
  absl::Status Write(std::uint64_t address, std::span<const std::byte> from) override {
    TAHOMA_CHECK(address + from.size() <= bytes_.size());
    std::memcpy(bytes_.data() + address, from.data(), from.size());
    return absl::OkStatus();
  }
  float At(std::size_t element) const {
    float value = 0;
    std::memcpy(&value, bytes_.data() + element * sizeof value, sizeof value);
    return value;
  }
  void Set(std::size_t element, float value) {
    std::memcpy(bytes_.data() + element * sizeof value, &value, sizeof value);
  }

 private:
  std::vector<std::byte> bytes_;
};

// Ranks with fp32 tensors a and b, a at element 0, b behind it.
class CollectTest : public ::testing::Test {
 protected:
  // Fills a of each of four ranks with random numbers and carries the collective out.
  void CollectFor(std::size_t sent, std::size_t received, const std::string& line) {
    const bool in_place = line.find("a <- a") != std::string::npos;
    auto program = isa::ParseText(
        fmt::format("tensor a fp32 [{}] {}\ntensor b fp32 [{}] {}\n{}\n", sent,
                    in_place ? "inout" : "in", received, in_place ? "" : "out", line),
        "test");
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_TRUE(isa::CheckProgram(*program).ok()) << isa::CheckProgram(*program);
    const auto ready = isa::Assemble(*std::move(program));
    ASSERT_TRUE(ready.ok()) << ready.status();
    b_ = static_cast<std::size_t>(*ready->program.buffers[1].address) / sizeof(float);
    std::vector<HbmPort*> group;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      ports_.push_back(std::make_unique<VectorPort>((b_ + received) * sizeof(float)));
      group.push_back(ports_.back().get());
      a_.emplace_back();
      for (std::size_t i = 0; i < sent; ++i) {
        a_.back().push_back(static_cast<float>(rng_.Below(1000)) / 7);
        ports_.back()->Set(i, a_.back().back());
      }
    }
    ASSERT_TRUE(Collect(ready->program, ready->program.instructions[0], group).ok());
  }
  float B(std::size_t rank, std::size_t element) const { return ports_[rank]->At(b_ + element); }
  // In fp32, in the order of ranks.
  float Sum(std::size_t element) const {
    float sum = a_[0][element];
    for (std::size_t rank = 1; rank < kRanks; ++rank) sum += a_[rank][element];
    return sum;
  }

  static constexpr std::size_t kRanks = 4;
  Rng rng_{0xc011ec7};
  std::size_t b_ = 0;
  std::vector<std::vector<float>> a_;
  std::vector<std::unique_ptr<VectorPort>> ports_;
};

constexpr std::size_t kMany = (std::size_t{1} << 18U) + 96;  // more than a piece

TEST_F(CollectTest, AnAllReduceGivesEachTheSumsInTheOrderOfRanks) {
  CollectFor(kMany, kMany, "all_reduce b <- a");
  for (std::size_t i = 0; i < kMany; ++i) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) ASSERT_EQ(B(rank, i), Sum(i));
  }
}

TEST_F(CollectTest, AnAllReduceMayTakeTheLargest) {
  CollectFor(8, 8, "all_reduce b <- a op=maximum");
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(B(1, i), std::max({a_[0][i], a_[1][i], a_[2][i], a_[3][i]}));
  }
}

TEST_F(CollectTest, AnAllReduceMayBeInPlace) {
  CollectFor(kMany, 4, "all_reduce a <- a");
  for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(ports_[3]->At(i), Sum(i));
}

TEST_F(CollectTest, AnAllGatherPutsTheRanksOneBehindTheOther) {
  CollectFor(kMany, kRanks * kMany, "all_gather b <- a");
  for (std::size_t from = 0; from < kRanks; ++from) {
    for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(B(2, from * kMany + i), a_[from][i]);
  }
}

TEST_F(CollectTest, AReduceScatterGivesEachItsPartOfTheSums) {
  CollectFor(4 * 96, 96, "reduce_scatter b <- a");
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t i = 0; i < 96; ++i) EXPECT_EQ(B(rank, i), Sum(rank * 96 + i));
  }
}

TEST_F(CollectTest, AnAllToAllTransposesTheBlocks) {
  CollectFor(4 * 24, 4 * 24, "all_to_all b <- a");
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t from = 0; from < kRanks; ++from) {
      for (std::size_t i = 0; i < 24; ++i)
        EXPECT_EQ(B(rank, from * 24 + i), a_[from][rank * 24 + i]);
    }
  }
}

}  // namespace
}  // namespace tahoma::sim
