#include "dra-plugin/kubelet/call_queue.h"

#include <utility>

#include "lib/base/status.h"

namespace tahoma::dra {

CallQueue::CallQueue(CallLock& lock) : lock_(lock), thread_([this] { Work(); }) {}

CallQueue::~CallQueue() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

absl::Status CallQueue::Run(Call call, CondVar::Deadline deadline) {
  const auto entry = std::make_shared<Entry>(Entry{.call = std::move(call)});
  const MutexLock lock(mutex_);
  if (CondVar::In(std::chrono::seconds(0)) >= deadline) {
    return DeadlineExceeded("there was no time left for it; ask again");
  }
  waiting_.push_back(entry);
  changed_.NotifyAll();
  while (!entry->done && changed_.WaitUntil(mutex_, deadline)) {
  }
  if (entry->done) return entry->status;
  entry->abandoned = true;
  return DeadlineExceeded("it has not ended in time; ask again");
}

bool CallQueue::Pause(CondVar::Deadline until) {
  const MutexLock lock(mutex_);
  while (!no_pauses_ && changed_.WaitUntil(mutex_, until)) {
  }
  return !no_pauses_;
}

void CallQueue::EndPauses() {
  {
    const MutexLock lock(mutex_);
    no_pauses_ = true;
  }
  changed_.NotifyAll();
}

void CallQueue::Work() {
  MutexLock lock(mutex_);
  while (true) {
    while (!ending_ && waiting_.empty()) changed_.Wait(mutex_);
    if (ending_) return;
    const std::shared_ptr<Entry> entry = std::move(waiting_.front());
    waiting_.pop_front();
    if (entry->abandoned) continue;  // its kubelet asks again
    lock.Unlock();
    absl::Status status;
    {
      const CallLock::Held held(lock_);
      status = held.status().ok() ? entry->call() : held.status();
    }
    lock.Lock();
    entry->status = std::move(status);
    entry->done = true;
    changed_.NotifyAll();
  }
}

}  // namespace tahoma::dra
