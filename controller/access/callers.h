// Reads the callers of the controller's APIs from files, again when these change, and opens the
// audit.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto callers, Callers::Open(files, metrics, log));
//   apiserver::HttpFront front(server, {.access = callers->access(), .audit = callers->audit()},
//                              metrics);
//   callers->Start();               // looks at the files once a second
//
// `access_keys` are those of EC2's API. A file with an error changes nothing: the callers that were
// read last remain valid, the log says what is wrong, and metrics show it. Files are compared by
// their contents.
//
// Thread safety: Open, Start and the destructor from one thread; Poll from one at a time; the rest
// from any.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "controller/access/access_control.h"
#include "controller/access/access_keys.h"
#include "controller/access/audit.h"
#include "controller/access/audit_file.h"
#include "lib/base/mutex.h"
#include "lib/rest/metrics.h"

namespace tahoma::controller {

class Callers {
 public:
  using Log = std::function<void(const std::string& line)>;

  // Paths; empty: no such file.
  struct Files {
    std::string tokens{};
    std::string identities{};
    std::string access_keys{};
    std::string audit{};
    bool audit_required = false;  // refuse what cannot be written to the audit file
    bool certificates = false;    // callers may show certificates
  };

  // Fails when a file is missing, wrong, or open to others. `metrics` must outlive it.
  static absl::StatusOr<std::unique_ptr<Callers>> Open(const Files& files, rest::Metrics& metrics,
                                                       Log log);
  ~Callers();
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  void Start();
  // One look at the files.
  void Poll();

  std::shared_ptr<const AccessControl> access() const { return access_; }
  // Uses this object.
  AuditSink audit();
  // Returns empty without an accessKeyFile. Uses this object.
  CurrentAccessKeys access_keys();
  // Whether whoever can connect may do everything.
  bool open() const { return access_->table()->open(); }

 private:
  // The contents of the files; compared as a whole.
  struct Texts {
    std::string token;
    std::string identities;
    std::string access_keys;
    friend bool operator==(const Texts&, const Texts&) = default;
  };

  Callers(const Files& files, rest::Metrics& metrics, Log log);
  // Waits until the next look is due; false at the end.
  bool Pause();
  absl::StatusOr<Texts> Read() const;
  absl::StatusOr<AccessTable> TableOf(const Texts& texts) const;
  // Puts what the texts say in force, or changes nothing.
  absl::Status Use(Texts texts);

  const std::string token_file_, identity_file_, access_key_file_;
  const bool certificates_;
  const bool audit_required_;
  const Log log_;
  rest::Counter& failures_;
  rest::Gauge& stale_;
  Texts texts_;          // in force
  std::string trouble_;  // told last
  std::shared_ptr<AccessControl> access_;
  std::unique_ptr<AuditFile> audit_file_;
  Mutex mutex_;
  std::shared_ptr<const AccessKeys> access_keys_ ABSL_GUARDED_BY(mutex_);  // null: no file
  CondVar end_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tahoma::controller
