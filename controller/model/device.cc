#include "controller/model/device.h"

#include <absl/hash/hash.h>
#include <fmt/format.h>

namespace tahoma::controller {

QualifiedName ParseQualifiedName(std::string_view text, std::string_view default_domain) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {std::string(default_domain), std::string(text)};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::string ToString(const AttributeValue& value) {
  struct Printer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", v); }
    std::string operator()(const Version& v) const { return v.text; }
  };
  return std::visit(Printer{}, value);
}

std::size_t HashOf(const AttributeValue& value) {
  return absl::HashOf(value.index(),
                      std::visit([](const auto& v) { return absl::HashOf(v); }, value));
}

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect.has_value() && *toleration.effect != taint.effect) return false;
  if (toleration.key.empty()) return toleration.op == TolerationOperator::kExists;
  if (toleration.key != taint.key) return false;
  return toleration.op == TolerationOperator::kExists || toleration.value == taint.value;
}

Toleration ManagedToleration() {
  return {.key = "tahoma.dev/managed",
          .op = TolerationOperator::kExists,
          .value = "",
          .effect = TaintEffect::kNoSchedule,
          .seconds = std::nullopt};
}

const AttributeValue* Device::Find(std::string_view domain, std::string_view id) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.name.id == id && attribute.name.domain == domain) return &attribute.value;
  }
  return nullptr;
}

}  // namespace tahoma::controller
