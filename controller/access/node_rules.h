// The limits of the role `node` to the node's own objects: a stolen node token is of no use against
// other nodes.
//
//   if (const auto wrong = WrongForNode("node-3", attributes, objects)) {
//     return PermissionDenied("{}", *wrong);
//   }
//   if (const auto wrong = WrongChangeForNode("node-3", attributes, before, after)) …
//
// A node's own objects are the Node, its lease, its ResourceSlices, the pods bound to the node, and
// the claims, ConfigMaps, Secrets, volumes and tokens of these pods. The rules follow Kubernetes'
// node authorizer, which sees the requests, and its admission plugin NodeRestriction, which sees
// the object before and after the change. docs/security.md#what-a-nodes-token-may-do has the table.
//
// Scope: pure functions; NodeView shows the stored objects.
//
// Thread safety: any thread, if the view allows any.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/access/attributes.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

// The stored objects, as far as they belong to nodes.
class NodeView {
 public:
  virtual ~NodeView() = default;
  // Empty: not bound. Nothing: there is no such pod.
  virtual std::optional<std::string> NodeOfPod(std::string_view name_space,
                                               std::string_view name) const = 0;
  // Nothing: there is no such ResourceSlice.
  virtual std::optional<std::string> NodeOfSlice(std::string_view name) const = 0;
  // Returns whether a device of the node is allocated to the claim, or a pod on the node holds the
  // claim. Also true when there is no such claim: its absence is no secret.
  virtual bool ClaimIsOn(std::string_view name_space, std::string_view name,
                         std::string_view node) const = 0;
  // Returns whether a pod on the node names this ConfigMap, Secret or PersistentVolumeClaim
  // (`resource`), or the claim of this PersistentVolume, or runs with this service account.
  virtual bool IsUsedOn(std::string_view resource, std::string_view name_space,
                        std::string_view name, std::string_view node) const = 0;
};

// The view for an API without objects: the admin API.
const NodeView& NoObjects();

// Returns why `node` may not do this although the role's rules allow the verb on the resource;
// nothing when it may.
std::optional<std::string_view> WrongForNode(std::string_view node, const Attributes& attributes,
                                             const NodeView& view);

// Returns why `node` may not change an object like this although WrongForNode allows the request.
// Whatever the form of the request, `before` (null: the object is created) and `after` are whole
// objects.
std::optional<std::string_view> WrongChangeForNode(std::string_view node,
                                                   const Attributes& attributes, const Json& before,
                                                   const Json& after);

}  // namespace tahoma::controller
