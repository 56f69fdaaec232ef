#include "controller/store/log_check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "controller/core/journal/entry_form.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kBlock = 32'768;
constexpr std::size_t kHeader = 7;  // checksum 4, length 2, type 1
constexpr std::size_t kRecordHead = 12;
enum Type : unsigned char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

std::uint64_t LittleEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8U | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

// Returns a checksum in RocksDB's stored form: masked, because text may contain checksums itself.
std::uint32_t Masked(std::uint32_t crc) { return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U; }

struct Fragment {
  unsigned char type = 0;
  std::string_view payload;
};

// Returns the fragment at `at`; nullopt when none can be read there.
std::optional<Fragment> FragmentAt(std::string_view log, std::size_t at) {
  const std::size_t room = std::min(log.size(), (at / kBlock + 1) * kBlock) - at;
  if (room < kHeader) return std::nullopt;
  const std::size_t length = LittleEndian(log.substr(at + 4, 2));
  const auto type = static_cast<unsigned char>(log[at + 6]);
  if (type < kFull || type > kLast || kHeader + length > room) return std::nullopt;
  if (Masked(Crc32c(log.substr(at + 6, 1 + length))) != LittleEndian(log.substr(at, 4))) {
    return std::nullopt;
  }
  return Fragment{type, log.substr(at + kHeader, length)};
}

// Skips the rest of a block when it is too short for a header: RocksDB leaves it unused.
std::size_t SkipPadding(std::size_t at) {
  const std::size_t left = kBlock - at % kBlock;
  return left < kHeader ? at + left : at;
}

// Returns whether a record begins at `at` or behind, anywhere in a block.
bool AnyRecordBehind(std::string_view log, std::size_t at) {
  while (at < log.size()) {
    const std::optional<Fragment> fragment = FragmentAt(log, at);
    if (!fragment) {
      ++at;
    } else if (fragment->type == kFull || fragment->type == kFirst) {
      return true;
    } else {
      at = SkipPadding(at + kHeader + fragment->payload.size());
    }
  }
  return false;
}

// A file's bytes, as long as the value lives.
class Mapped {
 public:
  static absl::StatusOr<Mapped> Open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat found = {};
    if (fd < 0 || ::fstat(fd, &found) != 0) {
      const int error = errno;
      if (fd >= 0) ::close(fd);
      return Unavailable("{}: cannot be read: {}", path, std::strerror(error));
    }
    Mapped mapped;
    mapped.size_ = static_cast<std::size_t>(found.st_size);
    if (mapped.size_ > 0) {
      void* bytes = ::mmap(nullptr, mapped.size_, PROT_READ, MAP_PRIVATE, fd, 0);
      const int error = errno;
      if (bytes != MAP_FAILED) mapped.bytes_ = static_cast<const char*>(bytes);
      ::close(fd);
      if (bytes == MAP_FAILED) {
        return Unavailable("{}: cannot be read: {}", path, std::strerror(error));
      }
    } else {
      ::close(fd);
    }
    return mapped;
  }
  Mapped(Mapped&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapped& operator=(Mapped&&) = delete;
  ~Mapped() {
    if (bytes_ != nullptr) ::munmap(const_cast<char*>(bytes_), size_);
  }
  std::string_view text() const { return {bytes_, size_}; }

 private:
  Mapped() = default;
  const char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

// Returns the folder's logs in the order of their numbers.
absl::StatusOr<std::vector<std::filesystem::path>> LogsOf(const std::string& dir) {
  std::vector<std::pair<std::uint64_t, std::filesystem::path>> logs;
  std::error_code error;
  for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    std::uint64_t number = 0;
    const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (wrong != std::errc() || std::string_view(rest) != ".log") continue;
    logs.emplace_back(number, at->path());
  }
  if (error) return Unavailable("cannot list the store's folder {}: {}", dir, error.message());
  std::sort(logs.begin(), logs.end());
  std::vector<std::filesystem::path> paths;
  for (auto& [number, path] : logs) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

LogEnd ReadLog(std::string_view log, const std::function<void(const LogRecord&)>& visit) {
  LogEnd end;
  std::string joined;  // the fragments of the record so far
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t at = SkipPadding(0); at < log.size();) {
    const std::optional<Fragment> fragment = FragmentAt(log, at);
    const bool starts = fragment && (fragment->type == kFull || fragment->type == kFirst);
    if (!fragment || starts == inside) {
      end.clean = false;
      end.goes_on = AnyRecordBehind(log, at);
      return end;
    }
    if (starts) begin = at;
    // Only the record's head is needed; two fragments may share it.
    if (starts) joined.clear();
    joined += fragment->payload.substr(0, kRecordHead);
    at = SkipPadding(at + kHeader + fragment->payload.size());
    inside = fragment->type == kFirst || fragment->type == kMiddle;
    if (inside) continue;
    if (joined.size() >= kRecordHead) {
      const std::string_view head = joined;
      visit({begin, std::min(at, log.size()), LittleEndian(head.substr(0, 8)),
             static_cast<std::uint32_t>(LittleEndian(head.substr(8, 4)))});
    }
    end.whole = std::min(at, log.size());
  }
  end.clean = !inside;
  return end;
}

