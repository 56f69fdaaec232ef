#include "dra-plugin/claims/posix_files.h"

#include <filesystem>

#include "lib/base/files.h"
#include "lib/base/status.h"

namespace tahoma::dra {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

}  // namespace

absl::StatusOr<std::unique_ptr<PosixFiles>> PosixFiles::Open(std::string folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FailedPrecondition("{}: cannot make the folder: {}", folder, error.message());
  return std::unique_ptr<PosixFiles>(new PosixFiles(std::move(folder)));
}

std::string PosixFiles::PathOf(std::string_view name) const {
  return fmt::format("{}/{}", folder_, name);
}

absl::StatusOr<std::optional<std::string>> PosixFiles::Read(std::string_view name) {
  absl::StatusOr<std::string> bytes = ReadFile(PathOf(name), kMaxBytes);
  if (absl::IsNotFound(bytes.status())) return std::optional<std::string>();
  if (!bytes.ok()) return bytes.status();
  return std::optional<std::string>(*std::move(bytes));
}

absl::Status PosixFiles::Write(std::string_view name, std::string_view bytes) {
  return WriteAtomically(PathOf(name), bytes, 0600);
}

absl::Status PosixFiles::Remove(std::string_view name) { return RemoveDurably(PathOf(name)); }

absl::StatusOr<std::vector<std::string>> PosixFiles::List() {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return Unavailable("{}: cannot list the folder: {}", folder_, error.message());
  return names;
}

}  // namespace tahoma::dra
