#include "sim-node/podrunner/stdio.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

absl::Status NoStream(std::string_view what) {
  return Unavailable("no {}: {}", what, std::strerror(errno));
}

// Makes a pipe with the end `ours` (0: for reading, 1: for writing) on this side.
absl::Status MakePipe(std::size_t ours, std::optional<uid_t> owner, FileDescriptor& our_end,
                      FileDescriptor& child_end) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return NoStream("pipe");
  our_end = FileDescriptor(ends.at(ours));
  child_end = FileDescriptor(ends.at(1 - ours));
  if (owner && fchown(child_end.get(), *owner, static_cast<gid_t>(-1)) != 0) {
    return NoStream("pipe");
  }
  fcntl(our_end.get(), F_SETFL, O_NONBLOCK);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stdio>> Stdio::Make(StreamWish wish, std::optional<uid_t> owner) {
  std::unique_ptr<Stdio> made(new Stdio());
  made->tty_ = wish.tty;
  if (wish.tty) {
    TAHOMA_RETURN_IF_ERROR(made->OpenTerminal(owner));
    return made;
  }
  if (wish.in) TAHOMA_RETURN_IF_ERROR(MakePipe(1, owner, made->ends_.in, made->child_in_));
  if (wish.out) TAHOMA_RETURN_IF_ERROR(MakePipe(0, owner, made->ends_.out, made->child_out_));
  if (wish.err) TAHOMA_RETURN_IF_ERROR(MakePipe(0, owner, made->ends_.err, made->child_err_));
  return made;
}

absl::Status Stdio::OpenTerminal(std::optional<uid_t> owner) {
  constexpr std::size_t kNameBytes = 64;
  std::array<char, kNameBytes> name{};
  ends_.in = FileDescriptor(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  const int master = ends_.in.get();
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
      ptsname_r(master, name.data(), name.size()) != 0) {
    return NoStream("terminal");
  }
  child_in_ = FileDescriptor(open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (child_in_.get() < 0) return NoStream("terminal");
  if (owner && fchown(child_in_.get(), *owner, static_cast<gid_t>(-1)) != 0) {
    return NoStream("terminal");
  }
  fcntl(master, F_SETFL, O_NONBLOCK);
  ends_.out = FileDescriptor(fcntl(master, F_DUPFD_CLOEXEC, 0));
  return ends_.out.get() < 0 ? NoStream("descriptor") : absl::OkStatus();
}

void Stdio::Adopt() const {
  if (tty_) {
    ioctl(child_in_.get(), TIOCSCTTY, 0);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      dup2(child_in_.get(), stream);
    }
    return;
  }
  const int null = open("/dev/null", O_RDWR);
  dup2(child_in_.get() >= 0 ? child_in_.get() : null, STDIN_FILENO);
  dup2(child_out_.get() >= 0 ? child_out_.get() : null, STDOUT_FILENO);
  dup2(child_err_.get() >= 0 ? child_err_.get() : null, STDERR_FILENO);
}

StreamEnds Stdio::Take() {
  child_in_ = FileDescriptor(-1);
  child_out_ = FileDescriptor(-1);
  child_err_ = FileDescriptor(-1);
  return std::move(ends_);
}

void Resize(int terminal, std::uint16_t columns, std::uint16_t rows) {
  const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ioctl(terminal, TIOCSWINSZ, &size);
}

}  // namespace tahoma::sim
