#include "lib/kube/cel/device_selector.h"

#include <optional>
#include <set>
#include <utility>

#include "lib/base/status.h"
#include "lib/kube/cel/checker.h"
#include "lib/kube/cel/evaluator.h"
#include "lib/kube/cel/parser.h"

namespace tahoma::kube {
namespace {

using internal::CelExpr;
using internal::CelOp;

// Collects every name that the expression writes out: fields and string literals.
void CollectNames(const CelExpr& e, std::set<std::string, std::less<>>& names) {
  if (e.op == CelOp::kSelect || e.op == CelOp::kHas) names.insert(e.name);
  const auto* text = e.op == CelOp::kLiteral ? e.literal.As<std::string>() : nullptr;
  if (text != nullptr) names.insert(*text);
  for (const auto& arg : e.args) CollectNames(*arg, names);
}

const std::string* TextOf(const CelExpr& e) {
  return e.op == CelOp::kLiteral ? e.literal.As<std::string>() : nullptr;
}

// Returns the name behind a.name and a["name"]; nullptr for any other expression.
const std::string* EntryName(const CelExpr& e) {
  if (e.optional) return nullptr;
  if (e.op == CelOp::kSelect) return &e.name;
  return e.op == CelOp::kIndex ? TextOf(*e.args[1]) : nullptr;
}

// Returns domain and id of device.attributes[domain].id.
std::optional<std::pair<std::string, std::string>> AttributeOf(const CelExpr& e) {
  constexpr std::size_t kDeviceSlot = 0;
  const std::string* id = EntryName(e);
  if (id == nullptr) return std::nullopt;
  const CelExpr& ids = *e.args[0];
  const std::string* domain = EntryName(ids);
  if (domain == nullptr) return std::nullopt;
  const CelExpr& domains = *ids.args[0];
  if (domains.op != CelOp::kSelect || domains.optional || domains.name != "attributes") {
    return std::nullopt;
  }
  const CelExpr& device = *domains.args[0];
  if (device.op != CelOp::kVariable || device.slot != kDeviceSlot) return std::nullopt;
  return std::pair(*domain, *id);
}

// Returns whether such a literal equals attributes of its own type only. Other numbers do not: 3.0
// == 3.
bool IsPlain(const CelExpr& e) {
  return e.op == CelOp::kLiteral &&
         (e.literal.As<std::string>() != nullptr || e.literal.As<std::int64_t>() != nullptr ||
          e.literal.As<bool>() != nullptr);
}

bool IsDriver(const CelExpr& e) {
  constexpr std::size_t kDeviceSlot = 0;
  return e.op == CelOp::kSelect && !e.optional && e.name == "driver" &&
         e.args[0]->op == CelOp::kVariable && e.args[0]->slot == kDeviceSlot;
}

// Returns the driver that a term joined by && names; empty when no term does.
std::string DriverIn(const CelExpr& e) {
  if (e.op == CelOp::kAnd) {
    for (const auto& arg : e.args) {
      if (std::string driver = DriverIn(*arg); !driver.empty()) return driver;
    }
    return "";
  }
  if (e.op != CelOp::kEqual) return "";
  const std::size_t literal = TextOf(*e.args[0]) != nullptr ? 0 : 1;
  const std::string* driver = TextOf(*e.args[literal]);
  return driver != nullptr && IsDriver(*e.args[1 - literal]) ? *driver : "";
}

void CollectRequired(const CelExpr& e, std::vector<RequiredAttribute>& required) {
  if (e.op == CelOp::kAnd) {
    for (const auto& arg : e.args) CollectRequired(*arg, required);
    return;
  }
  std::vector<CelValue> values;
  const CelExpr* attribute = nullptr;
  if (e.op == CelOp::kEqual) {
    const bool left = IsPlain(*e.args[0]);
    const CelExpr& literal = *e.args[left ? 0 : 1];
    if (!IsPlain(literal)) return;
    values.push_back(literal.literal);
    attribute = e.args[left ? 1 : 0].get();
  } else if (e.op == CelOp::kIn && e.args[1]->op == CelOp::kList) {
    for (const auto& entry : e.args[1]->args) {
      if (!IsPlain(*entry)) return;
      values.push_back(entry->literal);
    }
    attribute = e.args[0].get();
  }
  if (attribute == nullptr) return;
  const auto name = AttributeOf(*attribute);
  if (name) required.push_back({name->first, name->second, std::move(values)});
}

}  // namespace

struct DeviceSelector::Compiled {
  std::string source;
  internal::CelParsed parsed;
  bool reads_unnamed = false;
  std::set<std::string, std::less<>> names;
  std::vector<RequiredAttribute> required;
  std::string driver;
};

DeviceSelector::DeviceSelector(std::unique_ptr<Compiled> compiled)
    : compiled_(std::move(compiled)) {}
DeviceSelector::~DeviceSelector() = default;
DeviceSelector::DeviceSelector(DeviceSelector&&) noexcept = default;
DeviceSelector& DeviceSelector::operator=(DeviceSelector&&) noexcept = default;

absl::StatusOr<DeviceSelector> DeviceSelector::Compile(std::string_view source) {
  if (source.size() > kSelectorBytesMax) {
    return InvalidArgument("the expression has {} bytes; at most {} are allowed", source.size(),
                           kSelectorBytesMax);
  }
  auto compiled = std::make_unique<Compiled>();
  TAHOMA_ASSIGN_OR_RETURN(compiled->parsed, internal::ParseCel(source, {"device"}));
  TAHOMA_ASSIGN_OR_RETURN(const internal::CelChecked checked,
                          internal::CheckCel(source, compiled->parsed, {CelType::kDevice}));
  if (checked.type != CelType::kBool && checked.type != CelType::kDyn) {
    return InvalidArgument("must evaluate to bool or the unknown type, not {}",
                           ToString(checked.type));
  }
  compiled->source = source;
  compiled->reads_unnamed = checked.reads_unnamed;
  CollectNames(*compiled->parsed.root, compiled->names);
  CollectRequired(*compiled->parsed.root, compiled->required);
  compiled->driver = DriverIn(*compiled->parsed.root);
  return DeviceSelector(std::move(compiled));
}

absl::StatusOr<bool> DeviceSelector::Matches(const DeviceView& device) const {
  internal::CelEvaluator evaluator(device, compiled_->parsed.slots, kSelectorCostMax);
  TAHOMA_ASSIGN_OR_RETURN(const CelValue result, evaluator.Evaluate(*compiled_->parsed.root));
  const bool* matches = result.As<bool>();
  if (matches == nullptr) {
    return InvalidArgument("CEL result of type {} could not be converted to bool",
                           ToString(result.type()));
  }
  return *matches;
}

bool DeviceSelector::MayRead(std::string_view id) const {
  return compiled_->reads_unnamed || compiled_->names.contains(id);
}

const std::vector<RequiredAttribute>& DeviceSelector::Required() const {
  return compiled_->required;
}

const std::string& DeviceSelector::RequiredDriver() const { return compiled_->driver; }

const std::string& DeviceSelector::source() const { return compiled_->source; }

}  // namespace tahoma::kube
