// AdmissionReview: the question to a webhook, and its answer.
//
// Source: k8s.io/apiserver pkg/admission/plugin/webhook/request/admissionreview.go and
// webhook/errors/statuserror.go.
//
// Scope: values. Who asks when is in webhooks.h.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/webhooks/webhook.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// Returns the question. `version` is that of the resource which the webhook wants; the objects are
// null where there are none, and already of that version.
Json ReviewOf(const Webhook& webhook, const Subject& subject, std::string_view version,
              std::string_view uid, const Json& object, const Json& old_object);

struct ReviewVerdict {
  bool allowed = false;
  absl::Status refusal = {};               // when not allowed: as the client sees it
  std::shared_ptr<const Json> patch = {};  // of a mutating webhook: the operations; null: none
  std::vector<std::string> warnings = {};
};

// Reads the answer. kInvalidArgument, with Kubernetes' text, when it is no answer to the question.
absl::StatusOr<ReviewVerdict> ReadVerdict(std::string_view text, const Webhook& webhook,
                                          bool mutating, std::string_view uid);

}  // namespace tahoma::controller::apiserver
