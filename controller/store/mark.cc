#include "controller/store/mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "controller/core/journal/entry_form.h"
#include "lib/base/files.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kHead = "tahoma-store-mark 1\n";

// Returns a text of constant length: it is replaced in place, within a sector of the disk.
std::string TextOf(const Mark& mark) {
  std::string text = fmt::format("{}sequence {:020}\nmanifest {:020} {:020}\n", kHead,
                                 mark.sequence, mark.manifest, mark.manifest_bytes);
  return text + fmt::format("crc32c {:08x}\n", Crc32c(text));
}

std::uint64_t NumberAt(std::string_view text, std::string_view word) {
  std::uint64_t number = 0;
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

}  // namespace

absl::StatusOr<std::optional<Mark>> ReadMark(const std::string& dir) {
  const std::string path = dir + "/" + kMarkName;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return std::optional<Mark>();
  if (!text.ok()) return text.status();
  Mark mark{.sequence = NumberAt(*text, "sequence "), .manifest = NumberAt(*text, "manifest ")};
  constexpr std::size_t kDigits = 20;
  const std::size_t manifest = text->find("manifest ");
  if (manifest != std::string::npos && text->size() > manifest + 10 + kDigits) {
    mark.manifest_bytes = NumberAt(std::string_view(*text).substr(manifest + 9 + kDigits), " ");
  }
  // The comparison covers the checksum, too.
  if (TextOf(mark) != *text) return DataLoss("{} is damaged", path);
  return std::optional<Mark>(mark);
}

absl::StatusOr<MarkFile> MarkFile::Open(const std::string& dir, const Mark& mark) {
  const std::string path = dir + "/" + kMarkName;
  TAHOMA_RETURN_IF_ERROR(WriteAtomically(path, TextOf(mark), 0600));
  MarkFile file;
  file.fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file.fd_ < 0) return Unavailable("{}: cannot be opened: {}", path, std::strerror(errno));
  return file;
}

MarkFile::MarkFile(MarkFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
MarkFile& MarkFile::operator=(MarkFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
MarkFile::~MarkFile() {
  if (fd_ >= 0) ::close(fd_);
}

void MarkFile::Note(const Mark& mark) {
  if (fd_ < 0) return;
  const std::string text = TextOf(mark);
  (void)!::pwrite(fd_, text.data(), text.size(), 0);
}

absl::StatusOr<Mark> ManifestOf(const std::string& dir) {
  const absl::StatusOr<std::string> current = ReadFile(dir + "/CURRENT");
  if (!current.ok()) return current.status();
  constexpr std::string_view kPrefix = "MANIFEST-";
  Mark mark;
  std::string_view name = *current;
  if (name.ends_with('\n')) name.remove_suffix(1);
  const std::string_view digits = name.substr(std::min(name.size(), kPrefix.size()));
  const auto [rest, wrong] =
      std::from_chars(digits.data(), digits.data() + digits.size(), mark.manifest);
  if (!name.starts_with(kPrefix) || wrong != std::errc() || rest != digits.data() + digits.size()) {
    return DataLoss("{}/CURRENT does not name a manifest", dir);
  }
  std::error_code error;
  mark.manifest_bytes = std::filesystem::file_size(fmt::format("{}/{}", dir, name), error);
  if (error) return DataLoss("{}/{}, which CURRENT names: {}", dir, name, error.message());
  return mark;
}

}  // namespace tahoma::controller
