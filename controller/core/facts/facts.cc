#include "controller/core/facts/facts.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tahoma::controller {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the run of digits at `at` without leading zeros, and moves `at` behind it.
std::string_view TakeNumber(std::string_view text, std::size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const std::size_t first = at;
  while (at < text.size() && IsDigit(text[at])) ++at;
  return text.substr(first, at - first);
}

}  // namespace

bool ClaimFact::ReservedFor(const std::string& uid_of_pod) const {
  return std::any_of(reserved_for.begin(), reserved_for.end(),
                     [&](const Reservation& held) { return held.uid == uid_of_pod; });
}

bool NaturalLess(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (IsDigit(a[i]) && IsDigit(b[j])) {
      const std::string_view left = TakeNumber(a, i);
      const std::string_view right = TakeNumber(b, j);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;  // equal but for leading zeros
}

}  // namespace tahoma::controller
