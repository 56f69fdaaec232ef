// Answers as trees: what most of EC2's objects are, from which both XML and filters are read.
//
//   const Tree zone = {{"zoneName", "us-east-2a"}, {"messageSet", Tree::array()}};
//   TextsAt(zone, "zoneName");                    // {"us-east-2a"}
//   TreeAnswer(head, {{"availabilityZoneInfo", Tree::array({zone})}});
//
// A member is an element: of text, of elements, or, for a list, of an <item> for each value. A null
// member is left out. Names are EC2's, in its order.
//
// Scope: form. Objects that are kept as values of their own have writers in
// controller/ec2/answers.h.
//
// Thread safety: pure functions.

#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/ec2/answers.h"
#include "controller/ec2/filter.h"
#include "controller/ec2/page.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::ec2 {

using Tree = nlohmann::ordered_json;

std::string TreeAnswer(const AnswerHead& head, const Tree& content);

// Returns the texts at a path through members and lists: "networkInfo/networkCards/peakGbps".
std::vector<std::string> TextsAt(const Tree& tree, std::string_view path);

// A filter, and where an object has what the filter compares.
struct TreeFilter {
  std::string_view name;
  std::string_view path;  // empty: no object has any
};
std::vector<std::string_view> NamesOf(std::span<const TreeFilter> fields);

// The rows of a list, by the texts that order them.
using TreeRows = std::map<std::string, Tree>;

// Answers with the page of the rows that pass, as the list `set`. Filters `tag:KEY` and `tag-key`
// compare the members `key` and `value`.
std::string RowsAnswer(const AnswerHead& head, std::string_view set, const TreeRows& rows,
                       const std::vector<Filter>& filters, std::span<const TreeFilter> fields,
                       const PageRequest& page);

}  // namespace tahoma::controller::ec2
