// The line that says who changed what, from where, and how it ended.
//
//   audit(AuditLine(event));    // {"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"create",…
//
// The fields are those of audit.k8s.io/v1 at level Metadata and stage ResponseComplete, so that
// tools for Kubernetes' audit logs read them. What a client chose (target, user agent, names) is
// bounded, and escaped as JSON wants it: nobody can write a line of his own.
//
// Scope: the text. controller/access/audit_file.h writes it.
//
// Thread safety: pure functions.

#pragma once

#include <string>

#include "controller/access/attributes.h"
#include "lib/base/clock.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

struct AuditEvent {
  std::string id;  // also answered as the header Audit-Id
  const rest::Request* request = nullptr;
  const Attributes* attributes = nullptr;
  int code = 0;               // of the answer
  std::string object_name;    // of a create, whose path does not have it
  std::string_view decision;  // "allow" or "forbid"
  std::string_view reason;
  WallTime received;
  WallTime answered;
};

// One line, without its end. At most 16 KiB.
std::string AuditLine(const AuditEvent& event);

// Whether a request of that kind has a line: what changes something, or was refused to. Reads and
// questions ("may I?") have none.
bool IsAudited(const Attributes& attributes);

}  // namespace tahoma::controller
