#include "lib/kube/objects/label_selector.h"

#include <optional>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::kube {

void ForEachRequirement(Field selector, OnRequirement f) {
  for (const Field one : selector.At("matchExpressions").Items()) {
    f(one, one.At("key").Text(), one.At("operator").Text(), one.At("values").Texts());
  }
  selector.At("matchLabels").Entries([&](const std::string& key, Field value) {
    f(value, key, "In", {std::string(value.Text())});
  });
}

LabelSelector ParseLabelSelector(Field selector) {
  LabelSelector parsed;
  ForEachRequirement(selector, [&](Field at, std::string_view key, std::string_view op,
                                   std::vector<std::string> values) {
    const absl::Status added = parsed.Require(key, op, std::move(values));
    if (!added.ok()) at.Fail(Message(added));
  });
  return parsed;
}

bool Selects(const LabelSelector& selector, const Labels& labels) {
  return selector.Matches([&](std::string_view key) -> std::optional<std::string_view> {
    const std::string* value = FindLabel(labels, key);
    return value == nullptr ? std::nullopt : std::optional<std::string_view>(*value);
  });
}

}  // namespace tahoma::kube
