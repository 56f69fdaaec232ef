// A kube::Transport that calls the API server in the same process. Objects come as they are stored:
// in metadata.managedFields each fieldsV1 is a text (field_text.h), which kube::AppendJson prints.
//
//   InProcessTransport transport(*server, clock, /*user_agent=*/"tahoma-controller");
//   transport.Send({.method = "GET", .target = "/api/v1/nodes", .headers = {}, .body = {}});
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "controller/apiserver/http/api_server.h"
#include "lib/base/clock.h"
#include "lib/kube/transport.h"

namespace tahoma::controller::apiserver {

class InProcessTransport final : public kube::Transport {
 public:
  // Both must outlive the transport. `user_agent` names the caller in managedFields.
  InProcessTransport(ApiServer& server, const Clock& clock, std::string user_agent)
      : server_(server), clock_(clock), user_agent_(std::move(user_agent)) {}

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override;
  std::vector<absl::StatusOr<kube::Response>> SendAll(
      const std::vector<kube::Request>& requests) override;
  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                        std::chrono::milliseconds idle_timeout) override;
  absl::StatusOr<kube::Response> Watch(const kube::Request& request, const kube::EventSink& sink,
                                       std::chrono::milliseconds idle_timeout) override;

  // Ends running streams soon, and later ones at once.
  void Close() { closed_ = true; }

 private:
  rest::Request RequestOf(const kube::Request& request) const;
  // The whole answer; with a flight it holds when that has landed.
  kube::Response Answer(const kube::Request& request, CommitsInFlight* flight);

  ApiServer& server_;
  const Clock& clock_;
  const std::string user_agent_;
  std::atomic<bool> closed_ = false;
};

}  // namespace tahoma::controller::apiserver
