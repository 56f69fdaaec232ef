// Acting as another user: the headers Impersonate-*, which `kubectl --as` sends.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto other, ImpersonationOf(head.headers));
//   for (const Attributes& right : other->rights) table.Authorize(*head.identity, right, view);
//   head.identity = std::make_shared<const rest::Identity>(other->user);
//
// Headers, rights and groups are those of Kubernetes (k8s.io/apiserver
// pkg/endpoints/filters/impersonation): a caller needs the verb impersonate on each name that a
// header has. kInvalidArgument: headers that name no user, texts that no identity may have, and
// Impersonate-Extra-*, of which no rule here could know.
//
// Scope: what is asked for. Whether the caller may is AccessTable's to say.
//
// Thread safety: pure function.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <vector>

#include "controller/access/attributes.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

struct Impersonation {
  rest::Identity user;
  std::vector<Attributes> rights;  // the caller must have all of them; at least one
};

// Nothing: the request has no such header.
absl::StatusOr<std::optional<Impersonation>> ImpersonationOf(const rest::Headers& headers);

}  // namespace tahoma::controller
