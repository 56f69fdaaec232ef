// Answers as text: a table as kubectl's, JSON, or YAML.
//
//   fmt::print("{}", TableText({{"NAME", "STATE"}, {"train", "active"}}));
//   fmt::print("{}", YamlText(object));
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::controller {

// Aligns columns; the first row is the header, and every row has as many cells as it.
std::string TableText(const std::vector<std::vector<std::string>>& rows);

// The same for a part of a table: columns are at least as wide as `widths`, which grows.
std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      std::vector<std::size_t>& widths);

// Block style, as kubectl writes it.
std::string YamlText(const Json& value);

}  // namespace tahoma::controller
