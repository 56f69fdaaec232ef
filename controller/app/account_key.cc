#include "controller/app/account_key.h"

#include <string>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::controller {

absl::StatusOr<std::shared_ptr<const AccountTokens>> AccountTokensOf(Store& store) {
  absl::StatusOr<std::string> pem = store.Get(Keyspace::kLedger, kAccountKeyKey);
  if (absl::IsNotFound(pem.status())) {
    pem = NewAccountKey();
    WriteBatch batch;
    batch.Put(Keyspace::kLedger, std::string(kAccountKeyKey), *pem);
    TAHOMA_RETURN_IF_ERROR(store.Commit(std::move(batch)));
  }
  if (!pem.ok()) return pem.status();
  absl::StatusOr<AccountTokens> tokens = AccountTokens::Of(*pem);
  if (!tokens.ok()) {
    return Annotate(tokens.status(), fmt::format("the store's {}", kAccountKeyKey));
  }
  return std::make_shared<const AccountTokens>(*std::move(tokens));
}

}  // namespace tahoma::controller
