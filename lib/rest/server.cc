#include "lib/rest/server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509v3.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>
#include <thread>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/host_port.h"
#include "lib/base/loopback.h"
#include "lib/base/status.h"
#include "lib/rest/budget.h"
#include "lib/rest/connection.h"
#include "lib/rest/http.h"
#include "lib/rest/listener.h"
#include "lib/rest/lobby.h"
#include "lib/rest/probes.h"
#include "lib/rest/router.h"
#include "lib/rest/site_check.h"
#include "lib/rest/tls.h"
#include "lib/rest/workers.h"

namespace tahoma::rest {
namespace {

using Turn = Connection::Turn;
using Phase = Connection::Phase;

// A worker waits this long for the next request before the lobby gets the connection: a client that
// sends one request after another then costs no change of threads.
constexpr auto kLinger = std::chrono::milliseconds(50);
constexpr auto kSweepMost = std::chrono::milliseconds(250);
constexpr auto kSweepLeast = std::chrono::milliseconds(10);
constexpr int kAcceptsPerTurn = 64;
// The most unread bytes of an answer in the kernel. The kernel's own bound is megabytes, and all
// connections of the machine share the memory of all sockets.
constexpr int kUnsentBytesMost = 128 << 10;
// The part of the connections to close at once when there are too many: finding the oldest costs a
// look at every connection.
constexpr int kEvictedPart = 64;
constexpr std::size_t kEvictedForBytes = 8;

bool TakesBody(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH" || method == "DELETE" ||
         method == "TRACE" || method == "QUERY";
}

// RFC 9110, 15.5.6: the answer names the possible methods.
Response NotAllowed(const Request& request, const Router::Match& match) {
  return Response::Problem(405, fmt::format("{} is not possible on {}; possible are {}",
                                            request.method, request.path, match.allow))
      .With("Allow", match.allow);
}

// Descriptors are the program's for more than connections.
int ConnectionsMost(const ServerOptions& options) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return options.max_connections;
  const rlim_t half = std::max<rlim_t>(files.rlim_cur / 2, 1);
  return static_cast<int>(
      std::min<rlim_t>(half, static_cast<rlim_t>(std::max(options.max_connections, 1))));
}

Budget::Limits BudgetOf(const ServerOptions& options) {
  const int connections = ConnectionsMost(options);
  const int own = options.max_connections_per_client;
  return {.connections = connections,
          .connections_per_client = own > 0 ? own : std::max(connections - connections / 4, 1),
          .bytes = options.max_buffered_bytes,
          .bytes_per_client = options.max_buffered_bytes_per_client};
}

// The threads for tasks that must go on while all workers are busy; few threads, because the tasks
// are short.
constexpr Workers::Limits kFewThreads = {
    .max_threads = 2, .max_waiting = 4096, .stack_bytes = 256 << 10};

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, Metrics& metrics)
      : probes_(options.probes ? options.probes : std::make_shared<Probes>()),
        options_(std::move(options)),
        metrics_(metrics),
        connections_(metrics.AddGauge("tahoma_http_connections", "Connections that are open.")),
        evicted_(metrics.AddCounter("tahoma_http_connections_evicted_total",
                                    "Connections closed to make room for others.")),
        http_(
            options_, metrics, [this](Request& head) { return Refuse(head); },
            [this](Request& request) { return Answer(request); }),
        no_room_(http_.Refusal(429, "there is no room for another connection")),
        budget_(BudgetOf(options_)),
        workers_(
            {.max_threads = options_.max_threads, .stack_bytes = options_.thread_stack_bytes}) {}

  absl::Status Bind();
  void Unbind();
  absl::Status Start();
  void Stop();

  Router router_;
  Handler raw_;
  Gate gate_;
  const std::shared_ptr<Probes> probes_;
  ListenAddress bound_;
  const ServerOptions options_;

 private:
  std::optional<Response> Refuse(Request& head);
  std::optional<Response> RefuseBody(const Request& head);
  Response Answer(Request& request);
  std::optional<Response> AnswerProbe(const Request& request);
  SiteCheck::Options Sites() const;

  void Loop();
  void Accept();
  void Admit(int fd, const sockaddr_storage& address);
  void Arm(std::uint32_t listener_events);
  void Sweep();
  std::size_t Evict(std::size_t most, Lobby::Choice choice);
  void MakeRoomForBytes(const std::string& client);

  bool IsUrgent(Connection& connection) const;
  Turn Proceed(Connection& connection) const;
  void Advance(const ConnectionPtr& connection);
  void Continue(const ConnectionPtr& connection, Turn turn);
  void Dispatch(const ConnectionPtr& connection);
  void Park(const ConnectionPtr& connection);
  void Serve(const ConnectionPtr& connection, bool urgent);
  bool Linger(const Connection& connection);
  void Drop(const ConnectionPtr& connection);

  Metrics& metrics_;
  Gauge& connections_;
  Counter& evicted_;
  Http http_;
  const std::string no_room_;  // the answer to a connection beyond the bound
  std::optional<SiteCheck> site_check_;
  SslContext tls_;
  Budget budget_;
  Lobby lobby_;
  Workers workers_;
  Workers greeters_{kFewThreads};
  Workers probers_{kFewThreads};
  std::atomic<int> lingering_ = 0;
  int listener_ = -1;
  bool listener_rests_ = false;  // the loop's
  int wake_ = -1;
  std::thread loop_;
  std::atomic<bool> stopping_ = false;
};

