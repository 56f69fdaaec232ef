// Makes a store's folder private, and checks before RocksDB opens it that it has lost nothing.
//
//   TAHOMA_RETURN_IF_ERROR(MakePrivate(dir, notes));
//   TAHOMA_ASSIGN_OR_RETURN(const FolderFound found, CheckFolder(dir, guarded));
//   if (found.is_new) …
//
// Neither function changes what a store holds.
//
// Scope: the folder as files; docs/formats/store.md lists which losses are noticed and which cannot
// be.
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

// Makes the folder when there is none. The folder and everything in it become readable by the owner
// alone; where the system refuses that (the folder is another user's), a line in `notes` says so.
absl::Status MakePrivate(const std::string& dir, std::vector<std::string>& notes);

struct FolderFound {
  bool is_new = false;       // it holds no store
  std::optional<Mark> mark;  // the last run's, where it left one
  LogsFound logs;
};

// Finds out what the folder holds. kDataLoss when files of a store are missing, or with `guarded`
// when the folder is empty but had a store; the message says what is missing.
absl::StatusOr<FolderFound> CheckFolder(const std::string& dir, bool guarded);

// Returns the path of the file beside the folder that records that there was a store in it.
std::string GuardOf(const std::string& dir);
absl::Status WriteGuard(const std::string& dir);

}  // namespace tahoma::controller
