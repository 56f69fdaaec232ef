#include "lib/rest/workers.h"

#include <pthread.h>

#include <utility>

namespace tahoma::rest {

bool Workers::Submit(std::function<void()> job) {
  const MutexLock lock(mutex_);
  if (stopping_) return false;
  const auto unclaimed = static_cast<std::size_t>(idle_);
  if (jobs_.size() >= unclaimed && threads_ < limits_.max_threads) {
    if (!StartThread() && threads_ == 0) return false;
  }
  if (jobs_.size() >= limits_.max_waiting) return false;
  jobs_.push_back(std::move(job));
  wanted_.NotifyOne();
  return true;
}

// Detached threads, counted: std::thread cannot be given a stack size, and 2,048 stacks of the
// default 8 MiB would reserve 16 GiB.
bool Workers::StartThread() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, limits_.stack_bytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, &Workers::Enter, this) == 0;
  pthread_attr_destroy(&attributes);
  if (started) ++threads_;
  return started;
}

void* Workers::Enter(void* self) {
  static_cast<Workers*>(self)->Work();
  return nullptr;
}

void Workers::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_;
    const auto deadline = CondVar::In(limits_.idle);
    while (!stopping_ && jobs_.empty() && wanted_.WaitUntil(mutex_, deadline)) {
    }
    --idle_;
    if (jobs_.empty()) break;
    {
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.Unlock();
      job();
    }
    lock.Lock();
  }
  --threads_;
  // Under the lock: after it, Stop may return and this object may be gone.
  ended_.NotifyAll();
}

void Workers::Stop() {
  const MutexLock lock(mutex_);
  stopping_ = true;
  wanted_.NotifyAll();
  while (threads_ != 0) ended_.Wait(mutex_);
}

int Workers::threads() const {
  const MutexLock lock(mutex_);
  return threads_;
}

bool Workers::has_room() const {
  const MutexLock lock(mutex_);
  return jobs_.empty() && (idle_ > 0 || threads_ < limits_.max_threads);
}

}  // namespace tahoma::rest