absl::StatusOr<LogsFound> CheckLogs(const std::string& dir) {
  TAHOMA_ASSIGN_OR_RETURN(const auto paths, LogsOf(dir));
  LogsFound found;
  std::optional<std::uint64_t> next;  // sequence
  for (const std::filesystem::path& path : paths) {
    TAHOMA_ASSIGN_OR_RETURN(const Mapped log, Mapped::Open(path));
    found.bytes += log.text().size();
    absl::Status gap;
    const LogEnd end = ReadLog(log.text(), [&](const LogRecord& record) {
      if (next && record.sequence > *next && gap.ok()) {
        gap = DataLoss("{}: the changes {} to {} are missing before byte {}", path.string(), *next,
                       record.sequence - 1, record.begin);
      }
      next = record.sequence + record.changes;
    });
    TAHOMA_RETURN_IF_ERROR(gap);
    if (end.clean) continue;
    if (end.goes_on) {
      return DataLoss("{} cannot be read from byte {} on, and whole commits follow", path.string(),
                      end.whole);
    }
    found.tails.push_back({path, end.whole, log.text().size() - end.whole});
  }
  if (next) found.last_sequence = *next - 1;
  return found;
}

absl::Status CutTails(const LogsFound& found) {
  for (const LogsFound::Tail& tail : found.tails) {
    const int fd = ::open(tail.path.c_str(), O_WRONLY | O_CLOEXEC);
    const bool cut =
        fd >= 0 && ::ftruncate(fd, static_cast<off_t>(tail.whole)) == 0 && ::fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (!cut) {
      return Unavailable("{}: the unfinished write at its end cannot be cut off: {}", tail.path,
                         std::strerror(error));
    }
  }
  return absl::OkStatus();
}

absl::Status CutBehind(const std::string& dir, std::uint64_t acknowledged) {
  TAHOMA_ASSIGN_OR_RETURN(const auto paths, LogsOf(dir));
  LogsFound behind;
  for (const std::filesystem::path& path : paths) {
    TAHOMA_ASSIGN_OR_RETURN(const Mapped log, Mapped::Open(path));
    std::optional<std::uint64_t> first;  // the first record behind `acknowledged`
    ReadLog(log.text(), [&](const LogRecord& record) {
      if (record.sequence > acknowledged && !first) first = record.begin;
    });
    if (first) behind.tails.push_back({path, *first, log.text().size() - *first});
  }
  return CutTails(behind);
}

absl::Status CheckManifest(const std::string& path, std::uint64_t acknowledged) {
  TAHOMA_ASSIGN_OR_RETURN(const Mapped manifest, Mapped::Open(path));
  const LogEnd end = ReadLog(manifest.text(), [](const LogRecord&) {});
  if (end.goes_on) {
    return DataLoss("{} cannot be read from byte {} on, and whole records follow", path, end.whole);
  }
  if (end.whole >= acknowledged) return absl::OkStatus();
  return DataLoss("{} cannot be read from byte {} on, but {} bytes of it had been acknowledged",
                  path, end.whole, acknowledged);
}

}  // namespace tahoma::controller
