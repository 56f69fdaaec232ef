#include "lib/kube/reflector.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/requests.h"
#include "lib/kube/url.h"

namespace tahoma::kube {

using json = Json;

Reflector::Reflector(Transport& transport, Sleeper& sleeper, Rng rng, ReflectorOptions options,
                     WatchHandlers handlers)
    : transport_(transport),
      sleeper_(sleeper),
      rng_(rng),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      cache_(handlers_) {}

void Reflector::Start() {
  TAHOMA_CHECK(!thread_.joinable());
  thread_ = std::thread([this] { Run(); });
}

void Reflector::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Reflector::Run() {
  for (int fruitless = 0; !stopping_;) {
    const bool lists = cache_.resource_version().empty();
    const absl::Status status = Step();
    if (stopping_) return;
    // A list alone is no success: the client would list for ever on a server whose watches end at
    // once.
    if (events_ > 0) fruitless = 0;
    const bool is_expected = status.ok() || absl::IsOutOfRange(status);  // 410 ends an old watch
    if (!is_expected && handlers_.failed) {
      handlers_.failed(Annotate(status, options_.resource.CollectionPath(options_.ns)));
    }
    if (is_expected && (events_ > 0 || (lists && status.ok()))) continue;
    // A server restored to a time before this place may be silent instead of refusing the watch.
    if (is_expected) cache_.ForgetPlace();
    const std::chrono::nanoseconds pause = Backoff(options_.backoff, ++fruitless, rng_);
    if (!sleeper_.Sleep(std::max(pause, RetryAfterOf(status)))) return;
  }
}

absl::Status Reflector::Step() {
  events_ = 0;
  return cache_.resource_version().empty() ? List() : Watch();
}

absl::Status Reflector::List() {
  // A list that fails half way begins anew, so this class retries.
  Client client(transport_, sleeper_, Rng(rng_.Next()), {.attempts = 1});
  ListOptions list{.ns = options_.ns,
                   .label_selector = options_.label_selector,
                   .field_selector = options_.field_selector,
                   .limit = in_pages_ ? options_.page_size : 0};
  const JsonPart part = {.members = {{"metadata"}, {"items", options_.part}}};
  cache_.BeginList();
  do {
    const absl::StatusOr<json> page = client.List(options_.resource, list, part);
    // Pages that expired before the last page came would expire again.
    if (absl::IsOutOfRange(page.status()) && !list.continue_token.empty()) in_pages_ = false;
    TAHOMA_RETURN_IF_ERROR(page.status());
    TAHOMA_ASSIGN_OR_RETURN(list.continue_token, cache_.AddPage(*page));
  } while (!list.continue_token.empty() && !stopping_);
  in_pages_ = true;
  return absl::OkStatus();
}

absl::Status Reflector::Watch() {
  const auto base = static_cast<std::uint64_t>(options_.watch_timeout.count());
  Query query{{"watch", "true"},
              {"allowWatchBookmarks", "true"},
              {"resourceVersion", cache_.resource_version()},
              {"timeoutSeconds", std::to_string(base + rng_.Below(base + 1))}};
  if (!options_.label_selector.empty())
    query.emplace_back("labelSelector", options_.label_selector);
  if (!options_.field_selector.empty())
    query.emplace_back("fieldSelector", options_.field_selector);
  absl::Status broken;
  const absl::StatusOr<Response> ended = transport_.Watch(
      {.method = "GET",
       .target = options_.resource.CollectionPath(options_.ns) + "?" + EncodeQuery(query),
       .headers = {{"Accept", "application/json"}}},
      [&](std::string_view type, const json& object) {
        broken = cache_.AddEvent(type, object);
        if (broken.ok()) ++events_;
        return broken.ok() && !stopping_;
      },
      options_.idle_timeout);
  if (!broken.ok()) return broken;
  const absl::Status status = StatusOf(ended);
  // Without an answer, the next answer may come from another server, or from a restored server.
  if (!ended.ok() || IsPlaceLost(status)) cache_.ForgetPlace();
  return status;
}

}  // namespace tahoma::kube
