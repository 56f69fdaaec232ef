// The key of a store, with which the ids of what it has for sale are sealed (reserve/offering.h).
//
// The key is made at the first start and kept: an id that somebody has got is good after a restart
// and a restored backup. Another controller has another store and another key, and refuses the id
// as expired.
//
// Scope: docs/formats/store.md.
//
// Thread safety: one thread per store.

#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "controller/reserve/offering.h"
#include "controller/store/store.h"

namespace tahoma::controller {

// The key's own key in Keyspace::kLedger: there, because a backup has it too.
inline constexpr std::string_view kOfferingKeyKey = "offering-key";

// kDataLoss when the store has something else there.
absl::StatusOr<OfferingKey> OfferingKeyOf(Store& store);

}  // namespace tahoma::controller
