#include "lib/kube/objects/disruption_budget.h"

#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/label_selector.h"

namespace tahoma::kube {

bool DisruptionBudget::Guards(const std::string& ns, const Labels& labels) const {
  return !guards_none && ns == metadata.ns && Selects(selector, labels);
}

absl::StatusOr<DisruptionBudget> ParseDisruptionBudget(const Json& object) {
  Reading reading(object);
  DisruptionBudget budget;
  budget.metadata = ParseMetadata(reading.root());
  const Field selector = reading.root().At("spec").At("selector");
  budget.guards_none = !selector.has_value();
  budget.selector = ParseLabelSelector(selector);
  const Field status = reading.root().At("status");
  const bool current = status.At("observedGeneration").Int() >= budget.metadata.generation;
  budget.allowed = current ? status.At("disruptionsAllowed").Int() : 0;
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("PodDisruptionBudget"));
  return budget;
}

}  // namespace tahoma::kube
