// The history of the templates of StatefulSets and DaemonSets: their ControllerRevisions.
//
// Thread safety: pure.

#pragma once

#include <set>
#include <string>
#include <string_view>

#include "controller/apiserver/controllers/workloads/workloads.h"

namespace tahoma::controller::apiserver {

class History {
 public:
  // Adds the writes that the revision of the template needs. `owner` must outlive the history.
  History(const Json& owner, const char* kind, const Bodies& revisions, Decision& decision);

  const std::string& newest() const { return newest_; }
  bool Has(std::string_view name) const;
  const Json& TemplateOf(std::string_view name) const;

  // Deletes the oldest revisions beyond spec.revisionHistoryLimit, except those that are in use.
  void Forget(const std::set<std::string>& used, Decision& decision) const;

 private:
  void Add(const char* kind, std::int64_t number, Json data, Decision& decision);

  const Json& owner_;
  Bodies revisions_;  // the oldest first
  std::string newest_;
};

}  // namespace tahoma::controller::apiserver
