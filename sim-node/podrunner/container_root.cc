#include "sim-node/podrunner/container_root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "lib/base/status.h"

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

// Bounds what a container opens at once.
constexpr std::size_t kVolumesMost = 128;
constexpr std::size_t kEntriesMost = 128;
// Any folder that every machine has: the container's own root is put together on it.
constexpr const char* kScratch = "/tmp";

// Resolves a path without leaving the folder, whatever links are in it.
int OpenBeneath(int folder, const char* path) {
  struct open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, folder, path, &how, sizeof how));
}

// Makes the missing folders of the path, and last a folder or a file, for the owner of
// the volume. A link is never followed on the way: a pod may have put it there.
absl::Status MakeBeneath(const VolumeBind& volume, const std::string& path, bool is_folder) {
  const std::string& base = volume.source;
  FileDescriptor at(open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat owner = {};
  if (at.get() < 0 || fstat(at.get(), &owner) != 0) {
    return Unavailable("{}: {}", base, std::strerror(errno));
  }
  if (FileDescriptor(OpenBeneath(at.get(), path.c_str())).get() >= 0) return absl::OkStatus();
  if (volume.chosen) return NotFound("{} in {}: {}", path, base, std::strerror(errno));
  const fs::path parts(path);
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    const bool is_last = std::next(part) == parts.end();
    if (part->empty() || *part == ".") continue;
    const char* name = part->c_str();
    if (is_last && !is_folder) {
      const FileDescriptor file(
          openat(at.get(), name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644));
      if (file.get() < 0) return Unavailable("{} in {}: {}", path, base, std::strerror(errno));
      (void)!fchown(file.get(), owner.st_uid, owner.st_gid);
      return absl::OkStatus();
    }
    const bool is_new = mkdirat(at.get(), name, 0755) == 0;
    if (!is_new && errno != EEXIST) {
      return Unavailable("{} in {}: {}", path, base, std::strerror(errno));
    }
    at = FileDescriptor(openat(at.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (at.get() < 0) return Unavailable("{} in {}: {}", path, base, std::strerror(errno));
    if (!is_new) continue;
    // By the descriptor: a pod may have put a link in the new folder's place.
    (void)!fchown(at.get(), owner.st_uid, owner.st_gid);
    (void)fchmod(at.get(), owner.st_mode & 0777);
  }
  return absl::OkStatus();
}

bool WriteAll(const char* file, const char* text) {
  const int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto size = static_cast<ssize_t>(std::strlen(text));
  const bool wrote = write(fd, text, static_cast<std::size_t>(size)) == size;
  close(fd);
  return wrote;
}

// Returns a user namespace with the maps of user_namespaces(7); -1 without the right. A process is
// needed for as long as the namespace has no descriptor; the process keeps no other descriptor of
// ours, because others of its kind would wait for the end of theirs.
int MakeOwners(const std::string& users, const std::string& groups) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    dup2(ends[1], 0);
    syscall(SYS_close_range, 1U, ~0U, 0U);
    if (unshare(CLONE_NEWUSER) == 0 && write(0, &byte, 1) == 1) (void)!read(0, &byte, 1);
    _exit(0);
  }
  close(ends[1]);
  int owners = -1;
  if (child > 0 && read(ends[0], &byte, 1) == 1) {
    const std::string folder = fmt::format("/proc/{}/", child);
    if (WriteAll((folder + "uid_map").c_str(), users.c_str()) &&
        WriteAll((folder + "gid_map").c_str(), groups.c_str())) {
      owners = open((folder + "ns/user").c_str(), O_RDONLY | O_CLOEXEC);
    }
  }
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return owners;
}

