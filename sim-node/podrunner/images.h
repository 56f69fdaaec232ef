// The local programs that stand for container images.
//
//   ImageMap images = {{"tahoma/tools:1", {.commands = {{"neuron-ls", "/usr/bin/neuron-ls"}}}}};
//   // A name without tag, "tahoma/tools", stands for the image with any tag or digest.
//   std::variant<Program, StartFailure> found =
//       FindProgram(images, "tahoma/tools:1", /*command=*/{"neuron-ls"}, /*args=*/{"--wide"});
//
// Nothing stands in silently: an image or a command that the map does not name is a failed start
// whose message names what is known.
//
// Scope: the configured map, and folders of its programs. Whether a file exists is found when the
// program is started.
//
// Thread safety: pure functions; MakeToolFolders writes files and is called once at a start.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim-node/podrunner/container_root.h"
#include "sim-node/podrunner/pod_machine.h"

namespace tahoma::sim {

struct Image {
  std::string entrypoint{};  // runs when a container gives no command
  // Without an entrypoint: runs when a container gives neither command nor args.
  std::vector<std::string> default_command{};
  std::map<std::string, std::string> commands{};  // "bash" or "/bin/bash" -> local path
};
using ImageMap = std::map<std::string, Image>;

struct Program {
  std::string path{};
  std::vector<std::string> argv{};
};

// Where a machine's own programs are: what a container runtime sets as PATH.
inline constexpr std::string_view kMachinePath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Returns the entry of the image; else that of the image without tag and digest; else the end.
ImageMap::const_iterator FindImage(const ImageMap& images, const std::string& image);

// Where images of AWS's have the Neuron tools.
inline constexpr std::string_view kNeuronPath = "/opt/aws/neuron/bin";

// Makes `folder` anew, with a folder of programs for each image: a shell finds the commands of the
// image there. Commands that kMachinePath has are left out.
// The programs are linked or copied, because a pod's user may not enter the folder that a program
// is from. Errors: kUnavailable with the file.
absl::Status MakeToolFolders(const ImageMap& images, const std::filesystem::path& folder);

// Returns the folder of the image's programs, for kNeuronPath, and what puts kNeuronPath into the
// PATH of login shells; `folder` as for MakeToolFolders.
std::vector<BoundFile> ToolFiles(const ImageMap& images, const std::string& image,
                                 const std::filesystem::path& folder);

// Returns the PATH of the image's containers: kNeuronPath, the folder of the image's programs for a
// container without a root of its own, and kMachinePath.
std::string PathOf(const ImageMap& images, const std::string& image,
                   const std::filesystem::path& folder);

// `command` and `args` as the container gives them, expanded. ErrImagePull for an unknown image,
// CreateContainerError for a command that the image does not have.
std::variant<Program, StartFailure> FindProgram(const ImageMap& images, const std::string& image,
                                                const std::vector<std::string>& command,
                                                const std::vector<std::string>& args);

// Returns the program of a command that a session runs in a container of the image: a command of
// the image, or what `path` (PATH) finds, as a container runtime looks. kNotFound for none.
absl::StatusOr<Program> FindCommand(const ImageMap& images, const std::string& image,
                                    const std::vector<std::string>& command,
                                    const std::string& path);

}  // namespace tahoma::sim
