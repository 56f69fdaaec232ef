// The files of a container beyond the machine's own: programs at the places where images have
// programs, and stand-ins for the device nodes of claims.
//
// The container gets mounts of its own (mount_namespaces(7)), with each file or folder bound at its
// place. Where the machine's folder lacks the place, such as /opt, an empty folder with the same
// entries covers the folder. /dev is covered with the entries that container runtimes make.
//
// Scope: Linux. Without the right to make mounts (CAP_SYS_ADMIN) the container sees the machine's
// files alone.
//
// Thread safety: a value. Enter makes only calls that a program with threads may make between fork
// and exec.

#pragma once

#include <set>
#include <string>
#include <vector>

namespace tahoma::sim {

struct BoundFile {
  std::string source = {};
  std::string target = {};  // absolute

  bool operator==(const BoundFile&) const = default;
};

class ContainerRoot {
 public:
  // Looks at the folders of the machine. Later entries for a place replace earlier ones. A source
  // that does not exist is left out, and a target that is the source.
  static ContainerRoot Plan(const std::vector<BoundFile>& files);

  // False, with errno, when the mounts are made in part.
  bool Enter() const;

  bool empty() const { return steps_.empty(); }

 private:
  enum class Do { kCover, kFolder, kFile, kLink, kBind, kBindTree };
  struct Step {
    Do what;
    std::string path;         // absolute
    std::string source = {};  // relative to the last folder that was covered, or absolute
  };

  // Covers the folder; its entries are as before.
  void Cover(const std::string& folder);
  void MakePlace(const std::string& target, bool is_folder);
  bool IsThere(const std::string& path) const;
  static bool Run(const Step& step);

  std::vector<Step> steps_;
  std::set<std::string> own_folders_;  // made by the steps, and nothing of the machine is in them
};

}  // namespace tahoma::sim
