// Operations on Kubernetes objects of any kind, with retries and errors that keep their reason.
//
//   const Resource kPods{.group = "", .version = "v1", .plural = "pods", .namespaced = true};
//   Client client(transport, sleeper, rng);
//   absl::StatusOr<json> pod = client.Get(kPods, {"training", "worker-0"});
//   if (absl::IsNotFound(pod.status())) …
//   if (const auto error = ApiErrorOf(pod.status())) … error->reason …
//
// What the server's errors become: NotFound kNotFound · AlreadyExists kAlreadyExists · Conflict
// kAborted · Invalid and BadRequest kInvalidArgument · Forbidden kPermissionDenied · Unauthorized
// kUnauthenticated · Expired and Gone kOutOfRange · TooManyRequests kResourceExhausted · 503
// kUnavailable · timeouts kDeadlineExceeded · 405, 406, 415, 501 kUnimplemented · else kInternal.
//
// Retries, with exponential back-off, jitter and the server's Retry-After: what the server refused
// to start (429, 503) always; broken connections and 5xx only for requests that may be repeated
// (reads, updates, merge patches, deletes; not Create, Bind and JSON patches). A repeated update
// or delete whose first try did succeed answers Conflict or NotFound.
//
// Scope: one request at a time; lists and watches that follow a kind are lib/kube/list_watch.h.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/base/rng.h"
#include "lib/kube/object.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"
#include "lib/kube/url.h"

namespace tahoma::kube {

struct Resource {
  std::string group;  // empty for core
  std::string version;
  std::string plural;
  bool namespaced = true;

  // "/api/v1/namespaces/NS/pods"; all namespaces when `ns` is empty.
  std::string CollectionPath(std::string_view ns) const;
  std::string ObjectPath(const ObjectKey& key, std::string_view subresource = "") const;
};

// What a Status object said.
struct ApiError {
  struct Cause {
    std::string reason;
    std::string message;
    std::string field;
  };
  int code = 0;
  std::string reason;  // "AlreadyExists"
  std::string message;
  std::vector<Cause> causes;
  std::optional<std::chrono::seconds> retry_after;
};

// Nothing when the error did not come from an API server.
std::optional<ApiError> ApiErrorOf(const absl::Status& status);

// The code of an error with that HTTP status and Status.reason ("" when there is none).
absl::StatusCode StatusCodeOf(int http, std::string_view reason);

// The error that an answer from 300 on stands for: redirects are not followed.
absl::Status ToStatus(const Response& response);

enum class PatchType { kMerge, kJson, kStrategicMerge, kApply };

struct ListOptions {
  std::string ns = {};  // empty: all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};
  int limit = 500;                  // 0: no pages
  std::string continue_token = {};  // from metadata.continue of the page before
};

struct WriteOptions {
  std::string field_manager = {};
  bool dry_run = false;
  bool force = false;  // kApply only
  std::string subresource = {};
};

struct DeleteOptions {
  std::string uid = {};  // preconditions
  std::string resource_version = {};
  std::optional<int> grace_period_seconds = {};
  std::string propagation_policy = {};  // Orphan, Background, Foreground
};

struct RetryOptions {
  int attempts = 6;
  std::chrono::milliseconds first = std::chrono::milliseconds(100);
  std::chrono::milliseconds longest = std::chrono::seconds(10);
};

// The pause before try `attempt` (1 = the first repetition): doubling from `first` to `longest`,
// of which half is random.
std::chrono::nanoseconds Backoff(const RetryOptions& options, int attempt, Rng& rng);

class Client {
 public:
  // The transport and the sleeper must outlive the client.
  Client(Transport& transport, Sleeper& sleeper, Rng rng, RetryOptions retry = {});

  absl::StatusOr<Json> Get(const Resource& resource, const ObjectKey& key);
  // One page. Its items may lack apiVersion and kind.
  absl::StatusOr<Json> List(const Resource& resource, const ListOptions& options);
  // All pages, item by item; starts anew once, and without pages, when their version expires in
  // between, so `each` may see an item twice. Stops at the first error of `each`.
  absl::Status ForEach(const Resource& resource, ListOptions options,
                       const std::function<absl::Status(const Json& item)>& each);
  absl::StatusOr<Json> Create(const Resource& resource, std::string_view ns, const Json& object,
                              const WriteOptions& options = {});
  // Key from the object's metadata; with its resourceVersion the server checks for conflicts.
  absl::StatusOr<Json> Update(const Resource& resource, const Json& object,
                              const WriteOptions& options = {});
  absl::StatusOr<Json> UpdateStatus(const Resource& resource, const Json& object,
                                    WriteOptions options = {});
  absl::StatusOr<Json> Patch(const Resource& resource, const ObjectKey& key, PatchType type,
                             const Json& patch, const WriteOptions& options = {});
  // The answer is the object as it is being deleted, or a Status.
  absl::StatusOr<Json> Delete(const Resource& resource, const ObjectKey& key,
                              const DeleteOptions& options = {});
  // Binds a pod to a node; annotations are merged into the pod. kAborted when the pod is bound
  // already, is being deleted, or has another uid.
  absl::Status Bind(const ObjectKey& pod, std::string_view uid, std::string_view node,
                    const Json& annotations);

  // Any other request, with the same retries. `repeatable`: may be carried out twice.
  enum class Repeat { kMay, kMustNot };
  absl::StatusOr<Json> Call(const Request& request, Repeat repeat);

 private:
  absl::StatusOr<Json> Write(std::string_view method, std::string path,
                             std::string_view content_type, const Json& body,
                             const WriteOptions& options, Repeat repeat);
  // False when the wait was interrupted: the program ends.
  bool Wait(int attempt, const absl::Status& error);

  Transport& transport_;
  Sleeper& sleeper_;
  const RetryOptions retry_;
  std::mutex mutex_;
  Rng rng_;
};

}  // namespace tahoma::kube
