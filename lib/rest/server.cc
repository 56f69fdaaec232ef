#include "lib/rest/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/rest/bearer.h"
#include "lib/rest/connection.h"
#include "lib/rest/http.h"
#include "lib/rest/probes.h"
#include "lib/rest/router.h"
#include "lib/rest/tls.h"
#include "lib/rest/workers.h"

namespace tahoma::rest {
namespace {

// Sockets wait in real time.
MonotonicTime Now() { return SystemClock().MonotonicNow(); }

// How long a worker waits for the next request of its connection before the connection is parked:
// a client that sends request after request then costs no change of threads.
constexpr auto kLinger = std::chrono::milliseconds(50);
constexpr auto kSweep = std::chrono::milliseconds(1000);
constexpr std::string_view kNoRoom =
    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Content-Length: 0\r\n\r\n";

struct HostPort {
  std::string host;
  int port = 0;
};

absl::StatusOr<HostPort> SplitAddress(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  HostPort split;
  if (colon != std::string::npos) {
    split.host = address.substr(0, colon);
    const char* end = address.data() + address.size();
    const auto [rest, error] = std::from_chars(address.data() + colon + 1, end, split.port);
    if (error == std::errc() && rest == end && split.port >= 0 && split.port <= 65535) {
      if (split.host.starts_with('[') && split.host.ends_with(']')) {
        split.host = split.host.substr(1, split.host.size() - 2);
      }
      if (split.host.empty()) split.host = "0.0.0.0";
      return split;
    }
  }
  return InvalidArgument("\"{}\" is not an address; expected host:port, for example 127.0.0.1:8001",
                         address);
}

std::string NameOf(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(v6.sin6_port));
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &address, sizeof v4);
  inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  return fmt::format("{}:{}", text.data(), ntohs(v4.sin_port));
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, Metrics& metrics)
      : options_(std::move(options)),
        metrics_(metrics),
        connections_(metrics.AddGauge("tahoma_http_connections", "Connections that are open.")),
        http_(
            options_, metrics, [this](Request& head) { return Refuse(head); },
            [this](Request& request) { return Answer(request); }),
        workers_(
            {.max_threads = options_.max_threads, .stack_bytes = options_.thread_stack_bytes}) {}

  absl::Status Bind();
  void Unbind() { http_.CloseListener(); }
  absl::Status Start();
  void Stop();

  Router router_;
  Handler raw_;
  Gate gate_;
  Probes probes_;
  HostPort bound_;
  const ServerOptions options_;

 private:
  using ConnectionPtr = std::shared_ptr<Connection>;
  struct Parked {
    ConnectionPtr connection;
    MonotonicTime until;
  };

  std::optional<Response> Refuse(Request& head);
  Response Answer(Request& request);
  std::optional<Response> AnswerProbe(const Request& request);
  std::optional<Response> CheckToken(const Request& request) const;

  void Wait();
  void Accept();
  void Wake(int fd);
  void Sweep();
  void Park(const ConnectionPtr& connection);
  void Serve(const ConnectionPtr& connection);
  void Finish(const ConnectionPtr& connection, bool keep);

  Metrics& metrics_;
  Gauge& connections_;
  Http http_;
  Workers workers_;
  SslContext tls_;
  int epoll_ = -1;
  int wake_ = -1;
  std::thread waiter_;
  std::atomic<bool> stopping_ = false;

  std::mutex mutex_;
  std::condition_variable none_active_;
  std::unordered_map<int, Parked> parked_;
  std::set<ConnectionPtr> active_;
};

absl::Status Server::Impl::Bind() {
  TAHOMA_ASSIGN_OR_RETURN(bound_, SplitAddress(options_.address));
  if (!options_.tls.cert_file.empty()) {
    TAHOMA_ASSIGN_OR_RETURN(tls_, MakeServerContext(options_.tls));
  }
  const int port = http_.Bind(bound_.host, bound_.port);
  if (port <= 0) {
    const int error = errno;
    http_.CloseListener();
    if (error == EADDRINUSE) {
      return Unavailable("{} is in use by another program", options_.address);
    }
    return InvalidArgument("cannot listen on {}: {}", options_.address,
                           error == 0 ? "the host is not known" : std::strerror(error));
  }
  bound_.port = port;
  return absl::OkStatus();
}

