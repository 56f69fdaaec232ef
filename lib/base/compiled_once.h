// Templates of libraries, compiled once and not in every file with a use.
//
// The precompiled header includes this header, so no file names it. Files that log or format
// compile in half the time; json.h does the same for reading and writing JSON.
//
// Scope: fmt's formatter for char.

#pragma once

#include <fmt/format.h>

extern template void fmt::detail::vformat_to(fmt::detail::buffer<char>&, fmt::string_view,
                                             fmt::basic_format_args<fmt::buffer_context<char>>,
                                             fmt::detail::locale_ref);
