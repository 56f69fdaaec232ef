#include "controller/apiserver/schema/selector_text.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

std::optional<std::string> TermText(const Json& expression) {
  const std::string key = TextAt(expression, {"key"});
  const std::string word = TextAt(expression, {"operator"});
  std::set<std::string> values;
  for (const Json& value : ValueAt(expression, {"values"})) {
    if (value.is_string()) values.insert(value.get_ref<const std::string&>());
  }
  const bool asks_values = word == "In" || word == "NotIn";
  if (asks_values == values.empty()) return std::nullopt;
  if (word == "Exists") return key;
  if (word == "DoesNotExist") return "!" + key;
  if (!asks_values) return std::nullopt;
  return fmt::format("{} {} ({})", key, word == "In" ? "in" : "notin", absl::StrJoin(values, ","));
}

}  // namespace

std::optional<std::string> SelectorText(const Json& selector) {
  std::multimap<std::string, std::string> terms;
  for (const auto& [key, value] : MembersOf(PartOf(selector, "matchLabels"))) {
    if (!value.is_string()) return std::nullopt;
    terms.emplace(key, fmt::format("{}={}", key, value.get_ref<const std::string&>()));
  }
  for (const Json& expression : ValueAt(selector, {"matchExpressions"})) {
    std::optional<std::string> term = TermText(expression);
    if (!term) return std::nullopt;
    terms.emplace(TextAt(expression, {"key"}), *std::move(term));
  }
  return absl::StrJoin(terms, ",", [](std::string* out, const auto& term) { *out += term.second; });
}

absl::StatusOr<kube::LabelSelector> LabelSelectorOf(const Json& selector) {
  kube::LabelSelector made;
  for (const auto& [key, value] : MembersOf(PartOf(selector, "matchLabels"))) {
    if (!value.is_string()) return InvalidArgument("the label {} is no text", key);
    TAHOMA_RETURN_IF_ERROR(made.Require(key, "In", {value.get<std::string>()}));
  }
  for (const Json& one : kube::ListAt(selector, {"matchExpressions"})) {
    TAHOMA_RETURN_IF_ERROR(made.Require(TextAt(one, {"key"}), TextAt(one, {"operator"}),
                                        kube::StringsAt(one, {"values"})));
  }
  return made;
}

}  // namespace tahoma::controller::apiserver