std::string NormalOf(const std::string& path) {
  std::string normal = fs::path(path).lexically_normal();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

bool IsBelow(const std::string& path, const std::string& folder) {
  return path.starts_with(folder == "/" ? folder : folder + "/");
}

// Returns the options of the folder that covers a folder of the machine: as open as that, and with
// room for files only where everybody may make some, as in /tmp.
std::string CoverOf(const std::string& folder) {
  struct stat found = {};
  if (stat(folder.c_str(), &found) != 0) found.st_mode = 0755;
  const bool is_everybodys = (found.st_mode & S_IWOTH) != 0;
  return fmt::format("mode={:o}{}", found.st_mode & 01777, is_everybodys ? "" : ",size=1m");
}

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
  const bool is_root = folder == "/";
  std::vector<Step>& steps = is_root ? entries_ : steps_;
  if (!is_root) steps.push_back({.what = Do::kCover, .path = folder, .source = CoverOf(folder)});
  own_folders_.insert(folder);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const std::string path = entry.path();
    if (!IsListed(folder, name)) continue;
    if (entry.is_symlink(error)) {
      steps.push_back({.what = Do::kLink, .path = path, .source = fs::read_symlink(path, error)});
      continue;
    }
    if (is_root && entries_.size() >= kEntriesMost) return;
    const bool is_folder = entry.is_directory(error);
    steps.push_back({.what = is_folder ? Do::kFolder : Do::kFile, .path = path});
    if (is_root) continue;
    steps.push_back({.what = Do::kBindTree, .path = path, .source = name});
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

const VolumeBind* ContainerRoot::Above(const std::string& path) const {
  const VolumeBind* deepest = nullptr;
  for (const Volume& volume : volumes_) {
    if (path != volume.bind.target && !IsBelow(path, volume.bind.target)) continue;
    if (deepest == nullptr || deepest->target.size() <= volume.bind.target.size()) {
      deepest = &volume.bind;
    }
  }
  return deepest;
}

absl::Status ContainerRoot::AddVolume(VolumeBind bind, std::optional<uid_t> user) {
  const std::string& target = bind.target;
  if (!fs::path(target).is_absolute()) return InvalidArgument("{} is not absolute", target);
  for (const char* ours : {"/", "/proc", "/sys"}) {
    const bool is_below = std::string_view(ours) != "/" && IsBelow(target, ours);
    if (target == ours || is_below) return InvalidArgument("nothing can be mounted at {}", target);
  }
  if (volumes_.size() >= kVolumesMost) {
    return InvalidArgument("more than {} volumes are mounted", kVolumesMost);
  }
  const fs::path sub(bind.sub_path);
  if (sub.is_absolute() || std::ranges::find(sub, "..") != sub.end()) {
    return InvalidArgument("subPath \"{}\" leaves its volume", bind.sub_path);
  }
  if (!bind.sub_path.empty()) {
    TAHOMA_RETURN_IF_ERROR(Annotate(MakeBeneath(bind, bind.sub_path, true), "subPath"));
  }
  struct stat found = {};
  const FileDescriptor whole(open(bind.source.c_str(), O_PATH | O_CLOEXEC));
  const FileDescriptor part(bind.sub_path.empty()
                                ? fcntl(whole.get(), F_DUPFD_CLOEXEC, 0)
                                : OpenBeneath(whole.get(), bind.sub_path.c_str()));
  if (part.get() < 0 || fstat(part.get(), &found) != 0) {
    return NotFound("{}{}{}: {}", bind.source, bind.sub_path.empty() ? "" : ", subPath ",
                    bind.sub_path, std::strerror(errno));
  }
  const bool is_folder = S_ISDIR(found.st_mode);
  if (const VolumeBind* above = Above(target); above == nullptr) {
    MakePlace(target, is_folder);
  } else if (target != above->target) {
    const fs::path within = fs::path(above->sub_path) / target.substr(above->target.size() + 1);
    TAHOMA_RETURN_IF_ERROR(MakeBeneath(*above, within, is_folder));
  }
  struct stat owner = {};
  std::shared_ptr<const FileDescriptor> owners;
  if (bind.owned && user && fstat(whole.get(), &owner) == 0 && owner.st_uid != *user) {
    owners = std::make_shared<FileDescriptor>(MakeOwners(
        fmt::format("{} {} 1", owner.st_uid, *user), fmt::format("{} {} 1", owner.st_gid, *user)));
  }
  steps_.push_back({.what = Do::kVolume, .path = target, .volume = volumes_.size()});
  volumes_.push_back({.bind = std::move(bind), .owners = std::move(owners)});
  return absl::OkStatus();
}

absl::Status ContainerRoot::AddVolumes(std::vector<VolumeBind> volumes, std::optional<uid_t> user,
                                       const std::vector<std::string>& kept) {
  for (VolumeBind& volume : volumes) volume.target = NormalOf(volume.target);
  for (const std::string& path : kept) {
    const std::string place = NormalOf(path);
    std::error_code error;
    const bool is_hidden = std::ranges::any_of(
        volumes, [&](const VolumeBind& one) { return IsBelow(place, one.target); });
    if (is_hidden && fs::exists(place, error)) {
      volumes.push_back({.source = place, .target = place});
    }
  }
  std::ranges::stable_sort(volumes, {}, [](const VolumeBind& one) { return one.target.size(); });
  for (VolumeBind& volume : volumes) {
    const std::string target = volume.target;
    TAHOMA_RETURN_IF_ERROR(Annotate(AddVolume(std::move(volume), user), "mountPath " + target));
  }
  return absl::OkStatus();
}

absl::Status ContainerRoot::CanMount() {
  ContainerRoot root;
  root.volumes_.emplace_back();
  const pid_t child = fork();
  if (child == 0) _exit(root.LeaveForOwn() ? 0 : errno);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) return Unavailable("{}", std::strerror(errno));
  if (status == 0) return absl::OkStatus();
  return PermissionDenied(
      "sim-node has no right to make mounts (CAP_SYS_ADMIN), and this machine lets it make no user "
      "namespace: {}",
      std::strerror(WEXITSTATUS(status)));
}

