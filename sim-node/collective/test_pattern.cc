#include "sim-node/collective/test_pattern.h"

#include <algorithm>
#include <cstring>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

// bf16 has 8 significant bits: integers up to 256 are exact, and so are sums of 128 elements of at
// most 2.
constexpr int kBf16Contributors = 128;

constexpr std::uint64_t kIndexStream = 1;
constexpr std::uint64_t kRankStream = 2;

}  // namespace

TestPattern::TestPattern(const Request& request, ReduceOp op, int ranks, std::uint64_t seed)
    : request_(request),
      op_(op),
      ranks_(ranks),
      seed_(seed),
      elements_(request.bytes / Size(request.type)) {
  TAHOMA_CHECK(ranks > 0);
  const bool sums = op == ReduceOp::kSum && request.operation != Operation::kAllGather;
  switch (request.type) {
    case ElementType::kUint8:
      span_ = 126;
      break;
    case ElementType::kInt8:
      low_ = -100;
      span_ = 101;
      break;
    case ElementType::kBf16:
      if (sums) {
        span_ = 2;
        every_ = (ranks + kBf16Contributors - 1) / kBf16Contributors;
      } else {
        low_ = -128;
        span_ = 129;
      }
      break;
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
  for (int rank = 0; rank < ranks; rank += every_) {
    const auto drawn =
        static_cast<std::int64_t>(Draw(kRankStream, static_cast<std::uint64_t>(rank)));
    rank_sum_ += drawn;
    rank_max_ = rank == 0 ? drawn : std::max(rank_max_, drawn);
    rank_min_ = rank == 0 ? drawn : std::min(rank_min_, drawn);
    ++contributors_;
  }
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

void TestPattern::FillChip(RankRange ranks, std::span<std::byte> buffer) const {
  TAHOMA_CHECK(buffer.size() == request_.bytes && ranks.count > 0);
  const std::size_t size = Size(request_.type);
  if (request_.operation == Operation::kAllGather) {
    std::fill(buffer.begin(), buffer.end(), std::byte{0});
    for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
      for (std::uint64_t i = BlockBegin(rank); i < BlockBegin(rank + 1); ++i) {
        StoreInteger(request_.type, Value(rank, i), &buffer[i * size]);
      }
    }
    return;
  }
  // Each rank's buffer in ascending order, as the chip combines them.
  std::vector<std::byte> next(ranks.count > 1 ? buffer.size() : 0);
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    const std::span<std::byte> into = rank == ranks.first ? buffer : std::span<std::byte>(next);
    for (std::uint64_t i = 0; i < elements_; ++i) {
      StoreInteger(request_.type, Value(rank, i), &into[i * size]);
    }
    if (rank != ranks.first) Combine(op_, request_.type, buffer, next);
  }
}

std::vector<std::byte> TestPattern::Expected() const {
  const std::size_t size = Size(request_.type);
  std::vector<std::byte> expected(request_.bytes);
  if (request_.operation == Operation::kAllGather) {
    for (int rank = 0; rank < ranks_; ++rank) {
      for (std::uint64_t i = BlockBegin(rank); i < BlockBegin(rank + 1); ++i) {
        StoreInteger(request_.type, Value(rank, i), &expected[i * size]);
      }
    }
  } else {
    for (std::uint64_t i = 0; i < elements_; ++i) {
      StoreInteger(request_.type, Combined(i), &expected[i * size]);
    }
  }
  return expected;
}

std::uint64_t TestPattern::CountWrong(RankRange ranks, std::span<const std::byte> buffer,
                                      std::span<const std::byte> expected) const {
  TAHOMA_CHECK(buffer.size() == expected.size() && buffer.size() == request_.bytes);
  const std::size_t size = Size(request_.type);
  const bool own_block = request_.operation == Operation::kReduceScatter;
  const std::uint64_t begin = own_block ? BlockBegin(ranks.first) : 0;
  const std::uint64_t end = own_block ? BlockBegin(ranks.first + ranks.count) : elements_;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    if (std::memcmp(&buffer[i * size], &expected[i * size], size) != 0) ++wrong;
  }
  return wrong;
}

}  // namespace tahoma::sim
