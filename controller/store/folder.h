// Makes a store's folder private, and checks for losses before RocksDB opens the folder.
//
//   TAHOMA_RETURN_IF_ERROR(MakePrivate(dir, notes));
//   TAHOMA_ASSIGN_OR_RETURN(const FolderFound found, CheckFolder(dir, guarded));
//   if (found.is_new) …
//
// Neither function changes the content of a store.
//
// Scope: the folder as files; docs/formats/store.md lists the losses that are noticed, and those
// that cannot be.
//
// Thread safety: plain functions.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "controller/store/log_check.h"
#include "controller/store/mark.h"

namespace tahoma::controller {

// Makes the folder when there is none. The owner alone can then read the folder and everything
// inside. Where the system refuses this (another user owns the folder), adds a line to `notes`.
absl::Status MakePrivate(const std::string& dir, std::vector<std::string>& notes);

struct FolderFound {
  bool is_new = false;       // the folder holds no store
  std::optional<Mark> mark;  // of the last run, if the run left a mark
  LogsFound logs;
};

// Inspects the folder. kDataLoss when files of a store are missing, or with `guarded` when the
// folder is empty but had a store; the message names the missing files.
absl::StatusOr<FolderFound> CheckFolder(const std::string& dir, bool guarded);

// Returns the path of the guard: a file beside the folder which records that the folder had a
// store.
std::string GuardOf(const std::string& dir);
absl::Status WriteGuard(const std::string& dir);

}  // namespace tahoma::controller
