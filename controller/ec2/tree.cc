#include "controller/ec2/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "controller/ec2/xml.h"
#include "lib/base/json.h"

namespace tahoma::controller::ec2 {
namespace {

std::string TextOf(const Tree& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.dump();
}

// Writes the members of an object.
void WriteMembers(XmlWriter& xml, const Tree& tree) {
  for (const auto& [name, value] : tree.items()) {
    if (value.is_null()) continue;
    if (value.is_object()) {
      xml.Element(name, [&, &object = value] { WriteMembers(xml, object); });
    } else if (!value.is_array()) {
      xml.Text(name, TextOf(value));
    } else if (value.empty() || value.front().is_object()) {
      xml.Items(name, value, [&](const Tree& item) { WriteMembers(xml, item); });
    } else {
      std::vector<std::string> texts;
      for (const Tree& item : value) texts.push_back(TextOf(item));
      xml.TextItems(name, texts);
    }
  }
}

void AddTexts(const Tree& tree, std::string_view path, std::vector<std::string>& texts) {
  if (tree.is_array()) {
    for (const Tree& item : tree) AddTexts(item, path, texts);
    return;
  }
  if (path.empty()) {
    if (!tree.is_object() && !tree.is_null()) texts.push_back(TextOf(tree));
    return;
  }
  const std::string_view name = path.substr(0, path.find('/'));
  const auto member = tree.is_object() ? tree.find(std::string(name)) : tree.end();
  if (member == tree.end()) return;
  AddTexts(*member, path.substr(std::min(name.size() + 1, path.size())), texts);
}

std::vector<std::string> ValuesOf(std::string_view name, const Tree& tree,
                                  std::span<const TreeFilter> fields) {
  const auto field = std::ranges::find(fields, name, &TreeFilter::name);
  if (field != fields.end()) {
    return field->path.empty() ? std::vector<std::string>() : TextsAt(tree, field->path);
  }
  return TagValues(name, {{.key = tree.value("key", ""), .value = tree.value("value", "")}})
      .value_or(std::vector<std::string>());
}

}  // namespace

std::string TreeAnswer(const AnswerHead& head, const Tree& content) {
  XmlWriter xml;
  const std::string space = fmt::format("http://ec2.amazonaws.com/doc/{}/", kApiVersion);
  xml.Element(fmt::format("{}Response", head.action), space, [&] {
    xml.Text("requestId", head.request_id);
    WriteMembers(xml, content);
  });
  return std::move(xml).Finish();
}

std::vector<std::string> TextsAt(const Tree& tree, std::string_view path) {
  std::vector<std::string> texts;
  AddTexts(tree, path, texts);
  return texts;
}

std::vector<std::string_view> NamesOf(std::span<const TreeFilter> fields) {
  std::vector<std::string_view> names;
  for (const TreeFilter& field : fields) names.push_back(field.name);
  return names;
}

TreePage::TreePage(const PageRequest& request, const std::vector<Filter>& filters,
                   std::span<const TreeFilter> fields)
    : filters_(filters), fields_(fields), page_(request) {}

TreePage::~TreePage() = default;

bool TreePage::Offer(std::string_view key, const Tree& row) {
  const bool passes = std::ranges::all_of(filters_, [&](const Filter& filter) {
    return filter.Matches(ValuesOf(filter.name, row, fields_));
  });
  return !passes || page_.Offer(key, row);
}

std::string TreePage::Answer(const AnswerHead& head, std::string_view set) const {
  Tree content;
  content[std::string(set)] = page_.rows();
  if (!page_.next_token().empty()) content["nextToken"] = page_.next_token();
  return TreeAnswer(head, content);
}

}  // namespace tahoma::controller::ec2
