// Buys one offering by creating a CapacityBlock, or several offerings (all or none) by creating a
// CapacityBlockSeries, and tells the outcome of the purchase.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json object, MakeBlock(transport, booking));
//   const BookingView view = LookAtBooking(object, BookingWait::kActive);
//   if (view.outcome == BookingOutcome::kRefused) …
//   const auto outcome = WaitForBooking(transport, sleeper, clock, booking, options);
//
// Making the same booking again goes on with it: its name follows from the offering unless one is
// given.
//
// Scope: one object. The controller sells.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

struct Booking {
  std::string offering_id = {};  // or several, with commas between them
  std::string ns = "default";
  std::string name = {};  // empty: NameOf(offering_id)
  std::string platform = {};
  std::string replace = {};
  std::string binding = {};
  std::map<std::string, std::string> tags = {};
};

// Returns "block-" and a digest of the offering.
std::string BookingNameOf(const std::string& offering_id);

enum class BookingWait : std::uint8_t { kNone, kBought, kActive };

enum class BookingOutcome : std::uint8_t {
  kPending,
  kDone,
  kRefused,  // not bought
  kLost,     // bought, and will never be active: it was not paid, or could not be delivered
};

struct BookingView {
  BookingOutcome outcome = BookingOutcome::kPending;
  std::string line = {};  // what there is to say now

  friend bool operator==(const BookingView&, const BookingView&) = default;
};

BookingView LookAtBooking(const Json& object, BookingWait wait);

// Makes the object, or returns the one of that name when it is of the same offering.
absl::StatusOr<Json> MakeBlock(kube::Transport& transport, const Booking& booking);

struct BookingWaitOptions {
  BookingWait wait = BookingWait::kBought;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  std::function<void(const std::string& line)> tell = [](const std::string&) {};
};

// Reads the object again and again until something is decided, and tells each new line once.
// kPending when the time is over, or the wait was interrupted.
absl::StatusOr<BookingOutcome> WaitForBooking(kube::Transport& transport, kube::Sleeper& sleeper,
                                              const Clock& clock, const Booking& booking,
                                              const BookingWaitOptions& options);

}  // namespace tahoma::controller
