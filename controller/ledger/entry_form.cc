#include "controller/ledger/entry_form.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

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

// The head of one data item in CBOR: RFC 8949, section 3.
struct CborHead {
  unsigned major = 0;
  unsigned info = 0;
  std::uint64_t argument = 0;  // a number, a length in bytes, or a count of items
};

// Takes a head from the front of `bytes`, or returns false when they end in its midst.
bool TakeHead(std::string_view& bytes, CborHead& head) {
  if (bytes.empty()) return false;
  const unsigned first = static_cast<unsigned char>(bytes[0]);
  head = {.major = first >> 5U, .info = first & 31U, .argument = first & 31U};
  const std::size_t extra =
      head.info >= 24 && head.info <= 27 ? std::size_t{1} << (head.info - 24) : 0;
  if (bytes.size() < 1 + extra) return false;
  if (extra > 0) head.argument = 0;
  for (std::size_t i = 1; i <= extra; ++i) {
    head.argument = head.argument << 8U | static_cast<unsigned char>(bytes[i]);
  }
  bytes.remove_prefix(1 + extra);
  return true;
}

// Returns whether `body` can be given to the CBOR reader, whose stack grows with every array, map
// and string of indefinite length that contains another. The reader detects damage of other kinds.
bool NestsLikeARecord(std::string_view body) {
  constexpr unsigned kBytes = 2, kText = 3, kArray = 4, kMap = 5, kIndefinite = 31;
  std::vector<std::uint64_t> items_left;  // of each array and map that is open
  do {
    while (!items_left.empty() && items_left.back() == 0) items_left.pop_back();
    CborHead head;
    if (!TakeHead(body, head)) return true;
    if (!items_left.empty()) --items_left.back();
    if (head.major < kBytes || head.major > kMap) continue;
    if (head.info == kIndefinite) return false;
    if (head.argument > body.size()) return true;
    if (head.major == kBytes || head.major == kText) {
      body.remove_prefix(head.argument);
    } else {
      if (items_left.size() == kDepthMax) return false;
      items_left.push_back(head.major == kArray ? head.argument : 2 * head.argument);
    }
  } while (!items_left.empty());
  return true;
}

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = MakeCrcTable();

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xffU] ^ (crc >> 8U);
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

absl::Status DecodeEntry(std::string_view bytes,
                         const std::function<absl::Status(EntryType, const json&)>& read) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with("TJ")) {
    return DataLoss("{} bytes that are no journal record: they do not start with \"TJ\"",
                    bytes.size());
  }
  if (bytes[2] != kVersion) {
    return DataLoss("journal record of version {}; this program reads version {}",
                    static_cast<int>(bytes[2]), static_cast<int>(kVersion));
  }
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    stored |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[4 + i])) << (8U * i);
  }
  const std::string_view body = bytes.substr(kHeaderBytes);
  const std::uint32_t computed = Crc32c(body) ^ Crc32c(bytes.substr(0, 4));
  if (stored != computed) {
    return DataLoss("journal record with checksum {:08x}, computed {:08x}", stored, computed);
  }
  if (!NestsLikeARecord(body)) {
    return DataLoss(
        "journal record of type {} with a bad body: CBOR nested deeper than {}, or of indefinite "
        "length",
        static_cast<int>(bytes[3]), kDepthMax);
  }
  try {
    return read(static_cast<EntryType>(bytes[3]), json::from_cbor(body));
  } catch (const std::exception& e) {
    return DataLoss("journal record of type {} with a bad body: {}", static_cast<int>(bytes[3]),
                    e.what());
  }
}

}  // namespace tahoma::controller
