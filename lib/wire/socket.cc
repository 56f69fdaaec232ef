#include "lib/wire/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/file_descriptor.h"
#include "lib/base/host_port.h"
#include "lib/base/status.h"
#include "lib/base/tls.h"

namespace tahoma::wire {
namespace {

constexpr std::chrono::nanoseconds kNever = std::chrono::nanoseconds::max();
// A frame's memory grows as its bytes arrive, so that announcing a large frame costs us nothing.
constexpr std::size_t kReadChunk = std::size_t{256} << 10U;
// The buffer for a payload that is skipped.
constexpr std::size_t kSkipChunk = std::size_t{64} << 10U;
constexpr int kBacklog = 128;
// Between two attempts to connect to a listener whose backlog is full.
constexpr int kBacklogPauseMs = 5;

std::chrono::nanoseconds Now() { return SystemClock().MonotonicNow().time_since_epoch(); }

std::chrono::nanoseconds DeadlineAfter(std::chrono::milliseconds timeout) {
  return timeout == kForever ? kNever : Now() + timeout;
}

std::string ErrorText(int error) { return std::string(strerror(error)); }

// Waits until `fd` is ready for `events` or in error. kDeadlineExceeded when the deadline passes.
absl::Status WaitFor(int fd, short events, std::chrono::nanoseconds deadline) {
  while (true) {
    int wait_ms = -1;
    if (deadline != kNever) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Now()).count();
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
    }
    pollfd poll_fd = {.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&poll_fd, 1, wait_ms);
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) return DeadlineExceeded("timed out");
    if (errno != EINTR) return Unavailable("poll: {}", ErrorText(errno));
  }
}

struct ResolvedAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  int family = AF_UNSPEC;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// A name may have several, as of IPv6 and of IPv4: in the order of preference, at least one.
absl::StatusOr<std::vector<ResolvedAddress>> Resolve(const Address& address) {
  std::vector<ResolvedAddress> out;
  if (address.is_unix()) {
    sockaddr_un unix_address = {};
    unix_address.sun_family = AF_UNIX;
    TAHOMA_CHECK(address.path.size() <= kMaxUnixPathBytes);
    address.path.copy(unix_address.sun_path, address.path.size());
    std::memcpy(&out.emplace_back().storage, &unix_address, sizeof unix_address);
    out.back().size = sizeof unix_address;
    out.back().family = AF_UNIX;
    return out;
  }
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return Unavailable("{}: cannot resolve the host: {}", address.ToString(), gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    TAHOMA_CHECK(one->ai_addrlen <= sizeof(sockaddr_storage));
    std::memcpy(&out.emplace_back().storage, one->ai_addr, one->ai_addrlen);
    out.back().size = one->ai_addrlen;
    out.back().family = one->ai_family;
  }
  return out;
}

absl::StatusOr<int> NewSocket(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ResourceExhausted("socket: {}", ErrorText(errno));
  if (family != AF_UNIX) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return fd;
}

absl::StatusOr<int> ConnectTo(const ResolvedAddress& to, const Address& address,
                              std::chrono::nanoseconds deadline) {
  TAHOMA_ASSIGN_OR_RETURN(const int raw, NewSocket(to.family));
  FileDescriptor fd(raw);
  while (connect(fd.get(), to.get(), to.size) != 0) {
    if (errno == EINPROGRESS) break;
    // A unix listener's backlog is full, as when many strangers dial; poll(2) cannot wait for that.
    if (errno == EAGAIN && Now() < deadline) {
      poll(nullptr, 0, kBacklogPauseMs);
      continue;
    }
    if (errno == EAGAIN) {
      return DeadlineExceeded("connecting to {}: too many others do", address.ToString());
    }
    return Unavailable("cannot connect to {}: {}", address.ToString(), ErrorText(errno));
  }
  TAHOMA_RETURN_IF_ERROR(Annotate(WaitFor(fd.get(), POLLOUT, deadline),
                                  fmt::format("connecting to {}", address.ToString())));
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    return Unavailable("cannot connect to {}: {}", address.ToString(), ErrorText(error));
  }
  return fd.Release();
}