// Leaves the machine's mounts for a copy of them. False when that is not allowed.
bool ContainerRoot::LeaveForOwn() const {
  if (unshare(CLONE_NEWNS) != 0) {
    if (volumes_.empty()) return false;
    // Digits without an allocation: this runs between fork and exec.
    const auto line = [](char* out, unsigned number) {
      char digits[12];
      int count = 0;
      do {
        digits[count++] = static_cast<char>('0' + number % 10);
        number /= 10;
      } while (number > 0);
      for (int twice = 0; twice < 2; ++twice) {
        for (int i = count; i > 0; --i) *out++ = digits[i - 1];
        *out++ = ' ';
      }
      *out++ = '1';
      *out = '\0';
    };
    char users[32];
    char groups[32];
    line(users, geteuid());
    line(groups, getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!WriteAll("/proc/self/setgroups", "deny") || !WriteAll("/proc/self/uid_map", users) ||
        !WriteAll("/proc/self/gid_map", groups)) {
      return false;
    }
  }
  return mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
}

// Returns a copy of the volume's mount that is nowhere yet; -1 with errno.
int ContainerRoot::Clone(const Volume& volume) {
  const char* const sub = volume.bind.sub_path.c_str();
  struct open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = volume.bind.chosen ? RESOLVE_NO_SYMLINKS : 0;
  int from = static_cast<int>(
      syscall(SYS_openat2, AT_FDCWD, volume.bind.source.c_str(), &how, sizeof how));
  if (from >= 0 && *sub != '\0') from = OpenBeneath(from, sub);
  if (from < 0) return -1;
  const int tree = open_tree(from, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | O_CLOEXEC);
  if (tree < 0) return -1;
  struct mount_attr change = {};
  if (volume.owners != nullptr && volume.owners->get() >= 0) {
    change.attr_set = MOUNT_ATTR_IDMAP;
    change.userns_fd = static_cast<decltype(change.userns_fd)>(volume.owners->get());
    // Some file systems cannot: then the files stay their owner's.
    (void)mount_setattr(tree, "", AT_EMPTY_PATH, &change, sizeof change);
  }
  change = {};
  change.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (mount_setattr(tree, "", AT_EMPTY_PATH, &change, sizeof change) != 0) return -1;
  change.attr_set = MOUNT_ATTR_RDONLY;
  if (volume.bind.read_only &&
      mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof change) != 0) {
    return -1;
  }
  return tree;
}

