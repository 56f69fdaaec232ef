#include "controller/reserve/ec2_id.h"

#include <algorithm>

namespace tahoma::controller {

bool IsEc2Id(std::string_view text, std::string_view prefix, std::size_t most) {
  if (!text.starts_with(prefix)) return false;
  const std::string_view digits = text.substr(prefix.size());
  const bool length =
      digits.size() == kShortIdDigits || (digits.size() >= kIdDigits && digits.size() <= most);
  return length && std::ranges::all_of(digits, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::Status MalformedId(const Ec2Code& code, std::string_view text, std::string_view prefix) {
  constexpr std::size_t kShownMost = 64;  // what a client sent may be long
  return Refuse(code,
                "Invalid id: \"{}\" (expecting \"{}...\" with {} hexadecimal digits in small "
                "letters)",
                text.substr(0, kShownMost), prefix, kIdDigits);
}

}  // namespace tahoma::controller
