// Files in a folder of this machine.
//
//   absl::StatusOr<std::unique_ptr<PosixFiles>> files = PosixFiles::Open("/var/run/cdi");
//
// Files are written by WriteAtomically (lib/base/files.h) with mode 0600.
//
// Thread safety: different names may be written at the same time.

#pragma once

#include <memory>
#include <string>

#include "dra-plugin/claims/files.h"

namespace tahoma::dra {

class PosixFiles final : public Files {
 public:
  // Makes the folder (and its parents) when it is not there.
  static absl::StatusOr<std::unique_ptr<PosixFiles>> Open(std::string folder);

  absl::StatusOr<std::optional<std::string>> Read(std::string_view name) override;
  absl::Status Write(std::string_view name, std::string_view bytes) override;
  absl::Status Remove(std::string_view name) override;
  absl::StatusOr<std::vector<std::string>> List() override;
  std::string PathOf(std::string_view name) const override;

 private:
  explicit PosixFiles(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
};

}  // namespace tahoma::dra
