#include "controller/apiserver/controllers/workloads/revisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

// Returns the template as a patch that puts it in place of another: `kubectl rollout undo` sends
// the patch as it stands in the revision.
Json DataOf(const Json& owner) {
  Json pod_template = ValueAt(owner, {"spec", "template"});
  pod_template["$patch"] = "replace";
  return {{"spec", {{"template", std::move(pod_template)}}}};
}

}  // namespace

History::History(const Json& owner, const char* kind, const Bodies& revisions, Decision& decision)
    : owner_(owner),
      revisions_(Claimed(owner, "apps/v1", kind, ValueAt(owner, {"spec", "selector"}), revisions,
                         kRevisions, decision.writes)) {
  std::ranges::sort(revisions_, {}, [](const auto& one) {
    return std::pair(IntOr(*one, "revision", 0), kube::NameOf(*one));
  });
  const Json data = DataOf(owner);
  const std::int64_t last = revisions_.empty() ? 0 : IntOr(*revisions_.back(), "revision", 0);
  for (const auto& revision : revisions_) {
    if (ValueAt(*revision, {"data"}) != data) continue;
    newest_ = kube::NameOf(*revision);
    if (IntOr(*revision, "revision", 0) == last) return;
    Json renewed = *revision;
    renewed["revision"] = last + 1;
    decision.writes.push_back({.verb = Write::Verb::kUpdate,
                               .resource = kRevisions,
                               .object = Shared(std::move(renewed))});
    return;
  }
  if (!kube::IsBeingDeleted(owner)) Add(kind, last + 1, data, decision);
}

void History::Add(const char* kind, std::int64_t number, Json data, Decision& decision) {
  std::string hash;
  for (std::int64_t tries = 0;; ++tries) {
    hash = HashName(data, tries);
    newest_ = fmt::format("{}-{}", kube::NameOf(owner_), hash);
    if (!Has(newest_)) break;
  }
  Json labels = ValueAt(owner_, {"spec", "template", "metadata", "labels"});
  labels["controller-revision-hash"] = kind == std::string_view("StatefulSet") ? newest_ : hash;
  Json revision = {
      {"apiVersion", "apps/v1"},
      {"kind", "ControllerRevision"},
      {"metadata",
       {{"name", newest_},
        {"namespace", kube::NamespaceOf(owner_)},
        {"labels", std::move(labels)},
        {"ownerReferences", Json::array({OwnerReferenceTo(owner_, "apps/v1", kind)})}}},
      {"data", std::move(data)},
      {"revision", number}};
  decision.writes.push_back({.verb = Write::Verb::kCreate,
                             .resource = kRevisions,
                             .object = Shared(std::move(revision))});
}

bool History::Has(std::string_view name) const { return !TemplateOf(name).is_null(); }

const Json& History::TemplateOf(std::string_view name) const {
  static const Json kNone;
  for (const auto& revision : revisions_) {
    if (kube::NameOf(*revision) == name) return ValueAt(*revision, {"data", "spec", "template"});
  }
  return kNone;
}

void History::Forget(const std::set<std::string>& used, Decision& decision) const {
  Bodies idle;
  for (const auto& revision : revisions_) {
    const std::string name(kube::NameOf(*revision));
    if (name != newest_ && !used.contains(name)) idle.push_back(revision);
  }
  const auto limit =
      static_cast<std::size_t>(IntOr(PartOf(owner_, "spec"), "revisionHistoryLimit", 10));
  for (std::size_t i = 0; i + limit < idle.size(); ++i) {
    decision.writes.push_back(
        {.verb = Write::Verb::kDelete, .resource = kRevisions, .object = Shared(*idle[i])});
  }
}

}  // namespace tahoma::controller::apiserver
