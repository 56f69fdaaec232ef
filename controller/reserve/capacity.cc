#include "controller/reserve/capacity.h"

#include <array>

namespace tahoma::controller {
namespace {

constexpr Money kTrn2Hour{35'760'800};

constexpr std::array kProducts = {
    Product{.name = "trn2.3xlarge",
            .instance_type = "trn2.3xlarge",
            .chips = 1,
            .rate = {kTrn2Hour.millionths / 16}},
    Product{.name = "trn2.48xlarge", .instance_type = "trn2.48xlarge", .rate = kTrn2Hour},
    Product{.name = "u-trn2x64",
            .instance_type = "trn2u.48xlarge",
            .ultra_server = true,
            .instances = 4,
            .rate = {kTrn2Hour.millionths * 4},
            .reclaim = std::chrono::minutes(60)},
};

}  // namespace

std::span<const Product> Products() { return kProducts; }

const Product* FindProduct(std::string_view name) {
  for (const Product& product : kProducts) {
    if (product.name == name) return &product;
  }
  return nullptr;
}

std::string ProductNames(bool ultra_servers) {
  std::string names;
  for (const Product& product : kProducts) {
    if (product.ultra_server != ultra_servers) continue;
    if (!names.empty()) names += ", ";
    names += product.name;
  }
  return names;
}

}  // namespace tahoma::controller
