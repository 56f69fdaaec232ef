#include "sim-node/podrunner/attachment.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tahoma::sim {
namespace {

constexpr std::size_t kHeldMost = std::size_t{256} << 10U;
constexpr std::size_t kKeptMost = std::size_t{64} << 10U;

std::size_t IndexOf(LogStream stream) { return stream == LogStream::kStdout ? 0 : 1; }

}  // namespace

Attachment::Attachment(FileDescriptor in, FileDescriptor wake, bool tty)
    : in_(std::move(in)),
      wake_(std::move(wake)),
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      tty_(tty) {}

Attachment::~Attachment() { [[maybe_unused]] const ssize_t wrote = write(wake_.get(), "w", 1); }

void Attachment::Append(LogStream stream, std::string_view bytes) {
  const MutexLock lock(mutex_);
  bytes_.at(IndexOf(stream)) += bytes;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = write(event_.get(), &one, sizeof one);
}

void Attachment::End() {
  const MutexLock lock(mutex_);
  ended_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = write(event_.get(), &one, sizeof one);
}

bool Attachment::full() const {
  const MutexLock lock(mutex_);
  return held() >= kHeldMost;
}

std::string Attachment::Take(LogStream stream) {
  const MutexLock lock(mutex_);
  const bool was_full = held() >= kHeldMost;
  std::string taken = std::exchange(bytes_.at(IndexOf(stream)), {});
  std::uint64_t count = 0;
  if (held() == 0 && !ended_) {
    [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
  }
  if (was_full) [[maybe_unused]]
    const ssize_t wrote = write(wake_.get(), "w", 1);
  return taken;
}

bool Attachment::ended() const {
  const MutexLock lock(mutex_);
  return ended_ && held() == 0;
}

void Audience::KeepForFirst() {
  const MutexLock lock(mutex_);
  keeps_ = true;
}

void Audience::Add(const std::shared_ptr<Attachment>& session) {
  const MutexLock lock(mutex_);
  std::erase_if(sessions_, [](const auto& one) { return one.expired(); });
  sessions_.push_back(session);
  keeps_ = false;
  for (const LogStream stream : {LogStream::kStdout, LogStream::kStderr}) {
    const std::string kept = std::exchange(kept_.at(IndexOf(stream)), {});
    if (!kept.empty()) session->Append(stream, kept);
  }
}

void Audience::Append(LogStream stream, std::string_view bytes) {
  const MutexLock lock(mutex_);
  if (keeps_ && kept_[0].size() + kept_[1].size() + bytes.size() <= kKeptMost) {
    kept_.at(IndexOf(stream)) += bytes;
  } else {
    keeps_ = false;
    kept_ = {};
  }
  for (const auto& one : sessions_) {
    if (const auto session = one.lock()) session->Append(stream, bytes);
  }
}

void Audience::End() {
  const MutexLock lock(mutex_);
  for (const auto& one : sessions_) {
    if (const auto session = one.lock()) session->End();
  }
}

bool Audience::full() const {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(sessions_, [](const auto& one) {
    const auto session = one.lock();
    return session != nullptr && session->full();
  });
}

}  // namespace tahoma::sim
