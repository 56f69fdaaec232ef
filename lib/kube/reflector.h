// Follows all objects of a kind: lists, watches, and lists again when the watch lost its place.
//
//   Reflector pods(transport, sleeper, Rng(seed), {.resource = kPods},
//                  {.seen = [&](const Json& pod) { return known.Put(pod); },
//                   .gone = [&](const ObjectKey& key, const std::string&) { known.Drop(key); },
//                   .listed = [&] { known.SetComplete(); }});
//   pods.Start();                             // a thread of its own; ends with the object
//
// watch_cache.h says when each handler is called. A watch that ended in order, or that the server
// refused for a while, continues at its place. A list follows when the place is lost (410, or a
// version unknown to the server), and whenever the server may be another server or restored from a
// backup, which no watch tells: after a broken watch, and after a watch without any event or
// bookmark.
//
// After a failure the reflector waits with exponential back-off and jitter, at least as long as the
// server asks; also when the server's lists work and its watches do not.
//
// Scope: I/O, waits and order. The state is a WatchCache.
//
// Thread safety: Start and Stop from one thread; handlers are called from Run's thread, one at a
// time.

#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "lib/base/json_part.h"
#include "lib/base/rng.h"
#include "lib/kube/client.h"
#include "lib/kube/resource.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"
#include "lib/kube/watch_cache.h"

namespace tahoma::kube {

struct ReflectorOptions {
  Resource resource;
  std::string ns = {};  // empty: all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
  int page_size = 500;
  // The part of each object that the handlers read, metadata included: of lists that come as text
  // the rest is left out. Watches give whole objects.
  JsonPart part = {};
  // The server is asked to end each watch after this long, plus up to as much again.
  std::chrono::seconds watch_timeout = std::chrono::seconds(300);
  // A connection without a byte for this long is dead: bookmarks come about every minute.
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(150);
  RetryOptions backoff = {
      .attempts = 0, .first = std::chrono::milliseconds(100), .longest = std::chrono::seconds(30)};
};

class Reflector {
 public:
  // Transport and sleeper must outlive the reflector.
  Reflector(Transport& transport, Sleeper& sleeper, Rng rng, ReflectorOptions options,
            WatchHandlers handlers);
  ~Reflector() { Stop(); }
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  // Runs the reflector on a thread of its own.
  void Start();
  // Runs on the caller's thread, until Stop is called or the sleeper is interrupted.
  void Run();
  // Waits for the thread of Start. A silent stream ends at its idle time-out; to end the stream at
  // once, first shut the transport down and interrupt the sleeper.
  void Stop();

  // Makes one turn of Run, for callers with a loop of their own: lists when the watch has no place,
  // otherwise follows the watch until its end. After an error the caller waits and calls again.
  absl::Status Step();

  // Returns how many objects are known.
  std::size_t size() const { return cache_.size(); }

 private:
  absl::Status List();
  absl::Status Watch();

  Transport& transport_;
  Sleeper& sleeper_;
  Rng rng_;
  const ReflectorOptions options_;
  const WatchHandlers handlers_;
  WatchCache cache_;
  bool in_pages_ = true;      // false: the next list comes whole
  std::uint64_t events_ = 0;  // events of the last turn's watch
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace tahoma::kube
