#include "lib/rest/http.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <utility>

#include "lib/base/ascii.h"
#include "lib/base/clock.h"
#include "lib/rest/head_check.h"

namespace tahoma::rest {
namespace {

constexpr int kBacklog = 4096;
// What ends a chunked body. httplib also takes a chunk for the last one when more bytes follow it
// than it said, and would leave the rest for the next request.
constexpr std::string_view kLastChunk = "0\r\n\r\n";

bool TakesBody(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH" || method == "DELETE";
}

// httplib adds these to every request's headers; a client's own are not to be believed either.
bool IsHttplibs(std::string_view name) {
  return EqualsIgnoringCase(name, "REMOTE_ADDR") || EqualsIgnoringCase(name, "REMOTE_PORT") ||
         EqualsIgnoringCase(name, "LOCAL_ADDR") || EqualsIgnoringCase(name, "LOCAL_PORT");
}

int StatusOf(Connection::Trouble trouble, int otherwise) {
  switch (trouble) {
    case Connection::Trouble::kTimeout:
      return 408;
    case Connection::Trouble::kHeaderTooLarge:
      return 431;
    case Connection::Trouble::kBodyTooLarge:
      return 413;
    default:
      return otherwise;
  }
}

std::string_view DetailOf(int status) {
  switch (status) {
    case 408:
      return "the request did not arrive in time";
    case 413:
      return "the body is too large";
    case 414:
      return "the request line is longer than 8192 bytes";
    case 431:
      return "the head of the request is too large, or one of its lines";
    case 500:
      return "the request failed inside the server";
    default:
      return "the request is not well-formed HTTP/1.1, or its method is unknown";
  }
}

// What is known of the request that this thread serves. httplib's callbacks get only its own
// request object, so they find this one by thread.
struct Exchange {
  explicit Exchange(Connection& on) : connection(on) {}

  Connection& connection;
  Request request;
  HeadCheck head;
  bool chunked = false;
  std::string body_end;             // the last bytes of a body as it was sent
  std::optional<Response> refusal;  // when the request must not reach a handler
  bool answered = false;
  bool close = false;
  int status = 0;
};

thread_local Exchange* current_exchange = nullptr;

// A connection as the stream that httplib reads and writes.
class ConnectionStream final : public httplib::Stream {
 public:
  explicit ConnectionStream(Exchange& exchange)
      : exchange_(exchange), connection_(exchange.connection) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !connection_.is_broken(); }
  ssize_t read(char* to, std::size_t size) override {
    const ssize_t got = connection_.Read(to, size);
    if (got <= 0) return got;
    const std::string_view bytes(to, static_cast<std::size_t>(got));
    if (!connection_.in_body()) {
      exchange_.head.Take(bytes);
    } else if (exchange_.chunked) {
      std::string& end = exchange_.body_end;
      end += bytes.substr(bytes.size() - std::min(bytes.size(), kLastChunk.size()));
      end.erase(0, end.size() - std::min(end.size(), kLastChunk.size()));
    }
    return got;
  }
  ssize_t write(const char* from, std::size_t size) override {
    return connection_.Write(from, size);
  }
  // httplib would copy these into every request's headers.
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  // httplib refuses descriptors that select(2) cannot take, but never uses this one.
  socket_t socket() const override { return 0; }

 private:
  Exchange& exchange_;
  Connection& connection_;
};

}  // namespace

class Http::Impl final : public httplib::Server {
 public:
  Impl(const ServerOptions& options, Metrics& metrics, Gate gate, Answer answer);

  int Bind(const std::string& host, int port);
  int listener() const { return svr_sock_.load(); }
  void CloseListener();
  void EndStreams() { ending_ = true; }
  bool ServeOne(Connection& connection);

 private:
  void Inspect(httplib::Request& parsed, Exchange& exchange) const;
  void Respond(const httplib::Request& parsed, httplib::Response& out);
  void Fill(Exchange& exchange, Response&& answer, httplib::Response& out);
  void FillStream(Exchange& exchange, Response&& answer, httplib::Response& out);
  void Repair(httplib::Response& out) const;
  void Count(int status, double seconds);

  const ServerOptions options_;
  Metrics& metrics_;
  const Gate gate_;
  const Answer answer_;
  Gauge& streams_;
  Histogram& seconds_;
  std::atomic<int> open_streams_ = 0;
  std::atomic<bool> ending_ = false;
};

