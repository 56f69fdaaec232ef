#include "sim-node/podrunner/container_root.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace tahoma::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDevices = "/dev";
// The entries of /dev in a container (OCI runtime-spec config-linux.md, default devices and
// filesystems).
constexpr std::array<std::string_view, 12> kDeviceEntries = {"null",    "zero",   "full", "random",
                                                             "urandom", "tty",    "ptmx", "pts",
                                                             "shm",     "mqueue", "fd",   "log"};
constexpr std::array<std::string_view, 3> kStandardStreams = {"stdin", "stdout", "stderr"};

bool IsListed(const std::string& folder, const std::string& name) {
  return folder != kDevices || std::ranges::find(kDeviceEntries, name) != kDeviceEntries.end() ||
         std::ranges::find(kStandardStreams, name) != kStandardStreams.end();
}

}  // namespace

bool ContainerRoot::IsThere(const std::string& path) const {
  std::error_code error;
  const bool covered =
      path.starts_with(std::string(kDevices) + "/") && own_folders_.contains(std::string(kDevices));
  if (!covered && fs::exists(path, error)) return true;
  return std::ranges::any_of(steps_, [&](const Step& step) { return step.path == path; });
}

void ContainerRoot::Cover(const std::string& folder) {
  steps_.push_back({.what = Do::kCover, .path = folder});
  own_folders_.insert(folder);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const std::string path = entry.path();
    if (!IsListed(folder, name)) continue;
    if (entry.is_symlink(error)) {
      steps_.push_back({.what = Do::kLink, .path = path, .source = fs::read_symlink(path, error)});
      continue;
    }
    const bool is_folder = entry.is_directory(error);
    steps_.push_back({.what = is_folder ? Do::kFolder : Do::kFile, .path = path});
    steps_.push_back({.what = Do::kBindTree, .path = path, .source = name});
  }
}

// Makes the file or folder that something is bound on, with the folders above.
void ContainerRoot::MakePlace(const std::string& target, bool is_folder) {
  if (IsThere(target)) return;
  std::vector<std::string> missing;
  fs::path above = fs::path(target).parent_path();
  for (; !IsThere(above) && above.has_relative_path(); above = above.parent_path()) {
    missing.push_back(above);
  }
  if (!own_folders_.contains(above)) Cover(above);
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
    steps_.push_back({.what = Do::kFolder, .path = *folder});
    own_folders_.insert(*folder);
  }
  steps_.push_back({.what = is_folder ? Do::kFolder : Do::kFile, .path = target});
}

ContainerRoot ContainerRoot::Plan(const std::vector<BoundFile>& files) {
  ContainerRoot root;
  const bool devices = std::ranges::any_of(files, [](const BoundFile& file) {
    return file.target.starts_with(std::string(kDevices) + "/");
  });
  if (devices) root.Cover(std::string(kDevices));
  for (const BoundFile& file : files) {
    std::error_code error;
    if (file.source == file.target || !fs::exists(file.source, error)) continue;
    if (!fs::path(file.target).is_absolute()) continue;
    root.MakePlace(file.target, fs::is_directory(file.source, error));
    root.steps_.push_back({.what = Do::kBind, .path = file.target, .source = file.source});
  }
  return root;
}

bool ContainerRoot::Run(const Step& step) {
  constexpr mode_t kFolderMode = 0755;
  constexpr mode_t kFileMode = 0644;
  const char* const path = step.path.c_str();
  const char* const source = step.source.c_str();
  switch (step.what) {
    case Do::kCover:
      // The folder beneath stays reachable as the working directory.
      return chdir(path) == 0 && mount("tahoma", path, "tmpfs", MS_NOSUID, "mode=755,size=1m") == 0;
    case Do::kFolder:
      return mkdir(path, kFolderMode) == 0 || errno == EEXIST;
    case Do::kFile: {
      const int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, kFileMode);
      return file >= 0 && close(file) == 0;
    }
    case Do::kLink:
      return symlink(source, path) == 0;
    case Do::kBind:
      return mount(source, path, nullptr, MS_BIND, nullptr) == 0;
    case Do::kBindTree:
      return mount(source, path, nullptr, MS_BIND | MS_REC, nullptr) == 0;
  }
  return false;
}

bool ContainerRoot::Enter() const {
  if (empty() || unshare(CLONE_NEWNS) != 0) return true;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return true;
  const mode_t mask = umask(0);
  const bool made = std::ranges::all_of(steps_, Run);
  umask(mask);
  return made;
}

}  // namespace tahoma::sim
