#include "controller/apiserver/http/in_process_transport.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "controller/apiserver/request/status_error.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::chrono::milliseconds kWaitAtOnce{200};

kube::Response HeadOf(const rest::Response& response) {
  kube::Response head;
  head.status = response.status;
  head.headers = response.headers;
  head.headers.emplace_back("Content-Type", response.content_type);
  return head;
}

kube::Response RefusalOf(const absl::Status& status) {
  rest::Response refusal = ResponseOf(status);
  kube::Response answer = HeadOf(refusal);
  answer.body = std::move(refusal.body);
  return answer;
}

// Gives the whole lines of `text` away and keeps the rest; false when the sink has had enough.
bool DrainLines(std::string& text, const kube::LineSink& sink) {
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    if (!sink(std::string_view(text).substr(start, end - start))) return false;
    start = end + 1;
  }
  text.erase(0, start);
  return true;
}

}  // namespace

rest::Request InProcessTransport::RequestOf(const kube::Request& request) const {
  rest::Request call;
  call.method = request.method;
  call.target = request.target;
  const std::size_t question = request.target.find('?');
  call.path = request.target.substr(0, question);
  if (question != std::string::npos) call.query = request.target.substr(question + 1);
  call.headers = request.headers;
  if (call.header("User-Agent").empty()) call.headers.emplace_back("User-Agent", user_agent_);
  call.body = request.body;
  call.parsed = request.parsed;
  call.peer = "in-process";
  return call;
}

kube::Response InProcessTransport::Answer(const kube::Request& request, CommitsInFlight* flight) {
  rest::Response response = server_.Handle(RequestOf(request), flight);
  kube::Response answer = HeadOf(response);
  answer.body = std::move(response.body);
  answer.parsed = std::move(response.parsed);
  if (response.source) {
    while (!closed_ && response.source(answer.body, kWaitAtOnce)) {
    }
    if (response.closed) response.closed();
  }
  return answer;
}

absl::StatusOr<kube::Response> InProcessTransport::Send(const kube::Request& request) {
  return Answer(request, nullptr);
}

std::vector<absl::StatusOr<kube::Response>> InProcessTransport::SendAll(
    const std::vector<kube::Request>& requests) {
  std::vector<absl::StatusOr<kube::Response>> answers;
  CommitsInFlight flight;
  for (const kube::Request& request : requests) answers.emplace_back(Answer(request, &flight));
  if (const absl::Status landed = flight.Land(); !landed.ok()) {
    for (auto& answer : answers) {
      // An error was answered without the disk.
      if (answer->status / 100 == 2) answer = RefusalOf(landed);
    }
  }
  return answers;
}

absl::StatusOr<kube::Response> InProcessTransport::Stream(const kube::Request& request,
                                                          const kube::LineSink& sink,
                                                          std::chrono::milliseconds idle_timeout) {
  rest::Response response = server_.Handle(RequestOf(request));
  kube::Response head = HeadOf(response);
  if (!response.source) {
    if (response.status == 200) {
      response.body += '\n';
      DrainLines(response.body, sink);
    } else {
      head.body = std::move(response.body);
    }
    return head;
  }
  std::string text;
  MonotonicTime last = clock_.MonotonicNow();
  for (bool more = true; more && !closed_;) {
    const std::size_t before = text.size();
    more = response.source(text, std::min(kWaitAtOnce, idle_timeout));
    const MonotonicTime now = clock_.MonotonicNow();
    if (text.size() > before) last = now;
    if (!DrainLines(text, sink) || now - last >= idle_timeout) break;
  }
  if (response.closed) response.closed();
  return head;
}

absl::StatusOr<kube::Response> InProcessTransport::Watch(const kube::Request& request,
                                                         const kube::EventSink& sink,
                                                         std::chrono::milliseconds idle_timeout) {
  const rest::Request call = RequestOf(request);
  const auto watch = server_.OpenWatch(call);
  if (!watch.ok()) return RefusalOf(watch.status());
  MonotonicTime last = clock_.MonotonicNow();
  const kube::EventSink seen = [&](std::string_view type, const Json& object) {
    last = clock_.MonotonicNow();
    return sink(type, object);
  };
  try {
    while (!closed_ && (*watch)->ReadEvents(seen, std::min(kWaitAtOnce, idle_timeout)) &&
           clock_.MonotonicNow() - last < idle_timeout) {
    }
  } catch (const std::exception& error) {
    return Internal("the watch of {} failed: {}", request.target, error.what());
  }
  kube::Response ended;
  ended.status = 200;
  return ended;
}

}  // namespace tahoma::controller::apiserver
