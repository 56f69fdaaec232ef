#include "sim-node/emulator/core/core_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::size_t kWordBits = 64;

// Calls each(index of a word, its bits in the range) along a range of bits, while each says true.
template <typename Each>
void ForEachWord(std::size_t begin, std::size_t end, const Each& each) {
  while (begin < end) {
    const std::size_t bit = begin % kWordBits;
    const std::size_t count = std::min(kWordBits - bit, end - begin);
    if (!each(begin / kWordBits, (~std::uint64_t{0} >> (kWordBits - count)) << bit)) return;
    begin += count;
  }
}

}  // namespace

void CoreMemory::Page::Write(std::size_t offset, std::span<const std::byte> from) {
  std::memcpy(bytes.data() + offset, from.data(), from.size());
  ForEachWord(offset, offset + from.size(), [&](std::size_t word, std::uint64_t bits) {
    written[word] |= bits;
    return true;
  });
}

void CoreMemory::Page::Forget(std::size_t offset, std::size_t length) {
  ForEachWord(offset, offset + length, [&](std::size_t word, std::uint64_t bits) {
    written[word] &= ~bits;
    return true;
  });
}

std::optional<std::size_t> CoreMemory::Page::FirstUnwritten(std::size_t begin,
                                                            std::size_t end) const {
  std::optional<std::size_t> found;
  ForEachWord(begin, end, [&](std::size_t word, std::uint64_t bits) {
    const std::uint64_t missing = ~written[word] & bits;
    if (missing == 0) return true;
    found = word * kWordBits + static_cast<std::size_t>(std::countr_zero(missing));
    return false;
  });
  return found;
}

CoreMemory::CoreMemory()
    : pages_(isa::kPartitions * static_cast<std::size_t>(isa::kSbufBytes + isa::kPsumBytes) /
             kPageBytes) {}

template <typename Each>
void CoreMemory::ForEachPiece(isa::Memory memory, int partition, std::int64_t offset,
                              std::size_t bytes, const Each& each) {
  static_assert(isa::kSbufBytes % kPageBytes == 0 && isa::kPsumBytes % kPageBytes == 0);
  TAHOMA_CHECK(memory == isa::Memory::kSbuf || memory == isa::Memory::kPsum);
  const bool sbuf = memory == isa::Memory::kSbuf;
  const auto size = static_cast<std::size_t>(sbuf ? isa::kSbufBytes : isa::kPsumBytes);
  TAHOMA_CHECK(partition >= 0 && partition < isa::kPartitions && offset >= 0);
  auto at = static_cast<std::size_t>(offset);
  TAHOMA_CHECK(bytes <= size && at <= size - bytes);
  at += static_cast<std::size_t>(partition) * size;
  if (!sbuf) at += static_cast<std::size_t>(isa::kPartitions * isa::kSbufBytes);
  while (bytes > 0) {
    const std::size_t inside = at % kPageBytes;
    const std::size_t length = std::min(bytes, kPageBytes - inside);
    if (!each(at / kPageBytes, inside, length)) return;
    at += length;
    bytes -= length;
  }
}

std::size_t CoreMemory::ReadWritten(isa::Memory memory, int partition, std::int64_t offset,
                                    std::span<std::byte> to) const {
  std::size_t done = 0;
  ForEachPiece(memory, partition, offset, to.size(),
               [&](std::size_t number, std::size_t inside, std::size_t length) {
                 const Page* page = pages_[number].get();
                 if (page == nullptr) return false;
                 const std::size_t end =
                     page->FirstUnwritten(inside, inside + length).value_or(inside + length);
                 std::memcpy(to.data() + done, page->bytes.data() + inside, end - inside);
                 done += end - inside;
                 return end == inside + length;
               });
  return done;
}

absl::Status CoreMemory::Read(isa::Memory memory, int partition, std::int64_t offset,
                              std::span<std::byte> to) const {
  const std::size_t read = ReadWritten(memory, partition, offset, to);
  if (read == to.size()) return absl::OkStatus();
  return FailedPrecondition("{} partition {} byte {} is read, and nothing has written it",
                            isa::Name(memory), partition, offset + static_cast<std::int64_t>(read));
}

void CoreMemory::Write(isa::Memory memory, int partition, std::int64_t offset,
                       std::span<const std::byte> from) {
  std::size_t done = 0;
  ForEachPiece(memory, partition, offset, from.size(),
               [&](std::size_t number, std::size_t inside, std::size_t length) {
                 std::unique_ptr<Page>& page = pages_[number];
                 if (page == nullptr) page = std::make_unique_for_overwrite<Page>();
                 page->Write(inside, from.subspan(done, length));
                 done += length;
                 return true;
               });
}

void CoreMemory::Forget(isa::Memory memory, int partition, std::int64_t offset, std::size_t bytes) {
  ForEachPiece(memory, partition, offset, bytes,
               [&](std::size_t number, std::size_t inside, std::size_t length) {
                 if (pages_[number] != nullptr) pages_[number]->Forget(inside, length);
                 return true;
               });
}

std::uint64_t CoreMemory::resident_bytes() const {
  return kPageBytes * static_cast<std::uint64_t>(std::ranges::count_if(
                          pages_, [](const auto& page) { return page != nullptr; }));
}

}  // namespace tahoma::sim
