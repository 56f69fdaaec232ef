#include "controller/access/access_table.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/rest/bearer.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kNameBytesMost = 253;  // as the longest name of an object
constexpr std::size_t kGroupsMost = 64;
constexpr std::size_t kNamespacesMost = 256;

constexpr std::string_view kSystem = "system:";
// The caller of an API that authenticates nobody; kube-apiserver's old insecure port used this
// name.
constexpr std::string_view kUnsecured = "system:unsecured";

// Names stand in logs and messages.
bool IsPrintable(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMost &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '\\'; });
}

absl::Status CheckName(std::string_view what, std::string_view name) {
  if (IsPrintable(name)) return absl::OkStatus();
  return InvalidArgument(
      "{} \"{}\" must have 1 to {} visible ASCII characters, none of them \" or \\", what,
      name.substr(0, kNameBytesMost), kNameBytesMost);
}

absl::Status CheckEntry(const IdentityEntry& identity) {
  TAHOMA_RETURN_IF_ERROR(CheckName("the name", identity.name));
  if (identity.role == Role::kNode) {
    if (!identity.name.starts_with(kNodePrefix) || identity.name.size() == kNodePrefix.size()) {
      return InvalidArgument("the role node needs a name such as {}NODE", kNodePrefix);
    }
    if (!identity.namespaces.empty()) {
      return InvalidArgument("the role node is not restricted to namespaces");
    }
  } else if (AccountNamed(identity.name)) {
    if (identity.token || !identity.groups.empty()) {
      return InvalidArgument(
          "the tokens and groups of a service account are made for it (kubectl create token); "
          "leave "
          "token, tokenSha256 and groups out");
    }
  } else if (identity.name.starts_with(kSystem)) {
    return InvalidArgument("names that begin with {} are of the system, except {}NAMESPACE:NAME",
                           kSystem, kAccountPrefix);
  }
  if (identity.groups.size() > kGroupsMost) {
    return InvalidArgument("{} groups; at most {}", identity.groups.size(), kGroupsMost);
  }
  for (const std::string& group : identity.groups) {
    TAHOMA_RETURN_IF_ERROR(CheckName("the group", group));
    if (group.starts_with(kSystem)) {
      return InvalidArgument("the group {} comes with a role or a certificate", group);
    }
  }
  if (identity.namespaces.size() > kNamespacesMost) {
    return InvalidArgument("{} namespaces; at most {}", identity.namespaces.size(),
                           kNamespacesMost);
  }
  for (const std::string& name_space : identity.namespaces) {
    TAHOMA_RETURN_IF_ERROR(CheckName("the namespace", name_space));
  }
  return absl::OkStatus();
}

bool Has(const std::vector<std::string>& words, std::string_view wanted) {
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

bool AnyCovers(const std::vector<Rule>& rules, const Attributes& attributes) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const Rule& rule) { return Covers(rule, attributes); });
}

rest::Identity UserOf(const IdentityEntry& identity) {
  rest::Identity user{.name = identity.name, .groups = identity.groups};
  if (identity.role == Role::kNode) user.groups.emplace_back(kNodesGroup);
  user.groups.emplace_back(kAuthenticatedGroup);
  return user;
}

std::shared_ptr<const rest::Identity> UserOf(const rest::ClientSubject& client) {
  if (!IsPrintable(client.common_name)) return nullptr;
  rest::Identity user{.name = client.common_name, .groups = {}};
  for (const std::string& group : client.organizations) {
    if (IsPrintable(group) && user.groups.size() < kGroupsMost) user.groups.push_back(group);
  }
  user.groups.emplace_back(kAuthenticatedGroup);
  return std::make_shared<const rest::Identity>(std::move(user));
}

}  // namespace

std::optional<AccountName> AccountNamed(std::string_view user) {
  if (!user.starts_with(kAccountPrefix)) return std::nullopt;
  user.remove_prefix(kAccountPrefix.size());
  const std::size_t colon = user.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == user.size()) {
    return std::nullopt;
  }
  return AccountName{user.substr(0, colon), user.substr(colon + 1)};
}

std::optional<std::string_view> NodeOf(const rest::Identity& user) {
  if (!user.name.starts_with(kNodePrefix) || !Has(user.groups, kNodesGroup)) return std::nullopt;
  return std::string_view(user.name).substr(kNodePrefix.size());
}

bool AccessTable::Grant::Holds(std::string_view name_space) const {
  return everywhere() || (!name_space.empty() && Has(namespaces, name_space));
}