// Tries each address of the host: a peer may listen on one of them only. An address that does not
// answer takes no more than its share of the time.
absl::StatusOr<int> Connect(const Address& address, std::chrono::nanoseconds deadline) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<ResolvedAddress> addresses, Resolve(address));
  absl::StatusOr<int> connected;
  auto left = static_cast<int>(addresses.size());
  for (const ResolvedAddress& to : addresses) {
    const std::chrono::nanoseconds now = Now();
    connected = ConnectTo(to, address, deadline == kNever ? kNever : now + (deadline - now) / left);
    if (connected.ok()) break;
    --left;
  }
  return connected;
}

// Removes a socket file that a dead program left; any other file is an error and stays.
absl::Status RemoveStaleSocket(const Address& address) {
  struct stat found = {};
  if (lstat(address.path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode)) {
    return FailedPrecondition(
        "{}: the file exists and is no socket; remove it or choose another "
        "path",
        address.path);
  }
  const absl::StatusOr<int> answered = Connect(address, Now() + std::chrono::seconds(1));
  if (answered.ok()) {
    close(*answered);
    return AlreadyExists("{}: another program is listening there", address.path);
  }
  if (absl::IsDeadlineExceeded(answered.status())) {
    return AlreadyExists("{}: another program is listening there, and busy", address.path);
  }
  if (unlink(address.path.c_str()) != 0 && errno != ENOENT) {
    return FailedPrecondition("{}: cannot remove the stale socket: {}", address.path,
                              ErrorText(errno));
  }
  return absl::OkStatus();
}

std::uint16_t BoundPort(int fd) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  if (storage.ss_family == AF_INET6) {
    sockaddr_in6 six = {};
    std::memcpy(&six, &storage, sizeof six);
    return ntohs(six.sin6_port);
  }
  sockaddr_in four = {};
  std::memcpy(&four, &storage, sizeof four);
  return ntohs(four.sin_port);
}

}  // namespace

std::string Address::ToString() const {
  if (is_unix()) return "unix:" + path;
  return JoinHostPort(host, port);
}

absl::StatusOr<Address> ParseAddress(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  constexpr std::size_t kHostBytesMax = 253;  // of a DNS name, RFC 1035 2.3.4
  if (text.starts_with(kUnix) || text.starts_with('/')) {
    const std::string_view path = text.starts_with('/') ? text : text.substr(kUnix.size());
    if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) {
      return InvalidArgument("address \"{}\": expected an absolute path after \"unix:\"", text);
    }
    if (path.size() > kMaxUnixPathBytes) {
      return InvalidArgument(
          "address \"{}\": the path has {} bytes; a unix socket's has at most {}", text,
          path.size(), kMaxUnixPathBytes);
    }
    return Address{.path = std::string(path), .host = "", .port = 0};
  }
  const auto split = SplitHostPort(text);
  if (!split.ok()) return Annotate(split.status(), fmt::format("address \"{}\"", text));
  if (!split->port || split->host.empty()) {
    return InvalidArgument("address \"{}\": expected host:port or unix:/path", text);
  }
  if (split->host.size() > kHostBytesMax) {
    return InvalidArgument("address \"{}\": the host has {} characters; at most {} are possible",
                           text, split->host.size(), kHostBytesMax);
  }
  return Address{.path = "", .host = split->host, .port = *split->port};
}

Connection::Connection(int fd, std::string peer) : fd_(fd), peer_(std::move(peer)) {
  const int flags = fcntl(fd_, F_GETFL);
  TAHOMA_CHECK(flags >= 0);
  fcntl(fd_, F_SETFL, flags | O_NONBLOCK);
}

Connection::~Connection() { close(fd_); }

absl::StatusOr<std::unique_ptr<Connection>> Connection::Dial(std::string_view address,
                                                             std::chrono::milliseconds timeout) {
  TAHOMA_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  TAHOMA_ASSIGN_OR_RETURN(const int fd, Connect(parsed, DeadlineAfter(timeout)));
  return std::make_unique<Connection>(fd, parsed.ToString());
}

