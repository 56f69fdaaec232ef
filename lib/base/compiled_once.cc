#include "lib/base/compiled_once.h"

template void fmt::detail::vformat_to(fmt::detail::buffer<char>&, fmt::string_view,
                                      fmt::basic_format_args<fmt::buffer_context<char>>,
                                      fmt::detail::locale_ref);
