#include "sim-node/participants/test_pattern.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::uint64_t kIndexStream = 1;
constexpr std::uint64_t kRankStream = 2;

// Integers up to 256 are exact with 8 significant bits. Only e3m4 ends before, at 15.5.
int ExactIntegers(ElementType type) {
  return std::min(1 << SignificantBits(type), type == ElementType::kFp8E3m4 ? 15 : INT_MAX);
}

}  // namespace

TestPattern::TestPattern(const Request& request, ReduceOp op, int ranks, std::uint64_t seed,
                         std::vector<int> sources)
    : request_(request),
      op_(op),
      ranks_(ranks),
      seed_(seed),
      elements_(request.bytes / Size(request.type)),
      sources_(std::move(sources)) {
  TAHOMA_CHECK(ranks > 0);
  const bool sums = op == ReduceOp::kSum && Combines(request.operation);
  switch (request.type) {
    case ElementType::kUint8:
      span_ = 126;
      break;
    case ElementType::kInt8:
      low_ = -100;
      span_ = 101;
      break;
    case ElementType::kFp8E3m4:
    case ElementType::kFp8E4m3:
    case ElementType::kFp8E5m2:
    case ElementType::kFp16:
    case ElementType::kBf16:
    case ElementType::kFp32r: {
      // Sums of half as many elements of at most 2 are exact.
      const int exact = ExactIntegers(request.type);
      if (sums) {
        span_ = 2;
        every_ = (ranks + exact / 2 - 1) / (exact / 2);
      } else {
        low_ = -exact / 2;
        span_ = static_cast<std::uint64_t>(exact / 2) + 1;
      }
      break;
    }
    case ElementType::kUint16:
    case ElementType::kUint32:
      span_ = 501;
      break;
    case ElementType::kInt16:
    case ElementType::kInt32:
    case ElementType::kFp32:
      low_ = -1000;
      span_ = 1001;
      break;
  }
  DrawRanks();
}

void TestPattern::DrawRanks() {
  rank_sum_ = rank_max_ = rank_min_ = contributors_ = 0;
  for (int rank = 0; rank < ranks_; rank += every_) {
    const auto drawn =
        static_cast<std::int64_t>(Draw(kRankStream, static_cast<std::uint64_t>(rank)));
    rank_sum_ += drawn;
    rank_max_ = rank == 0 ? drawn : std::max(rank_max_, drawn);
    rank_min_ = rank == 0 ? drawn : std::min(rank_min_, drawn);
    ++contributors_;
  }
}

TestPattern TestPattern::Ones(const Request& request, ReduceOp op, int ranks,
                              std::vector<int> sources) {
  TAHOMA_CHECK(OnesFit(request, op, ranks).ok());
  TestPattern pattern(request, op, ranks, /*seed=*/0, std::move(sources));
  pattern.low_ = 1;
  pattern.span_ = 1;  // both draws are 0
  pattern.every_ = 1;
  pattern.DrawRanks();
  return pattern;
}

absl::Status TestPattern::OnesFit(const Request& request, ReduceOp op, int ranks) {
  const int bits = SignificantBits(request.type);
  if (op != ReduceOp::kSum || !Combines(request.operation) || bits == 0) return absl::OkStatus();
  const int exact = ExactIntegers(request.type);
  if (ranks <= exact) return absl::OkStatus();
  return InvalidArgument(
      "the ones of {} ranks add up to {}, but {} is exact up to {}; ask for random data", ranks,
      ranks, Name(request.type), exact);
}

// One multiplication and a fold: spreads well enough to tell places and ranks apart.
std::uint64_t TestPattern::Draw(std::uint64_t stream, std::uint64_t number) const {
  const std::uint64_t x =
      (seed_ + stream + (number + 1) * 0x9e3779b97f4a7c15U) * 0x94d049bb133111ebU;
  return ((x >> 32U) * span_) >> 32U;
}

std::int64_t TestPattern::Value(int rank, std::uint64_t index) const {
  if (!Contributes(rank)) return 0;
  return low_ + static_cast<std::int64_t>(Draw(kIndexStream, index) +
                                          Draw(kRankStream, static_cast<std::uint64_t>(rank)));
}

std::int64_t TestPattern::Combined(std::uint64_t index) const {
  const std::int64_t common = low_ + static_cast<std::int64_t>(Draw(kIndexStream, index));
  if (op_ == ReduceOp::kMax) return common + rank_max_;
  if (op_ == ReduceOp::kMin) return common + rank_min_;
  return contributors_ * common + rank_sum_;
}

void TestPattern::FillBuffer(int rank, std::span<std::byte> buffer) const {
  const std::size_t size = Size(request_.type);
  for (std::uint64_t i = 0; i < elements_; ++i) {
    StoreInteger(request_.type, Value(rank, i), &buffer[i * size]);
  }
}

// Each rank's block of what is gathered; the blocks of others are not there yet.
void TestPattern::FillGathered(RankRange ranks, std::span<std::byte> buffer) const {
  const std::size_t size = Size(request_.type);
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    for (std::uint64_t i = BlockBegin(rank); i < BlockBegin(rank + 1); ++i) {
      StoreInteger(request_.type, Value(rank, i), &buffer[i * size]);
    }
  }
}

