#include "lib/kube/client.h"

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using json = Json;

// Returns whether the server refused before anything was done, so that even a Create may be
// repeated.
bool WasRefused(const absl::Status& status) {
  const std::optional<ApiError> error = ApiErrorOf(status);
  return error && (error->code == 429 || error->code == 503);
}

// Returns whether a failure without an answer may pass by itself: not when the answer is too large
// or a credential is bad.
bool IsPassing(const absl::Status& status) {
  if (ApiErrorOf(status)) return OutcomeOf(status) == Outcome::kRetryLater;
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

absl::StatusOr<ObjectKey> KeyFor(const json& object) {
  ObjectKey key = KeyOf(object);
  if (key.name.empty()) return InvalidArgument("metadata.name: Required value");
  return key;
}

}  // namespace

std::chrono::nanoseconds Backoff(const RetryOptions& options, int attempt, Rng& rng) {
  std::chrono::nanoseconds pause = options.first;
  for (int i = 1; i < attempt && pause < options.longest; ++i) pause *= 2;
  pause = std::min<std::chrono::nanoseconds>(pause, options.longest);
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  return pause - std::chrono::nanoseconds(static_cast<std::int64_t>(rng.Below(half + 1)));
}

Client::Client(Transport& transport, Sleeper& sleeper, Rng rng, RetryOptions retry)
    : transport_(transport), sleeper_(sleeper), retry_(retry), rng_(rng) {}

bool Client::Wait(int attempt, const absl::Status& error) {
  std::chrono::nanoseconds pause{};
  {
    const MutexLock lock(mutex_);
    pause = Backoff(retry_, attempt, rng_);
  }
  return sleeper_.Sleep(std::max(pause, RetryAfterOf(error)));
}

absl::StatusOr<json> Client::Call(const Request& request, Repeat repeat, const JsonPart& part) {
  for (int attempt = 1;; ++attempt) {
    const absl::StatusOr<Response> response = transport_.Send(request);
    absl::Status error = StatusOf(response);
    if (error.ok()) {
      json body = response->parsed         ? *response->parsed
                  : response->body.empty() ? json()
                                           : TryParseJsonPart(response->body, part);
      if (!body.is_discarded()) return body;
      error = Unavailable("{} {}: the answer is not JSON", request.method, request.target);
    }
    const bool again = WasRefused(error) || (repeat == Repeat::kMay && IsPassing(error));
    if (!again || attempt >= retry_.attempts || !Wait(attempt, error)) return error;
  }
}

absl::StatusOr<json> Client::Get(const Resource& resource, const ObjectKey& key) {
  return Call(GetRequest(resource, key), Repeat::kMay);
}

absl::StatusOr<json> Client::List(const Resource& resource, const ListOptions& options,
                                  const JsonPart& part) {
  return Call(ListRequest(resource, options), Repeat::kMay, part);
}

absl::Status Client::ForEach(const Resource& resource, ListOptions options,
                             const std::function<absl::Status(const json& item)>& each) {
  bool may_start_anew = true;
  for (;;) {
    const absl::StatusOr<json> page = List(resource, options);
    if (absl::IsOutOfRange(page.status()) && may_start_anew && !options.continue_token.empty()) {
      may_start_anew = false;
      options.continue_token.clear();
      options.limit = 0;
      continue;
    }
    TAHOMA_RETURN_IF_ERROR(page.status());
    const json* items = ValueAt(*page, {"items"});
    // Go servers write an empty list as null.
    const bool is_list = items != nullptr && (items->is_array() || items->is_null());
    if (!is_list || ValueAt(*page, {"metadata"}) == nullptr) {
      return Unavailable("{}: the answer is not a list", resource.CollectionPath(options.ns));
    }
    for (const json& item : *items) TAHOMA_RETURN_IF_ERROR(each(item));
    options.continue_token = std::string(StringAt(*page, {"metadata", "continue"}));
    if (options.continue_token.empty()) return absl::OkStatus();
  }
}

absl::StatusOr<json> Client::Create(const Resource& resource, std::string_view ns,
                                    const json& object, const WriteOptions& options) {
  return Call(CreateRequest(resource, ns, object, options), Repeat::kMustNot);
}

absl::StatusOr<json> Client::Update(const Resource& resource, const json& object,
                                    const WriteOptions& options) {
  TAHOMA_ASSIGN_OR_RETURN(const ObjectKey key, KeyFor(object));
  return Call(UpdateRequest(resource, key, object, options), Repeat::kMay);
}

absl::StatusOr<json> Client::UpdateStatus(const Resource& resource, const json& object,
                                          WriteOptions options) {
  options.subresource = "status";
  return Update(resource, object, options);
}

absl::StatusOr<json> Client::Patch(const Resource& resource, const ObjectKey& key, PatchType type,
                                   const json& patch, const WriteOptions& options) {
  return Call(PatchRequest(resource, key, type, patch, options),
              type == PatchType::kJson ? Repeat::kMustNot : Repeat::kMay);
}

absl::StatusOr<json> Client::Delete(const Resource& resource, const ObjectKey& key,
                                    const DeleteOptions& options) {
  return Call(DeleteRequest(resource, key, options), Repeat::kMay);
}

absl::Status Client::Bind(const ObjectKey& pod, std::string_view uid, std::string_view node,
                          const json& annotations) {
  return Call(BindRequest(pod, uid, node, annotations), Repeat::kMustNot).status();
}

}  // namespace tahoma::kube
