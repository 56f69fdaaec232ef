// The files of a container beyond the machine's own: programs at the places where images have
// programs, stand-ins for the device nodes of claims, and the pod's volumes.
//
// The container gets mounts of its own (mount_namespaces(7)), with each file or folder bound at its
// place. Where the machine's folder lacks the place, such as /opt, an empty folder with the same
// entries covers the folder; where the root lacks the place, the container gets a root of its own
// with the machine's entries. /dev is covered with the entries that container runtimes make.
//
// Scope: Linux. Without the right to make mounts (CAP_SYS_ADMIN) a container without volumes sees
// the machine's files alone, and one with volumes makes them in a user namespace of its own.
//
// Thread safety: a value. Enter makes only calls that a program with threads may make between fork
// and exec.

#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/file_descriptor.h"

namespace tahoma::sim {

struct BoundFile {
  std::string source = {};
  std::string target = {};  // absolute

  bool operator==(const BoundFile&) const = default;
};

// A volume at its place in a container.
struct VolumeBind {
  std::string source = {};    // a folder of the machine, or a file
  std::string sub_path = {};  // the part of it that is mounted; never leaves the source
  std::string target = {};    // absolute
  bool read_only = false;
  // The files of the source's owner are the container's user's, and the other way round
  // (mount_setattr(2), idmapped mounts); where the file system can do that.
  bool owned = false;
  // A place of the machine that the pod chose, and that its user has been found to reach: no link
  // is followed on the way any more, and nothing is made there.
  bool chosen = false;
};

class ContainerRoot {
 public:
  // Looks at the folders of the machine. Later entries for a place replace earlier ones. A source
  // that does not exist is left out, and a target that is the source.
  static ContainerRoot Plan(const std::vector<BoundFile>& files);

  // Returns why this program can mount no volumes.
  static absl::Status CanMount();

  // Adds volumes, and makes the parts of them that are named and missing. `kept`: files and folders
  // of the machine that the container needs where they are, even below a volume. kInvalidArgument
  // names the volume's target and the reason.
  absl::Status AddVolumes(std::vector<VolumeBind> volumes, std::optional<uid_t> user,
                          const std::vector<std::string>& kept);

  // False, with errno, when the mounts are made in part; `failed` is then the place of Place().
  bool Enter(int* failed = nullptr) const;
  // Returns the place at which Enter failed.
  std::string Place(int failed) const;

  bool empty() const { return steps_.empty() && entries_.empty(); }

 private:
  enum class Do { kCover, kFolder, kFile, kLink, kBind, kBindTree, kVolume };
  struct Step {
    Do what;
    std::string path;  // absolute
    // Relative to the last folder that was covered, or absolute. kCover: the options.
    std::string source = {};
    std::size_t volume = 0;  // kVolume: of volumes_
  };
  struct Volume {
    VolumeBind bind;
    std::shared_ptr<const FileDescriptor> owners = nullptr;  // a user namespace; null: as they are
  };

  // Covers the folder; its entries are as before.
  void Cover(const std::string& folder);
  void MakePlace(const std::string& target, bool is_folder);
  bool IsThere(const std::string& path) const;
  absl::Status AddVolume(VolumeBind bind, std::optional<uid_t> user);
  // The volume below whose target the path lies; null without one.
  const VolumeBind* Above(const std::string& path) const;
  bool LeaveForOwn() const;
  bool MakeRoot(const int* entries) const;
  static int Clone(const Volume& volume);
  static bool Run(const Step& step, const int* volumes);

  std::vector<Step> entries_;  // of the container's own root; empty: the machine's root
  std::vector<Step> steps_;
  std::vector<Volume> volumes_;
  std::set<std::string> own_folders_;  // made by the steps, and nothing of the machine is in them
};

}  // namespace tahoma::sim
