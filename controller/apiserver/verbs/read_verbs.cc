#include "controller/apiserver/verbs/read_verbs.h"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "controller/apiserver/request/component_status.h"
#include "controller/apiserver/request/representation.h"
#include "controller/apiserver/request/selection.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/verbs/resource_metrics.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr std::string_view kTokenVersion = "meta.k8s.io/v1";
constexpr std::chrono::seconds kWatchTimeoutDefault{1800};
constexpr std::int64_t kWatchTimeoutMaxSeconds = 86400;

// nullopt: absent. 400 when the text is not a number.
absl::StatusOr<std::optional<std::int64_t>> RequestedVersion(const ApiRequest& request,
                                                             bool watch = false) {
  const std::string_view text = request.parameter("resourceVersion");
  if (text.empty()) return std::nullopt;
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error == std::errc() && end == text.data() + text.size() && version >= 0) return version;
  const std::string wrong = fmt::format(
      "resourceVersion: Invalid value: \"{0}\": strconv.ParseUint: parsing \"{0}\": invalid syntax",
      text);
  return watch ? BadRequestError(wrong)
               : BadRequestError(fmt::format("invalid resource version: {}", wrong));
}

constexpr const char* kMatch = "resourceVersionMatch";

// Rules and texts: apimachinery pkg/apis/meta/internalversion/validation.
std::vector<Cause> CheckWatchOptions(std::string_view match, bool send_initial, bool page) {
  std::vector<Cause> causes;
  if (send_initial && match != "NotOlderThan") {
    causes.push_back(Forbidden(
        kMatch, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  }
  if (!match.empty() && !send_initial) {
    causes.push_back(
        Forbidden(kMatch,
                  "resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                  "provided"));
  }
  if (!match.empty() && match != "NotOlderThan") {
    causes.push_back(NotSupported(kMatch, std::string(match), {"NotOlderThan"}));
  }
  if (!match.empty() && page) {
    causes.push_back(
        Forbidden(kMatch, "resourceVersionMatch is forbidden when continue is provided"));
  }
  return causes;
}

std::vector<Cause> CheckListOptions(const ApiRequest& request, std::string_view match) {
  std::vector<Cause> causes;
  const std::string_view version = request.parameter("resourceVersion");
  if (!match.empty()) {
    if (version.empty()) {
      causes.push_back(Forbidden(
          kMatch, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    }
    if (!request.parameter("continue").empty()) {
      causes.push_back(
          Forbidden(kMatch, "resourceVersionMatch is forbidden when continue is provided"));
    }
    if (match != "Exact" && match != "NotOlderThan") {
      causes.push_back(NotSupported(kMatch, std::string(match), {"Exact", "NotOlderThan", ""}));
    }
    if (match == "Exact" && version == "0") {
      causes.push_back(Forbidden(
          kMatch, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
    }
  }
  if (request.query.contains("sendInitialEvents")) {
    causes.push_back(Forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  return causes;
}

absl::Status CheckVersionMatch(const ApiRequest& request, bool watch) {
  const std::string_view match = request.parameter(kMatch);
  const std::vector<Cause> causes =
      watch ? CheckWatchOptions(match, request.query.contains("sendInitialEvents"),
                                !request.parameter("continue").empty())
            : CheckListOptions(request, match);
  if (causes.empty()) return absl::OkStatus();
  return InvalidError("meta.k8s.io", "ListOptions", "", causes);
}

absl::StatusOr<Selection> SelectionOf(const ApiRequest& request) {
  return Selection::Parse(*request.kind, request.parameter("labelSelector"),
                          request.parameter("fieldSelector"));
}

absl::StatusOr<std::vector<ObjectPtr>> Computed(const ApiContext& context,
                                                const ApiRequest& request) {
  if (IsResourceMetrics(*request.kind)) return ResourceMetrics(context, request);
  return ComponentStatuses(context.probes);
}

absl::StatusOr<ObjectList> Newest(const ApiContext& context, const ApiRequest& request) {
  if (!request.kind->computed) {
    return context.objects.List(request.resource(), request.key_prefix());
  }
  TAHOMA_ASSIGN_OR_RETURN(std::vector<ObjectPtr> objects, Computed(context, request));
  return ObjectList{std::move(objects), context.objects.version()};
}

absl::StatusOr<ObjectPtr> NewestOne(const ApiContext& context, const ApiRequest& request) {
  if (!request.kind->computed) return context.objects.Get(request.resource(), request.key());
  TAHOMA_ASSIGN_OR_RETURN(std::vector<ObjectPtr> objects, Computed(context, request));
  for (ObjectPtr& object : objects) {
    if (object->key == request.key()) return std::move(object);
  }
  return nullptr;
}

// Returns the objects at the version that the parameters ask for.
absl::StatusOr<ObjectList> Snapshot(const ApiContext& context, const ApiRequest& request,
                                    const std::optional<ContinueToken>& token) {
  const ResourceName resource = request.resource();
  TAHOMA_ASSIGN_OR_RETURN(const auto version, RequestedVersion(request));
  std::optional<std::int64_t> exact;
  if (token) {
    if (version && *version != 0) {
      return BadRequestError("specifying resource version is not allowed when using continue");
    }
    if (token->version > 0) exact = token->version;
  } else if (request.parameter("resourceVersionMatch") == "Exact") {
    exact = version;
  }
  // There is no history of what is made when it is read.
  if (!exact || request.kind->computed) {
    TAHOMA_ASSIGN_OR_RETURN(ObjectList list, Newest(context, request));
    if (version && *version > list.version) return TooLargeVersionError(*version, list.version);
    return list;
  }
  absl::StatusOr<ObjectList> list = context.objects.ListAt(resource, request.key_prefix(), *exact);
  if (list.ok()) return list;
  if (absl::IsUnavailable(list.status())) {
    return TooLargeVersionError(*exact, context.objects.version());
  }
  if (!token) return ExpiredError("The resourceVersion for the provided list is too old.");
  return ExpiredError(
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new list without the continue parameter.");
}

// Returns room for an answer or a watch that takes this many bytes until its reader has read it.
// Null: the caller is in this process.
absl::StatusOr<ByteBudget::Hold> RoomFor(const ApiRequest& request, std::size_t bytes) {
  if (request.answers == nullptr) return nullptr;
  ByteBudget::Hold hold = request.answers->Acquire(bytes);
  if (hold == nullptr) {
    return ResourceExhausted("too much waits for clients that do not read it; try again");
  }
  return hold;
}

rest::Response Uncached(rest::Response response) {
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  return response;
}

absl::StatusOr<WatchStream::Start> StartOf(const ApiContext& context, const ApiRequest& request,
                                           const Selection& selection) {
  WatchStream::Start start;
  TAHOMA_ASSIGN_OR_RETURN(const auto version, RequestedVersion(request, true));
  TAHOMA_ASSIGN_OR_RETURN(const auto timeout, request.number("timeoutSeconds"));
  start.timeout = timeout && *timeout > 0
                      ? std::chrono::seconds(std::min(*timeout, kWatchTimeoutMaxSeconds))
                      : kWatchTimeoutDefault;
  start.bookmarks = request.flag("allowWatchBookmarks");
  const bool asked = request.query.contains("sendInitialEvents");
  const bool send_initial = asked ? request.flag("sendInitialEvents") : version.value_or(0) == 0;
  start.end_bookmark = asked && send_initial && start.bookmarks;
  if (!send_initial && version.value_or(0) > 0) {
    start.version = *version;
    return start;
  }
  ObjectList list = context.objects.List(request.resource(), request.key_prefix());
  if (version && *version > list.version) return TooLargeVersionError(*version, list.version);
  start.version = list.version;
  if (!send_initial) return start;
  for (ObjectPtr& object : list.objects) {
    if (selection.Matches(*object->body)) start.initial.push_back(std::move(object));
  }
  TAHOMA_ASSIGN_OR_RETURN(start.hold,
                          RoomFor(request, start.initial.capacity() * sizeof(ObjectPtr)));
  return start;
}

}  // namespace

std::string EncodeContinue(const ContinueToken& token) {
  const std::string text =
      json{{"v", kTokenVersion}, {"rv", token.version}, {"start", token.start}}.dump();
  std::string encoded;
  absl::WebSafeBase64Escape({text.data(), text.size()}, &encoded);
  return encoded;
}

absl::StatusOr<ContinueToken> DecodeContinue(std::string_view text) {
  const absl::Status bad = BadRequestError(
      "invalid continue token: continue key is not valid: it was not made by this server");
  std::string decoded;
  if (text.size() > 4096 || !absl::WebSafeBase64Unescape({text.data(), text.size()}, &decoded)) {
    return bad;
  }
  const json token = TryParseJson(decoded);
  if (!token.is_object() || token.value("v", json()) != kTokenVersion ||
      !token.value("rv", json()).is_number_integer() || !token.value("start", json()).is_string()) {
    return bad;
  }
  return ContinueToken{token.at("rv").get<std::int64_t>(), token.at("start").get<std::string>()};
}

absl::StatusOr<rest::Response> GetOne(const ApiContext& context, const ApiRequest& request) {
  TAHOMA_ASSIGN_OR_RETURN(const Representation form, Representation::Negotiate(request));
  TAHOMA_ASSIGN_OR_RETURN(const ObjectPtr object, NewestOne(context, request));
  if (object == nullptr) return NotFoundError(*request.kind, request.name);
  TAHOMA_ASSIGN_OR_RETURN(const auto version, RequestedVersion(request));
  if (const std::int64_t newest = context.objects.version(); version && *version > newest) {
    return TooLargeVersionError(*version, newest);
  }
  TAHOMA_ASSIGN_OR_RETURN(Pieces body, form.One(*request.kind, object, context.clock.WallNow()));
  TAHOMA_ASSIGN_OR_RETURN(ByteBudget::Hold hold, RoomFor(request, body.own_bytes()));
  return Uncached(form.Answer(request, 200, std::move(body), std::move(hold)));
}

absl::StatusOr<rest::Response> ListMany(const ApiContext& context, const ApiRequest& request) {
  TAHOMA_ASSIGN_OR_RETURN(const Representation form, Representation::Negotiate(request));
  TAHOMA_ASSIGN_OR_RETURN(const Selection selection, SelectionOf(request));
  TAHOMA_RETURN_IF_ERROR(CheckVersionMatch(request, false));
  TAHOMA_ASSIGN_OR_RETURN(const auto limit, request.number("limit"));
  std::optional<ContinueToken> token;
  if (const std::string_view text = request.parameter("continue"); !text.empty()) {
    TAHOMA_ASSIGN_OR_RETURN(token, DecodeContinue(text));
  }
  TAHOMA_ASSIGN_OR_RETURN(const ObjectList list, Snapshot(context, request, token));
  auto at = list.objects.begin();
  if (token) {
    at = std::lower_bound(
        at, list.objects.end(), request.key_prefix() + token->start,
        [](const ObjectPtr& object, const std::string& key) { return object->key < key; });
  }
  // Pages are of one version, which a computed list does not have.
  const bool pages = limit && *limit > 0 && !request.kind->computed;
  const std::size_t most = pages ? static_cast<std::size_t>(*limit) : SIZE_MAX;
  std::vector<ObjectPtr> page;
  for (; at != list.objects.end() && page.size() < most; ++at) {
    if (selection.Matches(*(*at)->body)) page.push_back(*at);
  }
  ListMetadata metadata;
  metadata.version = list.version;
  if (at != list.objects.end() && !page.empty()) {
    const std::string start = page.back()->key.substr(request.key_prefix().size()) + '\0';
    metadata.next = EncodeContinue({list.version, start});
    if (selection.everything()) metadata.remaining = list.objects.end() - at;
  }
  TAHOMA_ASSIGN_OR_RETURN(ByteBudget::Hold hold,
                          RoomFor(request, form.CostOfList(*request.kind, page)));
  TAHOMA_ASSIGN_OR_RETURN(Pieces body,
                          form.List(*request.kind, page, metadata, context.clock.WallNow()));
  hold.reset();
  TAHOMA_ASSIGN_OR_RETURN(hold, RoomFor(request, body.own_bytes()));
  return Uncached(form.Answer(request, 200, std::move(body), std::move(hold)));
}

absl::StatusOr<std::shared_ptr<WatchStream>> OpenWatch(const ApiContext& context,
                                                       ApiRequest request) {
  if (!request.name.empty()) {
    std::string& fields = request.query["fieldSelector"];
    fields += (fields.empty() ? "metadata.name=" : ",metadata.name=") + request.name;
    request.name.clear();
  }
  TAHOMA_ASSIGN_OR_RETURN(const Representation form, Representation::Negotiate(request));
  TAHOMA_ASSIGN_OR_RETURN(Selection selection, SelectionOf(request));
  TAHOMA_RETURN_IF_ERROR(CheckVersionMatch(request, true));
  TAHOMA_ASSIGN_OR_RETURN(WatchStream::Start start, StartOf(context, request, selection));
  return std::make_shared<WatchStream>(context.objects, context.clock, request, form,
                                       std::move(selection), std::move(start));
}

absl::StatusOr<rest::Response> Watch(const ApiContext& context, ApiRequest request) {
  TAHOMA_ASSIGN_OR_RETURN(const auto watch, OpenWatch(context, std::move(request)));
  return Uncached(rest::Response::Stream(std::string(watch->media_type()),
                                         [watch](std::string& out, std::chrono::milliseconds wait) {
                                           return watch->Read(out, wait);
                                         }));
}

}  // namespace tahoma::controller::apiserver
