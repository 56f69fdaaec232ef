#include "sim-node/podrunner/container_session.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::uint8_t kIn = 0;
constexpr std::uint8_t kOut = 1;
constexpr std::uint8_t kErr = 2;
constexpr std::uint8_t kStatus = 3;
constexpr std::uint8_t kSize = 4;
constexpr std::uint8_t kEnd = 255;

constexpr std::size_t kInMost = std::size_t{64} << 10U;
constexpr std::size_t kOutMost = std::size_t{128} << 10U;
constexpr std::size_t kReadBytesOfPipe = std::size_t{16} << 10U;
constexpr std::size_t kSizeBytesMost = 256;

std::string ChannelOf(std::uint8_t channel) { return std::string(1, static_cast<char>(channel)); }

std::string StatusText(Json status) {
  status["metadata"] = Json::object();
  return status.dump();
}

}  // namespace

std::string ExitStatus(const Exit& exit) {
  if (exit.code == 0) return StatusText({{"status", "Success"}});
  // Source: k8s.io/kubernetes pkg/kubelet, k8s.io/kubelet pkg/cri/streaming/remotecommand/exec.go.
  return StatusText(
      {{"status", "Failure"},
       {"reason", "NonZeroExitCode"},
       {"message",
        fmt::format("command terminated with non-zero exit code: exit status {}", exit.code)},
       {"details",
        {{"causes", {{{"reason", "ExitCode"}, {"message", std::to_string(exit.code)}}}}}}});
}

std::string FailedStatus(std::string_view message) {
  return StatusText({{"status", "Failure"},
                     {"reason", "InternalError"},
                     {"message", fmt::format("Internal error occurred: {}", message)},
                     {"details", {{"causes", {{{"message", std::string(message)}}}}}},
                     {"code", 500}});
}

ContainerSession::ContainerSession(Options options, std::unique_ptr<Process> program)
    : options_(std::move(options)),
      program_(std::move(program)),
      socket_([this](std::string_view piece, bool begins) { Receive(piece, begins); }) {
  if (!options_.in) program_->ends().in = FileDescriptor(-1);
}

ContainerSession::ContainerSession(Options options, std::shared_ptr<Attachment> attachment)
    : options_(std::move(options)),
      attachment_(std::move(attachment)),
      socket_([this](std::string_view piece, bool begins) { Receive(piece, begins); }) {}

ContainerSession::ContainerSession(std::string status)
    : status_(std::move(status)), socket_([](std::string_view, bool) {}) {}

ContainerSession::~ContainerSession() {
  if (options_.on_end_in && options_.in) options_.on_end_in();
}

bool ContainerSession::Step(rest::Upgraded& peer, std::chrono::milliseconds wait) {
  // Tells the client that the streams are there.
  if (!std::exchange(greeted_, true)) {
    socket_.Send(ChannelOf(options_.out ? kOut : options_.err ? kErr : kStatus), "");
  }
  const bool read_peer = pending_in_.size() < kInMost;
  const bool takes_out = socket_.queued() < kOutMost;
  std::array<pollfd, 4> polled{};
  polled.fill({.fd = -1, .events = POLLIN, .revents = 0});
  if (!pending_in_.empty()) polled[0] = {.fd = in(), .events = POLLOUT, .revents = 0};
  if (program_ && takes_out) {
    polled[1].fd = program_->ends().out.get();
    polled[2].fd = program_->ends().err.get();
    polled[3].fd = program_->pidfd();
  }
  if (attachment_ && takes_out) polled[3].fd = attachment_->event();
  // Once the end is told, only the peer is waited for.
  if (socket_.closing()) polled.fill({.fd = -1, .events = 0, .revents = 0});
  const bool at_once = !status_.empty() && !socket_.closing();
  peer.Wait(socket_.events(read_peer), polled, at_once ? std::chrono::milliseconds(0) : wait);
  if (!socket_.closing()) {
    WriteIn();
    if (takes_out) ReadOut();
  }
  return socket_.Advance(peer, read_peer, SystemClock().MonotonicNow());
}

