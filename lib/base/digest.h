// SHA-256, for checksums of stored data and for AWS's derived ids, and HMAC with SHA-256.
//
//   Sha256Hex("");                  // "e3b0c44298fc1c14…", 64 lower-case hex digits
//   Sha256("");                     // its 32 bytes
//   HmacSha256("key", "a message");  // 32 bytes that only who has the key can make
//
// Scope: integrity and identity, bearer tokens that are looked up without being kept, and messages
// from a sender with a shared key.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tahoma {

using Sha256Digest = std::array<std::uint8_t, 32>;
Sha256Digest Sha256(std::string_view bytes);
std::string Sha256Hex(std::string_view bytes);
// RFC 2104 with SHA-256. The result is raw bytes, as the next key of a chain.
std::string HmacSha256(std::string_view key, std::string_view message);

}  // namespace tahoma
