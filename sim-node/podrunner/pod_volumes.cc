#include "sim-node/podrunner/pod_volumes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/podrunner/pod_users.h"

namespace tahoma::sim {
namespace {

namespace fs = std::filesystem;

// An API server takes objects of 1.5 MiB; a volume may be of several.
constexpr std::size_t kVolumeBytesMost = 32UL << 20U;
constexpr fs::perms kOpenToAll = fs::perms::all;

// Returns whether the text is a path that stays below its folder, by Kubernetes' rule for the paths
// of keys.
bool IsPathBelow(const std::string& text) {
  const fs::path path(text);
  if (text.empty() || path.is_absolute() || text.starts_with("..")) return false;
  if (text.find('\0') != std::string::npos || text.back() == '/') return false;
  return std::ranges::none_of(
      path, [](const fs::path& part) { return part.empty() || part == "." || part == ".."; });
}

absl::Status MakeFolder(const fs::path& folder, fs::perms mode) {
  std::error_code error;
  if (fs::create_directories(folder, error)) fs::permissions(folder, mode, error);
  if (error) return Unavailable("{}: {}", folder.string(), error.message());
  return absl::OkStatus();
}

// Returns the path without links. Makes a missing folder if its type allows that.
absl::StatusOr<std::string> HostPath(const std::string& path, const std::string& type,
                                     bool may_make) {
  if (!fs::path(path).is_absolute()) return InvalidArgument("host path {} is not absolute", path);
  std::error_code error;
  if (!fs::exists(path, error)) {
    const bool is_file = type == "FileOrCreate";
    if (!is_file && !type.empty() && type != "DirectoryOrCreate") {
      return NotFound("hostPath type check failed: {} is not a {}", path, type);
    }
    if (!may_make) {
      return NotFound("host path {} does not exist, and a pod with a user of its own makes none",
                      path);
    }
    if (is_file) {
      std::ofstream(path, std::ios::app).close();
    } else {
      // Closed to others by the folder above, a volume is open to each pod that mounts it.
      const bool is_closed = (fs::status(fs::path(path).parent_path(), error).permissions() &
                              fs::perms::others_exec) == fs::perms::none;
      constexpr auto kUsual = static_cast<fs::perms>(0755);
      TAHOMA_RETURN_IF_ERROR(MakeFolder(path, is_closed ? kOpenToAll : kUsual));
    }
  }
  const bool wants_folder = type.starts_with("Directory");
  const bool wants_file = type.starts_with("File");
  if ((wants_folder && !fs::is_directory(path, error)) ||
      (wants_file && !fs::is_regular_file(path, error))) {
    return FailedPrecondition("hostPath type check failed: {} is not a {}", path,
                              wants_folder ? "directory" : "file");
  }
  const fs::path real = fs::canonical(path, error);
  if (error) return Unavailable("host path {}: {}", path, error.message());
  return real.string();
}

}  // namespace

fs::path MemoryFolder(const std::string& pod_uid) {
  const fs::path ours = fmt::format("/dev/shm/tahoma-{}", geteuid());
  struct stat found = {};
  if (mkdir(ours.c_str(), 0700) != 0 && errno != EEXIST) return {};
  if (lstat(ours.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid()) {
    return {};
  }
  return ours / pod_uid;
}

absl::StatusOr<std::vector<VolumeBind>> PodVolumes::For(const PodSpec& pod,
                                                        const std::string& container,
                                                        const Environment& environment) const {
  std::vector<VolumeBind> binds;
  const auto mounts = pod.mounts.find(container);
  if (mounts == pod.mounts.end()) return binds;
  for (const MountSpec& mount : mounts->second) {
    const auto volume = std::ranges::find(pod.volumes, mount.volume, &VolumeSpec::name);
    if (volume == pod.volumes.end()) {
      return NotFound("volumeMounts: there is no volume {}", mount.volume);
    }
    if (volume->kind == VolumeSpec::Kind::kUnsupported) continue;
    absl::StatusOr<VolumeBind> bind = Make(*volume, container);
    if (!bind.ok() && volume->IsAutomatic()) continue;
    if (!bind.ok()) return Annotate(bind.status(), "volume " + volume->name);
    if (bind->source.empty()) continue;
    bind->target = mount.path;
    bind->sub_path = mount.expands ? Expand(mount.sub_path, environment) : mount.sub_path;
    bind->read_only = bind->read_only || mount.read_only;
    binds.push_back(*std::move(bind));
  }
  return binds;
}

absl::StatusOr<VolumeBind> PodVolumes::Make(const VolumeSpec& volume,
                                            const std::string& container) const {
  TAHOMA_RETURN_IF_ERROR(MakeFolder(folder_, fs::perms::owner_all));
  switch (volume.kind) {
    case VolumeSpec::Kind::kEmpty:
      return MakeEmpty(volume);
    case VolumeSpec::Kind::kClaim:
      return MakeOfClaim(volume);
    case VolumeSpec::Kind::kHostPath:
      return MakeOfHost(volume);
    case VolumeSpec::Kind::kFiles:
      return MakeFiles(volume, container);
    case VolumeSpec::Kind::kUnsupported:
      break;
  }
  return VolumeBind();
}

absl::Status PodVolumes::Give(const fs::path& path) const {
  if (!user_ || lchown(path.c_str(), *user_, *user_) == 0) return absl::OkStatus();
  return Unavailable("{} cannot become user {}'s: {}", path.string(), *user_, std::strerror(errno));
}

absl::StatusOr<VolumeBind> PodVolumes::MakeEmpty(const VolumeSpec& volume) const {
  const bool in_memory = volume.in_memory && !memory_.empty();
  if (in_memory) TAHOMA_RETURN_IF_ERROR(MakeFolder(memory_, fs::perms::owner_all));
  const fs::path folder = (in_memory ? memory_ : folder_) / volume.name;
  TAHOMA_RETURN_IF_ERROR(MakeFolder(folder, kOpenToAll));
  TAHOMA_RETURN_IF_ERROR(Give(folder));
  return VolumeBind{.source = folder};
}

absl::StatusOr<VolumeBind> PodVolumes::MakeOfClaim(const VolumeSpec& volume) const {
  TAHOMA_ASSIGN_OR_RETURN(const HostVolume host, ports_.find_claim(volume.what));
  if (host.path.empty()) return VolumeBind();
  TAHOMA_ASSIGN_OR_RETURN(std::string path, HostPath(host.path, host.path_type, true));
  return VolumeBind{.source = std::move(path), .read_only = volume.read_only, .owned = true};
}

absl::StatusOr<VolumeBind> PodVolumes::MakeOfHost(const VolumeSpec& volume) const {
  TAHOMA_ASSIGN_OR_RETURN(std::string path,
                          HostPath(volume.what, volume.path_type, !user_.has_value()));
  if (!user_) return VolumeBind{.source = std::move(path)};
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const fs::path closed =
      ClosedTo(*user_, is_folder ? fs::path(path) : fs::path(path).parent_path());
  if (closed.empty()) return VolumeBind{.source = std::move(path), .chosen = true};
  return PermissionDenied("host path {}: the pod's user {} cannot enter {}", volume.what, *user_,
                          closed.string());
}

absl::Status PodVolumes::AddFiles(const FileSource& source, int mode, Files& files) const {
  const auto add = [&](const KeyFile& file, std::string text) -> absl::Status {
    if (!IsPathBelow(file.path)) return InvalidArgument("path \"{}\" leaves the volume", file.path);
    files[file.path] = {std::move(text), file.mode.value_or(mode)};
    return absl::OkStatus();
  };
  if (source.kind == FileSource::Kind::kUnsupported) {
    return InvalidArgument("sources of {} are not known here", source.object);
  }
  if (source.kind == FileSource::Kind::kToken || source.kind == FileSource::Kind::kFields) {
    for (const KeyFile& file : source.files) {
      absl::StatusOr<std::string> text =
          source.kind == FileSource::Kind::kToken ? ports_.token(source) : ports_.field(file.key);
      if (!text.ok()) return Annotate(text.status(), file.path);
      TAHOMA_RETURN_IF_ERROR(add(file, *std::move(text)));
    }
    return absl::OkStatus();
  }
  const bool is_map = source.kind == FileSource::Kind::kConfigMap;
  const auto entries =
      ports_.read(is_map ? KeyedObject::kConfigMap : KeyedObject::kSecret, source.object);
  if (!entries.ok()) {
    return source.optional && absl::IsNotFound(entries.status()) ? absl::OkStatus()
                                                                 : entries.status();
  }
  if (source.files.empty()) {
    for (const auto& [key, text] : *entries) {
      if (key.find('/') != std::string::npos) return InvalidArgument("key \"{}\" is no file", key);
      TAHOMA_RETURN_IF_ERROR(add({.key = key, .path = key}, text));
    }
    return absl::OkStatus();
  }
  for (const KeyFile& file : source.files) {
    const auto found = entries->find(file.key);
    if (found != entries->end()) {
      TAHOMA_RETURN_IF_ERROR(add(file, found->second));
    } else if (!source.optional) {
      return NotFound("references non-existent {} key: {}", is_map ? "config" : "secret", file.key);
    }
  }
  return absl::OkStatus();
}

absl::Status PodVolumes::Write(const Files& files, const fs::path& folder) const {
  TAHOMA_RETURN_IF_ERROR(MakeFolder(folder, static_cast<fs::perms>(0755)));
  for (const auto& [path, file] : files) {
    const fs::path place = folder / path;
    for (fs::path above = place.parent_path(); above != folder; above = above.parent_path()) {
      TAHOMA_RETURN_IF_ERROR(MakeFolder(above, static_cast<fs::perms>(0755)));
    }
    std::ofstream out(place, std::ios::binary | std::ios::trunc);
    out << file.first;
    out.close();
    if (!out) return Unavailable("{} cannot be written", place.string());
    std::error_code error;
    fs::permissions(place, static_cast<fs::perms>(file.second), error);
    TAHOMA_RETURN_IF_ERROR(Give(place));
  }
  return absl::OkStatus();
}

absl::StatusOr<VolumeBind> PodVolumes::MakeFiles(const VolumeSpec& volume,
                                                 const std::string& container) const {
  const fs::path folder = folder_ / volume.name;
  std::error_code error;
  if (fs::exists(folder, error)) return VolumeBind{.source = folder, .read_only = true};
  Files files;
  for (const FileSource& source : volume.sources) {
    TAHOMA_RETURN_IF_ERROR(AddFiles(source, volume.mode, files));
  }
  std::size_t bytes = 0;
  for (const auto& [path, file] : files) bytes += file.first.size();
  if (bytes > kVolumeBytesMost) {
    return InvalidArgument("has {} bytes; a volume of files has at most {}", bytes,
                           kVolumeBytesMost);
  }
  // Another container of the pod may do the same: the first that is done has made the volume.
  const fs::path half = folder_ / fmt::format("{}_{}", volume.name, container);
  fs::remove_all(half, error);
  TAHOMA_RETURN_IF_ERROR(Write(files, half));
  fs::rename(half, folder, error);
  if (error && !fs::exists(folder)) return Unavailable("{}: {}", folder.string(), error.message());
  fs::remove_all(half, error);
  return VolumeBind{.source = folder, .read_only = true};
}

}  // namespace tahoma::sim
