// Makes a store's folder private, and checks before RocksDB opens it that it has lost nothing.
//
//   TAHOMA_RETURN_IF_ERROR(MakePrivate(dir, notes));
//   TAHOMA_ASSIGN_OR_RETURN(const FolderFound found, CheckFolder(dir, guarded));
//   if (found.is_new) …
//
// Nothing here changes what a store holds.
//
// Scope: the folder as files; docs/formats/store.md has what is noticed and what cannot be.
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

// Makes the folder when there is none. The folder and all in it become the owner's alone; where the
// system refuses that (the folder is another user's), a line in `notes` says so.
absl::Status MakePrivate(const std::string& dir, std::vector<std::string>& notes);

struct FolderFound {
  bool is_new = false;       // there is no store in it
  std::optional<Mark> mark;  // of the last run, where it left one
  LogsFound logs;
};

// kDataLoss when files of a store are missing, or with `guarded` when the folder is empty but had a
// store; the message says what is missing.
absl::StatusOr<FolderFound> CheckFolder(const std::string& dir, bool guarded);

// The file beside the folder that says that there was a store in it.
std::string GuardOf(const std::string& dir);
absl::Status WriteGuard(const std::string& dir);

}  // namespace tahoma::controller