// Puts the container's own root together from copies of the machine's entries, and makes it "/".
bool ContainerRoot::MakeRoot(const int* entries) const {
  if (mount("tahoma", kScratch, "tmpfs", MS_NOSUID, "mode=755,size=1m") != 0) return false;
  if (chdir(kScratch) != 0) return false;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Step& entry = entries_[i];
    const char* const name = entry.path.c_str() + 1;
    if (entry.what == Do::kLink) {
      if (symlink(entry.source.c_str(), name) != 0) return false;
      continue;
    }
    if (entries[i] < 0) continue;
    if (entry.what == Do::kFolder) {
      if (mkdir(name, 0755) != 0) return false;
    } else {
      const int file = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
      if (file < 0 || close(file) != 0) return false;
    }
    if (move_mount(entries[i], "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) != 0) return false;
  }
  // pivot_root(2) has this form; where the machine's root is no mount, the root is only left.
  if (syscall(SYS_pivot_root, ".", ".") == 0)
    return umount2(".", MNT_DETACH) == 0 && chdir("/") == 0;
  return chroot(".") == 0 && chdir("/") == 0;
}

bool ContainerRoot::Run(const Step& step, const int* volumes) {
  constexpr mode_t kFolderMode = 0755;
  constexpr mode_t kFileMode = 0644;
  const char* const path = step.path.c_str();
  const char* const source = step.source.c_str();
  switch (step.what) {
    case Do::kCover:
      // The folder beneath stays reachable as the working directory.
      return chdir(path) == 0 && mount("tahoma", path, "tmpfs", MS_NOSUID, source) == 0;
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
      // An entry may have gone since the plan was made.
      return mount(source, path, nullptr, MS_BIND | MS_REC, nullptr) == 0 || errno == ENOENT;
    case Do::kVolume:
      return move_mount(volumes[step.volume], "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == 0;
  }
  return false;
}

bool ContainerRoot::Enter(int* failed) const {
  if (empty()) return true;
  if (!LeaveForOwn()) return volumes_.empty();
  // Copies first: later mounts may hide the sources.
  int volumes[kVolumesMost];
  int entries[kEntriesMost];
  for (std::size_t i = 0; i < volumes_.size(); ++i) {
    volumes[i] = Clone(volumes_[i]);
    if (volumes[i] >= 0) continue;
    if (failed != nullptr) *failed = static_cast<int>(i);
    return false;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries[i] = entries_[i].what == Do::kLink
                     ? -1
                     : open_tree(AT_FDCWD, entries_[i].path.c_str(),
                                 AT_RECURSIVE | OPEN_TREE_CLONE | O_CLOEXEC);
  }
  const mode_t mask = umask(0);
  bool made = entries_.empty() || MakeRoot(entries);
  for (std::size_t i = 0; made && i < steps_.size(); ++i) {
    made = Run(steps_[i], volumes);
    if (!made && failed != nullptr) *failed = static_cast<int>(volumes_.size() + i);
  }
  umask(mask);
  return made;
}

std::string ContainerRoot::Place(int failed) const {
  if (failed < 0) return "the container's root";
  const auto at = static_cast<std::size_t>(failed);
  if (at < volumes_.size()) return volumes_[at].bind.source;
  return at - volumes_.size() < steps_.size() ? steps_[at - volumes_.size()].path : "";
}

}  // namespace tahoma::sim
