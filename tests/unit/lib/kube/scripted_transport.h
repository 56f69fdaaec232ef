// A transport that gives the answers of a test and records the requests.
//
// Scope: tests.
//
// Thread safety: none.

#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::testing {

class ScriptedTransport final : public kube::Transport {
 public:
  struct Answer {
    absl::Status error;  // when not OK: no answer at all, after the lines
    kube::Response response;
    std::vector<std::string> lines = {};  // for streams
  };

  void Will(int status, std::string body, kube::Headers headers = {}) {
    answers_.push_back(
        {absl::OkStatus(),
         {.status = status, .headers = std::move(headers), .body = std::move(body)}});
  }
  void WillAnswer(kube::Response response) {
    answers_.push_back({absl::OkStatus(), std::move(response)});
  }
  void WillFail(absl::Status error) { answers_.push_back({std::move(error), {}}); }
  void WillStream(std::vector<std::string> lines, absl::Status end = absl::OkStatus()) {
    answers_.push_back({std::move(end), {.status = 200}, std::move(lines)});
  }

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    requests.push_back(request);
    if (answers_.empty()) return Unavailable("the script is over");
    Answer answer = std::move(answers_.front());
    answers_.pop_front();
    if (!answer.error.ok()) return answer.error;
    return answer.response;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                        std::chrono::milliseconds) override {
    requests.push_back(request);
    if (answers_.empty()) return Unavailable("the script is over");
    Answer answer = std::move(answers_.front());
    answers_.pop_front();
    for (const std::string& line : answer.lines) {
      if (!sink(line)) return answer.response;
    }
    if (!answer.error.ok()) return answer.error;
    return answer.response;
  }

  bool done() const { return answers_.empty(); }
  std::vector<kube::Request> requests;

 private:
  std::deque<Answer> answers_;
};

// Does not wait; records the wanted waits. Interrupts after `limit` waits.
class CountingSleeper final : public kube::Sleeper {
 public:
  explicit CountingSleeper(std::size_t limit = 1000) : limit_(limit) {}
  bool Sleep(std::chrono::nanoseconds duration) override {
    sleeps.push_back(duration);
    return sleeps.size() <= limit_;
  }
  std::vector<std::chrono::nanoseconds> sleeps;

 private:
  std::size_t limit_;
};

}  // namespace tahoma::testing
