#include "lib/wire/frame.h"

#include "lib/base/check.h"
#include "lib/base/hex.h"
#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

constexpr std::string_view kMagic = "TAHO";

void PutLittleEndian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xffU);
}

std::uint64_t GetLittleEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8U | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

absl::Status CheckLengths(const FramePrefix& prefix, const FrameBounds& bounds) {
  if (prefix.header_bytes > bounds.header_bytes) {
    return InvalidArgument("wire: the frame's header has {} bytes; at most {} are allowed",
                           prefix.header_bytes, bounds.header_bytes);
  }
  if (prefix.payload_bytes > bounds.payload_bytes) {
    return InvalidArgument("wire: the frame's payload has {} bytes; at most {} are allowed",
                           prefix.payload_bytes, bounds.payload_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> EncodePrefix(const Frame& frame) {
  TAHOMA_RETURN_IF_ERROR(CheckLengths(
      {.header_bytes = frame.header.size(), .payload_bytes = frame.payload.size()}, {}));
  std::string out(kMagic);
  PutLittleEndian(out, kVersion, 2);
  PutLittleEndian(out, 0, 2);
  PutLittleEndian(out, frame.header.size(), 4);
  PutLittleEndian(out, frame.payload.size(), 4);
  return out;
}

absl::StatusOr<FramePrefix> DecodePrefix(std::string_view bytes, const FrameBounds& bounds) {
  TAHOMA_CHECK(bytes.size() >= kPrefixBytes);
  if (bytes.substr(0, 4) != kMagic) {
    return InvalidArgument("wire: a frame begins with bytes {}; expected 5441484f (\"TAHO\")",
                           Hex(bytes.substr(0, 4)));
  }
  const std::uint64_t version = GetLittleEndian(bytes.substr(4, 2));
  if (version != kVersion) {
    return InvalidArgument("wire: the peer speaks version {}; this program speaks version {}",
                           version, kVersion);
  }
  const std::uint64_t reserved = GetLittleEndian(bytes.substr(6, 2));
  if (reserved != 0) {
    return InvalidArgument("wire: the frame's reserved field is {}; expected 0", reserved);
  }
  const FramePrefix prefix = {.header_bytes = GetLittleEndian(bytes.substr(8, 4)),
                              .payload_bytes = GetLittleEndian(bytes.substr(12, 4))};
  TAHOMA_RETURN_IF_ERROR(CheckLengths(prefix, bounds));
  return prefix;
}

absl::StatusOr<std::string> EncodeFrame(const Frame& frame) {
  TAHOMA_ASSIGN_OR_RETURN(std::string out, EncodePrefix(frame));
  out += frame.header;
  out += frame.payload;
  return out;
}

absl::StatusOr<Frame> DecodeFrame(std::string_view bytes) {
  if (bytes.size() < kPrefixBytes) {
    return OutOfRange("wire: {} bytes are too few for a frame; its prefix alone has {}",
                      bytes.size(), kPrefixBytes);
  }
  TAHOMA_ASSIGN_OR_RETURN(const FramePrefix prefix, DecodePrefix(bytes));
  bytes.remove_prefix(kPrefixBytes);
  const std::size_t expected = prefix.header_bytes + prefix.payload_bytes;
  if (bytes.size() < expected) {
    return OutOfRange("wire: the frame is cut short: {} bytes after the prefix, expected {}",
                      bytes.size(), expected);
  }
  if (bytes.size() > expected) {
    return InvalidArgument("wire: {} bytes follow the frame", bytes.size() - expected);
  }
  return Frame{.header = std::string(bytes.substr(0, prefix.header_bytes)),
               .payload = std::string(bytes.substr(prefix.header_bytes))};
}

}  // namespace tahoma::wire
