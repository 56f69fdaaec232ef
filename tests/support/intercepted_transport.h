// A transport to an API server under test that remembers the requests and lets a test disturb them.
//
//   InterceptedTransport api(in_process);
//   api.before = [&](const kube::Request&) { … };  // somebody writes in between
//   api.refuse = [](const kube::Request& request) { return request.method == "PUT"; };
//   api.edit = [](Json& object) { object["spec"].erase("taints"); };  // an older server
//   api.answer = [](const kube::Request&) { return std::optional(kube::Response{.status = 503}); };
//
// Scope: what a server cannot be made to do by requests alone: to fail, to be older, to be raced.
//
// Thread safety: Send from any thread; the server answers one request at a time. The hooks are set
// while nobody sends, and are called without a lock, so they may call the server themselves.

#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/transport.h"

namespace tahoma::testing {

class InterceptedTransport final : public kube::Transport {
 public:
  // `below` must outlive the transport.
  explicit InterceptedTransport(kube::Transport& below) : below_(below) {}

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    {
      const std::lock_guard lock(mutex_);
      const bool dry_run = request.target.find("dryRun=All") != std::string::npos;
      log_.push_back((dry_run ? "DRY RUN " : request.method + " ") + PathOf(request));
    }
    if (before) before(request);
    if (refuse && refuse(request)) return Unavailable("the API server is away");
    kube::Request sent = request;
    if (edit && (request.method == "POST" || request.method == "PUT")) {
      Json object = ParseJson(request.Text());
      edit(object);
      sent.body = object.dump();
      sent.parsed = nullptr;
    }
    if (answer) {
      if (auto instead = answer(sent)) return *std::move(instead);
    }
    const std::lock_guard lock(mutex_);
    return below_.Send(sent);
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                        std::chrono::milliseconds idle_timeout) override {
    return below_.Stream(request, sink, idle_timeout);
  }

  // Called before a request reaches the server.
  std::function<void(const kube::Request&)> before;
  // Whether the request is lost on its way to the server.
  std::function<bool(const kube::Request&)> refuse;
  // Changes the objects that are sent, so that the server keeps and returns other ones.
  std::function<void(Json& object)> edit;
  // Answers instead of the server, unless it returns nothing.
  std::function<std::optional<kube::Response>(const kube::Request&)> answer;

  // Returns the requests since the last call, as "GET /api/v1/nodes/node-a", or "DRY RUN …".
  std::vector<std::string> TakeLog() {
    const std::lock_guard lock(mutex_);
    return std::exchange(log_, {});
  }
  // Returns the number of requests in the log that write.
  int writes() const {
    const std::lock_guard lock(mutex_);
    int count = 0;
    for (const std::string& line : log_)
      count += line.starts_with("GET") || line.starts_with("DRY") ? 0 : 1;
    return count;
  }

 private:
  static std::string PathOf(const kube::Request& request) {
    return request.target.substr(0, request.target.find('?'));
  }

  kube::Transport& below_;
  mutable std::mutex mutex_;
  std::vector<std::string> log_;
};

}  // namespace tahoma::testing
