// The callers, their tokens or certificates, and the permissions of each: one immutable version.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto table, AccessTable::Make(identities, /*certificates=*/false));
//   head.identity = table.Authenticate(head);
//   const AccessDecision decision = table.Authorize(*head.identity, attributes, objects);
//   if (!decision.allowed) return PermissionDenied("{} may not do that", head.identity->name);
//
// Every answer is a function of the table, the user and the question, so `kubectl auth can-i`
// answers as the request itself would be.
//
// Scope: deciding. identity_file.h reads the identities, access_control.h replaces one table by the
// next.
//
// Thread safety: immutable once made.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/access/attributes.h"
#include "controller/access/node_rules.h"
#include "controller/access/rules.h"
#include "lib/base/digest.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

// One entry. Entries of the same name differ in their token only: that is how a token is replaced.
struct IdentityEntry {
  std::string name;
  std::optional<Sha256Digest> token;  // of a bearer token; nothing: a client certificate's name
  Role role = Role::kView;
  std::vector<std::string> groups = {};
  std::vector<std::string> namespaces = {};  // empty: all, and what belongs to none
};

struct AccessDecision {
  bool allowed = false;
  std::string_view reason;  // why it is allowed, for the audit; empty when it is not
};

class AccessTable {
 public:
  static constexpr std::size_t kIdentitiesMost = 1000;

  // kInvalidArgument says which identity is wrong and what would be right. Without identities, and
  // unless client certificates are asked for, whoever can connect may do everything.
  static absl::StatusOr<AccessTable> Make(const std::vector<IdentityEntry>& identities,
                                          bool certificates);

  bool open() const { return open_; }
  // Returns the caller, by the certificate or else the bearer token; a certificate comes before a
  // token, as in Kubernetes. Null when neither is known here. An open table knows everybody.
  std::shared_ptr<const rest::Identity> Authenticate(const rest::Request& head) const;
  std::shared_ptr<const rest::Identity> Authenticate(
      std::optional<std::string_view> token,
      const std::optional<rest::ClientSubject>& client) const;
  AccessDecision Authorize(const rest::Identity& user, const Attributes& attributes,
                           const NodeView& view) const;
  // The rules that hold for the user in a namespace, those of the cluster included.
  std::vector<Rule> RulesFor(const rest::Identity& user, std::string_view name_space) const;

 private:
  struct Grant {
    Role role = Role::kView;
    std::vector<std::string> namespaces = {};

    bool everywhere() const { return namespaces.empty(); }
    bool Holds(std::string_view name_space) const;
  };
  AccessTable() = default;
  absl::Status Add(const IdentityEntry& entry);
  // Returns the grants by name and by group; for the role node, by the node's name.
  std::vector<const Grant*> GrantsOf(const rest::Identity& user) const;

  bool open_ = false;
  std::map<std::string, std::shared_ptr<const rest::Identity>, std::less<>> users_;
  std::map<std::string, Grant, std::less<>> grants_;  // by the user's name
  absl::flat_hash_map<Sha256Digest, std::shared_ptr<const rest::Identity>> tokens_;
};

// A group whose members may do everything, as in Kubernetes.
inline constexpr std::string_view kMastersGroup = "system:masters";
inline constexpr std::string_view kAuthenticatedGroup = "system:authenticated";
inline constexpr std::string_view kNodesGroup = "system:nodes";
inline constexpr std::string_view kNodePrefix = "system:node:";

inline constexpr std::string_view kAccountPrefix = "system:serviceaccount:";
inline constexpr std::string_view kAccountsGroup = "system:serviceaccounts";

struct AccountName {
  std::string_view name_space;
  std::string_view name;
};
// Returns the parts of a service account's user name, "system:serviceaccount:NAMESPACE:NAME".
std::optional<AccountName> AccountNamed(std::string_view user);

// Returns the node of a node's identity: "n1" for system:node:n1 in system:nodes; nothing for
// others.
std::optional<std::string_view> NodeOf(const rest::Identity& user);

// `pods "p" is forbidden: User "x" cannot …`, the message without its beginning; source:
// k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go.
std::string DenialOf(const rest::Identity& user, const Attributes& attributes);

}  // namespace tahoma::controller
