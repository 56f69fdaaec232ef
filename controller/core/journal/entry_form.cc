#include "controller/core/journal/entry_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include "controller/core/journal/cbor_reader.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using json = Json;

// The header of docs/formats/ledger.md: 'T' 'J' version type, CRC-32C little endian, then a CBOR
// body.
constexpr std::size_t kHeaderBytes = 8;
constexpr char kVersion = 1;

// The deepest record that is written nests about a dozen arrays and maps.
constexpr std::size_t kDepthMax = 64;

// Returns why `body` cannot be given to the CBOR reader, whose stack grows with every array, map
// and string of indefinite length that contains another; empty when it can. No record has a number
// with a fraction, which the reader would make an integer of, whatever its range. The reader
// detects damage of other kinds.
std::string WhyUnlikeARecord(std::string_view body) {
  constexpr unsigned kHalf = 25, kDouble = 27, kIndefinite = 31;
  std::vector<std::uint64_t> items_left;  // of each array and map that is open
  do {
    while (!items_left.empty() && items_left.back() == 0) items_left.pop_back();
    CborHead head;
    if (!ConsumeHead(body, head)) return {};
    if (!items_left.empty()) --items_left.back();
    if (head.major == CborMajor::kSimple && head.info >= kHalf && head.info <= kDouble) {
      return "CBOR with a fraction";
    }
    if (head.major < CborMajor::kBytes || head.major > CborMajor::kMap) continue;
    if (head.info == kIndefinite) return "CBOR of indefinite length";
    if (head.major == CborMajor::kBytes || head.major == CborMajor::kText) {
      if (head.argument > body.size()) return {};
      body.remove_prefix(head.argument);
    } else {
      if (items_left.size() == kDepthMax) {
        return fmt::format("CBOR nested deeper than {}", kDepthMax);
      }
      // A false count does not keep the reader from the items that are there.
      const std::uint64_t count = std::min<std::uint64_t>(head.argument, body.size());
      items_left.push_back(head.major == CborMajor::kArray ? count : 2 * count);
    }
  } while (!items_left.empty());
  return {};
}

// Eight tables: a byte's share of the checksum when 0 to 7 bytes come after it.
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr CrcTables MakeCrcTables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    tables[0][byte] = crc;
  }
  for (std::size_t after = 1; after < tables.size(); ++after) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[after - 1][byte];
      tables[after][byte] = tables[0][crc & 0xffU] ^ (crc >> 8U);
    }
  }
  return tables;
}
constexpr CrcTables kCrcTables = MakeCrcTables();

std::uint32_t FourBytes(const char* bytes) {
  std::uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i) {
    word |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8U * i);
  }
  return word;
}

}  // namespace

// Eight bytes at a time: the journal of 100,000 blocks has 80 MB, each under two checksums.
std::uint32_t Crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const std::uint32_t low = crc ^ FourBytes(bytes.data());
    const std::uint32_t high = FourBytes(bytes.data() + 4);
    crc = 0;
    for (unsigned i = 0; i < 4; ++i) {
      crc ^= kCrcTables[7 - i][(low >> (8U * i)) & 0xffU];
      crc ^= kCrcTables[3 - i][(high >> (8U * i)) & 0xffU];
    }
  }
  for (const char c : bytes) {
    crc = kCrcTables[0][(crc ^ static_cast<unsigned char>(c)) & 0xffU] ^ (crc >> 8U);
  }
  return ~crc;
}

std::string EncodeEntry(EntryType type, const json& body) {
  std::string bytes = {'T', 'J', kVersion, static_cast<char>(type), 0, 0, 0, 0};
  json::to_cbor(body, bytes);
  // The checksum covers version and type too: a flipped type must not be read as another record.
  const std::uint32_t crc =
      Crc32c(bytes.substr(kHeaderBytes)) ^ Crc32c(std::string_view(bytes).substr(0, 4));
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[4 + i] = static_cast<char>(static_cast<unsigned char>(crc >> (8U * i)));
  }
  return bytes;
}

absl::StatusOr<EntryView> OpenEntry(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with("TJ")) {
    return DataLoss("{} bytes that are no journal record: they do not start with \"TJ\"",
                    bytes.size());
  }
  if (bytes[2] != kVersion) {
    return DataLoss("journal record of version {}; this program reads version {}",
                    static_cast<int>(bytes[2]), static_cast<int>(kVersion));
  }
  const std::uint32_t stored = FourBytes(bytes.data() + 4);
  const std::string_view body = bytes.substr(kHeaderBytes);
  const std::uint32_t computed = Crc32c(body) ^ Crc32c(bytes.substr(0, 4));
  if (stored != computed) {
    return DataLoss("journal record with checksum {:08x}, computed {:08x}", stored, computed);
  }
  return EntryView{.type = static_cast<EntryType>(bytes[3]), .body = body};
}

absl::Status BadBody(EntryType type, std::string_view why) {
  return DataLoss("journal record of type {} with a bad body: {}", static_cast<int>(type), why);
}

absl::Status DecodeEntry(std::string_view bytes,
                         const std::function<absl::Status(EntryType, const json&)>& read) {
  TAHOMA_ASSIGN_OR_RETURN(const EntryView entry, OpenEntry(bytes));
  if (const std::string why = WhyUnlikeARecord(entry.body); !why.empty()) {
    return BadBody(entry.type, why);
  }
  try {
    return read(entry.type, json::from_cbor(entry.body));
  } catch (const std::exception& e) {
    return BadBody(entry.type, e.what());
  }
}

}  // namespace tahoma::controller
