#include "lib/kube/resource_version.h"

#include <algorithm>

namespace tahoma::kube {
namespace {

bool IsNumber(std::string_view version) {
  return !version.empty() && version.front() != '0' &&
         std::all_of(version.begin(), version.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool IsOlderVersion(std::string_view a, std::string_view b) {
  if (!IsNumber(a) || !IsNumber(b)) return false;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

void NewestVersion::See(std::string_view version) {
  if (!IsOlderVersion(version, version_)) version_ = version;
}

NewestVersion::Verdict NewestVersion::Admit(std::string_view version) {
  const bool is_older = IsOlderVersion(version, version_);
  if (is_older && refusals_ < kRefusalsMax) {
    ++refusals_;
    return Verdict::kRefuse;
  }
  refusals_ = 0;
  version_ = version;
  return is_older ? Verdict::kHistoryLost : Verdict::kTake;
}

}  // namespace tahoma::kube