absl::StatusOr<AccessTable> AccessTable::Make(const std::vector<IdentityEntry>& identities,
                                              bool certificates) {
  if (identities.size() > kIdentitiesMost) {
    return InvalidArgument("{} identities; at most {}", identities.size(), kIdentitiesMost);
  }
  AccessTable table;
  table.open_ = identities.empty() && !certificates;
  for (std::size_t i = 0; i < identities.size(); ++i) {
    TAHOMA_RETURN_IF_ERROR(Annotate(table.Add(identities[i]),
                                    fmt::format("identities[{}] ({})", i, identities[i].name)));
  }
  return table;
}

absl::Status AccessTable::Add(const IdentityEntry& entry) {
  TAHOMA_RETURN_IF_ERROR(CheckEntry(entry));
  auto user = std::make_shared<const rest::Identity>(UserOf(entry));
  const auto [known, is_new] = users_.try_emplace(entry.name, user);
  const Grant grant{.role = entry.role, .namespaces = entry.namespaces};
  const Grant& held = grants_.try_emplace(entry.name, grant).first->second;
  if (!is_new && (known->second->groups != user->groups || held.role != grant.role ||
                  held.namespaces != grant.namespaces)) {
    return InvalidArgument(
        "an entry above has this name with another role, other groups or other namespaces; "
        "entries of one name differ in their token only");
  }
  if (entry.token && !tokens_.try_emplace(*entry.token, known->second).second) {
    return InvalidArgument("an entry above has the same token");
  }
  return absl::OkStatus();
}

std::shared_ptr<const rest::Identity> AccessTable::Authenticate(const rest::Request& head) const {
  return Authenticate(rest::BearerToken(head.header("Authorization")), head.client);
}

std::shared_ptr<const rest::Identity> AccessTable::Authenticate(
    std::optional<std::string_view> token, const std::optional<rest::ClientSubject>& client) const {
  if (open_) {
    static const auto everybody = std::make_shared<const rest::Identity>(
        rest::Identity{.name = std::string(kUnsecured), .groups = {std::string(kMastersGroup)}});
    return everybody;
  }
  if (client) return UserOf(*client);
  if (!token || token->empty()) return nullptr;
  // The key is the token's digest, so that the time of the look-up says nothing about a token.
  const auto found = tokens_.find(Sha256(*token));
  return found == tokens_.end() ? nullptr : found->second;
}

std::vector<const AccessTable::Grant*> AccessTable::GrantsOf(const rest::Identity& user) const {
  static const Grant masters{.role = Role::kAdmin};
  static const Grant node{.role = Role::kNode};
  std::vector<const Grant*> grants;
  if (Has(user.groups, kMastersGroup)) grants.push_back(&masters);
  if (NodeOf(user)) {
    grants.push_back(&node);
  } else if (const auto found = grants_.find(user.name);
             found != grants_.end() && found->second.role != Role::kNode) {
    grants.push_back(&found->second);
  }
  return grants;
}

AccessDecision AccessTable::Authorize(const rest::Identity& user, const Attributes& attributes,
                                      const NodeView& view) const {
  for (const Grant* const grant : GrantsOf(user)) {
    if (grant->Holds(attributes.name_space) &&
        AnyCovers(RulesInNamespace(grant->role), attributes)) {
      return {.allowed = true, .reason = RoleName(grant->role)};
    }
    if (!grant->everywhere() || !AnyCovers(RulesOfCluster(grant->role), attributes)) continue;
    if (grant->role == Role::kNode && WrongForNode(*NodeOf(user), attributes, view)) {
      continue;
    }
    return {.allowed = true, .reason = RoleName(grant->role)};
  }
  if (AnyCovers(RulesOfEverybody(), attributes)) return {.allowed = true, .reason = "everybody"};
  return {};
}

std::vector<Rule> AccessTable::RulesFor(const rest::Identity& user,
                                        std::string_view name_space) const {
  std::vector<Rule> rules = RulesOfEverybody();
  const auto add = [&](const std::vector<Rule>& more) {
    rules.insert(rules.end(), more.begin(), more.end());
  };
  for (const Grant* const grant : GrantsOf(user)) {
    if (grant->Holds(name_space)) add(RulesInNamespace(grant->role));
    if (grant->everywhere()) add(RulesOfCluster(grant->role));
  }
  return rules;
}

std::string DenialOf(const rest::Identity& user, const Attributes& attributes) {
  if (!attributes.is_resource()) {
    return fmt::format("User \"{}\" cannot {} path \"{}\"", user.name, attributes.verb,
                       attributes.path);
  }
  const std::string where = attributes.name_space.empty()
                                ? "at the cluster scope"
                                : fmt::format("in the namespace \"{}\"", attributes.name_space);
  return fmt::format("User \"{}\" cannot {} resource \"{}{}{}\" in API group \"{}\" {}", user.name,
                     attributes.verb, attributes.resource,
                     attributes.subresource.empty() ? "" : "/", attributes.subresource,
                     attributes.group, where);
}

}  // namespace tahoma::controller
