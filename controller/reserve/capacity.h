// The kinds of hardware that are sold, and the pools of their hosts.
//
//   const Product* product = FindProduct("u-trn2x64");   // nullptr: not sold
//   product->instances;                                   // 4: a host is a whole UltraServer
//   Pool{.product = product, .zone = "tahoma-1a", .cell = "nn-1"};
//
// A host is the unit of sale and of failure: an instance, or an UltraServer. All hosts of a pool
// are alike and near each other: one product, one availability zone, one cell. A cell is an
// UltraCluster; a block lies inside a cell unless its buyer allows several.
//
// Scope: names and numbers. time_profile.h counts free hosts over time.
//
// Thread safety: values.

#pragma once

#include <chrono>
#include <compare>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "controller/reserve/money.h"

namespace tahoma::controller {

struct Product {
  std::string_view name;           // "trn2.48xlarge", "u-trn2x64"
  std::string_view instance_type;  // of its instances
  bool ultra_server = false;
  int instances = 1;  // of one host
  int chips = 16;     // of one instance
  // docs/reference/capacity-blocks.md#prices. An UltraServer costs as much as its instances,
  // because AWS publishes no price of its own for it.
  Money rate;                        // of one host and hour, unless the price list says otherwise
  std::chrono::minutes reclaim{30};  // how long before its end a block takes the hardware back
};

// The most hosts of a block (docs/reference/capacity-blocks.md#limits; EC2 publishes no limit for
// UltraServers).
inline constexpr int kHostsMost = 64;

std::span<const Product> Products();
const Product* FindProduct(std::string_view name);
// Returns "trn2.3xlarge, trn2.48xlarge", for messages.
std::string ProductNames(bool ultra_servers);

struct Pool {
  const Product* product = nullptr;
  std::string zone;
  std::string cell;

  friend auto operator<=>(const Pool&, const Pool&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Pool& pool) {
    return H::combine(std::move(h), pool.product, pool.zone, pool.cell);
  }
};

}  // namespace tahoma::controller
