// The local programs that stand for container images.
//
//   ImageMap images = {{"tahoma/tools:1", {.commands = {{"neuron-ls", "/usr/bin/neuron-ls"}}}}};
//   std::variant<Program, StartFailure> found =
//       FindProgram(images, "tahoma/tools:1", /*command=*/{"neuron-ls"}, /*args=*/{"--wide"});
//
// Nothing stands in silently: an image or a command that the map does not name is a failed start
// whose message names what is known.
//
// Scope: the configured map. Whether the file exists is found when it is started.

#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "sim-node/podrunner/pod_machine.h"

namespace tahoma::sim {

struct Image {
  std::string entrypoint{};                       // runs when a container gives no command
  std::map<std::string, std::string> commands{};  // "bash" or "/bin/bash" -> local path
};
using ImageMap = std::map<std::string, Image>;

struct Program {
  std::string path{};
  std::vector<std::string> argv{};
};

// `command` and `args` as the container gives them, expanded. ErrImagePull for an unknown image,
// CreateContainerError for a command that the image does not have.
std::variant<Program, StartFailure> FindProgram(const ImageMap& images, const std::string& image,
                                                const std::vector<std::string>& command,
                                                const std::vector<std::string>& args);

}  // namespace tahoma::sim
