// An offering of a Capacity Block, and the offering's id, which holds every field.
//
//   const std::string id = OfferingId(offering, key);             // "cb-02a6f3…"
//   TAHOMA_ASSIGN_OR_RETURN(const Offering same, ReadOfferingId(id, key));
//
// The controller stores no offerings: an id holds the offered fields, under a seal that only the
// store's key can make. A purchase is therefore always of an offering that a search made, and an id
// outlives the process that made it. The purchase checks the offering again against the rules, the
// prices and the free capacity.
//
// Scope: the form. search.h finds offerings, book.h sells offerings.
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
  bool any_cell = false;  // the block may lie in several cells
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

// The secret of the seals. Tests use zeros; a controller's key belongs to its store
// (app/offering_key.h).
using OfferingKey = std::array<char, 32>;

std::string OfferingId(const Offering& offering, const OfferingKey& key = {});
// Refused with InvalidCapacityBlockOfferingId…: …Malformed for text without the form of an id,
// …NotFound for an id that OfferingId did not write, …Expired for an id under another key's seal.
absl::StatusOr<Offering> ReadOfferingId(std::string_view id, const OfferingKey& key = {});

// An offering to let a block end later.
struct ExtensionOffering {
  std::string reservation = {};  // the block's Capacity Reservation
  WallTime start = {};           // the present end of the block
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
