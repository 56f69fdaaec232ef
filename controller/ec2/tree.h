// Answers as trees: what most of EC2's objects are, from which both XML and filters are read.
//
// A member is an element: of text, of elements, or, for a list, of an <item> for each value. A null
// member is left out. Names are EC2's, in its order.
//
// Scope: form. Objects that are kept as values of their own have writers in
// controller/ec2/answers.h.
//
// Thread safety: pure functions.

#pragma once

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

// The page of a list of trees.
class TreePage {
 public:
  // Filters `tag:KEY` and `tag-key` compare the members `key` and `value`. `fields` must outlive
  // it.
  TreePage(const PageRequest& request, const std::vector<Filter>& filters,
           std::span<const TreeFilter> fields);
  ~TreePage();

  // Takes the next row in the order of keys, if it passes the filters. False when the page is full.
  bool Offer(std::string_view key, const Tree& row);
  // Returns the answer that has the page as the list `set`.
  std::string Answer(const AnswerHead& head, std::string_view set) const;

 private:
  const std::vector<Filter> filters_;
  const std::span<const TreeFilter> fields_;
  Page<Tree> page_;
};

}  // namespace tahoma::controller::ec2
