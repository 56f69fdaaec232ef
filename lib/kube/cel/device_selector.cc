#include "lib/kube/cel/device_selector.h"

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

// Every name that the expression writes out: fields and string literals.
void CollectNames(const CelExpr& e, std::set<std::string, std::less<>>& names) {
  if (e.op == CelOp::kSelect || e.op == CelOp::kHas) names.insert(e.name);
  const auto* text = e.op == CelOp::kLiteral ? e.literal.As<std::string>() : nullptr;
  if (text != nullptr) names.insert(*text);
  for (const auto& arg : e.args) CollectNames(*arg, names);
}

}  // namespace

struct DeviceSelector::Compiled {
  std::string source;
  internal::CelParsed parsed;
  bool reads_unnamed = false;
  std::set<std::string, std::less<>> names;
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
  TAHOMA_ASSIGN_OR_RETURN(compiled->parsed, internal::ParseCel(source));
  TAHOMA_ASSIGN_OR_RETURN(const internal::CelChecked checked,
                          internal::CheckCel(source, compiled->parsed));
  if (checked.type != CelType::kBool && checked.type != CelType::kDyn) {
    return InvalidArgument("must evaluate to bool or the unknown type, not {}",
                           ToString(checked.type));
  }
  compiled->source = source;
  compiled->reads_unnamed = checked.reads_unnamed;
  CollectNames(*compiled->parsed.root, compiled->names);
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

const std::string& DeviceSelector::source() const { return compiled_->source; }

}  // namespace tahoma::kube