void ContainerSession::Receive(std::string_view piece, bool begins) {
  if (begins) {
    channel_ = static_cast<std::uint8_t>(piece.front());
    piece.remove_prefix(1);
    if (channel_ == kSize) size_.clear();
  }
  if (piece.empty()) return;
  if (channel_ == kIn && options_.in && !in_ended_) pending_in_ += piece;
  if (channel_ == kSize) ReadSize(piece);
  if (channel_ == kEnd && static_cast<std::uint8_t>(piece.front()) == kIn) EndIn();
}

void ContainerSession::ReadSize(std::string_view piece) {
  if (size_.size() + piece.size() > kSizeBytesMost) return;
  size_ += piece;
  const absl::StatusOr<Json> size = TryParseJson(size_);
  if (!size.ok() || !size->is_object()) return;
  const auto number = [&](const char* name) {
    const Json* found = FindMember(*size, name);
    return found != nullptr && found->is_number_integer() ? found->get<std::uint16_t>()
                                                          : std::uint16_t{0};
  };
  if (in() >= 0) Resize(in(), number("Width"), number("Height"));
}

int ContainerSession::in() const {
  if (program_) return program_->ends().in.get();
  return attachment_ ? attachment_->in() : -1;
}

void ContainerSession::EndIn() {
  in_ended_ = true;
  if (pending_in_.empty()) WriteIn();
}

void ContainerSession::WriteIn() {
  while (!pending_in_.empty()) {
    const ssize_t wrote = write(in(), pending_in_.data(), pending_in_.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    // A program that reads no more, or a container without stdin, takes what comes without reading.
    if (wrote <= 0) {
      pending_in_.clear();
      break;
    }
    pending_in_.erase(0, static_cast<std::size_t>(wrote));
  }
  if (!in_ended_ || in() < 0) return;
  // A terminal's end is its window's.
  if (program_ && !options_.tty) program_->ends().in = FileDescriptor(-1);
  if (attachment_ && !attachment_->tty()) attachment_->CloseIn();
  if (options_.on_end_in) options_.on_end_in();
}

void ContainerSession::ReadOut() {
  if (!status_.empty()) return Finish(status_);
  if (attachment_) return TakeAttached();
  // Looked for before the output is read: what was written before the end is still sent.
  const std::optional<Exit> exit = program_->Reap();
  at_rest_ = true;
  ReadPipe(program_->ends().out, static_cast<char>(kOut));
  ReadPipe(program_->ends().err, static_cast<char>(kErr));
  if (exit && at_rest_) Finish(ExitStatus(*exit));
}

void ContainerSession::ReadPipe(FileDescriptor& pipe, char channel) {
  std::array<char, kReadBytesOfPipe> bytes;
  if (pipe.get() < 0) return;
  const ssize_t got = read(pipe.get(), bytes.data(), bytes.size());
  if (got > 0) {
    socket_.Send({&channel, 1}, {bytes.data(), static_cast<std::size_t>(got)});
    at_rest_ = false;
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    pipe = FileDescriptor(-1);
  }
}

void ContainerSession::TakeAttached() {
  for (const LogStream stream : {LogStream::kStdout, LogStream::kStderr}) {
    const bool is_out = stream == LogStream::kStdout;
    const std::string bytes = attachment_->Take(stream);
    if (bytes.empty() || !(is_out ? options_.out : options_.err)) continue;
    socket_.Send(ChannelOf(is_out ? kOut : kErr), bytes);
  }
  if (attachment_->ended()) Finish(ExitStatus({}));
}

void ContainerSession::Finish(const std::string& status) {
  socket_.Send(ChannelOf(kStatus), status);
  socket_.Close();
}

}  // namespace tahoma::sim
