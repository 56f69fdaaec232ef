// Operations on Kubernetes objects of any kind, with retries and errors that keep their reason.
//
//   Client client(transport, sleeper, rng);
//   absl::StatusOr<Json> pod = client.Get(kPods, {"training", "worker-0"});
//   if (absl::IsNotFound(pod.status())) …
//   if (const auto error = ApiErrorOf(pod.status())) Log(error->reason);
//
// Retries with exponential back-off, jitter and the server's Retry-After: always when the server
// refused to start (429, 503); after broken connections and 5xx only requests that may be repeated
// (reads, updates, merge patches, deletes; not Create, Bind and JSON patches). A repeated update or
// delete whose first try did succeed answers Conflict or NotFound.
//
// Scope: one request at a time. requests.h and answer.h are for requests that are sent together,
// reflector.h for lists and watches that follow a kind.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/base/json_part.h"
#include "lib/base/mutex.h"
#include "lib/base/rng.h"
#include "lib/kube/answer.h"
#include "lib/kube/object.h"
#include "lib/kube/requests.h"
#include "lib/kube/resource.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"
#include "lib/kube/url.h"

namespace tahoma::kube {

struct RetryOptions {
  int attempts = 6;
  std::chrono::milliseconds first = std::chrono::milliseconds(100);
  std::chrono::milliseconds longest = std::chrono::seconds(10);
};

// Returns the pause before try `attempt` (1 = the first repetition): it doubles from `first` to
// `longest`, and half of it is random.
std::chrono::nanoseconds Backoff(const RetryOptions& options, int attempt, Rng& rng);

class Client {
 public:
  // The transport and the sleeper must outlive the client.
  Client(Transport& transport, Sleeper& sleeper, Rng rng, RetryOptions retry = {});

  absl::StatusOr<Json> Get(const Resource& resource, const ObjectKey& key);
  // Reads one page; from an answer that is text only `part` (lib/base/json_part.h), which must name
  // the page's metadata. Items may lack apiVersion and kind.
  absl::StatusOr<Json> List(const Resource& resource, const ListOptions& options,
                            const JsonPart& part = {});
  // Reads all pages, item by item; starts anew once, and without pages, when their version expires
  // in between, so `each` may see an item twice. Stops at the first error of `each`.
  absl::Status ForEach(const Resource& resource, ListOptions options,
                       const std::function<absl::Status(const Json& item)>& each);
  absl::StatusOr<Json> Create(const Resource& resource, std::string_view ns, const Json& object,
                              const WriteOptions& options = {});
  // Replaces the object, whose metadata has the key; with its resourceVersion the server checks for
  // conflicts.
  absl::StatusOr<Json> Update(const Resource& resource, const Json& object,
                              const WriteOptions& options = {});
  absl::StatusOr<Json> UpdateStatus(const Resource& resource, const Json& object,
                                    WriteOptions options = {});
  absl::StatusOr<Json> Patch(const Resource& resource, const ObjectKey& key, PatchType type,
                             const Json& patch, const WriteOptions& options = {});
  // Returns the object as it is being deleted, or a Status.
  absl::StatusOr<Json> Delete(const Resource& resource, const ObjectKey& key,
                              const DeleteOptions& options = {});
  // Binds a pod to a node and merges the annotations into the pod. kAborted when the pod is bound
  // already, is being deleted, or has another uid.
  absl::Status Bind(const ObjectKey& pod, std::string_view uid, std::string_view node,
                    const Json& annotations);

  // Sends any other request, with the same retries. `repeatable`: it may be carried out twice.
  enum class Repeat { kMay, kMustNot };
  absl::StatusOr<Json> Call(const Request& request, Repeat repeat, const JsonPart& part = {});

 private:
  // Returns false when the wait was interrupted: the program ends.
  bool Wait(int attempt, const absl::Status& error);

  Transport& transport_;
  Sleeper& sleeper_;
  const RetryOptions retry_;
  Mutex mutex_;
  Rng rng_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::kube
