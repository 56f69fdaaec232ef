// Bounds the bytes that many users hold of one thing together.
//
//   ByteBudget bodies(128 << 20);
//   const ByteBudget::Hold hold = bodies.Acquire(body.size());    // given back with the last copy
//   if (hold == nullptr) return TooManyRequests();
//
// Whoever finds nothing held gets as much as he wants: a bound must refuse nobody for ever.
// So at most the bound, or as much as one of them wants, is held at any time.
//
// Scope: numbers; the bytes themselves are their users'.
//
// Thread safety: any thread. The budget must outlive its holds.

#pragma once

#include <cstddef>
#include <memory>

#include "lib/base/mutex.h"

namespace tahoma {

class ByteBudget {
 public:
  explicit ByteBudget(std::size_t most) : most_(most) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  class Part {
   public:
    Part(ByteBudget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}
    ~Part() {
      const MutexLock lock(budget_.mutex_);
      budget_.held_ -= bytes_;
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    ByteBudget& budget_;
    const std::size_t bytes_;
  };
  using Hold = std::shared_ptr<Part>;

  // Null: it would be too much, and nothing is held.
  Hold Acquire(std::size_t bytes) {
    {
      const MutexLock lock(mutex_);
      if (held_ > 0 && (bytes > most_ || held_ > most_ - bytes)) return nullptr;
      held_ += bytes;
    }
    return std::make_shared<Part>(*this, bytes);
  }

  std::size_t held() const {
    const MutexLock lock(mutex_);
    return held_;
  }

 private:
  const std::size_t most_;
  mutable Mutex mutex_;
  std::size_t held_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tahoma
