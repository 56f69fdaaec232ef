// Colours for a terminal: words that say how a thing is, in finished text.
//
//   fmt::print("{}", terminal ? Painted(text) : text);
//
// Headers are bold; words of success are green, of waiting yellow, of failure red. Only escape
// sequences are added, after the columns have been aligned.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>

namespace tahoma::controller {

std::string Painted(std::string_view text);

}  // namespace tahoma::controller