absl::Status Server::Impl::Start() {
  TAHOMA_CHECK(epoll_ < 0);
  TAHOMA_RETURN_IF_ERROR(Bind());
  fcntl(http_.listener(), F_SETFL, O_NONBLOCK);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_ < 0 || wake_ < 0) return ResourceExhausted("no file descriptors left");
  for (const int fd : {http_.listener(), wake_}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
  waiter_ = std::thread([this] { Wait(); });
  return absl::OkStatus();
}

void Server::Impl::Stop() {
  if (!waiter_.joinable()) return;
  stopping_ = true;
  http_.EndStreams();
  const std::uint64_t one = 1;
  if (::write(wake_, &one, sizeof one) < 0) return;
  waiter_.join();
  {
    std::unique_lock lock(mutex_);
    connections_.Add(-static_cast<std::int64_t>(parked_.size()));
    parked_.clear();
    none_active_.wait_for(lock, options_.stop_grace, [&] { return active_.empty(); });
    for (const ConnectionPtr& connection : active_) connection->Cut();
  }
  // Without a bound: a thread cannot be ended from outside, and its handler uses our owner's
  // things.
  workers_.Stop();
  http_.CloseListener();
  ::close(epoll_);
  ::close(wake_);
}

void Server::Impl::Wait() {
  std::array<epoll_event, 256> events{};
  auto next_sweep = Now() + kSweep;
  while (!stopping_) {
    const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(kSweep.count()));
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == http_.listener()) {
        Accept();
      } else if (fd != wake_) {
        Wake(fd);
      }
    }
    if (Now() < next_sweep) continue;
    Sweep();
    next_sweep = Now() + kSweep;
  }
}

void Server::Impl::Accept() {
  for (;;) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int fd = accept4(http_.listener(), reinterpret_cast<sockaddr*>(&address), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Out of descriptors: connections end sooner than a busy loop helps.
      if (errno == EMFILE || errno == ENFILE) {
        std::unique_lock lock(mutex_);
        none_active_.wait_for(lock, std::chrono::milliseconds(20));
      }
      return;
    }
    if (connections_.value() >= options_.max_connections) {
      if (!tls_) (void)::send(fd, kNoRoom.data(), kNoRoom.size(), MSG_NOSIGNAL);
      ::close(fd);
      continue;
    }
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    connections_.Add(1);
    auto connection =
        std::make_shared<Connection>(fd, tls_.get(), NameOf(address),
                                     Connection::Limits{.header_bytes = options_.max_header_bytes,
                                                        .body_bytes = options_.max_body_bytes,
                                                        .request_timeout = options_.request_timeout,
                                                        .write_timeout = options_.write_timeout});
    const std::lock_guard lock(mutex_);
    Park(connection);
  }
}

// With mutex_ held.
void Server::Impl::Park(const ConnectionPtr& connection) {
  const int fd = connection->fd();
  parked_[fd] = {connection, Now() + options_.keep_alive};
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.fd = fd}};
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) != 0) {
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
}

void Server::Impl::Wake(int fd) {
  ConnectionPtr connection;
  {
    const std::lock_guard lock(mutex_);
    const auto at = parked_.find(fd);
    if (at == parked_.end()) return;
    connection = std::move(at->second.connection);
    parked_.erase(at);
    active_.insert(connection);
  }
  if (workers_.Submit([this, connection] { Serve(connection); })) return;
  if (!connection->is_tls()) {
    (void)::send(fd, kNoRoom.data(), kNoRoom.size(), MSG_NOSIGNAL);
  }
  Finish(connection, false);
}

void Server::Impl::Sweep() {
  const auto now = Now();
  const std::lock_guard lock(mutex_);
  connections_.Add(-static_cast<std::int64_t>(
      std::erase_if(parked_, [&](const auto& entry) { return entry.second.until < now; })));
}

