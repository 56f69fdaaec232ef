// Whether a data folder is whole: `controller --check DIR`.
//
// Nothing in the folder is changed, and nobody may have it open. The mark, the manifest, the logs,
// every block of every table, every object and record are read, and the journal is compared with
// the objects.
//
// Thread safety: free functions; RunCheckCommand is a program's main.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tahoma::controller {

struct FolderReport {
  std::vector<std::string> wrong;  // each a thing that is wrong, and what to do
  std::string found;               // one line about a folder that is whole
};
FolderReport CheckDataFolder(const std::string& dir);

// The status to end with when the command line begins with --check, else nothing: 0 when the folder
// is whole, 1 when it is not, 2 when the command line is wrong.
std::optional<int> RunCheckCommand(int argc, const char* const* argv);

}  // namespace tahoma::controller
