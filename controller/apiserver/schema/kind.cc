#include "controller/apiserver/schema/kind.h"

#include <algorithm>

#include "controller/apiserver/schema/crd.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {

bool Kind::Allows(std::string_view verb) const {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

Parts PartsToCheck(const Kind& kind, const Json& before, const Json& after) {
  if (!kind.built_in) return std::nullopt;
  Parts parts(std::in_place);
  for (const auto& [name, value] : MembersOf(after)) {
    const Json* old = FindMember(before, name);
    if (old == nullptr || *old != value) parts->insert(name);
  }
  for (const auto& [name, value] : MembersOf(before)) {
    if (!after.contains(name)) parts->insert(name);
  }
  return parts;
}

KindTable::KindTable(std::vector<std::shared_ptr<const Kind>> kinds) : kinds_(std::move(kinds)) {
  std::sort(kinds_.begin(), kinds_.end(), [](const auto& a, const auto& b) {
    return std::tie(a->group, a->version, a->plural) < std::tie(b->group, b->version, b->plural);
  });
  for (const auto& kind : kinds_) {
    if (kind->served) {
      by_resource_[{kind->group, kind->version, kind->plural}] = kind.get();
      by_kind_[fmt::format("{}/{}", kind->api_version(), kind->kind)] = kind.get();
    }
    if (kind->storage) by_storage_[{kind->group, kind->plural}] = kind.get();
  }
}

const Kind* KindTable::Find(std::string_view group, std::string_view version,
                            std::string_view plural) const {
  const auto it = by_resource_.find(std::tuple(group, version, plural));
  return it == by_resource_.end() ? nullptr : it->second;
}

const Kind* KindTable::FindKind(std::string_view api_version, std::string_view kind) const {
  const auto it = by_kind_.find(fmt::format("{}/{}", api_version, kind));
  return it == by_kind_.end() ? nullptr : it->second;
}

const Kind* KindTable::FindStorage(std::string_view group, std::string_view plural) const {
  const auto it = by_storage_.find(std::pair(group, plural));
  return it == by_storage_.end() ? nullptr : it->second;
}

KindRegistry::KindRegistry() : built_in_(BuiltInKinds()) { Publish(); }

std::shared_ptr<const KindTable> KindRegistry::Snapshot() const {
  const MutexLock lock(mutex_);
  return snapshot_;
}

absl::Status KindRegistry::ApplyCrd(const Json& crd) {
  TAHOMA_ASSIGN_OR_RETURN(auto kinds, KindsOfCrd(crd));
  const std::string name = kinds.front()->resource();
  const MutexLock lock(mutex_);
  for (const auto& other : snapshot_->kinds()) {
    if (other->resource() == name && by_crd_.contains(name)) continue;
    for (const auto& kind : kinds) {
      if (other->group != kind->group) continue;
      if (other->plural == kind->plural || other->kind == kind->kind) {
        return AlreadyExists("\"{}\" is already in use by {}", kind->kind, other->resource());
      }
    }
  }
  by_crd_[name] = std::move(kinds);
  Publish();
  return absl::OkStatus();
}

void KindRegistry::RemoveCrd(std::string_view name) {
  const MutexLock lock(mutex_);
  const auto it = by_crd_.find(name);
  if (it == by_crd_.end()) return;
  by_crd_.erase(it);
  Publish();
}

void KindRegistry::Publish() {
  std::vector<std::shared_ptr<const Kind>> kinds = built_in_;
  for (const auto& [name, of_crd] : by_crd_)
    kinds.insert(kinds.end(), of_crd.begin(), of_crd.end());
  auto table = std::make_shared<KindTable>(std::move(kinds));
  table->generation_ = ++generation_;
  snapshot_ = std::move(table);
}

}  // namespace tahoma::controller::apiserver
