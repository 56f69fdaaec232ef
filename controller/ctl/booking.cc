#include "controller/ctl/booking.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "controller/core/facts/block_request.h"
#include "controller/ctl/calendar.h"
#include "controller/reserve/block.h"
#include "lib/base/digest.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"

namespace tahoma::controller {
namespace {

// The time between looks: at first short, because most purchases are decided at once.
constexpr kube::RetryOptions kLooks{
    .attempts = 0, .first = std::chrono::milliseconds(200), .longest = std::chrono::seconds(5)};
constexpr std::size_t kNameDigits = 10;
constexpr char kOfferingField[] = "capacityBlockOfferingId";
constexpr char kOfferingsField[] = "capacityBlockOfferingIds";

std::string NameOf(const Booking& booking) {
  return booking.name.empty() ? BookingNameOf(booking.offering_id) : booking.name;
}

// A series buys several offerings, whose ids stand with commas between them.
bool IsSeries(const Booking& booking) { return booking.offering_id.find(',') != std::string::npos; }

const kube::Resource& ResourceOf(const Booking& booking) {
  return IsSeries(booking) ? ResourceOf(RequestKind::kSeries) : kCapacityBlocks;
}

std::string_view KindOf(const Booking& booking) {
  return IsSeries(booking) ? KindName(RequestKind::kSeries) : "CapacityBlock";
}

// Returns the offerings in the form of the spec.
Json OfferingsOf(const Booking& booking) {
  if (!IsSeries(booking)) return {{kOfferingField, booking.offering_id}};
  Json ids = Json::array();
  for (std::size_t at = 0; at <= booking.offering_id.size();) {
    const std::size_t end = std::min(booking.offering_id.find(',', at), booking.offering_id.size());
    ids.push_back(booking.offering_id.substr(at, end - at));
    at = end + 1;
  }
  return {{kOfferingsField, std::move(ids)}};
}

BookingView LookAtSeries(const Json& object, BookingWait wait) {
  const std::string_view state = kube::StringAt(object, {"status", "state"});
  return {state == "purchased" ? BookingOutcome::kDone : BookingOutcome::kPending,
          fmt::format("{}: {}{}", state, kube::StringAt(object, {"status", "message"}),
                      wait == BookingWait::kActive ? "; each block begins by itself" : "")};
}

// Returns a time of the status, "2026-11-24T11:30:00Z".
std::string_view TimeAt(const Json& object, const char* field) {
  return kube::StringAt(object, {"status", field});
}

std::string BoughtLine(const Json& object) {
  const std::string_view ultra = kube::StringAt(object, {"status", "ultraserverType"});
  return fmt::format("{}: {} {}, {} to {}, {} {}", kube::StringAt(object, {"status", "state"}),
                     kube::IntAt(object, {"status", "count"}),
                     ultra.empty() ? kube::StringAt(object, {"status", "instanceType"}) : ultra,
                     TimeAt(object, "startDate"), TimeAt(object, "endDate"),
                     kube::StringAt(object, {"status", "upfrontFee"}),
                     kube::StringAt(object, {"status", "currencyCode"}));
}

bool MayBecomeActive(BlockState state) {
  return state == BlockState::kPaymentPending || state == BlockState::kScheduled;
}

}  // namespace

std::string BookingNameOf(const std::string& offering_id) {
  return "block-" + Sha256Hex(offering_id).substr(0, kNameDigits);
}

BookingView LookAtBooking(const Json& object, BookingWait wait) {
  if (wait == BookingWait::kNone) return {BookingOutcome::kDone, "made"};
  if (kube::StringAt(object, {"kind"}) == KindName(RequestKind::kSeries) &&
      !kube::StringAt(object, {"status", "state"}).empty()) {
    return LookAtSeries(object, wait);
  }
  const auto state = ParseState(kube::StringAt(object, {"status", "state"}));
  if (!state) {
    const std::string_view reason = kube::StringAt(object, {"status", "reason"});
    if (reason.empty()) return {BookingOutcome::kPending, "waits for the controller"};
    return {BookingOutcome::kRefused,
            fmt::format("refused: {}: {}", reason, kube::StringAt(object, {"status", "message"}))};
  }
  BookingView view{BookingOutcome::kPending, BoughtLine(object)};
  if (*state == BlockState::kPaymentFailed || *state == BlockState::kFailed) {
    view.outcome = BookingOutcome::kLost;
  } else if (wait == BookingWait::kBought ? *state != BlockState::kPaymentPending
                                          : !MayBecomeActive(*state)) {
    view.outcome = BookingOutcome::kDone;
  }
  return view;
}

absl::StatusOr<Json> MakeBlock(kube::Transport& transport, const Booking& booking) {
  if (IsSeries(booking) && !(booking.replace.empty() && booking.binding.empty())) {
    return InvalidArgument(
        "--replacePolicy and --bindingMode are for one offering; {} buys several", KindOf(booking));
  }
  const Json offerings = OfferingsOf(booking);
  Json spec = offerings;
  const auto add = [&](const char* field, const std::string& value) {
    if (!value.empty()) spec[field] = value;
  };
  add("instancePlatform", booking.platform);
  add("replacePolicy", booking.replace);
  add("bindingMode", booking.binding);
  for (const auto& [key, value] : booking.tags) spec["tags"][key] = value;
  const std::string name = NameOf(booking);
  kube::InterruptibleSleeper sleeper;
  kube::Client client(transport, sleeper, Rng(0), {.attempts = 1});
  const absl::StatusOr<Json> made =
      client.Create(ResourceOf(booking), booking.ns,
                    {{"apiVersion", "tahoma.dev/v1alpha1"},
                     {"kind", KindOf(booking)},
                     {"metadata", {{"name", name}, {"namespace", booking.ns}}},
                     {"spec", std::move(spec)}});
  const auto error = kube::ApiErrorOf(made.status());
  if (made.ok() || !error || error->reason != "AlreadyExists") return made;
  TAHOMA_ASSIGN_OR_RETURN(Json there, client.Get(ResourceOf(booking), {booking.ns, name}));
  const auto asked = offerings.begin();  // the only member
  const Json* spec_there = FindMember(there, "spec");
  const Json* sold = spec_there == nullptr ? nullptr : FindMember(*spec_there, asked.key());
  if (sold != nullptr && *sold == asked.value()) return there;
  return AlreadyExists("the {} {}/{} is of another offering; give another --name", KindOf(booking),
                       booking.ns, name);
}

absl::StatusOr<BookingOutcome> WaitForBooking(kube::Transport& transport, kube::Sleeper& sleeper,
                                              const Clock& clock, const Booking& booking,
                                              const BookingWaitOptions& options) {
  kube::Client client(transport, sleeper, Rng(0));
  const std::string name = NameOf(booking);
  const MonotonicTime deadline = clock.MonotonicNow() + options.timeout;
  std::optional<std::string> told;
  Rng rng(0);
  for (int look = 1;; ++look) {
    const absl::StatusOr<Json> object = client.Get(ResourceOf(booking), {booking.ns, name});
    if (!object.ok()) return Annotate(object.status(), fmt::format("{}/{}", booking.ns, name));
    const BookingView view = LookAtBooking(*object, options.wait);
    if (told != view.line) options.tell(fmt::format("{}/{} {}", booking.ns, name, view.line));
    told = view.line;
    if (view.outcome != BookingOutcome::kPending) return view.outcome;
    const auto left = deadline - clock.MonotonicNow();
    if (left <= left.zero()) return BookingOutcome::kPending;
    const auto pause = kube::Backoff(kLooks, std::min(look, 10), rng);
    if (!sleeper.Sleep(std::min<std::chrono::nanoseconds>(pause, left))) {
      return BookingOutcome::kPending;
    }
  }
}

}  // namespace tahoma::controller
