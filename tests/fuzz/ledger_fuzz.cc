// Records of the controller's journal. A checksum guards them, so the input is given one: type and
// body are the input's. What is read is written again as the same record. A Capacity Block is also
// restored, with a host, and lives to its end. The usage of a queue is read likewise.

#include <cstdint>
#include <string>
#include <string_view>

#include "controller/core/journal/block_record.h"
#include "controller/core/journal/entry_form.h"
#include "controller/core/journal/record.h"
#include "controller/core/journal/usage_record.h"
#include "controller/reserve/book.h"
#include "lib/base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma::controller;

// docs/formats/ledger.md: "TJ", version, type, CRC-32C of the body and of these four, body.
std::string WithChecksum(std::string_view input) {
  std::string bytes = {'T', 'J', 1, input[0]};
  const std::string_view body = input.substr(1);
  const std::uint32_t checksum = Crc32c(body) ^ Crc32c(bytes);
  for (unsigned i = 0; i < 4; ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(checksum >> (8 * i)));
  }
  return bytes.append(body);
}

void FuzzBlock(std::string_view bytes) {
  auto block = DecodeBlock(bytes);
  if (!block.ok()) {
    TAHOMA_CHECK(absl::IsDataLoss(block.status()));
    return;
  }
  const std::string written = EncodeBlock(*block);
  const auto again = DecodeBlock(written);
  TAHOMA_CHECK_OK(again.status());
  TAHOMA_CHECK(*again == *block);
  BlockBook book({}, tahoma::WallTime{});
  const Block restored = *block;
  if (!book.Restore(*std::move(block)).ok()) return;
  const tahoma::WallTime now = LatestMoment(restored);
  book.PutHost(
      {.name = "us-0", .pool = PoolOf(restored, restored.cells.front().cell), .healthy = true},
      now);
  for (const tahoma::WallTime time :
       {now, restored.start(), restored.reclaim(), StartOf(restored.slots().last)}) {
    book.Advance(time);
    book.TakeUses();
  }
  TAHOMA_CHECK(!HoldsCapacity(book.Find(restored.reservation)->state));
}

void FuzzQueueUse(std::string_view bytes) {
  const auto use = DecodeQueueUse(bytes);
  if (!use.ok()) {
    TAHOMA_CHECK(absl::IsDataLoss(use.status()));
    return;
  }
  const auto again = DecodeQueueUse(EncodeQueueUse(*use));
  TAHOMA_CHECK_OK(again.status());
  TAHOMA_CHECK(again->queue == use->queue && again->use == use->use);
}

void FuzzUsage(std::string_view bytes) {
  const auto usage = DecodeUsage(bytes);
  if (!usage.ok()) {
    TAHOMA_CHECK(absl::IsDataLoss(usage.status()));
    return;
  }
  const auto again = DecodeUsage(EncodeUsage(*usage));
  TAHOMA_CHECK_OK(again.status());
  TAHOMA_CHECK(again->key == usage->key && again->sum == usage->sum && again->term == usage->term);
}

}  // namespace

void FuzzOne(std::string_view input) {
  TAHOMA_CHECK(input.starts_with("TJ") || !DecodeRecord(input).ok());
  if (input.empty()) return;
  if (IsBlockEntry(WithChecksum(input))) return FuzzBlock(WithChecksum(input));
  if (IsQueueUseEntry(WithChecksum(input))) return FuzzQueueUse(WithChecksum(input));
  if (IsUsageEntry(WithChecksum(input))) return FuzzUsage(WithChecksum(input));
  const auto record = DecodeRecord(WithChecksum(input));
  if (!record.ok()) {
    TAHOMA_CHECK(absl::IsDataLoss(record.status()));
    return;
  }
  const std::string written = EncodeRecord(*record);
  const auto again = DecodeRecord(written);
  TAHOMA_CHECK_OK(again.status());
  TAHOMA_CHECK(EncodeRecord(*again) == written);
  TAHOMA_CHECK(again->index() == record->index());
}
