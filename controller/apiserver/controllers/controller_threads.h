// Runs the controllers beside a standalone API server: a thread takes events in, other threads do
// the work. A thread does many pieces together: their writes share the store's syncs.
//
//   ControllerThreads threads(controllers, server->objects(), clock, 8);   // until destroyed
//
// Thread safety: construct and destroy from one thread.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "controller/apiserver/controllers/controllers.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::apiserver {

class ControllerThreads {
 public:
  // All must outlive the threads.
  ControllerThreads(Controllers& controllers, const ObjectStore& objects, const Clock& clock,
                    int workers);
  ~ControllerThreads();

 private:
  void ObserveUntilStopped();
  void WakeFor(std::size_t due);
  void WorkUntilStopped();

  Controllers& controllers_;
  const ObjectStore& objects_;
  const Clock& clock_;
  const int workers_;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  CondVar wake_;
  std::uint64_t news_ ABSL_GUARDED_BY(mutex_) = 0;  // how often work became due
  std::vector<std::jthread> threads_;
};

}  // namespace tahoma::controller::apiserver
