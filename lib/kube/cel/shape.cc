#include "lib/kube/cel/shape.h"

#include <absl/strings/str_replace.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/kube/cel/lexer.h"

namespace tahoma::kube {
namespace {

CelValue NumberOf(const Json& value, const CelShape& shape) {
  if (shape.type == CelType::kDouble || value.is_number_float()) {
    // A whole number of an integer may be written as one of a double: 3.0.
    const auto real = value.get<double>();
    const bool whole = shape.type != CelType::kDouble && shape.type != CelType::kDyn &&
                       real >= -0x1p63 && real < 0x1p63;
    return whole ? CelValue(static_cast<std::int64_t>(real)) : CelValue(real);
  }
  return CelValue(value.get<std::int64_t>());
}

CelValue TextOf(const Json& value, const CelShape& shape) {
  auto text = value.get<std::string>();
  if (shape.unsupported.empty()) return CelValue(std::move(text));
  return CelValue(CelValue::Bytes{std::move(text)});  // not to be taken for a text
}

// Returns whether the schema declares what is below the value. The value of an object that its
// schema refuses may be of another type than the schema says.
bool HasParts(const Json& value, const CelShape& shape) {
  if (value.is_array()) return shape.type == CelType::kList;
  return value.is_object() && (shape.type == CelType::kMap || shape.type == CelType::kObject);
}

CelValue ScalarOf(const Json& value, const CelShape& shape) {
  if (value.is_string()) return TextOf(value, shape);
  if (value.is_number()) return NumberOf(value, shape);
  if (value.is_boolean()) return CelValue(value.get<bool>());
  return CelValue();
}

bool SameObjects(const Json& a, const Json& b, const CelShape& shape, std::uint64_t& steps) {
  return std::all_of(shape.fields.begin(), shape.fields.end(), [&](const auto& entry) {
    const Json* one = FindMember(a, entry.second.name);
    const Json* other = FindMember(b, entry.second.name);
    ++steps;
    if (one == nullptr || other == nullptr) return one == other;
    return SameInCel(*one, *other, *entry.second.shape, steps);
  });
}

bool SameMaps(const Json& a, const Json& b, const CelShape& shape, std::uint64_t& steps) {
  return a.size() == b.size() &&
         std::all_of(MembersOf(a).begin(), MembersOf(a).end(), [&](const auto& member) {
           const Json* other = FindMember(b, member.first);
           return other != nullptr && SameInCel(member.second, *other, *shape.element, steps);
         });
}

// Returns what tells the entries of a list apart, beside each its entry, in an order.
std::vector<std::pair<Json, const Json*>> Keyed(const Json& list, const CelShape& shape) {
  std::vector<std::pair<Json, const Json*>> entries;
  for (const Json& entry : list) {
    if (shape.list_type == CelShape::ListType::kSet) {
      entries.emplace_back(entry, &entry);
      continue;
    }
    Json key = Json::array();
    for (const std::string& name : shape.keys) {
      const Json* part = FindMember(entry, name);
      key.push_back(part == nullptr ? Json() : *part);
    }
    entries.emplace_back(std::move(key), &entry);
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  return entries;
}

bool SameLists(const Json& a, const Json& b, const CelShape& shape, std::uint64_t& steps) {
  if (a.size() != b.size()) return false;
  if (shape.list_type == CelShape::ListType::kAtomic) {
    return std::equal(a.begin(), a.end(), b.begin(), [&](const Json& one, const Json& other) {
      return SameInCel(one, other, *shape.element, steps);
    });
  }
  steps += a.size();
  const auto left = Keyed(a, shape);
  const auto right = Keyed(b, shape);
  return std::equal(left.begin(), left.end(), right.begin(), [&](const auto& one, const auto& two) {
    return one.first == two.first && SameInCel(*one.second, *two.second, *shape.element, steps);
  });
}

}  // namespace

CelValue ToCelValue(const Json& value, const CelShape& shape) {
  return HasParts(value, shape) ? CelValue(CelValue::ObjectPart{&value, &shape})
                                : ScalarOf(value, shape);
}

CelValue WholeValue(const Json& value, const CelShape& shape) {
  ProcessorBudget::Spend();
  if (!HasParts(value, shape)) return ScalarOf(value, shape);
  if (value.is_array()) {
    CelValue::List list;
    for (const Json& entry : value) list.push_back(WholeValue(entry, *shape.element));
    return CelValue(std::move(list));
  }
  CelValue::Map map;
  if (shape.type == CelType::kMap) {
    for (const auto& [name, entry] : MembersOf(value)) {
      map.emplace_back(CelValue(name), WholeValue(entry, *shape.element));
    }
    return CelValue(std::move(map));
  }
  for (const auto& [name, field] : shape.fields) {
    const Json* member = FindMember(value, field.name);
    if (member != nullptr) map.emplace_back(CelValue(name), WholeValue(*member, *field.shape));
  }
  return CelValue(std::move(map));
}

bool SameInCel(const Json& a, const Json& b, const CelShape& shape, std::uint64_t& steps) {
  ++steps;
  ProcessorBudget::Spend();
  if (!HasParts(a, shape) || !HasParts(b, shape)) return a == b;
  if (a.is_array()) return SameLists(a, b, shape, steps);
  return shape.type == CelType::kMap ? SameMaps(a, b, shape, steps)
                                     : SameObjects(a, b, shape, steps);
}

const CelShape::Field* FindCelField(const CelShape& shape, std::string_view name) {
  auto found = shape.fields.find(name);
  if (found == shape.fields.end() && internal::IsCelWord(name)) {
    found = shape.fields.find("__" + std::string(name) + "__");
  }
  return found == shape.fields.end() ? nullptr : &found->second;
}

std::string CelFieldName(std::string_view field) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
           c == '/';
  };
  if (field.empty() || std::isdigit(static_cast<unsigned char>(field[0])) != 0 ||
      !std::all_of(field.begin(), field.end(), fits)) {
    return "";
  }
  if (internal::IsCelWord(field)) return "__" + std::string(field) + "__";
  return absl::StrReplaceAll(
      std::string(field),
      {{"__", "__underscores__"}, {".", "__dot__"}, {"-", "__dash__"}, {"/", "__slash__"}});
}

}  // namespace tahoma::kube
