// The command line of a pod's program, by getopt_long.
//
// Scope: the form of a line; each program says what its options mean.
//
// Thread safety: none: getopt_long keeps its place in the process.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>
#include <getopt.h>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::sim {

// Calls `apply` with each option and its value ("" without one), and returns the words that are
// none. `letters` begins with a colon, `options` ends with an empty option. kInvalidArgument for an
// option that is unknown or lacks its value; the failures of `apply`.
absl::StatusOr<std::vector<std::string>> ReadOptions(
    std::string_view program, const std::vector<std::string>& arguments, const char* letters,
    const option* options,
    absl::FunctionRef<absl::Status(int choice, std::string_view value)> apply);

// kInvalidArgument unless the text is a whole number in the range; `into` then stays.
template <typename Number>
absl::Status ReadNumber(std::string_view name, std::string_view text,
                        std::type_identity_t<Number> min, std::type_identity_t<Number> max,
                        Number& into) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < min || value > max) {
    return InvalidArgument("{} is \"{}\"; expected {} to {}", name, text, min, max);
  }
  into = value;
  return absl::OkStatus();
}

}  // namespace tahoma::sim