void Connection::Shutdown() {
  broken_ = true;
  shutdown(fd_, SHUT_RDWR);
}

bool Connection::usable() const {
  char byte = 0;
  // recv returns 0 only at the peer's end of stream; bytes to read, or none yet (EAGAIN), are fine.
  return !broken_ && recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

absl::Status Connection::StartTls(const Tls& tls, TlsRole role, std::chrono::milliseconds timeout) {
  const std::chrono::nanoseconds deadline = DeadlineAfter(timeout);
  TAHOMA_ASSIGN_OR_RETURN(tls_, tls.NewSession(role, fd_));
  while (true) {
    short wait_for = 0;
    bool waits = false;
    {
      const MutexLock lock(tls_mutex_);
      ERR_clear_error();
      const int done = SSL_do_handshake(tls_.get());
      if (done == 1) return absl::OkStatus();
      waits = TlsResult(done, wait_for) < 0 && errno == EAGAIN;
    }
    absl::Status status = waits ? WaitFor(fd_, wait_for, deadline)
                                : Unauthenticated("TLS with {}: {}", peer_,
                                                  ERR_peek_error() == 0 ? "it closed the connection"
                                                                        : LastTlsError());
    if (status.ok()) continue;
    Shutdown();
    return status;
  }
}

bool Connection::Proves(std::string_view name) const {
  if (tls_ == nullptr) return false;
  const MutexLock lock(tls_mutex_);
  return IsCertifiedAs(*tls_, name);
}

std::optional<uid_t> Connection::peer_user() const {
  ucred peer = {};
  socklen_t size = sizeof peer;
  int family = AF_UNSPEC;
  socklen_t family_size = sizeof family;
  const bool is_unix =
      getsockopt(fd_, SOL_SOCKET, SO_DOMAIN, &family, &family_size) == 0 && family == AF_UNIX;
  if (!is_unix || getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

bool IsOwnUser(const Connection& connection) {
  const std::optional<uid_t> user = connection.peer_user();
  return user && (*user == geteuid() || *user == 0);
}

ssize_t Connection::TlsResult(int done, short& wait_for) {
  const int saved = errno;
  const int error = SSL_get_error(tls_.get(), done);
  if (error == SSL_ERROR_ZERO_RETURN) return 0;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    wait_for = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    errno = EAGAIN;
  } else {
    errno = error == SSL_ERROR_SYSCALL && saved != 0 && saved != EAGAIN ? saved : ECONNRESET;
  }
  return -1;
}

ssize_t Connection::Write(std::string_view bytes, short& wait_for) {
  wait_for = POLLOUT;
  if (!tls_) return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  const MutexLock lock(tls_mutex_);
  ERR_clear_error();
  const int most = static_cast<int>(std::min(bytes.size(), kReadChunk));
  const int sent = SSL_write(tls_.get(), bytes.data(), most);
  if (sent > 0) return sent;
  const ssize_t result = TlsResult(sent, wait_for);
  if (result == 0) errno = ECONNRESET;
  return -1;
}

ssize_t Connection::Read(char* bytes, std::size_t most, short& wait_for) {
  wait_for = POLLIN;
  if (!tls_) return recv(fd_, bytes, most, 0);
  const MutexLock lock(tls_mutex_);
  ERR_clear_error();
  const int got = SSL_read(tls_.get(), bytes, static_cast<int>(most));
  return got > 0 ? got : TlsResult(got, wait_for);
}

absl::Status Connection::WriteAll(std::string_view bytes, std::chrono::nanoseconds deadline) {
  while (!bytes.empty()) {
    short wait_for = 0;
    const ssize_t sent = Write(bytes, wait_for);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TAHOMA_RETURN_IF_ERROR(WaitFor(fd_, wait_for, deadline));
    } else if (errno != EINTR) {
      return Unavailable("the connection is gone: {}", ErrorText(errno));
    }
  }
  return absl::OkStatus();
}

absl::Status Connection::Send(const Frame& frame, std::chrono::milliseconds timeout) {
  TAHOMA_ASSIGN_OR_RETURN(std::string head, EncodePrefix(frame));
  head += frame.header;
  const std::chrono::nanoseconds deadline = DeadlineAfter(timeout);
  const MutexLock lock(send_mutex_);
  if (broken_) return Unavailable("{}: the connection is closed", peer_);
  absl::Status status = WriteAll(head, deadline);
  if (status.ok()) status = WriteAll(frame.payload, deadline);
  if (!status.ok()) Shutdown();  // half a frame would be read as nonsense
  return Annotate(status, fmt::format("sending to {}", peer_));
}

absl::Status Connection::ReadSome(std::string& out, std::size_t most,
                                  std::chrono::nanoseconds deadline) {
  while (true) {
    const std::size_t old_size = out.size();
    const std::size_t chunk = std::min(most, kReadChunk);
    out.resize(old_size + chunk);
    short wait_for = 0;
    const ssize_t got = Read(out.data() + old_size, chunk, wait_for);
    const int error = errno;
    out.resize(old_size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) return absl::OkStatus();
    if (got == 0) return Unavailable("the peer closed the connection");
    if (error == EAGAIN || error == EWOULDBLOCK) {
      TAHOMA_RETURN_IF_ERROR(WaitFor(fd_, wait_for, deadline));
    } else if (error != EINTR) {
      return Unavailable("the connection is gone: {}", ErrorText(error));
    }
  }
}

absl::Status Connection::ReadAppend(std::string& out, std::size_t bytes,
                                    std::chrono::nanoseconds deadline) {
  const std::size_t end = out.size() + bytes;
  while (out.size() < end) TAHOMA_RETURN_IF_ERROR(ReadSome(out, end - out.size(), deadline));
  return absl::OkStatus();
}

absl::StatusOr<FrameHead> Connection::ReadHead(const FrameBounds& bounds,
                                               std::chrono::nanoseconds first_by,
                                               std::chrono::milliseconds rest,
                                               std::chrono::nanoseconds whole_by) {
  const std::string where = fmt::format("receiving from {}", peer_);
  if (broken_) return Unavailable("{}: the connection is closed", where);
  std::string bytes;
  absl::Status status = ReadSome(bytes, kPrefixBytes, first_by);
  if (absl::IsDeadlineExceeded(status)) return Annotate(status, where);
  const std::chrono::nanoseconds deadline = std::min(DeadlineAfter(rest), whole_by);
  if (status.ok()) status = ReadAppend(bytes, kPrefixBytes - bytes.size(), deadline);
  FrameHead head;
  if (status.ok()) {
    const absl::StatusOr<FramePrefix> prefix = DecodePrefix(bytes, bounds);
    status = prefix.status();
    if (status.ok()) status = ReadAppend(head.header, prefix->header_bytes, deadline);
    if (status.ok()) head.payload_bytes = prefix->payload_bytes;
  }
  if (!status.ok()) {
    Shutdown();
    return Annotate(status, where);
  }
  return head;
}

absl::StatusOr<std::string> Connection::ReadPayload(std::size_t bytes,
                                                    std::chrono::nanoseconds deadline) {
  std::string payload;
  payload.reserve(bytes);  // addresses only: memory is taken as bytes come
  const absl::Status status = ReadAppend(payload, bytes, deadline);
  if (status.ok()) return payload;
  Shutdown();
  return Annotate(status, fmt::format("receiving from {}", peer_));
}

absl::StatusOr<Frame> Connection::Receive(std::chrono::milliseconds timeout) {
  const std::chrono::nanoseconds deadline = DeadlineAfter(timeout);
  TAHOMA_ASSIGN_OR_RETURN(FrameHead head, ReadHead({}, deadline, kForever, deadline));
  TAHOMA_ASSIGN_OR_RETURN(std::string payload, ReadPayload(head.payload_bytes, deadline));
  return Frame{.header = std::move(head.header), .payload = std::move(payload)};
}

absl::StatusOr<FrameHead> Connection::ReceiveHead(const FrameBounds& bounds,
                                                  std::chrono::milliseconds idle,
                                                  std::chrono::milliseconds timeout) {
  return ReadHead(bounds, DeadlineAfter(idle), timeout, kNever);
}

absl::StatusOr<std::string> Connection::ReceivePayload(std::size_t bytes,
                                                       std::chrono::milliseconds timeout) {
  return ReadPayload(bytes, DeadlineAfter(timeout));
}

absl::Status Connection::SkipPayload(std::size_t bytes, std::chrono::milliseconds timeout) {
  const std::chrono::nanoseconds deadline = DeadlineAfter(timeout);
  std::string piece;
  while (bytes > 0) {
    piece.clear();
    const absl::Status status = ReadSome(piece, std::min(bytes, kSkipChunk), deadline);
    if (!status.ok()) {
      Shutdown();
      return Annotate(status, fmt::format("receiving from {}", peer_));
    }
    bytes -= piece.size();
  }
  return absl::OkStatus();
}

Listener::Listener(int fd, Address address) : fd_(fd), address_(std::move(address)) {
  if (!address_.is_unix()) {
    address_.port = BoundPort(fd_);
    return;
  }
  struct stat made = {};
  if (stat(address_.path.c_str(), &made) == 0) {
    device_ = made.st_dev;
    inode_ = made.st_ino;
  }
}

Listener::~Listener() {
  Close();
  close(fd_);
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(std::string_view address) {
  TAHOMA_ASSIGN_OR_RETURN(Address parsed, ParseAddress(address));
  if (parsed.is_unix()) TAHOMA_RETURN_IF_ERROR(RemoveStaleSocket(parsed));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<ResolvedAddress> addresses, Resolve(parsed));
  const ResolvedAddress& at = addresses.front();
  TAHOMA_ASSIGN_OR_RETURN(const int raw, NewSocket(at.family));
  FileDescriptor fd(raw);
  if (!parsed.is_unix()) {
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (bind(fd.get(), at.get(), at.size) != 0) {
    const int error = errno;
    if (error == EADDRINUSE) {
      return AlreadyExists("cannot listen on {}: {}", parsed.ToString(), ErrorText(error));
    }
    return FailedPrecondition("cannot listen on {}: {}", parsed.ToString(), ErrorText(error));
  }
  if (listen(fd.get(), kBacklog) != 0) {
    return FailedPrecondition("cannot listen on {}: {}", parsed.ToString(), ErrorText(errno));
  }
  return std::unique_ptr<Listener>(new Listener(fd.Release(), std::move(parsed)));
}

absl::StatusOr<std::unique_ptr<Connection>> Listener::Accept(std::chrono::milliseconds timeout) {
  const std::chrono::nanoseconds deadline = DeadlineAfter(timeout);
  while (true) {
    if (closed_) return Unavailable("{}: the listener is closed", address_.ToString());
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      if (!address_.is_unix()) {
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      }
      return std::make_unique<Connection>(fd, fmt::format("a client of {}", address_.ToString()));
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TAHOMA_RETURN_IF_ERROR(Annotate(WaitFor(fd_, POLLIN, deadline),
                                      fmt::format("waiting on {}", address_.ToString())));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      return ResourceExhausted("{}: accept: {}", address_.ToString(), ErrorText(errno));
    } else if (errno != EINTR && errno != ECONNABORTED && !closed_) {
      return Unavailable("{}: accept: {}", address_.ToString(), ErrorText(errno));
    }
  }
}

void Listener::Close() {
  if (closed_.exchange(true)) return;
  shutdown(fd_, SHUT_RDWR);
  if (!address_.is_unix()) return;
  struct stat found = {};
  if (lstat(address_.path.c_str(), &found) == 0 && found.st_dev == device_ &&
      found.st_ino == inode_) {
    unlink(address_.path.c_str());
  }
}

}  // namespace tahoma::wire
