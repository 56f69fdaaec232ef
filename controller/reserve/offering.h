// An offering of a Capacity Block, and its id, which says all of it.
//
//   const std::string id = OfferingId(offering, key);             // "cb-02a6f3…"
//   TAHOMA_ASSIGN_OR_RETURN(const Offering same, ReadOfferingId(id, key));
//
// Nothing is kept of offerings that nobody buys: the id holds what was offered, under a seal that
// takes the store's key to make. So what is bought was offered by a search, and an id outlives the
// process that gave it. The purchase checks it again against the rules, the prices and the free
// capacity.
//
// Scope: the form. search.h finds offerings, book.h sells them.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <array>
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

// The secret of the seals. That of zeros is for tests: a controller's is of its store
// (app/offering_key.h).
using OfferingKey = std::array<char, 32>;

std::string OfferingId(const Offering& offering, const OfferingKey& key = {});
// Refused with InvalidCapacityBlockOfferingId…: …Malformed for what has not the form of an id,
// …NotFound for one that OfferingId did not write, …Expired for one with another key's seal.
absl::StatusOr<Offering> ReadOfferingId(std::string_view id, const OfferingKey& key = {});

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

std::string ExtensionOfferingId(const ExtensionOffering& offering, const OfferingKey& key = {});
absl::StatusOr<ExtensionOffering> ReadExtensionOfferingId(std::string_view id,
                                                          const OfferingKey& key = {});

}  // namespace tahoma::controller
