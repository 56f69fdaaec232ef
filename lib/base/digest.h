// SHA-256, for checksums of stored data and for ids that AWS derives by it.
//
//   Sha256Hex("");     // "e3b0c44298fc1c14…", 64 lower-case hex digits
//   Sha256("");        // its 32 bytes
//
// Scope: integrity and identity, and bearer tokens that are looked up without being kept; nothing
// here is a signature.
//
// Thread safety: pure.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tahoma {

using Sha256Digest = std::array<std::uint8_t, 32>;
Sha256Digest Sha256(std::string_view bytes);
std::string Sha256Hex(std::string_view bytes);

}  // namespace tahoma
