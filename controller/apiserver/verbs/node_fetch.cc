#include "controller/apiserver/verbs/node_fetch.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "controller/apiserver/request/status_error.h"
#include "lib/base/bounded_queue.h"
#include "lib/base/digest.h"
#include "lib/base/files.h"
#include "lib/base/hex.h"
#include "lib/base/host_port.h"
#include "lib/base/loopback.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/http_transport.h"

namespace tahoma::controller::apiserver {
namespace {

// The most pieces of a log, each at most 4 KiB, that wait for the reader: 128 KiB for each reader.
constexpr std::size_t kPiecesMax = 32;
// A refusal is a sentence, and a head a few lines.
constexpr std::size_t kRefusalBytesMax = std::size_t{16} << 10U;
constexpr std::size_t kFramingBytesMax = std::size_t{64} << 10U;
// A followed container may be silent for long; the reader's going ends the stream.
constexpr std::chrono::hours kSilenceMax{24 * 7};
// A log that is not followed is complete already.
constexpr std::chrono::seconds kReadSilenceMax{60};
// The time for a node's head, and for the text of its refusal.
constexpr std::chrono::seconds kAnswerWait{30};
// The time for the head of what is no log: a short answer that somebody waits for.
constexpr std::chrono::seconds kShortWait{2};
// A followed log begins without the node's head after this time: a kubelet sends its head with the
// first line.
constexpr std::chrono::seconds kFollowWait{2};

// A log between two threads: one receives it from the node, the other sends it.
class LogPipe {
 public:
  explicit LogPipe(std::unique_ptr<kube::HttpTransport> transport)
      : transport_(std::move(transport)) {}
  ~LogPipe() { Stop(); }
  LogPipe(const LogPipe&) = delete;
  LogPipe& operator=(const LogPipe&) = delete;

  void Start(const std::string& target, std::chrono::milliseconds silence_max) {
    thread_ = std::thread([this, target, silence_max] {
      const kube::Request request = {.method = "GET", .target = target, .headers = {}, .body = {}};
      auto answer = transport_->Download(
          request, [this](int status) { NoteStatus(status); },
          [this](std::string_view piece) { return pieces_.Push(std::string(piece)); }, silence_max);
      {
        const MutexLock lock(mutex_);
        answer_ = std::move(answer);
      }
      changed_.NotifyAll();
      pieces_.Close();
    });
  }

  // Ends both sides. From one thread at a time.
  void Stop() {
    pieces_.Close();
    transport_->Shutdown();
    if (thread_.joinable()) thread_.join();
  }

