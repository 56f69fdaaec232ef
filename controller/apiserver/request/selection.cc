#include "controller/apiserver/request/selection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

// The value at a path as a selector sees it: texts as they are.
std::string FieldValue(const json& object, const std::vector<std::string>& path,
                       const std::string& absent) {
  const json* at = &object;
  for (const std::string& part : path) {
    at = FindMember(*at, part);
    if (at == nullptr) return absent;
  }
  if (at->is_string()) return at->get<std::string>();
  return at->is_null() || at->is_structured() ? "" : at->dump();
}

// In the words of each kind's conversion of labels.
std::string WhyNotSelectable(const Kind& kind, const std::string& field) {
  if (kind.group == "batch") {
    return fmt::format("field label \"{}\" not supported for {}", field, kind.kind);
  }
  if (kind.built_in && kind.selectable.empty()) {
    return fmt::format(
        "\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        field);
  }
  return fmt::format("field label not supported: {}", field);
}

constexpr std::size_t kBytesOfStep = 16;  // of a selector: a term or two
const std::vector<std::string> kNamePath = {"metadata", "name"};
const std::vector<std::string> kNamespacePath = {"metadata", "namespace"};

}  // namespace

absl::StatusOr<Selection> Selection::Parse(const Kind& kind, std::string_view labels,
                                           std::string_view fields) {
  Selection selection;
  selection.steps_ = 1 + (labels.size() + fields.size()) / kBytesOfStep;
  absl::StatusOr<kube::LabelSelector> parsed = kube::LabelSelector::Parse(labels);
  if (!parsed.ok()) return BadRequestError(Message(parsed.status()));
  selection.labels_ = *std::move(parsed);
  absl::StatusOr<std::vector<kube::FieldTerm>> terms = kube::ParseFieldSelector(fields);
  if (!terms.ok()) return BadRequestError(Message(terms.status()));
  for (kube::FieldTerm& term : *terms) {
    FieldRequirement requirement{{}, {}, term.equal, std::move(term.value)};
    const auto known =
        std::find_if(kind.selectable.begin(), kind.selectable.end(),
                     [&](const SelectableField& field) { return field.label == term.field; });
    if (known != kind.selectable.end()) {
      requirement.path = known->path;
      requirement.absent = known->absent;
    } else if (term.field == "metadata.name") {
      requirement.path = kNamePath;
    } else if (term.field == "metadata.namespace") {
      requirement.path = kNamespacePath;
    } else {
      return BadRequestError(WhyNotSelectable(kind, term.field));
    }
    selection.fields_.push_back(std::move(requirement));
  }
  return selection;
}

bool Selection::Matches(const json& object) const {
  ProcessorBudget::Spend(steps_);
  for (const FieldRequirement& field : fields_) {
    if ((FieldValue(object, field.path, field.absent) == field.value) != field.equal) return false;
  }
  if (labels_.empty()) return true;
  const json& labels = PartOf(MetadataOf(object), "labels");
  return labels_.Matches([&](std::string_view key) -> std::optional<std::string_view> {
    const json* found = FindMember(labels, key);
    if (found == nullptr || !found->is_string()) return std::nullopt;
    return std::string_view(found->get_ref<const std::string&>());
  });
}

}  // namespace tahoma::controller::apiserver
