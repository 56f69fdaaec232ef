// A file of audit lines that outlives a full disk and a rotation.
//
// Lines are appended as they come, without a sync: a crash of the machine may take the last ones, a
// crash of the program none. Lines that cannot be written wait in memory, in order, up to 1 MiB;
// lines beyond that are counted and lost. Half a line is finished before the next begins. When the
// file has been renamed or removed, as log rotation does, the next Poll makes a new one.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/mutex.h"
#include "lib/rest/metrics.h"

namespace tahoma::controller {

class AuditFile {
 public:
  // Writes bytes to the file; as write(2).
  using Write = std::function<long(int fd, const char* bytes, std::size_t size)>;
  using Log = std::function<void(const std::string& line)>;

  // Makes the file (mode 0600) or goes on at its end. `metrics` must outlive it. `write` is for
  // tests; empty: write(2).
  static absl::StatusOr<std::unique_ptr<AuditFile>> Open(const std::string& path,
                                                         rest::Metrics& metrics, Log log,
                                                         Write write = {});
  ~AuditFile();
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;

  void Append(std::string_view line);
  void Poll();
  // False while lines wait that could not be written; tries once more before it says so.
  bool Writable();

 private:
  AuditFile(std::string path, int fd, rest::Metrics& metrics, Log log, Write write);
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const Log log_;
  const Write write_;
  rest::Counter& failures_;
  rest::Counter& lost_;
  Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_);
  std::string waiting_ ABSL_GUARDED_BY(mutex_);  // from the first byte that is not in the file
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma::controller
