#include "lib/rest/lobby.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::rest {

Lobby::~Lobby() {
  if (epoll_ >= 0) ::close(epoll_);
}

absl::Status Lobby::Open() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  return epoll_ < 0 ? ResourceExhausted("no file descriptors left") : absl::OkStatus();
}

void Lobby::Add(ConnectionPtr connection) {
  const MutexLock lock(mutex_);
  const int fd = connection->fd();
  const bool is_new = entries_.emplace(fd, Entry{.connection = std::move(connection)}).second;
  TAHOMA_CHECK(is_new);
}

bool Lobby::Wait(const Connection& connection) {
  const MutexLock lock(mutex_);
  if (closed_) return false;
  const int fd = connection.fd();
  Entry& entry = entries_.find(fd)->second;
  TAHOMA_CHECK(!entry.waits);
  entry.waits = true;
  const std::uint32_t wanted = connection.wants() == POLLOUT ? EPOLLOUT : EPOLLIN | EPOLLRDHUP;
  epoll_event event{.events = wanted | EPOLLONESHOT, .data = {.fd = fd}};
  const int change = std::exchange(entry.known, true) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  (void)epoll_ctl(epoll_, change, fd, &event);
  return true;
}

ConnectionPtr Lobby::Pop(int fd) {
  const MutexLock lock(mutex_);
  const auto at = entries_.find(fd);
  if (at == entries_.end() || !at->second.waits) return nullptr;
  at->second.waits = false;
  return at->second.connection;
}

void Lobby::Remove(const Connection& connection) {
  const MutexLock lock(mutex_);
  const std::size_t removed = entries_.erase(connection.fd());
  TAHOMA_CHECK(removed == 1);
  if (entries_.empty()) empty_.NotifyAll();
}

std::vector<ConnectionPtr> Lobby::PopLate(MonotonicTime now) {
  std::vector<ConnectionPtr> late;
  const MutexLock lock(mutex_);
  for (auto& [fd, entry] : entries_) {
    if (!entry.waits || entry.connection->deadline() > now) continue;
    entry.waits = false;
    late.push_back(entry.connection);
  }
  return late;
}

std::vector<ConnectionPtr> Lobby::PopOldest(std::size_t most, Choice choice) {
  std::vector<Entry*> found;
  const MutexLock lock(mutex_);
  for (auto& [fd, entry] : entries_) {
    if (!entry.waits) continue;
    Connection& connection = *entry.connection;
    if (choice.client != nullptr && connection.share().client() != *choice.client) continue;
    if (choice.holding && connection.held_bytes() == 0) continue;
    found.push_back(&entry);
  }
  most = std::min(most, found.size());
  std::ranges::partial_sort(
      found, found.begin() + static_cast<std::ptrdiff_t>(most), {}, [](const Entry* entry) {
        return std::pair(entry->connection->is_idle(), entry->connection->since());
      });
  std::vector<ConnectionPtr> oldest;
  for (std::size_t i = 0; i < most; ++i) {
    found[i]->waits = false;
    oldest.push_back(found[i]->connection);
  }
  return oldest;
}

std::vector<ConnectionPtr> Lobby::Close() {
  std::vector<ConnectionPtr> waiting;
  const MutexLock lock(mutex_);
  closed_ = true;
  for (auto& [fd, entry] : entries_) {
    if (std::exchange(entry.waits, false)) waiting.push_back(entry.connection);
  }
  return waiting;
}

bool Lobby::empty() const {
  const MutexLock lock(mutex_);
  return entries_.empty();
}

bool Lobby::WaitUntilEmpty(std::chrono::milliseconds time) {
  const auto deadline = CondVar::In(time);
  const MutexLock lock(mutex_);
  while (!entries_.empty() && empty_.WaitUntil(mutex_, deadline)) {
  }
  return entries_.empty();
}

void Lobby::CutAll() {
  const MutexLock lock(mutex_);
  for (const auto& [fd, entry] : entries_) entry.connection->Cut();
}

}  // namespace tahoma::rest