absl::Status Server::Impl::Bind() {
  TAHOMA_ASSIGN_OR_RETURN(bound_, ParseListenAddress(options_.address));
  if (!options_.tls.cert_file.empty()) {
    TAHOMA_ASSIGN_OR_RETURN(tls_, MakeServerContext(options_.tls));
  }
  TAHOMA_ASSIGN_OR_RETURN(listener_, Listen(bound_));
  return absl::OkStatus();
}

void Server::Impl::Unbind() {
  if (listener_ >= 0) ::close(std::exchange(listener_, -1));
}

SiteCheck::Options Server::Impl::Sites() const {
  SiteCheck::Options sites{.address_host = bound_.host,
                           .loopback = IsLoopback(options_.address),
                           .allowed_hosts = options_.allowed_hosts};
  if (X509* own = tls_ ? SSL_CTX_get0_certificate(tls_.get()) : nullptr; own != nullptr) {
    sites.certificate_names = [own](const std::string& host) {
      return X509_check_host(own, host.c_str(), host.size(), 0, nullptr) == 1;
    };
  }
  return sites;
}

absl::Status Server::Impl::Start() {
  TAHOMA_CHECK(listener_ < 0);
  TAHOMA_RETURN_IF_ERROR(Bind());
  site_check_.emplace(Sites());
  if (options_.log && !tls_ && gate_ && !IsLoopback(options_.address)) {
    options_.log(
        fmt::format("{} is served without TLS: anyone on the network path can read the callers' "
                    "tokens; give it a certificate",
                    options_.address));
  }
  TAHOMA_RETURN_IF_ERROR(lobby_.Open());
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return ResourceExhausted("no file descriptors left");
  for (const int fd : {listener_, wake_}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(lobby_.epoll(), EPOLL_CTL_ADD, fd, &event);
  }
  loop_ = std::thread([this] { Loop(); });
  return absl::OkStatus();
}

void Server::Impl::Stop() {
  if (!loop_.joinable()) return Unbind();
  stopping_ = true;
  http_.EndStreams();
  const std::uint64_t one = 1;
  if (::write(wake_, &one, sizeof one) < 0) return;
  loop_.join();
  for (const ConnectionPtr& connection : lobby_.Close()) {
    const auto send_rest = [this, connection] {
      connection->SendRest();
      Drop(connection);
    };
    if (connection->phase() != Phase::kAnswering || !workers_.Submit(send_rest)) Drop(connection);
  }
  if (!lobby_.WaitUntilEmpty(options_.stop_grace)) lobby_.CutAll();
  // Waits without a bound: a thread cannot be ended from outside, and its handler uses things of
  // our owner.
  greeters_.Stop();
  probers_.Stop();
  workers_.Stop();
  Unbind();
  ::close(wake_);
}

void Server::Impl::Loop() {
  // OpenSSL writes to a lost peer with write(2), and SIGPIPE would end the program. Workers'
  // threads are started by this thread and inherit its mask.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  const auto sweep_every = std::clamp(
      std::min(options_.request_timeout, options_.write_timeout) / 4, kSweepLeast, kSweepMost);
  std::array<epoll_event, 256> events{};
  auto next_sweep = Now() + sweep_every;
  while (!stopping_) {
    // Only this thread admits connections: without any there is nothing to sweep.
    const bool idle = lobby_.empty() && !listener_rests_;
    const int ready = epoll_wait(lobby_.epoll(), events.data(), static_cast<int>(events.size()),
                                 idle ? -1 : static_cast<int>(sweep_every.count()));
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener_) {
        Accept();
      } else if (ConnectionPtr connection = fd == wake_ ? nullptr : lobby_.Pop(fd)) {
        Advance(connection);
      }
    }
    if (Now() < next_sweep) continue;
    Sweep();
    next_sweep = Now() + sweep_every;
  }
}

