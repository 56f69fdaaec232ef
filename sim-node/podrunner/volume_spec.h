// The volumes of a Pod, and where its containers mount them.
//
// Scope: the fields that the pod runner mounts; a volume of another kind has the kind's name.
//
// Thread safety: values and pure functions.

#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/kube/field.h"

namespace tahoma::sim {

// A file of a volume. `key` is a key of the object, or the path of a field.
struct KeyFile {
  std::string key = {};
  std::string path = {};
  std::optional<int> mode = {};
};

// An object whose entries are files of a volume.
struct FileSource {
  enum class Kind { kConfigMap, kSecret, kFields, kToken, kUnsupported };
  Kind kind = Kind::kConfigMap;
  std::string object = {};  // kUnsupported: the kind
  bool optional = false;
  std::vector<KeyFile> files = {};  // empty: every key, under its own name
  std::string audience = {};        // kToken
  std::chrono::seconds life{3600};  // kToken
};

struct VolumeSpec {
  enum class Kind { kEmpty, kHostPath, kClaim, kFiles, kUnsupported };
  std::string name = {};
  Kind kind = Kind::kEmpty;
  std::string what = {};       // kHostPath: the path; kClaim: the claim; kUnsupported: the kind
  std::string path_type = {};  // kHostPath
  bool in_memory = false;      // kEmpty
  bool read_only = false;      // kClaim
  int mode = 0644;             // kFiles
  std::vector<FileSource> sources = {};

  // Every real API server adds such a volume to each pod (the ServiceAccount admission plugin).
  bool IsAutomatic() const { return name.starts_with("kube-api-access-"); }
};

struct MountSpec {
  std::string volume = {};
  std::string path = {};
  std::string sub_path = {};
  bool expands = false;  // subPathExpr: variables are replaced
  bool read_only = false;
};

inline constexpr std::size_t kVolumesOfPodMost = 128;
inline constexpr std::size_t kVolumeFilesMost = 4096;

// `pod` names the claims of ephemeral volumes.
std::vector<VolumeSpec> ParseVolumes(kube::Field spec, const std::string& pod);
std::vector<MountSpec> ParseMounts(kube::Field container);

}  // namespace tahoma::sim
