// One frame of the wire between our own programs: a JSON header and a raw payload.
//
// Bytes: magic "TAHO", u16 version, u16 reserved (zero), u32 header bytes, u32 payload bytes
// (little endian), header, payload; see docs/formats/wire.md.
//
// Scope: bytes only. socket.h sends and receives frames, call.h defines their headers.
//
// Thread safety: functions are pure.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tahoma::wire {

inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kPrefixBytes = 16;
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxPayloadBytes = std::size_t{64} << 20U;

struct Frame {
  std::string header = {};   // JSON text, at most kMaxHeaderBytes
  std::string payload = {};  // raw, at most kMaxPayloadBytes

  bool operator==(const Frame&) const = default;
};

// The most that a receiver takes of one frame: the format's own bounds, or narrower ones.
struct FrameBounds {
  std::size_t header_bytes = kMaxHeaderBytes;
  std::size_t payload_bytes = kMaxPayloadBytes;
};

// The lengths that the first kPrefixBytes of a frame announce.
struct FramePrefix {
  std::size_t header_bytes = 0;
  std::size_t payload_bytes = 0;
};

// Returns the prefix of `frame`. kInvalidArgument when the header or the payload is too long.
absl::StatusOr<std::string> EncodePrefix(const Frame& frame);

// Reads a prefix from `bytes`, which must hold at least kPrefixBytes. kInvalidArgument names the
// field that is wrong: magic, version, reserved, or a length over its bound. The rest of the stream
// cannot be read then.
absl::StatusOr<FramePrefix> DecodePrefix(std::string_view bytes, const FrameBounds& bounds = {});

// Returns a whole frame in one string, for tests and for files.
absl::StatusOr<std::string> EncodeFrame(const Frame& frame);

// Reads exactly one frame. kOutOfRange when `bytes` ends before the frame does, kInvalidArgument
// when bytes follow it or the prefix is wrong.
absl::StatusOr<Frame> DecodeFrame(std::string_view bytes);

}  // namespace tahoma::wire