void Server::Impl::Serve(const ConnectionPtr& connection) {
  bool keep = connection->Handshake();
  if (keep && connection->is_tls() && !connection->WaitReadable(kLinger)) {
    Finish(connection, true);
    return;
  }
  while (keep) {
    keep = http_.ServeOne(*connection) && !stopping_;
    const auto wait = workers_.has_room() ? kLinger : std::chrono::milliseconds(0);
    if (keep && !connection->WaitReadable(wait)) break;
  }
  Finish(connection, keep);
}

void Server::Impl::Finish(const ConnectionPtr& connection, bool keep) {
  const std::lock_guard lock(mutex_);
  active_.erase(connection);
  if (keep && !stopping_) {
    Park(connection);
  } else {
    connections_.Add(-1);
  }
  if (active_.empty()) none_active_.notify_all();
}

std::optional<Response> Server::Impl::AnswerProbe(const Request& request) {
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  if (request.path == "/metrics") {
    Response response = Response::Text(200, metrics_.Text());
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
  }
  return probes_.Answer(request);
}

std::optional<Response> Server::Impl::CheckToken(const Request& request) const {
  if (options_.bearer_token.empty()) return std::nullopt;
  const std::optional<std::string_view> given = BearerToken(request.header("Authorization"));
  if (given && EqualSecrets(*given, options_.bearer_token)) return std::nullopt;
  return Response::Problem(401, given ? "the bearer token is not valid"
                                      : "a bearer token is needed (Authorization: Bearer …)")
      .With("WWW-Authenticate", "Bearer");
}

// Whom the probes answer is not asked: what watches a program has no token.
std::optional<Response> Server::Impl::Refuse(Request& head) {
  if (Probes::IsProbe(head.path) && (head.method == "GET" || head.method == "HEAD") &&
      router_.Find(head.method, head.path).handler == nullptr) {
    return std::nullopt;
  }
  if (std::optional<Response> refusal = CheckToken(head)) return refusal;
  return gate_ ? gate_(head) : std::nullopt;
}

Response Server::Impl::Answer(Request& request) {
  Router::Match match = router_.Find(request.method, request.path);
  if (match.handler != nullptr) {
    request.params = std::move(match.params);
    return (*match.handler)(request);
  }
  if (std::optional<Response> probe = AnswerProbe(request)) return *std::move(probe);
  if (raw_) return raw_(request);
  if (match.malformed) {
    return Response::Problem(400, fmt::format("the path {} is not well-formed; a segment must not "
                                              "hold an encoded slash",
                                              request.path));
  }
  if (!match.allow.empty()) {
    return Response::Problem(405, fmt::format("{} is not possible on {}; possible are {}",
                                              request.method, request.path, match.allow))
        .With("Allow", match.allow);
  }
  return Response::Problem(404, fmt::format("there is nothing at {}", request.path));
}

Server::Server(ServerOptions options, Metrics& metrics)
    : impl_(std::make_unique<Impl>(std::move(options), metrics)) {}
Server::~Server() { impl_->Stop(); }

void Server::Route(const std::string& method, const std::string& pattern, Handler handler) {
  impl_->router_.Add(method, pattern, std::move(handler));
}
void Server::Raw(Handler handler) { impl_->raw_ = std::move(handler); }
void Server::SetGate(Gate gate) { impl_->gate_ = std::move(gate); }
void Server::SetReady(const std::string& reason_if_not) { impl_->probes_.SetReady(reason_if_not); }
void Server::AddCheck(Probes::Kind kind, std::string name, Probes::Check check) {
  impl_->probes_.Add(kind, std::move(name), std::move(check));
}
absl::Status Server::Check(const ServerOptions& options) {
  Metrics unread;
  Impl server(options, unread);
  const absl::Status bound = server.Bind();
  server.Unbind();
  return bound;
}
absl::Status Server::Start() { return impl_->Start(); }
void Server::Stop() { impl_->Stop(); }
int Server::port() const { return impl_->bound_.port; }
std::string Server::address() const {
  const std::string& host = impl_->bound_.host;
  return fmt::format(fmt::runtime(host.find(':') == std::string::npos ? "{}:{}" : "[{}]:{}"), host,
                     port());
}
std::string Server::url() const {
  return (impl_->options_.tls.cert_file.empty() ? "http://" : "https://") + address();
}

}  // namespace tahoma::rest
