// SHA-256, for checksums of what is stored and for ids that AWS derives by it.
//
//   Sha256Hex("")      // "e3b0c44298fc1c14…", 64 lower-case hex digits
//
// Scope: integrity and identity; nothing here is a secret or a signature.
//
// Thread safety: pure.

#pragma once

#include <string>
#include <string_view>

namespace tahoma {

std::string Sha256Hex(std::string_view bytes);

}  // namespace tahoma
