// An offering of a Capacity Block, and its id, which says all of it.
//
//   const std::string id = OfferingId(offering);                  // "cb-01020000100a…"
//   TAHOMA_ASSIGN_OR_RETURN(const Offering same, ReadOfferingId(id));
//
// Nothing is kept of offerings that nobody buys: the id holds what was offered, and the purchase
// checks it again against the rules, the prices and the free capacity. So an id that somebody made
// up is worth no more than the question that it answers, and an id outlives the controller that
// gave it.
//
// Scope: the form. search.h finds offerings, book.h sells them.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "controller/reserve/calendar.h"
#include "controller/reserve/capacity.h"
#include "controller/reserve/money.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// The price of one host and hour of each product.
class PriceList {
 public:
  // Replaces the product's own rate.
  void Set(const Product& product, Money rate) { rates_[&product] = rate; }
  Money RateOf(const Product& product) const {
    const auto found = rates_.find(&product);
    return found == rates_.end() ? product.rate : found->second;
  }

 private:
  std::map<const Product*, Money> rates_;
};

struct Offering {
  const Product* product = nullptr;
  int count = 1;  // hosts: instances, or UltraServers
  std::string zone = {};
  bool any_cell = false;  // it may lie in several cells
  WallTime start = {};
  WallTime end = {};
  Money rate = {};  // of one host and hour

  std::chrono::minutes duration() const {
    return std::chrono::duration_cast<std::chrono::minutes>(end - start);
  }
  // EC2 gives the duration as whole hours and the minutes that remain.
  std::int64_t duration_hours() const { return duration().count() / 60; }
  std::int64_t duration_minutes() const { return duration().count() % 60; }
  SlotRange slots() const { return SlotsOf(start, end); }
  Money fee() const { return Fee(rate, count, duration()); }
  int instances() const { return count * product->instances; }

  friend bool operator==(const Offering&, const Offering&) = default;
};

std::string OfferingId(const Offering& offering);
// Refused with InvalidCapacityBlockOfferingIdMalformed or …NotFound for text that OfferingId did
// not write.
absl::StatusOr<Offering> ReadOfferingId(std::string_view id);

// An offering to let a block end later.
struct ExtensionOffering {
  std::string reservation = {};  // the block's Capacity Reservation
  WallTime start = {};           // the end of the block as it is
  WallTime end = {};
  Money rate = {};
  int count = 1;  // of the block

  std::int64_t duration_hours() const {
    return std::chrono::duration_cast<std::chrono::hours>(end - start).count();
  }
  Money fee() const {
    return Fee(rate, count, std::chrono::duration_cast<std::chrono::minutes>(end - start));
  }

  friend bool operator==(const ExtensionOffering&, const ExtensionOffering&) = default;
};

std::string ExtensionOfferingId(const ExtensionOffering& offering);
absl::StatusOr<ExtensionOffering> ReadExtensionOfferingId(std::string_view id);

}  // namespace tahoma::controller
