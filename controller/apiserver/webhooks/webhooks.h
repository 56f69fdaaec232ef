// Admission webhooks: who is asked about a request, in which order, and what becomes of the
// answers.
//
//   Webhooks webhooks(objects, ids, HttpWebhookCall());
//   webhooks.Refresh();                             // after a change of a configuration
//   if (webhooks.Concern(subject, versions)) {
//     object = *webhooks.Mutate(subject, versions, object, old, normalize, warnings);
//     TAHOMA_RETURN_IF_ERROR(webhooks.Validate(subject, versions, object, old, warnings));
//   }
//
// Mutating webhooks are asked one after the other, by the names of their configurations and then in
// the order of the configuration; after a change, earlier webhooks with reinvocationPolicy IfNeeded
// are asked once more. Validating webhooks then see the object as the store will have it. A webhook
// that cannot be asked, or gives no valid answer, fails the request (500) unless its failurePolicy
// is Ignore. Configurations of webhooks are never sent to webhooks.
//
// At most kWebhookCallsMost requests wait for webhooks at a time; further requests fail (429).
// Without configurations a request costs an atomic read.
//
// Thread safety: every member may be called from any thread. No lock is held during a call.

#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/storage/object_store.h"
#include "controller/apiserver/webhooks/webhook.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::apiserver {

// Their answers have 4 MiB each (http_call.h), and the HTTP server has 2048 threads.
inline constexpr int kWebhookCallsMost = 128;

// A question to a webhook.
struct WebhookQuestion {
  std::string server;       // "https://10.0.0.7:9443"
  std::string server_name;  // in its certificate; empty: the host's
  std::string target;       // path and query
  std::string ca_pem;       // empty: the machine's authorities
  std::string body;
  std::chrono::milliseconds timeout;
};

// Asks, within the timeout, and returns the body of a 200. Any other end is an error.
using WebhookCall = std::function<absl::StatusOr<std::string>(const WebhookQuestion& question)>;

class Webhooks {
 public:
  // After a webhook's patch: brings an object into the form of its kind (types, unknown fields,
  // defaults), or refuses it.
  using Normalize = std::function<absl::Status(Json& object)>;
  using Warnings = std::vector<std::string>;

  // The objects and the ids must outlive the webhooks. Without a call every question fails.
  Webhooks(const ObjectStore& objects, IdSource& ids, WebhookCall call)
      : objects_(objects), ids_(ids), call_(std::move(call)) {}

  // Reads the configurations that are stored now.
  void Refresh();

  // Whether there is any webhook: one atomic read.
  bool any() const { return any_; }
  // Whether a rule of any webhook is about the request. `versions` are all in which the resource is
  // served.
  bool Concern(const Subject& subject, const std::vector<std::string>& versions) const;

  // Returns the object as the mutating webhooks leave it, or the refusal of the first that refuses.
  // `object` is null for a delete, `old_object` for a create.
  absl::StatusOr<Json> Mutate(const Subject& subject, const std::vector<std::string>& versions,
                              Json object, const Json& old_object, const Normalize& normalize,
                              Warnings& warnings) const;
  absl::Status Validate(const Subject& subject, const std::vector<std::string>& versions,
                        const Json& object, const Json& old_object, Warnings& warnings) const;

 private:
  struct Table {
    std::vector<Webhook> mutating;
    std::vector<Webhook> validating;
  };
  struct Round;  // one request's way through the webhooks

  std::shared_ptr<const Table> Snapshot() const;
  // Whether the webhook takes the request, and then the version in which it wants the objects.
  absl::StatusOr<std::optional<std::string>> Takes(const Webhook& webhook,
                                                   const Round& round) const;
  // Asks one webhook. Changes the round's object; returns whether it did.
  absl::StatusOr<bool> Ask(const Webhook& webhook, std::string_view version, Round& round) const;
  absl::StatusOr<std::string> Answer(const Webhook& webhook, const Json& review) const;
  absl::StatusOr<bool> NamespaceTaken(const Webhook& webhook, const Round& round) const;

  const ObjectStore& objects_;
  IdSource& ids_;
  const WebhookCall call_;
  std::atomic<bool> any_ = false;
  mutable std::atomic<int> waiting_ = 0;
  Mutex refresh_mutex_;  // one reader of the configurations at a time: the last one has all
  mutable Mutex mutex_;
  std::shared_ptr<const Table> table_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Table>();
};

}  // namespace tahoma::controller::apiserver
