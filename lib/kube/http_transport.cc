#include "lib/kube/http_transport.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <httplib.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <list>
#include <set>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/freed_by.h"
#include "lib/base/host_port.h"
#include "lib/base/loopback.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

// Escapes the characters of a key that no header's name may have, as client-go does.
std::string HeaderKey(std::string_view key) {
  constexpr std::string_view kPlain = "!#$&'*+-.^_`|~";
  std::string escaped;
  for (const char c : key) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                       kPlain.find(c) != std::string_view::npos;
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

std::vector<std::pair<std::string, std::string>> ImpersonationHeaders(const ServerAccess& access) {
  std::vector<std::pair<std::string, std::string>> headers;
  const auto add = [&](std::string name, const std::string& value) {
    if (!value.empty()) headers.emplace_back(std::move(name), value);
  };
  add("Impersonate-User", access.impersonate_user);
  add("Impersonate-Uid", access.impersonate_uid);
  for (const std::string& group : access.impersonate_groups) add("Impersonate-Group", group);
  for (const auto& [key, values] : access.impersonate_extra) {
    for (const std::string& value : values) add("Impersonate-Extra-" + HeaderKey(key), value);
  }
  return headers;
}

// Sockets wait in real time.
MonotonicTime Now() { return SystemClock().MonotonicNow(); }

using CertificatePtr = std::unique_ptr<X509, FreedBy<&X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreedBy<&EVP_PKEY_free>>;
using StorePtr = std::unique_ptr<X509_STORE, FreedBy<&X509_STORE_free>>;
using BioPtr = std::unique_ptr<BIO, FreedBy<&BIO_free_all>>;

BioPtr Open(const std::string& pem) {
  return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

absl::StatusOr<StorePtr> ParseCas(const std::string& pem) {
  StorePtr store(X509_STORE_new());
  const BioPtr bio = Open(pem);
  int count = 0;
  while (
      const CertificatePtr certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(store.get(), certificate.get());
    ++count;
  }
  ERR_clear_error();
  if (count == 0) return InvalidArgument("the certificate authority holds no PEM certificate");
  return store;
}

// The authorities that the machine trusts.
absl::StatusOr<StorePtr> SystemCas() {
  StorePtr store(X509_STORE_new());
  if (X509_STORE_set_default_paths(store.get()) != 1) {
    ERR_clear_error();
    return Unavailable("the machine's certificate authorities cannot be read");
  }
  return store;
}

// A request and its answer on a TLS connection. httplib's own stream calls OpenSSL, which locks,
// for every byte of a head, and sends head and body as two records.
class TlsStream final : public httplib::Stream {
 public:
  using Milliseconds = std::chrono::milliseconds;

  TlsStream(int socket, SSL* ssl, Milliseconds read_timeout, Milliseconds write_timeout)
      : socket_(socket), ssl_(ssl), read_timeout_(read_timeout), write_timeout_(write_timeout) {}

  bool is_readable() const override {
    return begin_ != end_ || SSL_pending(ssl_) > 0 || Wait(POLLIN, read_timeout_);
  }
  bool is_writable() const override { return Wait(POLLOUT, write_timeout_); }

  ssize_t read(char* bytes, std::size_t size) override {
    if (!Flush()) return -1;
    if (begin_ == end_) {
      const int count = Fill();
      if (count <= 0) return count;
    }
    const std::size_t taken = std::min(size, end_ - begin_);
    std::copy_n(in_.data() + begin_, taken, bytes);
    begin_ += taken;
    return static_cast<ssize_t>(taken);
  }

  // Keeps the bytes until the first read, or until they fill a record.
  ssize_t write(const char* bytes, std::size_t size) override {
    out_.append(bytes, size);
    if (out_.size() >= kRecord && !Flush()) return -1;
    return static_cast<ssize_t>(size);
  }

  // Asked by servers only.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

  // Whether the server has sent no more than was read.
  bool is_drained() const { return begin_ == end_ && SSL_pending(ssl_) == 0; }

 private:
  static constexpr std::size_t kRecord = 16384;  // the most bytes in a TLS record (RFC 8446)

  bool Wait(short event, Milliseconds timeout) const {
    pollfd socket{.fd = socket_, .events = event, .revents = 0};
    int ready = 0;
    do {
      ready = ::poll(&socket, 1, static_cast<int>(timeout.count()));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
  }

  // Returns the result of SSL_read; -1 when nothing came in time. A record may carry no byte of the
  // answer, as a session ticket does.
  int Fill() {
    begin_ = end_ = 0;
    while (is_readable()) {
      ERR_clear_error();  // SSL_get_error would take another's for ours
      const int count = SSL_read(ssl_, in_.data(), static_cast<int>(in_.size()));
      if (count > 0) end_ = static_cast<std::size_t>(count);
      if (count > 0 || SSL_get_error(ssl_, count) != SSL_ERROR_WANT_READ) return count;
    }
    return -1;
  }

  bool Flush() {
    std::string_view rest = out_;
    while (!rest.empty() && is_writable()) {
      ERR_clear_error();
      const int count =
          SSL_write(ssl_, rest.data(), static_cast<int>(std::min(rest.size(), kRecord)));
      if (count > 0) {
        rest.remove_prefix(static_cast<std::size_t>(count));
      } else if (SSL_get_error(ssl_, count) != SSL_ERROR_WANT_WRITE) {
        return false;
      }
    }
    const bool sent = rest.empty();
    out_.clear();
    return sent;
  }

  const int socket_;
  SSL* const ssl_;
  const Milliseconds read_timeout_;
  const Milliseconds write_timeout_;
  std::array<char, kRecord> in_;  // bytes begin_ to end_ have not been read
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::string out_;  // not sent yet
};

// Bounds the part of an answer that httplib keeps beside the content: httplib would keep an endless
// head. Counts read bytes until IsContent says that the bytes were content.
class Framing {
 public:
  // Begins another answer.
  void Begin(std::size_t most) {
    most_ = most;
    bytes_ = 0;
  }
  // Whether `bytes` more bytes are too many.
  bool Add(std::size_t bytes) {
    bytes_ += bytes;
    return bytes_ > most_;
  }
  void IsContent() { bytes_ = 0; }
  bool too_large() const { return bytes_ > most_; }

 private:
  std::size_t most_ = 0;
  std::size_t bytes_ = 0;
};

// A stream that ends when its framing gets too large.
class BoundedStream final : public httplib::Stream {
 public:
  BoundedStream(httplib::Stream& stream, Framing& framing) : stream_(stream), framing_(framing) {}

  bool is_readable() const override { return stream_.is_readable(); }
  bool is_writable() const override { return stream_.is_writable(); }
  ssize_t read(char* bytes, std::size_t size) override {
    const ssize_t count = stream_.read(bytes, size);
    return count > 0 && framing_.Add(static_cast<std::size_t>(count)) ? -1 : count;
  }
  ssize_t write(const char* bytes, std::size_t size) override { return stream_.write(bytes, size); }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    stream_.get_remote_ip_and_port(ip, port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    stream_.get_local_ip_and_port(ip, port);
  }
  socket_t socket() const override { return stream_.socket(); }

 private:
  httplib::Stream& stream_;
  Framing& framing_;
};

// Either client below, with the framing of the client's present answer.
class BoundedClient {
 public:
  virtual ~BoundedClient() = default;
  Framing framing;
};

class PlainClient final : public httplib::ClientImpl, public BoundedClient {
 public:
  using httplib::ClientImpl::ClientImpl;

 private:
  bool process_socket(const Socket& socket,
                      std::function<bool(httplib::Stream&)> callback) override {
    return httplib::detail::process_client_socket(
        socket.sock, read_timeout_sec_, read_timeout_usec_, write_timeout_sec_, write_timeout_usec_,
        [&](httplib::Stream& stream) {
          BoundedStream bounded(stream, framing);
          return callback(bounded);
        });
  }
};

class TlsClient final : public httplib::SSLClient, public BoundedClient {
 public:
  using httplib::SSLClient::SSLClient;

 private:
  bool process_socket(const Socket& socket,
                      std::function<bool(httplib::Stream&)> callback) override {
    const auto milliseconds = [](time_t seconds, time_t micros) {
      return std::chrono::milliseconds(seconds * 1000 + (micros + 999) / 1000);
    };
    TlsStream stream(socket.sock, socket.ssl, milliseconds(read_timeout_sec_, read_timeout_usec_),
                     milliseconds(write_timeout_sec_, write_timeout_usec_));
    BoundedStream bounded(stream, framing);
    if (!callback(bounded)) return false;
    // After "Connection: close" httplib has freed the connection, and `socket` says so.
    if (socket.ssl == nullptr) return true;
    // Bytes after an answer would be taken for the next answer.
    return stream.is_drained();
  }
};

// Whether an idle connection is useless: the server has ended the connection or sent bytes that
// nobody asked for. httplib looks only for a TCP end, and TLS sends an alert first.
bool HasBytes(const httplib::ClientImpl& client) {
  pollfd socket{.fd = client.socket(), .events = POLLIN, .revents = 0};
  return ::poll(&socket, 1, 0) != 0;
}

struct Endpoint {
  bool tls = false;
  std::string host;
  int port = 0;
};

absl::StatusOr<Endpoint> ParseServer(const std::string& server) {
  const absl::Status bad = InvalidArgument(
      "\"{}\" is not a server address; expected for example https://10.0.0.1:6443", server);
  Endpoint endpoint;
  std::string_view rest = server;
  if (rest.starts_with("https://")) {
    endpoint.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return bad;
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find('/') != std::string_view::npos) return bad;
  const auto split = SplitHostPort(rest);
  if (!split.ok() || split->host.empty() || split->port == 0) return bad;
  endpoint.host = split->host;
  endpoint.port = split->port.value_or(endpoint.tls ? 443 : 80);
  return endpoint;
}

std::pair<time_t, time_t> Split(std::chrono::milliseconds duration) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return {micros / 1'000'000, micros % 1'000'000};
}

// Cuts a body into lines. False when the sink has enough, or a line is too long (`too_long`).
class LineSplitter {
 public:
  LineSplitter(const LineSink& sink, std::size_t max_line) : sink_(sink), max_line_(max_line) {}

  bool Add(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      if (end == std::string_view::npos) {
        rest_.append(bytes);
        too_long = rest_.size() > max_line_;
        return !too_long;
      }
      bool goes_on = true;
      if (rest_.empty()) {
        goes_on = sink_(bytes.substr(0, end));
      } else {
        rest_.append(bytes.substr(0, end));
        goes_on = sink_(rest_);
        rest_.clear();
      }
      if (!goes_on) {
        enough = true;
        return false;
      }
      bytes.remove_prefix(end + 1);
    }
    return true;
  }
  // False while the last line lacks its newline.
  bool is_whole() const { return rest_.empty(); }

  bool too_long = false;
  bool enough = false;

 private:
  const LineSink& sink_;
  const std::size_t max_line_;
  std::string rest_;
};

absl::Status ErrorOf(httplib::Error error, const std::string& server, bool timed_out) {
  switch (error) {
    case httplib::Error::Connection:
      return Unavailable("{}: cannot connect", server);
    case httplib::Error::SSLConnection:
      return Unavailable("{}: the TLS handshake failed", server);
    case httplib::Error::SSLServerVerification:
      return Unavailable(
          "{}: the server's certificate is not from a trusted authority, or names "
          "another host",
          server);
    case httplib::Error::SSLLoadingCerts:
      return Unavailable("{}: the certificate authorities cannot be read", server);
    case httplib::Error::Unknown:  // httplib's own errors have names: this error is TlsClient's
      return Unavailable("{}: the server sent more than its answer", server);
    default:
      if (timed_out) return DeadlineExceeded("{}: no answer in time", server);
      return Unavailable("{}: the connection broke before the answer was whole", server);
  }
}

Response Convert(const httplib::Response& in) {
  Response out;
  out.status = in.status;
  for (const auto& [name, value] : in.headers) out.headers.emplace_back(name, value);
  return out;
}

}  // namespace

