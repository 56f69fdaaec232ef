// The edits that prepared devices make to a container, from the CDI specs of a plugin.
//
// A container here is a local process: the process gets the variables, and mounts where it has a
// root of its own (container_root.h); device nodes and hooks do not apply.
//
// Scope: CDI specs up to 0.8 in JSON (container-device-interface SPEC.md).
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sim-node/podrunner/container_root.h"

namespace tahoma::sim {

inline constexpr std::size_t kMaxCdiSpecBytes = 1 << 20;
inline constexpr std::size_t kMaxCdiSpecs = 4096;

struct CdiEdits {
  std::vector<std::pair<std::string, std::string>> env{};  // name, value; the last value wins
  std::vector<BoundFile> mounts{};                         // their sources must exist
  std::vector<std::string> not_applied{};                  // "deviceNodes", "hooks", …
};

// `ids` are "vendor/class=name". kNotFound names the id that no spec in `folder` has;
// kInvalidArgument names an unreadable file (unknown fields included), or a file that repeats
// another file's device.
absl::StatusOr<CdiEdits> ReadCdi(const std::filesystem::path& folder,
                                 const std::vector<std::string>& ids);

}  // namespace tahoma::sim