  // Waits for the head of the node's answer; nothing when no head came in time.
  std::optional<int> WaitForStatus(std::chrono::nanoseconds wait) {
    const auto deadline = CondVar::In(wait);
    const MutexLock lock(mutex_);
    while (!status_ && !answer_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    return status_;
  }
  // Waits for the end of the answer; nothing when the answer did not end in time.
  std::optional<absl::StatusOr<kube::Response>> WaitForAnswer(std::chrono::nanoseconds wait) {
    const auto deadline = CondVar::In(wait);
    const MutexLock lock(mutex_);
    while (!answer_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    return answer_;
  }

  // A stream's source (rest::StreamSource).
  bool Read(std::string& out, std::chrono::milliseconds wait) {
    // Read before the pieces are taken: later pieces are still sent.
    const bool ended = pieces_.closed();
    const std::vector<std::string> pieces = pieces_.PopAllFor(kPiecesMax, wait);
    for (const std::string& piece : pieces) out += piece;
    return !pieces.empty() || !ended;
  }

 private:
  void NoteStatus(int status) {
    {
      const MutexLock lock(mutex_);
      status_ = status;
    }
    changed_.NotifyAll();
  }

  const std::unique_ptr<kube::HttpTransport> transport_;
  BoundedQueue<std::string> pieces_{kPiecesMax};
  Mutex mutex_;
  CondVar changed_;
  std::optional<int> status_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::StatusOr<kube::Response>> answer_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

bool IsLog(std::string_view target) { return target.starts_with("/containerLogs/"); }

rest::Response Fetch(std::unique_ptr<kube::HttpTransport> transport, const std::string& url,
                     const std::string& target) {
  const bool follow = target.find("follow=true") != std::string::npos;
  auto pipe = std::make_shared<LogPipe>(std::move(transport));
  pipe->Start(target, follow ? std::chrono::milliseconds(kSilenceMax) : kReadSilenceMax);
  const std::chrono::seconds answer_wait = IsLog(target) ? kAnswerWait : kShortWait;
  const std::optional<int> status = pipe->WaitForStatus(follow ? kFollowWait : answer_wait);
  const bool goes_on = status ? *status == 200 : follow && !pipe->WaitForAnswer({});
  if (!goes_on) {
    const auto answer = pipe->WaitForAnswer(status ? answer_wait : std::chrono::nanoseconds(0));
    pipe->Stop();
    if (!answer) return UnreachableNode(url, "the node did not answer in time");
    return answer->ok() ? RefusalOfNode(url, (*answer)->status, (*answer)->body)
                        : UnreachableNode(url, Message(answer->status()));
  }
  rest::Response response = rest::Response::Stream(
      "text/plain",
      [pipe](std::string& out, std::chrono::milliseconds wait) { return pipe->Read(out, wait); });
  response.closed = [pipe] { pipe->Stop(); };
  // No browser may take the log of a pod for a page.
  return std::move(response).With("X-Content-Type-Options", "nosniff");
}

}  // namespace

std::string NodeLogToken(std::string_view secret, std::string_view node) {
  return Hex(HmacSha256(secret, fmt::format("node-logs/{}", node)));
}

absl::StatusOr<std::string> TokenToShow(const std::string& secret_file, const NodeEndpoint& node) {
  if (secret_file.empty() || !IsLoopback(JoinHostPort(node.host, node.port))) return std::string();
  TAHOMA_ASSIGN_OR_RETURN(const std::string secret,
                          ReadTokenFile(secret_file, [](const std::string&) {}));
  return NodeLogToken(secret, node.node);
}

rest::Response UnreachableNode(std::string_view url, std::string_view why) {
  return ResponseOf(GenericError(500, "InternalError", fmt::format("Get \"{}\": {}", url, why)));
}

rest::Response RefusalOfNode(std::string_view url, int status, const std::string& body) {
  std::string text = IsUtf8(body) ? body : "";
  while (text.ends_with('\n')) text.pop_back();
  switch (status) {
    case 400:
      return ResponseOf(BadRequestError(text));
    case 404:
      return ResponseOf(GenericError(404, "NotFound", text));
    case 429:
      return ResponseOf(GenericError(429, "TooManyRequests", text));
    case 503:
      return ResponseOf(GenericError(503, "ServiceUnavailable", text));
    default:
      return UnreachableNode(url, fmt::format("the node answered {}: {}", status, text));
  }
}

NodeFetch HttpNodeFetch(std::string secret_file) {
  return
      [secret_file = std::move(secret_file)](const NodeEndpoint& node, const std::string& target) {
        const std::string address = JoinHostPort(node.host, node.port);
        const std::string url = "http://" + address + target;
        kube::ServerAccess access{.server = "http://" + address};
        auto token = TokenToShow(secret_file, node);
        if (!token.ok()) return UnreachableNode(url, Message(token.status()));
        access.token = *std::move(token);
        kube::HttpLimits limits{.max_body_bytes = kRefusalBytesMax,
                                .max_framing_bytes = kFramingBytesMax};
        if (!IsLog(target)) limits.connect_timeout = kShortWait;
        auto transport = kube::HttpTransport::Create(std::move(access), limits);
        if (!transport.ok()) return UnreachableNode(url, Message(transport.status()));
        return Fetch(*std::move(transport), url, target);
      };
}

}  // namespace tahoma::controller::apiserver
