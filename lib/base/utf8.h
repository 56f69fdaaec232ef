// Checks UTF-8 (RFC 3629), and cuts it between characters.
//
//   if (!IsUtf8(name)) return InvalidArgument("the name is not UTF-8");
//   note.message = std::string(CutUtf8(message, 1024));   // never half a character
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tahoma {

// Whether all of it is: no longer form of a lesser code point, no surrogate, none above U+10FFFF.
bool IsUtf8(std::string_view bytes);

// The whole characters at the front of a UTF-8 text that take at most `bytes_most` bytes.
std::string_view CutUtf8(std::string_view text, std::size_t bytes_most);

// Returns a name as messages tell it: a client may choose a name of megabytes, which each problem
// below the name would repeat.
std::string CutName(std::string_view name);

}  // namespace tahoma
