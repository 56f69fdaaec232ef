// The attributes of an API request for authorization, the stored objects as NodeView, and what an
// identity may change of an object.
//
// Thread safety: pure functions; the view may be used from any thread.

#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <string_view>

#include "controller/access/attributes.h"
#include "controller/access/node_rules.h"
#include "controller/apiserver/request/api_request.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/json_fwd.h"
#include "lib/rest/message.h"

namespace tahoma::controller::apiserver {

// Returns the attributes from method, path and query alone. A path that is no resource's, or
// malformed, is authorized as a path. Source: k8s.io/apiserver
// pkg/endpoints/request/requestinfo.go.
Attributes AttributesOf(const rest::Request& head);

// 403 for a change by a node's identity that is not the node's to make (node_rules.h); OK for every
// other caller, and for the controller itself, which has no identity. `before` is null for a
// create.
absl::Status CheckChange(const ApiRequest& request, const Json& before, const Json& after);

class StoredNodeView final : public NodeView {
 public:
  // `objects` must outlive the view.
  explicit StoredNodeView(const ObjectStore& objects) : objects_(objects) {}

  std::optional<std::string> NodeOfPod(std::string_view name_space,
                                       std::string_view name) const override;
  std::optional<std::string> NodeOfSlice(std::string_view name) const override;
  bool ClaimIsOn(std::string_view name_space, std::string_view name,
                 std::string_view node) const override;
  // Looks through the pods of the namespace.
  bool IsUsedOn(std::string_view resource, std::string_view name_space, std::string_view name,
                std::string_view node) const override;

 private:
  const ObjectStore& objects_;
};

}  // namespace tahoma::controller::apiserver
