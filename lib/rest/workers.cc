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

// std::thread cannot be given a stack size, and 2,048 stacks of the default 8 MiB would reserve
// 16 GiB.
bool Workers::StartThread() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, limits_.stack_bytes);
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
  const std::optional<pthread_t> before = std::exchange(last_ended_, pthread_self());
  // Under the lock, because after the notification Stop goes on.
  ended_.NotifyAll();
  lock.Unlock();
  if (before) pthread_join(*before, nullptr);
}

// An ended thread still clears thread-local things, such as OpenSSL's; a program that ends would
// take these away too early. So each thread joins the thread that ended before, and Stop joins the
// last.
void Workers::Stop() {
  std::optional<pthread_t> last;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    wanted_.NotifyAll();
    while (threads_ != 0) ended_.Wait(mutex_);
    last = std::exchange(last_ended_, std::nullopt);
  }
  if (last) pthread_join(*last, nullptr);
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
