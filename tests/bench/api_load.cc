#include "tests/bench/api_load.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "lib/base/check.h"
#include "lib/base/json.h"

namespace tahoma::bench {

constexpr std::chrono::minutes kDeadline{5};

namespace {

Json AnswerTo(kube::Transport& api, const kube::Request& request) {
  const auto answer = api.Send(request);
  if (!answer.ok() || answer->status >= 300) {
    std::fprintf(stderr, "%s %s: %s\n", request.method.c_str(), request.target.c_str(),
                 answer.ok() ? answer->body.c_str() : answer.status().ToString().c_str());
    std::exit(1);
  }
  return ParseJson(answer->body);
}

}  // namespace

Json Send(kube::Transport& api, const std::string& target, const Json& body, const char* method,
          const char* type) {
  return AnswerTo(api, {.method = method,
                        .target = target,
                        .headers = {{"Content-Type", type}},
                        .body = body.dump()});
}

Json Get(kube::Transport& api, const std::string& target) {
  return AnswerTo(api, {.method = "GET", .target = target});
}

void BoundPods::Watch(kube::Transport& api) {
  for (;;) {
    const auto answer = api.Stream(
        {.target = "/api/v1/namespaces/default/pods"
                   "?watch=true&resourceVersion=0&fieldSelector=spec.nodeName%21%3D"},
        [&](std::string_view line) { return Take(line); }, std::chrono::minutes(10));
    const std::lock_guard lock(mutex_);
    if (bound_ >= wanted_) return;
    if (!answer.ok() || answer->status != 200) {
      std::fprintf(stderr, "watch: %s\n",
                   answer.ok() ? answer->body.c_str() : answer.status().ToString().c_str());
      return;
    }
    // The server ends a watch whose client is slow; a new one begins with all that are bound.
    bound_ = 0;
  }
}

bool BoundPods::Wait() {
  std::unique_lock lock(mutex_);
  const bool all = changed_.wait_for(lock, kDeadline, [&] { return bound_ >= wanted_; });
  if (!all) std::fprintf(stderr, "%zu of %zu pods are bound\n", bound_, wanted_);
  return all;
}

bool BoundPods::Take(std::string_view line) {
  TAHOMA_CHECK(!line.starts_with(R"({"type":"ERROR")"));
  if (!line.starts_with(R"({"type":"ADDED")")) return true;
  TAHOMA_CHECK(line.find(R"("nodeName":")") != std::string_view::npos);
  const std::lock_guard lock(mutex_);
  if (++bound_ < wanted_) return true;
  changed_.notify_all();
  return false;
}

}  // namespace tahoma::bench
