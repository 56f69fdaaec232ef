// The writes that one step of the core asks for, each with its attempt number.
//
//   WriteBuffer writes;
//   const std::uint64_t attempt = writes.Add(PodReclaimWrite{.key = pod, .uid = uid});
//   publish(writes.DrainWrites());                 // when the journal is durable
//
// Scope: numbering. The core's parts add to one buffer, so that no attempt is given twice.
//
// Thread safety: belongs to one thread.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "controller/core/writes/api_write.h"

namespace tahoma::controller {

class WriteBuffer {
 public:
  // Returns the attempt of the write.
  std::uint64_t Add(Write what) {
    writes_.push_back({++last_, std::move(what)});
    return last_;
  }
  std::vector<ApiWrite> DrainWrites() { return std::exchange(writes_, {}); }

 private:
  std::uint64_t last_ = 0;
  std::vector<ApiWrite> writes_;
};

}  // namespace tahoma::controller
