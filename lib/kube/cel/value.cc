#include "lib/kube/cel/value.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/check.h"
#include "lib/kube/cel/shape.h"

namespace tahoma::kube {
namespace {

std::optional<int> OrderDouble(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nullopt;
  return a < b ? -1 : a > b ? 1 : 0;
}

std::optional<int> OrderIntDouble(std::int64_t a, double b) {
  if (std::isnan(b)) return std::nullopt;
  constexpr double kTwo63 = 9223372036854775808.0;
  if (b >= kTwo63) return -1;
  if (b < -kTwo63) return 1;
  const auto whole = static_cast<std::int64_t>(b);
  if (a != whole) return a < whole ? -1 : 1;
  return OrderDouble(static_cast<double>(whole), b);
}

std::optional<int> OrderUintDouble(std::uint64_t a, double b) {
  if (std::isnan(b)) return std::nullopt;
  constexpr double kTwo64 = 18446744073709551616.0;
  if (b >= kTwo64) return -1;
  if (b < 0) return 1;
  const auto whole = static_cast<std::uint64_t>(b);
  if (a != whole) return a < whole ? -1 : 1;
  return OrderDouble(static_cast<double>(whole), b);
}

int OrderIntUint(std::int64_t a, std::uint64_t b) {
  if (a < 0) return -1;
  const auto positive = static_cast<std::uint64_t>(a);
  return positive < b ? -1 : positive > b ? 1 : 0;
}

std::optional<int> Negated(std::optional<int> order) {
  return order ? std::optional(-*order) : std::nullopt;
}

// Orders numbers of any type exactly (CEL: cross-type numeric comparisons).
std::optional<int> OrderNumbers(const CelValue& a, const CelValue& b) {
  const auto* ai = a.As<std::int64_t>();
  const auto* bi = b.As<std::int64_t>();
  const auto* au = a.As<std::uint64_t>();
  const auto* bu = b.As<std::uint64_t>();
  const auto* ad = a.As<double>();
  const auto* bd = b.As<double>();
  TAHOMA_CHECK(ai != nullptr || au != nullptr || ad != nullptr);
  TAHOMA_CHECK(bi != nullptr || bu != nullptr || bd != nullptr);
  if (ai != nullptr && bi != nullptr) return *ai < *bi ? -1 : *ai > *bi ? 1 : 0;
  if (au != nullptr && bu != nullptr) return *au < *bu ? -1 : *au > *bu ? 1 : 0;
  if (ad != nullptr && bd != nullptr) return OrderDouble(*ad, *bd);
  if (ai != nullptr && bu != nullptr) return OrderIntUint(*ai, *bu);
  if (au != nullptr && bi != nullptr) return -OrderIntUint(*bi, *au);
  if (ai != nullptr) return OrderIntDouble(*ai, *bd);
  if (bi != nullptr) return Negated(OrderIntDouble(*bi, *ad));
  if (au != nullptr) return OrderUintDouble(*au, *bd);
  return Negated(OrderUintDouble(*bu, *ad));
}

bool EqualLists(const CelValue::List& a, const CelValue::List& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), Equal);
}

bool EqualMaps(const CelValue::Map& a, const CelValue::Map& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(), [&](const auto& entry) {
    const CelValue* other = FindKey(b, entry.first);
    return other != nullptr && Equal(entry.second, *other);
  });
}

}  // namespace

std::string_view ToString(CelType type) {
  static constexpr std::array<std::string_view, 20> kNames = {
      "dyn",   "null_type", "bool", "int",      "uint",     "double", "string",
      "bytes", "list",      "map",  "optional", "Quantity", "Semver", "device",
      "map",   "map",       "map",  "map",      "object",   "unknown"};
  return kNames[std::min<std::size_t>(static_cast<std::size_t>(type), kNames.size() - 1)];
}

CelType CelValue::type() const {
  static constexpr std::array kTypes = {CelType::kNull,     CelType::kBool,     CelType::kInt,
                                        CelType::kUint,     CelType::kDouble,   CelType::kString,
                                        CelType::kBytes,    CelType::kList,     CelType::kMap,
                                        CelType::kOptional, CelType::kQuantity, CelType::kSemver};
  if (const auto* part = As<DevicePart>()) return part->type;
  if (const auto* part = As<ObjectPart>()) return part->shape->type;
  return kTypes[value_.index()];
}

bool CelValue::IsNumber() const {
  const CelType t = type();
  return t == CelType::kInt || t == CelType::kUint || t == CelType::kDouble;
}

bool Equal(const CelValue& a, const CelValue& b) {
  if (a.IsNumber() && b.IsNumber()) return OrderNumbers(a, b) == 0;
  if (a.type() != b.type()) return false;
  if (a.AsList() != nullptr) return EqualLists(*a.AsList(), *b.AsList());
  if (a.AsMap() != nullptr) return EqualMaps(*a.AsMap(), *b.AsMap());
  if (const auto* left = a.As<CelValue::Optional>()) {
    const auto* right = b.As<CelValue::Optional>();
    if (left->value == nullptr || right->value == nullptr) return left->value == right->value;
    return Equal(*left->value, *right->value);
  }
  if (a.type() == CelType::kNull) return true;
  return Order(a, b) == 0;
}

std::optional<int> Order(const CelValue& a, const CelValue& b) {
  if (a.IsNumber() && b.IsNumber()) return OrderNumbers(a, b);
  if (a.type() != b.type()) return std::nullopt;
  const auto sign = [](int value) { return value < 0 ? -1 : value > 0 ? 1 : 0; };
  if (const auto* text = a.As<std::string>()) return sign(text->compare(*b.As<std::string>()));
  if (const auto* bytes = a.As<CelValue::Bytes>()) {
    return sign(bytes->bytes.compare(b.As<CelValue::Bytes>()->bytes));
  }
  if (const auto* flag = a.As<bool>()) {
    return static_cast<int>(*flag) - static_cast<int>(*b.As<bool>());
  }
  if (const auto* quantity = a.As<Quantity>()) {
    const auto order = *quantity <=> *b.As<Quantity>();
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (const Semver* version = a.AsSemver()) return Compare(*version, *b.AsSemver());
  return std::nullopt;
}

const CelValue* FindKey(const CelValue::Map& map, const CelValue& key) {
  for (const auto& [name, value] : map) {
    if (Equal(name, key)) return &value;
  }
  return nullptr;
}

std::size_t CodePoints(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++count;
  }
  return count;
}

}  // namespace tahoma::kube
