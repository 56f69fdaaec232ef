// Runs the controllers beside a standalone API server: one thread takes events in, others do the
// work, much of it together, so that their writes share the store's syncs.
//
//   ControllerThreads threads(controllers, server->objects(), clock, 8);   // until it is destroyed
//
// Thread safety: construct and destroy from one thread.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "controller/apiserver/controllers/controllers.h"

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
  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t news_ = 0;  // how often there was work that is due
  std::vector<std::jthread> threads_;
};

}  // namespace tahoma::controller::apiserver
