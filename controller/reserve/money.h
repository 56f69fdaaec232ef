// Amounts of money, exact to a millionth.
//
//   const Money rate = *ParseMoney("35.7608");               // an instance-hour
//   Fee(rate, 16, std::chrono::hours(168)).ToString();       // "96125.03"
//
// EC2 states fees as decimal text with two digits and computes them by the minute: the rate times
// hours and minutes (docs/reference/capacity-blocks.md#prices).
//
// Scope: arithmetic in one currency.
//
// Thread safety: values.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tahoma::controller {

struct Money {
  std::int64_t millionths = 0;

  // Returns the amount with two digits after the point, halves away from zero: "858.26".
  std::string ToString() const;
  // Returns the amount with all of its digits, at least two of them after the point: "35.7608".
  std::string ToExactString() const;

  Money& operator+=(Money other) {
    millionths += other.millionths;
    return *this;
  }
  friend Money operator+(Money a, Money b) { return a += b; }
  friend auto operator<=>(const Money&, const Money&) = default;
};

// Reads "35.7608": digits, at most six of them after a point, up to 1,000,000,000.
absl::StatusOr<Money> ParseMoney(std::string_view text);

// Returns the fee of `count` things for whole minutes, at a rate for each and hour: at most a
// million things, 200 days, and a rate of 1,000.
Money Fee(Money rate, std::int64_t count, std::chrono::minutes minutes);

}  // namespace tahoma::controller
