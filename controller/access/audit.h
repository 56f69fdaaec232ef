// An audit line: the caller of a change, its object, its origin, and its result.
//
//   sink.append(AuditLine(event));    // {"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":…
//
// The fields are those of audit.k8s.io/v1 at level Metadata and stage ResponseComplete: tools for
// Kubernetes' audit logs can read the lines. Texts that a client chose (target, user agent, names)
// are bounded, and escaped as JSON: no client can forge a line.
//
// Scope: the text of a line. controller/access/audit_file.h writes lines.
//
// Thread safety: pure functions; an Auditor may be used from any thread.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "controller/access/access_table.h"
#include "controller/access/attributes.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/rng.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

struct AuditEvent {
  std::string id;  // also answered as the header Audit-Id
  const rest::Request* request = nullptr;
  const Attributes* attributes = nullptr;
  int code = 0;               // of the answer
  std::string object_name;    // of a create: its path has no name
  std::string_view decision;  // "allow" or "forbid"
  std::string_view reason;
  WallTime received;
  WallTime answered;
};

// Returns a line, without its end. At most 16 KiB.
std::string AuditLine(const AuditEvent& event);

// Returns whether requests with such attributes have a line: changes do, also refused changes.
// Reads, access reviews ("may I?") and the heartbeats of nodes (their leases) have none.
bool IsAudited(const Attributes& attributes);

// The destination of audit lines.
struct AuditSink {
  std::function<void(const std::string& line)> append = {};  // empty: no audit
  // Returns whether changes may go on; empty: changes go on even when lines are lost.
  std::function<bool()> writable = {};
};

class Auditor {
 public:
  // `clock` must outlive the Auditor. `seed` makes the lines' ids.
  Auditor(AuditSink sink, const Clock& clock, std::uint64_t seed)
      : sink_(std::move(sink)), clock_(clock), rng_(seed) {}

  bool MayChange() const { return !sink_.writable || sink_.writable(); }
  WallTime Now() const { return clock_.WallNow(); }
  // Writes the line of an answered request; returns the line's id, or "" without an audit.
  std::string Record(const rest::Request& request, const Attributes& attributes,
                     const AccessDecision& decision, const rest::Response& answer,
                     WallTime received);

 private:
  const AuditSink sink_;
  const Clock& clock_;
  Mutex mutex_;
  Rng rng_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller
