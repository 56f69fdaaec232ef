// The options of Capacity Blocks: what they cost, how they are paid, and how much is for sale.
//
// Scope: from text to the book's own options (docs/formats/config.md#capacityblocks).
//
// Thread safety: values.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <map>
#include <string>

#include "controller/reserve/book.h"
#include "lib/config/spec.h"

namespace tahoma::controller {

struct BlockOptions {
  std::map<std::string, std::string> prices;  // of products
  std::chrono::nanoseconds payment_delay{0};
  std::string payment_failure_tag = PaymentOptions{}.failure_tag;
  int one_spare_in = HostTableOptions{}.one_spare_in;
  bool share_ultra_servers = BookOptions{}.share_ultra_servers;
  int quota_instances = Quota{}.instances;
  int quota_average = 0;  // 0: no such limit
  int quota_window_days = Quota{}.window_days;
};

void DeclareBlockOptions(config::Fields& fields, BlockOptions& options);

// kInvalidArgument names what is wrong and what would be right.
absl::StatusOr<BookOptions> BookOptionsOf(const BlockOptions& options);

}  // namespace tahoma::controller
