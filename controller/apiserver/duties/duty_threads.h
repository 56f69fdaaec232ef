// Runs the duties beside a standalone API server: one thread takes events in, several do the work,
// so that their writes share the store's syncs.
//
//   DutyThreads threads(duties, server->objects(), clock, 8);   // until it is destroyed
//
// Thread safety: construct and destroy from one thread.

#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "controller/apiserver/duties/duties.h"

namespace tahoma::controller {

class DutyThreads {
 public:
  // All must outlive the threads.
  DutyThreads(Duties& duties, const ObjectStore& objects, const Clock& clock, int workers);
  ~DutyThreads();

 private:
  void ObserveUntilStopped();
  void WorkUntilStopped();

  Duties& duties_;
  const ObjectStore& objects_;
  const Clock& clock_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::jthread> threads_;
};

}  // namespace tahoma::controller
