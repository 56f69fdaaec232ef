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

bool OfferedResources::OnNode(const kube::Amounts* before, const kube::Amounts* after) {
  if (before == after) return false;  // equal amounts of nodes are one object
  const bool came = Change(after, 1);
  return Change(before, -1) || came;
}

bool OfferedResources::Change(const kube::Amounts* amounts, int by) {
  if (amounts == nullptr) return false;
  bool changed = false;
  for (const auto& [resource, amount] : *amounts) {
    if (!kube::IsExtendedResource(resource)) continue;
    int& nodes = nodes_[resource];
    changed = changed || nodes == 0 || nodes + by == 0;
    nodes += by;
    if (nodes == 0) nodes_.erase(resource);
  }
  return changed;
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
