// Reading and writing the small files that the controller is configured with.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace tahoma::controller {

// kNotFound or kPermissionDenied with the path and the system's reason; kInvalidArgument for more
// than 4 MiB, which none of our files has.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// The file's only line, without white space around it. kInvalidArgument when it is empty.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// Replaces the file as a whole, readable by its owner only.
absl::Status WriteFile(const std::string& path, std::string_view text);

}  // namespace tahoma::controller
