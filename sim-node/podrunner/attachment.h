// The output of a running container for one session, and the way to the container's stdin.
//
// The spawner's thread appends what the container writes, the session's thread takes it. A session
// that does not keep up is `full`: then the spawner reads no more of the container's output, and
// the container waits in its write, as with a slow terminal.
//
// Scope: bytes between two threads.
//
// Thread safety: Append, End and full from any thread; the rest from the session's.

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file_descriptor.h"
#include "lib/base/mutex.h"
#include "sim-node/podrunner/container_log.h"

namespace tahoma::sim {

class Attachment {
 public:
  // `in` leads to the container's stdin, -1 when it has none; a byte to `wake` wakes the spawner.
  Attachment(FileDescriptor in, FileDescriptor wake, bool tty);
  // Wakes the spawner, which may wait for this session.
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  void Append(LogStream stream, std::string_view bytes);
  void End();
  bool full() const;

  // Returns what has come since the last call.
  std::string Take(LogStream stream);
  // Whether the container has ended and Take has returned all.
  bool ended() const;
  // Readable when Take has something, or after the end.
  int event() const { return event_.get(); }
  int in() const { return in_.get(); }
  void CloseIn() { in_ = FileDescriptor(-1); }
  bool tty() const { return tty_; }

 private:
  std::size_t held() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return bytes_[0].size() + bytes_[1].size();
  }

  FileDescriptor in_;
  const FileDescriptor wake_;
  const FileDescriptor event_;
  const bool tty_;
  mutable Mutex mutex_;
  std::array<std::string, 2> bytes_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// The sessions that see the output of one container.
class Audience {
 public:
  // Keeps up to 64 KiB of output for the first session. A container that `kubectl run -i` made has
  // often written, and ended, before kubectl attaches.
  void KeepForFirst();
  void Add(const std::shared_ptr<Attachment>& session);
  void Append(LogStream stream, std::string_view bytes);
  void End();
  bool full() const;

 private:
  mutable Mutex mutex_;
  std::vector<std::weak_ptr<Attachment>> sessions_ ABSL_GUARDED_BY(mutex_);
  bool keeps_ ABSL_GUARDED_BY(mutex_) = false;
  std::array<std::string, 2> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::sim