void Server::Impl::Arm(std::uint32_t listener_events) {
  listener_rests_ = listener_events == 0;
  epoll_event event{.events = listener_events, .data = {.fd = listener_}};
  epoll_ctl(lobby_.epoll(), EPOLL_CTL_MOD, listener_, &event);
}

void Server::Impl::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int fd = accept4(listener_, reinterpret_cast<sockaddr*>(&address), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Admit(fd, address);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // Out of descriptors: when no connection can be closed, the listener rests until the next
    // sweep.
    if ((errno == EMFILE || errno == ENFILE) && Evict(kEvictedForBytes, {}) == 0) Arm(0);
    return;
  }
}

void Server::Impl::Admit(int fd, const sockaddr_storage& address) {
  std::string client = ClientName(address);
  for (Budget::Over over = budget_.Room(client); over != Budget::Over::kNobody;
       over = budget_.Room(client)) {
    const bool own = over == Budget::Over::kClient;
    const int limit = own ? budget_.limits().connections_per_client : budget_.limits().connections;
    const auto most = static_cast<std::size_t>(std::max(limit / kEvictedPart, 1));
    if (Evict(most, {.client = own ? &client : nullptr}) > 0) continue;
    if (!tls_) (void)::send(fd, no_room_.data(), no_room_.size(), MSG_NOSIGNAL);
    ::close(fd);
    return;
  }
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytesMost, sizeof kUnsentBytesMost);
  connections_.Increment();
  auto connection = std::make_shared<Connection>(
      fd, tls_.get(), PeerName(address), budget_.Admit(std::move(client)),
      Connection::Limits{.request = {.head_bytes = options_.max_header_bytes,
                                     .body_bytes = options_.max_body_bytes},
                         .request_timeout = options_.request_timeout,
                         .write_timeout = options_.write_timeout,
                         .keep_alive = options_.keep_alive,
                         .least_rate = options_.least_rate});
  lobby_.Add(connection);
  // On a plain connection the request has often arrived already.
  if (tls_) {
    Park(connection);
  } else {
    Advance(connection);
  }
}

void Server::Impl::Sweep() {
  Arm(EPOLLIN);
  for (const ConnectionPtr& connection : lobby_.PopLate(Now())) {
    if (connection->phase() == Phase::kReceiving && connection->parser().has_begun()) {
      http_.Refuse(*connection, 408, "the request did not arrive in time");
      Continue(connection, Proceed(*connection));
    } else {
      Drop(connection);
    }
  }
}

// Returns how many connections had to go.
std::size_t Server::Impl::Evict(std::size_t most, Lobby::Choice choice) {
  const std::vector<ConnectionPtr> oldest = lobby_.PopOldest(most, choice);
  for (const ConnectionPtr& connection : oldest) {
    if (connection->phase() == Phase::kReceiving && connection->parser().has_begun()) {
      http_.Refuse(*connection, 503, "too many requests are incomplete");
      (void)Proceed(*connection);
    }
    evicted_.Increment();
    Drop(connection);
  }
  return oldest.size();
}

void Server::Impl::MakeRoomForBytes(const std::string& client) {
  for (Budget::Over over = budget_.Weight(client); over != Budget::Over::kNobody;
       over = budget_.Weight(client)) {
    const std::string* own = over == Budget::Over::kClient ? &client : nullptr;
    if (Evict(kEvictedForBytes, {.client = own, .holding = true}) == 0) return;
  }
}

Turn Server::Impl::Proceed(Connection& connection) const {
  try {
    return connection.Proceed();
  } catch (const std::exception&) {  // no memory
    return Turn::kGone;
  }
}

// Runs on the loop's thread.
void Server::Impl::Advance(const ConnectionPtr& connection) {
  if (connection->phase() != Phase::kGreeting) {
    Continue(connection, Proceed(*connection));
    return;
  }
  // A handshake takes a millisecond of processor time; other connections should not wait.
  const bool taken =
      greeters_.Submit([this, connection] { Continue(connection, Proceed(*connection)); });
  if (!taken) Drop(connection);
}

