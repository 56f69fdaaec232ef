// Templates of libraries that are compiled once, and not in every file that uses them.
//
// The precompiled header has it, so no file names it. It halves what files cost to compile that log
// or format; json.h does the same for reading and writing JSON.
//
// Scope: fmt's formatter for char.
//
// Thread safety: declarations.

#pragma once

#include <fmt/format.h>

extern template void fmt::detail::vformat_to(fmt::detail::buffer<char>&, fmt::string_view,
                                             fmt::basic_format_args<fmt::buffer_context<char>>,
                                             fmt::detail::locale_ref);
