// The CEL rules of a CustomResourceDefinition's spec, evaluated by our CEL: the oracle of the
// server's own checks of our kinds, which are C++.
//
//   const CrdRules rules("charts/tahoma/crds/tahoma.dev_gangs.yaml");
//   for (const CrdRule* rule : rules.Broken(gang)) rule->message;
//
// Scope: tests. Rules that compare with the old object are left out.
//
// Thread safety: any thread, once made.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/crd.h"
#include "controller/apiserver/schema/schema.h"
#include "lib/base/check.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/kube/cel/device_selector.h"
#include "lib/kube/yaml.h"

namespace tahoma::controller::apiserver {

// `self` of a rule, as an attribute of a device: our CEL knows devices only. A list or a map is
// there, and no more is said of it.
class SelfView final : public kube::DeviceView {
 public:
  explicit SelfView(const Json& spec) {
    for (const auto& [name, value] : spec.items()) {
      fields_.emplace_back(
          kube::CelValue(name),
          value.is_boolean() ? kube::CelValue(value.get<bool>())
          : value.is_number_integer()
              ? kube::CelValue(value.get<std::int64_t>())
              : kube::CelValue(value.is_string() ? value.get<std::string>() : value.dump()));
    }
  }
  std::string_view Driver() const override { return ""; }
  bool AllowsMultipleAllocations() const override { return false; }
  std::optional<kube::CelValue> Attribute(std::string_view /*domain*/,
                                          std::string_view /*id*/) const override {
    return kube::CelValue(fields_);
  }
  std::optional<kube::CelValue> Capacity(std::string_view /*domain*/,
                                         std::string_view /*id*/) const override {
    return std::nullopt;
  }
  Names AttributeNames() const override { return {{"gang", "self"}}; }
  Names CapacityNames() const override { return {}; }

 private:
  kube::CelValue::Map fields_;
};

struct CrdRule {
  kube::DeviceSelector holds;
  std::string field;  // "chips"; empty: the spec
  std::string message;
};

class CrdRules {
 public:
  explicit CrdRules(const std::string& path) {
    const auto text = ReadFile(path);
    TAHOMA_CHECK_OK(text.status());
    const auto crd = kube::YamlToJson(*text);
    TAHOMA_CHECK_OK(crd.status());
    const auto kinds = KindsOfCrd(*crd);
    TAHOMA_CHECK_OK(kinds.status());
    kind_ = kinds->front();
    const Json& version = crd->at("spec").at("versions").at(0);
    const Json& spec = version.at("schema").at("openAPIV3Schema").at("properties").at("spec");
    for (const Json& rule : spec.at("x-kubernetes-validations")) {
      const auto expression = rule.at("rule").get<std::string>();
      if (expression.find("oldSelf") != std::string::npos) continue;
      auto holds = kube::DeviceSelector::Compile(
          fmt::format("cel.bind(self, device.attributes['gang'].self, {})", expression));
      TAHOMA_CHECK_OK(holds.status());
      const std::string field = rule.value("fieldPath", "");
      rules_.push_back({.holds = *std::move(holds),
                        .field = field.empty() ? "" : field.substr(1),
                        .message = rule.at("message").get<std::string>()});
    }
  }

  const Kind& kind() const { return *kind_; }
  std::size_t size() const { return rules_.size(); }

  // Returns the rules that do not hold; kube-apiserver asks them where the schema holds.
  std::vector<const CrdRule*> Broken(const Json& object) const {
    const SelfView self(object.at("spec"));
    std::vector<const CrdRule*> broken;
    for (const CrdRule& rule : rules_) {
      const auto holds = rule.holds.Matches(self);
      EXPECT_TRUE(holds.ok()) << rule.message << ": " << holds.status();
      if (holds.ok() && !*holds) broken.push_back(&rule);
    }
    return broken;
  }

 private:
  std::shared_ptr<const Kind> kind_;
  std::vector<CrdRule> rules_;
};

}  // namespace tahoma::controller::apiserver
