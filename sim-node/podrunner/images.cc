#include "sim-node/podrunner/images.h"

#include <fmt/format.h>

namespace tahoma::sim {
namespace {

template <typename Map>
std::string Keys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", "));
}

}  // namespace

std::variant<Program, StartFailure> FindProgram(const ImageMap& images, const std::string& image,
                                                const std::vector<std::string>& command,
                                                const std::vector<std::string>& args) {
  const auto found = images.find(image);
  if (found == images.end()) {
    return StartFailure{
        "ErrImagePull",
        fmt::format("image \"{}\" stands for no program on this node; known images: {}", image,
                    Keys(images))};
  }
  if (command.empty()) {
    if (found->second.entrypoint.empty()) {
      return StartFailure{
          "CreateContainerError",
          fmt::format("no command is given and image \"{}\" has no entrypoint; its commands: {}",
                      image, Keys(found->second.commands))};
    }
    Program program{.path = found->second.entrypoint, .argv = {found->second.entrypoint}};
    program.argv.insert(program.argv.end(), args.begin(), args.end());
    return program;
  }
  const std::map<std::string, std::string>& commands = found->second.commands;
  auto entry = commands.find(command[0]);
  if (entry == commands.end()) entry = commands.find(command[0].substr(command[0].rfind('/') + 1));
  if (entry == commands.end()) {
    return StartFailure{"CreateContainerError",
                        fmt::format("image \"{}\" has no command \"{}\"; it has: {}", image,
                                    command[0], Keys(commands))};
  }
  Program program{.path = entry->second, .argv = command};
  program.argv.insert(program.argv.end(), args.begin(), args.end());
  return program;
}

}  // namespace tahoma::sim
