// Answers /livez, /readyz and /healthz from named checks, as kube-apiserver does.
//
//   probes.Add(Probes::Kind::kReadyz, "store", [&] { return store.writable() ? "" : "no room"; });
//
// The answers, with such a check, are:
//
//   GET /readyz            200 "ok", or 503 with a line for each check
//   GET /readyz?verbose    [+]ping ok
//                          [-]store failed: no room
//                          readyz check failed
//   GET /readyz/store      one check alone; ?exclude=store leaves it out
//
// /livez says whether a restart would help, /readyz whether requests can be served; /healthz is
// /livez by its old name.
//
// Scope: text. The server decides who may ask. The form is that of kube-apiserver
// (https://kubernetes.io/docs/reference/using-api/health-checks/), which answers 500 for our 503.
//
// Thread safety: every member may be called from any thread; a check is called from many at once.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/rest/message.h"

namespace tahoma::rest {

class Probes {
 public:
  enum class Kind : std::uint8_t { kLivez, kReadyz };
  // Empty: all is well; else why not, without what only an administrator should know. At once: a
  // probe that waits is a failed one.
  using Check = std::function<std::string()>;

  void Add(Kind kind, std::string name, Check check);

  // The check "start" of /readyz: empty when there is nothing to wait for.
  void SetReady(const std::string& reason_if_not);

  // Those that were added, in their order.
  std::vector<std::pair<std::string, Check>> Checks(Kind kind) const;

  // "/readyz", "/livez/store".
  static bool IsProbe(std::string_view path);

  // Nothing when the request is not for a probe.
  std::optional<Response> Answer(const Request& request) const;

 private:
  mutable Mutex mutex_;
  std::vector<std::pair<std::string, Check>> livez_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, Check>> readyz_ ABSL_GUARDED_BY(mutex_);
  std::string not_ready_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::rest
