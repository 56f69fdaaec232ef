// `controller backup` and `controller restore`:
//
//   controller backup --admin-url http://127.0.0.1:8002 FILE    # of a controller that runs
//   controller backup --data-dir /var/lib/tahoma FILE           # of one that does not
//   controller restore FILE --data-dir /var/lib/tahoma-new
//
// Scope: command lines, files and the transport; backup.h makes and reads the text.
//
// Thread safety: none; a program's main.

#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "controller/admin/route_table.h"
#include "controller/store/store.h"

namespace tahoma::controller {

// The status to end with when the command line is one of the two, else nothing.
std::optional<int> RunBackupCommand(int argc, const char* const* argv);

// GET /v1/backup: the backup as it is made, line by line. It holds every Secret, so each call has a
// line in the audit, written before the first byte goes. `store` must outlive it.
Route BackupRoute(const Store& store);

}  // namespace tahoma::controller