void Server::Impl::Continue(const ConnectionPtr& connection, Turn turn) {
  switch (turn) {
    case Turn::kWait:
      return Park(connection);
    case Turn::kReady:
      return Dispatch(connection);
    case Turn::kGone:
      return Drop(connection);
  }
}

// Probes and metrics must be answered even when the server is overloaded.
bool Server::Impl::IsUrgent(Connection& connection) const {
  if (connection.parser().state() != RequestParser::State::kHeadRead) return false;
  const Request& head = connection.parser().request();
  return Probes::IsProbe(head.path) || head.path == "/metrics";
}

void Server::Impl::Dispatch(const ConnectionPtr& connection) {
  const bool urgent = IsUrgent(*connection);
  Workers& threads = urgent ? probers_ : workers_;
  if (threads.Submit([this, connection, urgent] { Serve(connection, urgent); })) return;
  http_.Refuse(*connection, 429, "all threads are busy");
  Continue(connection, Proceed(*connection));
}

void Server::Impl::Serve(const ConnectionPtr& connection, bool urgent) {
  for (;;) {
    http_.Serve(*connection);
    Turn turn = Proceed(*connection);
    if (turn == Turn::kWait && connection->is_idle() && !urgent && Linger(*connection)) {
      turn = Proceed(*connection);
    }
    if (turn != Turn::kReady) return Continue(connection, turn);
    // A stop lets begun requests end.
    if (stopping_ && connection->parser().state() != RequestParser::State::kWhole) {
      return Drop(connection);
    }
    if (IsUrgent(*connection) != urgent) return Dispatch(connection);
  }
}

bool Server::Impl::Linger(const Connection& connection) {
  if (stopping_ || !workers_.has_room()) return false;
  const bool room = lingering_.fetch_add(1) < options_.max_threads / 4;
  const bool readable = room && connection.WaitReadable(kLinger);
  lingering_.fetch_sub(1);
  return readable;
}

void Server::Impl::Park(const ConnectionPtr& connection) {
  const std::size_t held = connection->held_bytes();
  connection->share().Hold(held);
  if (!lobby_.Wait(*connection)) {
    connection->SendRest();
    return Drop(connection);
  }
  // From here on the connection may be another thread's.
  if (held > 0) MakeRoomForBytes(connection->share().client());
}

void Server::Impl::Drop(const ConnectionPtr& connection) {
  connections_.Decrement();
  lobby_.Remove(*connection);
}

std::optional<Response> Server::Impl::AnswerProbe(const Request& request) {
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  if (request.path == "/metrics") {
    Response response = Response::Text(200, metrics_.Text());
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
  }
  return probes_->Answer(request);
}

// Probes are answered without authentication: programs that watch a server have no token.
std::optional<Response> Server::Impl::Refuse(Request& head) {
  if (auto refusal = site_check_->Refuse(head)) {
    return options_.problem(refusal->status, refusal->detail);
  }
  const bool is_probe = Probes::IsProbe(head.path) &&
                        (head.method == "GET" || head.method == "HEAD") &&
                        router_.Find(head.method, head.path).handler == nullptr;
  if (!is_probe && gate_) {
    if (auto refusal = gate_(head)) return refusal;
  }
  return RefuseBody(head);
}

// Refuses a body where the method takes none; an unknown method is refused first.
std::optional<Response> Server::Impl::RefuseBody(const Request& head) {
  const std::string_view length = head.header("Content-Length");
  const bool has_body =
      (!length.empty() && length != "0") || !head.header("Transfer-Encoding").empty();
  if (!has_body || TakesBody(head.method)) return std::nullopt;
  const Router::Match match = router_.Find(head.method, head.path);
  if (match.handler == nullptr && !match.allow.empty()) return NotAllowed(head, match);
  return options_.problem(400, fmt::format("{} takes no body", head.method));
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
  if (!match.allow.empty()) return NotAllowed(request, match);
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
void Server::SetReady(const std::string& reason_if_not) { impl_->probes_->SetReady(reason_if_not); }
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
std::string Server::address() const { return JoinHostPort(impl_->bound_.host, impl_->bound_.port); }
std::string Server::url() const {
  return (impl_->options_.tls.cert_file.empty() ? "http://" : "https://") + address();
}

}  // namespace tahoma::rest