void TestPattern::FillChip(RankRange ranks, std::span<std::byte> buffer) const {
  TAHOMA_CHECK(ranks.count > 0 && buffer.size() == ChipBufferBytes(request_, ranks.count));
  if (!Combines(request_.operation)) std::fill(buffer.begin(), buffer.end(), std::byte{0});
  if (IsExchange(request_.operation)) {
    for (int i = 0; i < ranks.count; ++i) {
      const std::size_t at = request_.bytes * static_cast<std::size_t>(i);
      FillBuffer(ranks.first + i, buffer.subspan(at, request_.bytes));
    }
  } else if (request_.operation == Operation::kAllGather) {
    FillGathered(ranks, buffer);
  } else if (request_.operation == Operation::kBroadcast) {
    if (ranks.first == 0) FillBuffer(0, buffer);
  } else {
    // Each rank's buffer in ascending order, as the chip combines them.
    FillBuffer(ranks.first, buffer);
    std::vector<std::byte> next(ranks.count > 1 ? buffer.size() : 0);
    for (int rank = ranks.first + 1; rank < ranks.first + ranks.count; ++rank) {
      FillBuffer(rank, next);
      Combine(op_, request_.type, buffer, next);
    }
  }
}

std::vector<std::byte> TestPattern::Expected() const {
  if (IsExchange(request_.operation)) return {};
  const std::size_t size = Size(request_.type);
  std::vector<std::byte> expected(request_.bytes);
  if (request_.operation == Operation::kAllGather) {
    FillGathered({.first = 0, .count = ranks_}, expected);
  } else if (request_.operation == Operation::kBroadcast) {
    FillBuffer(0, expected);
  } else {
    for (std::uint64_t i = 0; i < elements_; ++i) {
      StoreInteger(request_.type, Combined(i), &expected[i * size]);
    }
  }
  return expected;
}

std::uint64_t TestPattern::ResultElements() const {
  const auto ranks = static_cast<std::uint64_t>(ranks_);
  return request_.operation == Operation::kAllToAll ? elements_ / ranks * ranks : elements_;
}

TestPattern::Origin TestPattern::OriginOf(int rank, std::uint64_t index) const {
  if (request_.operation != Operation::kAllToAll) {
    return {.rank = sources_.at(static_cast<std::size_t>(rank)), .index = index};
  }
  const std::uint64_t block = elements_ / static_cast<std::uint64_t>(ranks_);
  return {.rank = static_cast<int>(index / block),
          .index = static_cast<std::uint64_t>(rank) * block + index % block};
}

// The result is zero except where a block for the rank lands.
std::uint64_t TestPattern::CountWrongBlocks(int rank, std::span<const std::byte> result) const {
  const std::size_t size = Size(request_.type);
  std::vector<std::byte> expected(result.size());
  for (const RankBlock& block : *request_.blocks) {
    if (block.to != rank) continue;
    for (std::uint64_t i = 0; i < block.count; ++i) {
      StoreInteger(request_.type, Value(block.from, block.begin + i),
                   &expected[(block.at + i) * size]);
    }
  }
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < elements_; ++i) {
    if (std::memcmp(&result[i * size], &expected[i * size], size) != 0) ++wrong;
  }
  return wrong;
}

std::uint64_t TestPattern::CountWrongResult(int rank, std::span<const std::byte> result) const {
  if (request_.blocks != nullptr) return CountWrongBlocks(rank, result);
  const std::size_t size = Size(request_.type);
  std::array<std::byte, sizeof(std::uint32_t)> element;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < ResultElements(); ++i) {
    const Origin origin = OriginOf(rank, i);
    StoreInteger(request_.type, Value(origin.rank, origin.index), element.data());
    if (std::memcmp(&result[i * size], element.data(), size) != 0) ++wrong;
  }
  return wrong;
}

std::uint64_t TestPattern::CountWrong(RankRange ranks, std::span<const std::byte> buffer,
                                      std::span<const std::byte> expected) const {
  TAHOMA_CHECK(buffer.size() == ChipBufferBytes(request_, ranks.count));
  std::uint64_t wrong = 0;
  if (IsExchange(request_.operation)) {
    for (int i = 0; i < ranks.count; ++i) {
      const std::size_t at = request_.bytes * static_cast<std::size_t>(ranks.count + i);
      wrong += CountWrongResult(ranks.first + i, buffer.subspan(at, request_.bytes));
    }
    return wrong;
  }
  TAHOMA_CHECK(buffer.size() == expected.size());
  const std::size_t size = Size(request_.type);
  const bool own_block = request_.operation == Operation::kReduceScatter;
  const std::uint64_t begin = own_block ? BlockBegin(ranks.first) : 0;
  const std::uint64_t end = own_block ? BlockBegin(ranks.first + ranks.count) : elements_;
  for (std::uint64_t i = begin; i < end; ++i) {
    if (std::memcmp(&buffer[i * size], &expected[i * size], size) != 0) ++wrong;
  }
  return wrong;
}

}  // namespace tahoma::sim
