#include "lib/kube/objects/node_selector.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/json.h"

namespace tahoma::kube {
namespace {

struct NamedOperator {
  std::string_view name;
  NodeOperator op;
};
constexpr NamedOperator kOperators[] = {
    {"In", NodeOperator::kIn},         {"NotIn", NodeOperator::kNotIn},
    {"Exists", NodeOperator::kExists}, {"DoesNotExist", NodeOperator::kDoesNotExist},
    {"Gt", NodeOperator::kGt},         {"Lt", NodeOperator::kLt}};

// An operator that is not known is read as In, which a node rather fails.
NodeOperator ParseOperator(Field op) {
  const std::string_view text = op.Text();
  const auto* const found = std::ranges::find(kOperators, text, &NamedOperator::name);
  if (found != std::end(kOperators)) return found->op;
  op.Fail("must be In, NotIn, Exists, DoesNotExist, Gt or Lt");
  return NodeOperator::kIn;
}

void AddRequirements(Field expressions, bool field, std::vector<NodeRequirement>& added) {
  for (const Field one : expressions.Items()) {
    std::vector<std::string> values = one.At("values").Texts();
    std::ranges::sort(values);
    added.push_back({.key = std::string(one.At("key").Text()),
                     .op = ParseOperator(one.Required("operator")),
                     .values = std::move(values),
                     .field = field});
  }
}

std::optional<std::int64_t> ToInteger(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// `value` is nullptr for an absent label.
bool Meets(const NodeRequirement& requirement, const std::string* value) {
  const auto& wanted = requirement.values;
  const bool in = value != nullptr && std::ranges::binary_search(wanted, *value);
  switch (requirement.op) {
    case NodeOperator::kIn:
      return in;
    case NodeOperator::kNotIn:
      return !in;
    case NodeOperator::kExists:
      return value != nullptr;
    case NodeOperator::kDoesNotExist:
      return value == nullptr;
    case NodeOperator::kGt:
    case NodeOperator::kLt:
      break;
  }
  if (value == nullptr || wanted.size() != 1) return false;
  const auto have = ToInteger(*value);
  const auto bound = ToInteger(wanted[0]);
  if (!have || !bound) return false;
  return requirement.op == NodeOperator::kGt ? *have > *bound : *have < *bound;
}

}  // namespace

std::vector<NodeRequirement> ParseNodeTerm(Field term) {
  std::vector<NodeRequirement> requirements;
  AddRequirements(term.At("matchExpressions"), false, requirements);
  AddRequirements(term.At("matchFields"), true, requirements);
  return requirements;
}

NodeTerms ParseNodeTerms(Field selector) {
  NodeTerms terms;
  for (const Field term : selector.At("nodeSelectorTerms").Items()) {
    terms.push_back(ParseNodeTerm(term));
  }
  return terms;
}

Json RenderNodeTerms(const NodeTerms& terms) {
  Json list = Json::array();
  for (const std::vector<NodeRequirement>& term : terms) {
    Json out = Json::object();
    for (const NodeRequirement& requirement : term) {
      const auto* const named = std::ranges::find(kOperators, requirement.op, &NamedOperator::op);
      Json one = {{"key", requirement.key}, {"operator", named->name}};
      if (!requirement.values.empty()) one["values"] = requirement.values;
      out[requirement.field ? "matchFields" : "matchExpressions"].push_back(std::move(one));
    }
    list.push_back(std::move(out));
  }
  return {{"nodeSelectorTerms", std::move(list)}};
}

bool MeetsAll(const std::vector<NodeRequirement>& requirements, const std::string& name,
              const Labels& labels) {
  return std::ranges::all_of(requirements, [&](const NodeRequirement& r) {
    if (r.field) return Meets(r, r.key == "metadata.name" ? &name : nullptr);
    return Meets(r, FindLabel(labels, r.key));
  });
}

bool MeetsOne(const NodeTerms& terms, const std::string& name, const Labels& labels) {
  return std::ranges::any_of(terms, [&](const std::vector<NodeRequirement>& term) {
    return !term.empty() && MeetsAll(term, name, labels);
  });
}

}  // namespace tahoma::kube
