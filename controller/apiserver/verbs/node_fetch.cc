#include "controller/apiserver/verbs/node_fetch.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "controller/apiserver/request/status_error.h"
#include "lib/base/bounded_queue.h"
#include "lib/base/loopback.h"
#include "lib/base/status.h"
#include "lib/kube/http_transport.h"

namespace tahoma::controller::apiserver {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLinesMax = 4096;
// A followed container may be silent for long; the reader's going ends the stream.
constexpr std::chrono::hours kSilenceMax{24 * 7};
// The time that the answer's status waits for the node's first line or refusal.
constexpr std::chrono::seconds kFirstLineWait{2};

rest::Response Unreachable(std::string_view url, const absl::Status& status) {
  return ResponseOf(
      GenericError(500, "InternalError", fmt::format("Get \"{}\": {}", url, Message(status))));
}

rest::Response Passed(kube::Response answer) {
  rest::Response response = rest::Response::Text(answer.status, std::move(answer.body));
  if (const std::string_view type = answer.header("Content-Type"); !type.empty()) {
    response.content_type = type;
  }
  return response;
}

// The lines of one followed log, between the thread that receives them and the one that sends.
struct Follower {
  std::unique_ptr<kube::HttpTransport> transport;
  BoundedQueue<std::string> lines{kLinesMax};
  absl::StatusOr<kube::Response> head = kube::Response{};  // read only after lines is closed
  std::thread thread;

  ~Follower() { Stop(); }
  void Start(const std::string& target) {
    thread = std::thread([this, target] {
      const kube::Request request = {.method = "GET", .target = target, .headers = {}, .body = {}};
      head = transport->Stream(
          request, [this](std::string_view line) { return lines.Push(std::string(line)); },
          kSilenceMax);
      lines.Close();
    });
  }
  void Stop() {
    lines.Close();
    transport->Shutdown();
    if (thread.joinable()) thread.join();
  }
};

rest::Response Follow(std::unique_ptr<kube::HttpTransport> transport, const std::string& url,
                      const std::string& target) {
  auto follower = std::make_shared<Follower>();
  follower->transport = std::move(transport);
  follower->Start(target);
  const auto first = std::make_shared<std::vector<std::string>>(
      follower->lines.PopAllFor(kLinesMax, kFirstLineWait));
  if (first->empty() && follower->lines.closed()) {
    follower->thread.join();
    if (!follower->head.ok()) return Unreachable(url, follower->head.status());
    if (follower->head->status != 200) return Passed(*std::move(follower->head));
  }
  rest::Response response = rest::Response::Stream(
      "text/plain", [follower, first](std::string& out, std::chrono::milliseconds wait) {
        // This is read before the lines are taken, so that later lines are still sent.
        const bool ended = follower->lines.closed();
        std::vector<std::string> lines = std::move(*first);
        first->clear();
        if (lines.empty()) lines = follower->lines.PopAllFor(kLinesMax, wait);
        for (const std::string& line : lines) (out += line) += '\n';
        return !lines.empty() || !ended;
      });
  response.closed = [follower] { follower->Stop(); };
  return response;
}

}  // namespace

NodeFetch HttpNodeFetch(std::string token_file) {
  return [token_file = std::move(token_file)](const std::string& host, int port,
                                              const std::string& target) {
    const bool v6 = host.find(':') != std::string::npos;
    const std::string address = fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
    const std::string server = "http://" + address;
    auto transport = kube::HttpTransport::Create(
        {.server = server, .token_file = IsLoopback(address) ? token_file : ""});
    if (!transport.ok()) return Unreachable(server + target, transport.status());
    if (target.find("follow=true") != std::string::npos) {
      return Follow(*std::move(transport), server + target, target);
    }
    auto answer =
        (*transport)->Send({.method = "GET", .target = target, .headers = {}, .body = {}});
    if (!answer.ok()) return Unreachable(server + target, answer.status());
    return Passed(*std::move(answer));
  };
}

}  // namespace tahoma::controller::apiserver