class HttpTransport::Impl {
 public:
  using ClientPtr = std::unique_ptr<httplib::ClientImpl>;

  Impl(ServerAccess access, HttpLimits limits, Endpoint endpoint)
      : access_(std::move(access)), limits_(limits), endpoint_(std::move(endpoint)) {}

  absl::Status Prepare();
  // `pieces` and `status` may be null.
  absl::StatusOr<Response> Perform(const Request& request, std::chrono::milliseconds idle,
                                   const PieceSink* pieces, const StatusSink* status_sink);
  absl::StatusOr<Response> Stream(const Request& request, std::chrono::milliseconds idle,
                                  const LineSink& sink);
  void Shutdown();
  const HttpLimits& limits() const { return limits_; }

 private:
  absl::StatusOr<ClientPtr> Borrow();
  void Return(ClientPtr client, bool reusable);
  ClientPtr Make() const;
  absl::StatusOr<std::string> Token();
  absl::StatusOr<httplib::Request> Prepare(const Request& request);

  const ServerAccess access_;
  const HttpLimits limits_;
  const Endpoint endpoint_;
  StorePtr cas_;
  CertificatePtr certificate_;
  KeyPtr key_;

  Mutex mutex_;
  std::atomic<bool> shut_down_ = false;  // changed under the mutex
  std::list<ClientPtr> idle_ ABSL_GUARDED_BY(mutex_);
  std::set<httplib::ClientImpl*> busy_ ABSL_GUARDED_BY(mutex_);
  std::string token_ ABSL_GUARDED_BY(mutex_);
  timespec token_time_ ABSL_GUARDED_BY(mutex_){};
  ino_t token_inode_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::Status HttpTransport::Impl::Prepare() {
  if (endpoint_.tls) {
    TAHOMA_ASSIGN_OR_RETURN(cas_, access_.ca_pem.empty() ? SystemCas() : ParseCas(access_.ca_pem));
  }
  if (access_.client_cert_pem.empty() != access_.client_key_pem.empty()) {
    return InvalidArgument("a client certificate and its key must be given together");
  }
  if (!access_.client_cert_pem.empty()) {
    certificate_.reset(
        PEM_read_bio_X509(Open(access_.client_cert_pem).get(), nullptr, nullptr, nullptr));
    key_.reset(
        PEM_read_bio_PrivateKey(Open(access_.client_key_pem).get(), nullptr, nullptr, nullptr));
    ERR_clear_error();
    if (!certificate_) return InvalidArgument("the client certificate is not PEM");
    if (!key_) return InvalidArgument("the client key is not an unencrypted PEM key");
    if (X509_check_private_key(certificate_.get(), key_.get()) != 1) {
      ERR_clear_error();
      return InvalidArgument("the client key does not belong to the client certificate");
    }
  }
  if (!access_.token_file.empty()) return Token().status();
  return absl::OkStatus();
}

HttpTransport::Impl::ClientPtr HttpTransport::Impl::Make() const {
  ClientPtr client;
  if (endpoint_.tls) {
    const std::string& name =
        access_.tls_server_name.empty() ? endpoint_.host : access_.tls_server_name;
    auto ssl = std::make_unique<TlsClient>(name, endpoint_.port, certificate_.get(), key_.get());
    // Not set_ca_cert_store: when the library connects, it adds authorities to that store without a
    // lock. The store for verification is only read, so connections share it. The library reads all
    // of the machine's authorities into the other store, never used here, unless the store has a
    // folder.
    SSL_CTX_set1_verify_cert_store(ssl->ssl_context(), cas_.get());
    ssl->set_ca_cert_path("", "/var/empty");
    if (name != endpoint_.host) ssl->set_hostname_addr_map({{name, endpoint_.host}});
    ssl->enable_server_certificate_verification(!access_.insecure_skip_tls_verify);
    client = std::move(ssl);
  } else {
    client = std::make_unique<PlainClient>(endpoint_.host, endpoint_.port);
  }
  client->set_keep_alive(true);
  client->set_tcp_nodelay(true);
  client->set_url_encode(false);
  client->set_follow_location(false);
  client->set_decompress(false);
  const auto [seconds, micros] = Split(limits_.connect_timeout);
  client->set_connection_timeout(seconds, micros);
  return client;
}

absl::StatusOr<HttpTransport::Impl::ClientPtr> HttpTransport::Impl::Borrow() {
  std::list<ClientPtr> dropped;  // closed without the lock: the end of TLS may have to be written
  {
    const MutexLock lock(mutex_);
    if (shut_down_) return Unavailable("{}: the client was shut down", access_.server);
    while (!idle_.empty()) {
      if (HasBytes(*idle_.back())) {
        dropped.splice(dropped.end(), idle_, std::prev(idle_.end()));
        continue;
      }
      ClientPtr client = std::move(idle_.back());
      idle_.pop_back();
      busy_.insert(client.get());
      return client;
    }
  }
  ClientPtr client = Make();
  const MutexLock lock(mutex_);
  if (shut_down_) return Unavailable("{}: the client was shut down", access_.server);
  busy_.insert(client.get());
  return client;
}

void HttpTransport::Impl::Return(ClientPtr client, bool reusable) {
  const MutexLock lock(mutex_);
  busy_.erase(client.get());
  if (reusable && !shut_down_ && idle_.size() < limits_.max_idle_connections) {
    idle_.push_back(std::move(client));
  }
}

void HttpTransport::Impl::Shutdown() {
  std::list<ClientPtr> dropped;
  const MutexLock lock(mutex_);
  shut_down_ = true;
  dropped.swap(idle_);
  for (httplib::ClientImpl* client : busy_) client->stop();
}

absl::StatusOr<std::string> HttpTransport::Impl::Token() {
  if (access_.token_file.empty()) return access_.token;
  struct stat now {};
  const MutexLock lock(mutex_);
  if (::stat(access_.token_file.c_str(), &now) != 0) {
    return Unauthenticated("cannot read the token file {}", access_.token_file);
  }
  if (!token_.empty() && now.st_ino == token_inode_ && now.st_mtim.tv_sec == token_time_.tv_sec &&
      now.st_mtim.tv_nsec == token_time_.tv_nsec) {
    return token_;
  }
  std::ifstream file(access_.token_file);
  std::string token;
  file >> token;
  // The file's successor is being written: the last token still serves, as in client-go.
  if (token.empty() && !token_.empty()) return token_;
  if (token.empty()) return Unauthenticated("the token file {} is empty", access_.token_file);
  token_ = token;
  token_time_ = now.st_mtim;
  token_inode_ = now.st_ino;
  return token_;
}

absl::StatusOr<httplib::Request> HttpTransport::Impl::Prepare(const Request& request) {
  TAHOMA_ASSIGN_OR_RETURN(const std::string token, Token());
  httplib::Request out;
  out.method = request.method;
  out.path = request.target;
  for (const auto& [name, value] : request.headers) out.headers.emplace(name, value);
  if (!token.empty()) out.headers.emplace("Authorization", "Bearer " + token);
  for (const auto& [name, value] : ImpersonationHeaders(access_)) out.headers.emplace(name, value);
  out.headers.emplace("Accept-Encoding", "identity");
  if (!out.has_header("User-Agent")) out.headers.emplace("User-Agent", "tahoma");
  out.body = request.Text();
  return out;
}

absl::StatusOr<Response> HttpTransport::Impl::Perform(const Request& request,
                                                      std::chrono::milliseconds idle,
                                                      const PieceSink* pieces,
                                                      const StatusSink* status_sink) {
  TAHOMA_ASSIGN_OR_RETURN(httplib::Request out, Prepare(request));
  TAHOMA_ASSIGN_OR_RETURN(ClientPtr client, Borrow());
  const auto [seconds, micros] = Split(idle);
  client->set_read_timeout(seconds, micros);
  client->set_write_timeout(seconds, micros);
  Framing& framing = dynamic_cast<BoundedClient&>(*client).framing;
  framing.Begin(limits_.max_framing_bytes);

  int status = 0;
  std::string body;
  bool too_large = false;
  bool enough = false;
  auto last_byte = Now();
  out.response_handler = [&](const httplib::Response& head) {
    status = head.status;
    last_byte = Now();
    framing.IsContent();
    if (status_sink != nullptr) (*status_sink)(status);
    // stop() does not end a request that was about to connect.
    return !shut_down_;
  };
  out.content_receiver = [&](const char* bytes, std::size_t size, std::uint64_t, std::uint64_t) {
    last_byte = Now();
    framing.IsContent();
    if (pieces != nullptr && status == 200) {
      enough = !(*pieces)({bytes, size});
      return !enough;
    }
    body.append(bytes, size);
    too_large = body.size() > limits_.max_body_bytes;
    return !too_large;
  };
  httplib::Response in;
  httplib::Error error = httplib::Error::Success;
  const bool done = client->send(out, in, error);
  const bool timed_out = Now() - last_byte >= idle;
  const bool endless = framing.too_large();
  Return(std::move(client), done);

  if (too_large) {
    return ResourceExhausted("{}: the answer is larger than {} bytes", access_.server,
                             limits_.max_body_bytes);
  }
  if (endless) {
    return ResourceExhausted("{}: the answer has more than {} bytes that are no content",
                             access_.server, limits_.max_framing_bytes);
  }
  if (!done && !enough) return ErrorOf(error, access_.server, timed_out);
  Response response = Convert(in);
  response.status = status;
  response.body = std::move(body);
  return response;
}

absl::StatusOr<Response> HttpTransport::Impl::Stream(const Request& request,
                                                     std::chrono::milliseconds idle,
                                                     const LineSink& sink) {
  LineSplitter lines(sink, limits_.max_line_bytes);
  int status = 0;
  const StatusSink note = [&](int answered) { status = answered; };
  const PieceSink pieces = [&](std::string_view piece) { return lines.Add(piece); };
  absl::StatusOr<Response> answer = Perform(request, idle, &pieces, &note);
  if (lines.too_long) {
    return ResourceExhausted("{}: a line of the stream is larger than {} bytes", access_.server,
                             limits_.max_line_bytes);
  }
  if (absl::IsDeadlineExceeded(answer.status()) && status == 200) {
    return Response{.status = status};  // silence ends a stream, as the server's end does
  }
  if (answer.ok() && !lines.enough && !lines.is_whole()) {
    return Unavailable("{}: the stream ended within a line", access_.server);
  }
  return answer;
}

absl::Status CheckImpersonation(const ServerAccess& access) {
  const auto is_control = [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); };
  const auto headers = ImpersonationHeaders(access);
  if (access.impersonate_user.empty() && !headers.empty()) {
    return InvalidArgument("groups, uid and extra are impersonated only together with a user");
  }
  // A line break in a value would make another header.
  for (const auto& [name, value] : headers) {
    if (std::ranges::any_of(value, is_control)) {
      return InvalidArgument("the impersonated name \"{}\" has a control character",
                             absl::CEscape(value));
    }
  }
  return absl::OkStatus();
}

