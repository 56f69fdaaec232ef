// Whether an object still shows the status that was written there: anybody with the right to write
// it may have written something else since.
//
//   ShownStatus shown;
//   shown.OnWritten(result.resource_version, result.shown);      // a write was answered
//   if (shown.OnSeen(fact.resource_version, fact.shown)) WriteAgain();
//
// A status is told by its digest (StatusDigest of read_facts.h; 0: it is not known). What a watch
// tells late, of before the last write, is no news.
//
// Scope: the comparison. Who writes, and when, is decided elsewhere.
//
// Thread safety: belongs to one thread.

#pragma once

#include <cstdint>
#include <string>

#include "lib/kube/resource_version.h"

namespace tahoma::controller {

class ShownStatus {
 public:
  // Each returns whether somebody else has written the status after us.
  bool OnSeen(const std::string& version, std::uint64_t digest) {
    seen_ = {version, digest};
    return differs();
  }
  bool OnWritten(const std::string& version, std::uint64_t digest) {
    written_ = {version, digest};
    return differs();
  }
  // Returns whether a write of ours was answered.
  bool known() const { return written_.digest != 0; }

 private:
  struct Status {
    std::string version;
    std::uint64_t digest = 0;
  };
  bool differs() const {
    return known() && seen_.digest != 0 && seen_.digest != written_.digest &&
           !kube::IsOlderVersion(seen_.version, written_.version);
  }

  Status seen_;
  Status written_;
};

}  // namespace tahoma::controller
