#include "controller/app/offering_key.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

OfferingKey NewKey() {
  OfferingKey key{};
  for (std::size_t at = 0; at < key.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t random = SeedFromMachine();
    std::memcpy(key.data() + at, &random, sizeof random);
  }
  return key;
}

}  // namespace

absl::StatusOr<OfferingKey> OfferingKeyOf(Store& store) {
  const absl::StatusOr<std::string> kept = store.Get(Keyspace::kLedger, kOfferingKeyKey);
  if (absl::IsNotFound(kept.status())) {
    const OfferingKey key = NewKey();
    WriteBatch batch;
    batch.Put(Keyspace::kLedger, std::string(kOfferingKeyKey), std::string(key.data(), key.size()));
    TAHOMA_RETURN_IF_ERROR(store.Commit(std::move(batch)));
    return key;
  }
  if (!kept.ok()) return kept.status();
  OfferingKey key{};
  if (kept->size() != key.size()) {
    return DataLoss("the store's {} has {} bytes, not {}", kOfferingKeyKey, kept->size(),
                    key.size());
  }
  std::ranges::copy(*kept, key.begin());
  return key;
}

}  // namespace tahoma::controller
