// Makes a pod's volumes on this machine, and says where each lies for a container's mounts.
//
// An emptyDir is a folder of the pod's, in memory below /dev/shm; files of ConfigMaps, Secrets and
// fields are written once, before the pod's first container that mounts them. A folder of the host
// that a pod names itself must be one that the pod's own user can enter.
//
// Scope: files. ContainerRoot mounts them.
//
// Thread safety: one object for each start of a container; starts of a pod's containers may be at
// the same time.

#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim-node/podrunner/container_root.h"
#include "sim-node/podrunner/environment.h"
#include "sim-node/podrunner/pod_spec.h"

namespace tahoma::sim {

// A folder of the host that a PersistentVolume names; no path: of a kind that is not mounted here.
struct HostVolume {
  std::string path = {};
  std::string path_type = {};
};

struct VolumePorts {
  ObjectReader read;  // ConfigMaps and Secrets of the pod's namespace
  std::function<absl::StatusOr<HostVolume>(const std::string& claim)> find_claim;
  std::function<absl::StatusOr<std::string>(const std::string& path)> field;  // of the pod
  std::function<absl::StatusOr<std::string>(const FileSource& token)> token;
};

class PodVolumes {
 public:
  // `user`: the pod's own, if it has one. `memory` is the folder of emptyDirs in memory.
  PodVolumes(std::filesystem::path folder, std::filesystem::path memory, std::optional<uid_t> user,
             VolumePorts ports)
      : folder_(std::move(folder)),
        memory_(std::move(memory)),
        user_(user),
        ports_(std::move(ports)) {}

  // Errors name the volume. A volume of a kind that is not mounted here is left out.
  absl::StatusOr<std::vector<VolumeBind>> For(const PodSpec& pod, const std::string& container,
                                              const Environment& environment) const;

 private:
  absl::StatusOr<VolumeBind> Make(const VolumeSpec& volume, const std::string& container) const;
  absl::StatusOr<VolumeBind> MakeEmpty(const VolumeSpec& volume) const;
  absl::StatusOr<VolumeBind> MakeOfClaim(const VolumeSpec& volume) const;
  absl::StatusOr<VolumeBind> MakeOfHost(const VolumeSpec& volume) const;
  absl::StatusOr<VolumeBind> MakeFiles(const VolumeSpec& volume,
                                       const std::string& container) const;
  using Files = std::map<std::string, std::pair<std::string, int>>;  // contents and modes by path
  absl::Status AddFiles(const FileSource& source, int mode, Files& files) const;
  absl::Status Write(const Files& files, const std::filesystem::path& folder) const;
  absl::Status Give(const std::filesystem::path& path) const;

  const std::filesystem::path folder_;
  const std::filesystem::path memory_;
  const std::optional<uid_t> user_;
  const VolumePorts ports_;
};

// Returns the folder of emptyDirs in memory of a pod; on a machine without /dev/shm, or where the
// place is somebody else's, an empty path.
std::filesystem::path MemoryFolder(const std::string& pod_uid);

}  // namespace tahoma::sim
