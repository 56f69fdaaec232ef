#include "controller/apiserver/webhooks/http_call.h"

#include <memory>
#include <thread>
#include <utility>

#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/http_transport.h"

namespace tahoma::controller::apiserver {
namespace {

// The largest object as a patch in base64.
constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20U;
constexpr std::size_t kFramingBytesMax = std::size_t{64} << 10U;
constexpr std::size_t kRefusalMax = 512;

// Ends the transport's requests at the deadline, unless destroyed before.
class Deadline {
 public:
  Deadline(kube::HttpTransport& transport, std::chrono::milliseconds timeout)
      : thread_([this, &transport, at = CondVar::In(timeout)] {
          const MutexLock lock(mutex_);
          while (!done_ && changed_.WaitUntil(mutex_, at)) {
          }
          if (done_) return;
          passed_ = true;
          transport.Shutdown();
        }) {}
  ~Deadline() { End(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Returns whether the deadline has passed; from now on the deadline does nothing.
  bool End() {
    {
      const MutexLock lock(mutex_);
      done_ = true;
    }
    changed_.NotifyAll();
    if (thread_.joinable()) thread_.join();
    const MutexLock lock(mutex_);
    return passed_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  bool passed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

absl::StatusOr<std::string> Call(const WebhookQuestion& question) {
  kube::ServerAccess access{.server = question.server};
  access.ca_pem = question.ca_pem;
  access.tls_server_name = question.server_name;
  TAHOMA_ASSIGN_OR_RETURN(
      const auto transport,
      kube::HttpTransport::Create(std::move(access), {.connect_timeout = question.timeout,
                                                      .request_timeout = question.timeout,
                                                      .max_body_bytes = kAnswerBytesMax,
                                                      .max_framing_bytes = kFramingBytesMax}));
  Deadline deadline(*transport, question.timeout);
  auto answer = transport->Send(
      {.method = "POST",
       .target = question.target,
       .headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}},
       .body = question.body});
  if (deadline.End() || absl::IsDeadlineExceeded(answer.status())) {
    return DeadlineExceeded("context deadline exceeded");
  }
  if (!answer.ok()) return answer.status();
  if (answer->status == 200) return std::move(answer->body);
  return Unavailable("the webhook answered {}: {}", answer->status,
                     IsUtf8(answer->body) ? CutUtf8(answer->body, kRefusalMax) : "");
}

}  // namespace

WebhookCall HttpWebhookCall() { return Call; }

}  // namespace tahoma::controller::apiserver
