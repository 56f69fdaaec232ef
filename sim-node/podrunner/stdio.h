// The standard streams of a process that is about to start: pipes, or a terminal.
//
// Scope: descriptors. spawner.h starts processes, container_session.h moves the bytes.
//
// Thread safety: one thread at a time.

#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "lib/base/file_descriptor.h"

namespace tahoma::sim {

struct StreamWish {
  bool in = false;
  bool out = true;
  bool err = true;
  bool tty = false;  // one terminal for all three; then `err` is without meaning
};

// The ends on this side, non-blocking; -1 for a stream that was not wished for. With a terminal
// `in` and `out` are two descriptors of its master.
struct StreamEnds {
  FileDescriptor in{-1};
  FileDescriptor out{-1};
  FileDescriptor err{-1};
};

class Stdio {
 public:
  // The streams belong to `owner`, who may open /dev/stdout again. kUnavailable when the machine
  // has no descriptors or terminals left.
  static absl::StatusOr<std::unique_ptr<Stdio>> Make(StreamWish wish, std::optional<uid_t> owner);
  Stdio(const Stdio&) = delete;
  Stdio& operator=(const Stdio&) = delete;

  // In the child, between fork and exec, after setsid: makes the streams those of the process.
  void Adopt() const;
  // In the parent: closes the child's ends, and returns our ends.
  StreamEnds Take();

 private:
  Stdio() = default;
  absl::Status OpenTerminal(std::optional<uid_t> owner);

  bool tty_ = false;
  FileDescriptor child_in_{-1};
  FileDescriptor child_out_{-1};
  FileDescriptor child_err_{-1};
  StreamEnds ends_;
};

// Tells the terminal, and so its programs, how large the window is; does nothing to a pipe.
void Resize(int terminal, std::uint16_t columns, std::uint16_t rows);

}  // namespace tahoma::sim
