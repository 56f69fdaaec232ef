// A folder that exists as long as the value does.
//
//   TempDir dir;
//   controller::Store::Open({.dir = dir.path() + "/store"});
//
// Thread safety: path() from any thread.

#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "lib/base/check.h"

namespace tahoma::testing {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tahoma-XXXXXX").string();
    TAHOMA_CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tahoma::testing