Http::Impl::Impl(const ServerOptions& options, Metrics& metrics, Gate gate, Answer answer)
    : options_(options),
      metrics_(metrics),
      gate_(std::move(gate)),
      answer_(std::move(answer)),
      streams_(metrics.AddGauge("tahoma_http_open_streams", "Streams that are open now.")),
      seconds_(metrics.AddHistogram("tahoma_http_request_seconds",
                                    "From the last byte of a request to its answer.",
                                    kLatencySeconds)) {
  const auto respond = [this](const httplib::Request& in, httplib::Response& out) {
    Respond(in, out);
  };
  // Inspect empties the path, so that httplib's regular expressions have nothing to do.
  Get("", respond);
  Post("", respond);
  Put("", respond);
  Patch("", respond);
  Delete("", respond);
  Options("", respond);
  set_payload_max_length(options_.max_body_bytes);
  set_error_handler([this](const httplib::Request&, httplib::Response& out) { Repair(out); });
  set_post_routing_handler([](const httplib::Request&, httplib::Response& out) {
    out.headers.erase("Keep-Alive");
    out.headers.erase("Accept-Ranges");
  });
  set_exception_handler(
      [](const httplib::Request&, httplib::Response& out, const std::exception_ptr&) {
        out.status = 500;
        out.body.clear();
      });
  // httplib's default would let two programs share a port without an error.
  set_socket_options([](int fd) {
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

int Http::Impl::Bind(const std::string& host, int port) {
  errno = 0;
  const int bound = port == 0 ? bind_to_any_port(host) : (bind_to_port(host, port) ? port : -1);
  // httplib's backlog of five would make a crowd of clients wait for the kernel's retries.
  if (bound > 0) ::listen(listener(), kBacklog);
  return bound;
}

void Http::Impl::CloseListener() {
  const int fd = svr_sock_.exchange(INVALID_SOCKET);
  if (fd >= 0) ::close(fd);
}

bool Http::Impl::ServeOne(Connection& connection) {
  Exchange exchange(connection);
  current_exchange = &exchange;
  connection.BeginRequest();
  bool asked_to_close = false;
  ConnectionStream stream(exchange);
  const bool served = process_request(stream, false, asked_to_close,
                                      [&](httplib::Request& parsed) { Inspect(parsed, exchange); });
  current_exchange = nullptr;
  // Without an answer: the request line did not arrive whole.
  if (!served && exchange.status == 0 && connection.read_any() &&
      connection.trouble() != Connection::Trouble::kClosed) {
    const int status = StatusOf(connection.trouble(), 400);
    const std::string head =
        fmt::format("HTTP/1.1 {} {}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status,
                    ReasonPhrase(status));
    connection.Write(head.data(), head.size());
  }
  const bool sent = connection.Flush();
  if (sent && (exchange.close || !served)) connection.LetPeerRead();
  return sent && served && !asked_to_close && !exchange.close;
}

void Http::Impl::Inspect(httplib::Request& parsed, Exchange& exchange) const {
  Request& request = exchange.request;
  request.method = parsed.method;
  request.target = std::move(parsed.target);
  const std::size_t question = std::min(request.target.find('?'), request.target.size());
  request.path = request.target.substr(0, question);
  request.query = request.target.substr(std::min(question + 1, request.target.size()));
  request.peer = exchange.connection.peer();
  request.tls = exchange.connection.is_tls();
  request.client = exchange.connection.client();

  const auto refuse = [&](int status, std::string_view detail) {
    if (!exchange.refusal) exchange.refusal = Response::Problem(status, detail);
  };
  httplib::Headers kept;
  int lengths = 0;
  std::uint64_t length = 0;
  bool chunked = false;
  for (auto& [name, value] : parsed.headers) {
    if (IsHttplibs(name)) continue;
    if (EqualsIgnoringCase(name, "Content-Length")) {
      const char* end = value.data() + value.size();
      const auto [rest, error] = std::from_chars(value.data(), end, length);
      if (error != std::errc() || rest != end || ++lengths > 1) {
        refuse(400, "Content-Length must be one number");
      }
    } else if (EqualsIgnoringCase(name, "Transfer-Encoding")) {
      chunked = EqualsIgnoringCase(value, "chunked");
      if (!chunked) refuse(501, "the only Transfer-Encoding is chunked");
    } else if (EqualsIgnoringCase(name, "Content-Encoding") &&
               !EqualsIgnoringCase(value, "identity")) {
      refuse(415, "bodies must not be compressed");
    } else if (EqualsIgnoringCase(name, "Connection") || EqualsIgnoringCase(name, "Expect")) {
      kept.emplace(name, value);
    }
    request.headers.emplace_back(name, std::move(value));
  }
  if (exchange.head.malformed()) refuse(400, DetailOf(400));
  if (!request.path.starts_with('/')) refuse(400, "the path must begin with a slash");
  if (chunked && lengths > 0)
    refuse(400, "Content-Length and Transfer-Encoding exclude each other");
  if (!TakesBody(request.method) && (chunked || length > 0)) {
    refuse(400, fmt::format("{} takes no body", request.method));
  }
  if (length > options_.max_body_bytes) {
    refuse(413, fmt::format("the body is too large; at most {} bytes", options_.max_body_bytes));
  }
  exchange.close = exchange.refusal.has_value();
  if (!exchange.refusal) exchange.refusal = gate_(request);
  if (exchange.refusal) {
    // Its body stays unread, so the connection cannot be used again.
    exchange.close = exchange.close || chunked || length > 0;
    kept.clear();
    chunked = false;
    length = 0;
  }
  exchange.chunked = chunked;
  if (chunked) {
    kept.emplace("Transfer-Encoding", "chunked");
  } else {
    kept.emplace("Content-Length", std::to_string(length));
  }
  parsed.headers = std::move(kept);
  parsed.params.clear();
  parsed.ranges.clear();
  parsed.path.clear();
  exchange.connection.BeginBody();
}

void Http::Impl::Respond(const httplib::Request& parsed, httplib::Response& out) {
  Exchange& exchange = *current_exchange;
  if (exchange.refusal) {
    Fill(exchange, *std::move(exchange.refusal), out);
    Count(out.status, 0);
    return;
  }
  if (exchange.chunked && exchange.body_end != kLastChunk) {
    exchange.close = true;
    Fill(exchange, Response::Problem(400, "a chunk of the body is longer than it says"), out);
    return;
  }
  if (parsed.body.size() > options_.max_body_bytes) {  // chunked: nobody said how long
    exchange.close = true;
    Fill(exchange, Response::Problem(413, DetailOf(413)), out);
    return;
  }
  // httplib hands its local object out as const; a body of megabytes is not copied for that.
  exchange.request.body = std::move(const_cast<httplib::Request&>(parsed).body);
  const SystemClock clock;
  const MonotonicTime start = clock.MonotonicNow();
  Response answer = answer_(exchange.request);
  const std::chrono::duration<double> took = clock.MonotonicNow() - start;
  Fill(exchange, std::move(answer), out);
  Count(out.status, took.count());
}

void Http::Impl::Fill(Exchange& exchange, Response&& answer, httplib::Response& out) {
  if (answer.source) {
    const int limit = options_.max_threads - options_.reserved_threads;
    if (open_streams_.fetch_add(1) >= limit) {
      open_streams_.fetch_sub(1);
      if (answer.closed) answer.closed();
      answer = Response::Problem(429, fmt::format("{} streams are open; no more are served", limit))
                   .With("Retry-After", "1");
    } else {
      streams_.Add(1);
    }
  }
  exchange.answered = true;
  exchange.status = out.status = answer.status;
  for (const auto& [name, value] : answer.headers) out.set_header(name, value);
  if (exchange.close) out.set_header("Connection", "close");
  if (answer.source) {
    FillStream(exchange, std::move(answer), out);
    return;
  }
  out.body = std::move(answer.body);
  if (!answer.content_type.empty()) out.set_header("Content-Type", answer.content_type);
}

void Http::Impl::FillStream(Exchange& exchange, Response&& answer, httplib::Response& out) {
  Connection& connection = exchange.connection;
  auto turn = [this, &connection, source = std::move(answer.source)](std::size_t,
                                                                     httplib::DataSink& sink) {
    if (!connection.Flush()) return false;
    if (ending_) {
      sink.done();
      return true;
    }
    std::string bytes;
    const bool goes_on = source(bytes, options_.stream_wait);
    if (!bytes.empty() && !sink.write(bytes.data(), bytes.size())) return false;
    if (!goes_on) {
      sink.done();
      return true;
    }
    return !bytes.empty() || !connection.PeerHasGone();
  };
  auto end = [this, closed = std::move(answer.closed)](bool) {
    if (closed) closed();
    open_streams_.fetch_sub(1);
    streams_.Add(-1);
  };
  out.set_chunked_content_provider(answer.content_type, std::move(turn), std::move(end));
}

// httplib calls this for every status from 400 on; only its own answers need a body.
void Http::Impl::Repair(httplib::Response& out) const {
  Exchange& exchange = *current_exchange;
  if (exchange.answered) return;
  exchange.status = out.status = StatusOf(exchange.connection.trouble(), out.status);
  exchange.close = true;
  Response problem = Response::Problem(out.status, DetailOf(out.status));
  out.set_header("Connection", "close");
  out.headers.erase("Content-Type");
  out.set_content(problem.body, problem.content_type);
}

void Http::Impl::Count(int status, double seconds) {
  metrics_
      .AddCounter("tahoma_http_requests_total", "Requests answered, by status.",
                  {{"code", std::to_string(status)}})
      .Increment();
  seconds_.Observe(seconds);
}

Http::Http(const ServerOptions& options, Metrics& metrics, Gate gate, Answer answer)
    : impl_(std::make_unique<Impl>(options, metrics, std::move(gate), std::move(answer))) {}
Http::~Http() = default;
int Http::Bind(const std::string& host, int port) { return impl_->Bind(host, port); }
int Http::listener() const { return impl_->listener(); }
void Http::CloseListener() { impl_->CloseListener(); }
void Http::EndStreams() { impl_->EndStreams(); }
bool Http::ServeOne(Connection& connection) { return impl_->ServeOne(connection); }

}  // namespace tahoma::rest
