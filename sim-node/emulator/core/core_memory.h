// SBUF and PSUM of one core, and the port through which a core reaches HBM.
//
//   CoreMemory memory;
//   memory.Write(isa::Memory::kSbuf, /*partition=*/3, /*offset=*/512, bytes);
//   TAHOMA_RETURN_IF_ERROR(memory.Read(isa::Memory::kSbuf, 3, 512, to));
//
// Reading a byte that nothing has written is an error: on the chip the byte would hold whatever the
// program before left. A copy of such a byte is like the byte: the copy's place is forgotten. Bytes
// are kept in pages that exist once they are written, so a small program
// costs little of the host's memory.
//
// Scope: bytes. lib/isa/program.h says where a buffer lies, execute.h how instructions use memory.
//
// Thread safety: none.

#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/isa/program.h"

namespace tahoma::sim {

// HBM as a program sees it: addresses count from the program's first byte. An implementation bounds
// the addresses and decides how unwritten bytes read.
class HbmPort {
 public:
  virtual ~HbmPort() = default;
  virtual absl::Status Read(std::uint64_t address, std::span<std::byte> to) = 0;
  virtual absl::Status Write(std::uint64_t address, std::span<const std::byte> from) = 0;
};

class CoreMemory {
 public:
  CoreMemory();

  // Bytes [offset, offset + size) of a partition of SBUF or PSUM must exist.
  //
  // kFailedPrecondition names the first byte that nothing has written.
  absl::Status Read(isa::Memory memory, int partition, std::int64_t offset,
                    std::span<std::byte> to) const;
  void Write(isa::Memory memory, int partition, std::int64_t offset,
             std::span<const std::byte> from);
  // Reads the bytes before the first that nothing has written, and returns their number.
  std::size_t ReadWritten(isa::Memory memory, int partition, std::int64_t offset,
                          std::span<std::byte> to) const;
  // Nothing has written the bytes any more.
  void Forget(isa::Memory memory, int partition, std::int64_t offset, std::size_t bytes);

  // The bytes of all pages, without their bookkeeping.
  std::uint64_t resident_bytes() const;

 private:
  static constexpr std::size_t kPageBytes = std::size_t{16} << 10U;

  struct Page {
    std::array<std::byte, kPageBytes> bytes;               // left as they are until written
    std::array<std::uint64_t, kPageBytes / 64> written{};  // a bit of each byte

    void Write(std::size_t offset, std::span<const std::byte> from);
    void Forget(std::size_t offset, std::size_t length);
    // The first byte of [begin, end) without its bit.
    std::optional<std::size_t> FirstUnwritten(std::size_t begin, std::size_t end) const;
  };

  // Calls each(index in pages_, offset in the page, bytes) along a range that must exist.
  template <typename Each>
  static void ForEachPiece(isa::Memory memory, int partition, std::int64_t offset,
                           std::size_t bytes, const Each& each);

  std::vector<std::unique_ptr<Page>> pages_;  // SBUF's by partition, then PSUM's
};

}  // namespace tahoma::sim
