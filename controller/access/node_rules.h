// The limits of the role `node` to the node's own objects, so that one node's token is of no use
// against the others.
//
//   if (const auto wrong = WrongForNode("node-3", attributes, objects)) {
//     return PermissionDenied("{}", *wrong);
//   }
//   if (const auto wrong = WrongChangeForNode("node-3", attributes, before, after)) …
//
// The node itself, its lease, its ResourceSlices, the pods bound to it, and what those use: claims,
// ConfigMaps, Secrets. As Kubernetes' node authorizer, which sees who asks for which object, and
// its admission plugin NodeRestriction, which sees the object before and after the change. The
// table of what a node may do is in docs/security.md#what-a-nodes-token-may-do.
//
// Scope: pure functions; the stored objects are looked at through NodeView.
//
// Thread safety: any thread, if the view's is.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/access/attributes.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

// The stored objects, as far as they say what belongs to which node.
class NodeView {
 public:
  virtual ~NodeView() = default;
  // Empty: not bound. Nothing: there is no such pod.
  virtual std::optional<std::string> NodeOfPod(std::string_view name_space,
                                               std::string_view name) const = 0;
  // Nothing: there is no such ResourceSlice.
  virtual std::optional<std::string> NodeOfSlice(std::string_view name) const = 0;
  // Whether a device of the node is allocated to the claim, or a pod on it holds the claim; also
  // true when there is no such claim, which is no secret.
  virtual bool ClaimIsOn(std::string_view name_space, std::string_view name,
                         std::string_view node) const = 0;
  // Whether a pod on the node names this ConfigMap or Secret (`resource` says which).
  virtual bool IsUsedOn(std::string_view resource, std::string_view name_space,
                        std::string_view name, std::string_view node) const = 0;
};

// The view for an API without objects: the admin API.
const NodeView& NoObjects();

// Returns why `node` may not do that although its role's rules allow the verb on the resource;
// nothing when it may.
std::optional<std::string_view> WrongForNode(std::string_view node, const Attributes& attributes,
                                             const NodeView& view);

// Returns why `node` may not make that change of an object although WrongForNode lets it try:
// whatever the form of the request, `before` (null: the object is created) and `after` are whole
// objects.
std::optional<std::string_view> WrongChangeForNode(std::string_view node,
                                                   const Attributes& attributes, const Json& before,
                                                   const Json& after);

}  // namespace tahoma::controller
