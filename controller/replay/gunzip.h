// Decompression of gzip's format, as public traces are stored.
//
// Failures: kInvalidArgument for damaged bytes, and for more text than `bytes_most`.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tahoma::controller {

bool IsGzip(std::string_view bytes);

absl::StatusOr<std::string> Gunzip(std::string_view bytes, std::size_t bytes_most);

}  // namespace tahoma::controller
