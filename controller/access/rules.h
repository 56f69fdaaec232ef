// The permissions of each role, as rules in the form of Kubernetes' RBAC.
//
// edit and view follow the ClusterRoles of the same names for the kinds that are served here
// (k8s.io/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go), with Tahoma's own
// kinds as if its ClusterRoles were aggregated into them. docs/formats/identities.md has the table.
//
// Thread safety: constants and pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "controller/access/attributes.h"

namespace tahoma::controller {

enum class Role : std::uint8_t { kView, kEdit, kAdmin, kNode };

std::string_view RoleName(Role role);
std::optional<Role> RoleNamed(std::string_view name);

// "*" stands for all. A subresource is named "pods/log" and not covered by "pods".
struct Rule {
  std::vector<std::string_view> verbs;
  std::vector<std::string_view> groups;      // empty for a rule of paths
  std::vector<std::string_view> resources;   // empty for a rule of paths
  std::vector<std::string_view> paths = {};  // "/apis/*" covers what begins with "/apis/"
};

// The rules of every known caller: discovery of the served resources, and reviews of its own
// access.
const std::vector<Rule>& RulesOfEverybody();
// The rules of a role in the namespaces that it is given for.
const std::vector<Rule>& RulesInNamespace(Role role);
// The further rules of a role that is not restricted to namespaces: cluster-scoped resources and
// paths.
const std::vector<Rule>& RulesOfCluster(Role role);

bool Covers(const Rule& rule, const Attributes& attributes);

}  // namespace tahoma::controller