HttpTransport::HttpTransport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpTransport::~HttpTransport() = default;

absl::StatusOr<std::unique_ptr<HttpTransport>> HttpTransport::Create(
    ServerAccess access, HttpLimits limits,
    const std::function<void(const std::string& line)>& warn) {
  TAHOMA_ASSIGN_OR_RETURN(Endpoint endpoint, ParseServer(access.server));
  TAHOMA_RETURN_IF_ERROR(CheckImpersonation(access));
  std::string danger;
  const bool has_token = !access.token.empty() || !access.token_file.empty();
  if (has_token && !endpoint.tls && !IsLoopbackHost(endpoint.host)) {
    danger = fmt::format(
        "the token for {} is sent without TLS: whoever is on the way there can read and use it; "
        "call the server by https",
        access.server);
  }
  auto impl = std::make_unique<Impl>(std::move(access), limits, std::move(endpoint));
  TAHOMA_RETURN_IF_ERROR(impl->Prepare());
  if (warn && !danger.empty()) warn(danger);
  return std::unique_ptr<HttpTransport>(new HttpTransport(std::move(impl)));
}

absl::StatusOr<Response> HttpTransport::Send(const Request& request) {
  return impl_->Perform(request, impl_->limits().request_timeout, nullptr, nullptr);
}

absl::StatusOr<Response> HttpTransport::Stream(const Request& request, const LineSink& sink,
                                               std::chrono::milliseconds idle_timeout) {
  return impl_->Stream(request, idle_timeout, sink);
}

absl::StatusOr<Response> HttpTransport::Download(const Request& request, const StatusSink& status,
                                                 const PieceSink& pieces,
                                                 std::chrono::milliseconds idle_timeout) {
  return impl_->Perform(request, idle_timeout, &pieces, &status);
}

void HttpTransport::Shutdown() { impl_->Shutdown(); }

}  // namespace tahoma::kube
