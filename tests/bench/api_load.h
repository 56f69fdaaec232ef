// Load on an API server: writes from several threads, and pods that are seen bound.
//
//   InParallel(1000, [&](int i) { Send(api, "/api/v1/namespaces/default/pods", PodOf(i)); });
//   BoundPods bound(1000);
//   std::jthread watch([&] { bound.Watch(api); });
//   if (!bound.Wait()) …
//
// Scope: benches of API servers. A benchmark of failures says nothing, so any other answer than
// success ends the program.
//
// Thread safety: as each says.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::bench {

// Sends one write and returns the answer. From any thread.
Json Send(kube::Transport& api, const std::string& target, const Json& body,
          const char* method = "POST", const char* type = "application/json");

// Reads one object or list. From any thread.
Json Get(kube::Transport& api, const std::string& target);

// Runs f(0) … f(count - 1) on several threads.
template <typename F>
void InParallel(int count, const F& f, int writers = 8) {
  std::atomic<int> next = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < writers; ++t) {
    threads.emplace_back([&] {
      for (int i = next++; i < count; i = next++) f(i);
    });
  }
}

// The pods of the namespace default that a watch of bound pods shows: each enters it once, ADDED.
// Watch() belongs to a thread of its own, the others to any.
class BoundPods {
 public:
  explicit BoundPods(std::size_t wanted) : wanted_(wanted) {}
  // Returns when as many are bound as are wanted, or after ten minutes.
  void Watch(kube::Transport& api);
  // False when it took longer than five minutes, of which it then says how far it came.
  bool Wait();

 private:
  bool Take(std::string_view line);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::size_t wanted_;
  std::size_t bound_ = 0;
};

}  // namespace tahoma::bench
