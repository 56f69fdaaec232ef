#include "sim-node/podrunner/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "lib/base/ascii.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::string_view kProfiles = "/etc/profile.d";
constexpr const char* kProfile = "profile.sh";

template <typename Map>
std::string Keys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", "));
}

// Returns "registry:5000/tools" of "registry:5000/tools:1@sha256:…".
std::string WithoutTag(const std::string& image) {
  const std::string name = image.substr(0, image.find('@'));
  const std::size_t slash = name.rfind('/');
  return name.substr(0, name.find(':', slash == std::string::npos ? 0 : slash));
}

bool IsOnMachinePath(const std::string& command) {
  for (std::string_view rest = kMachinePath; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::path(folder) / command, error)) return true;
  }
  return false;
}

std::filesystem::path ToolFolder(const ImageMap& images, ImageMap::const_iterator image,
                                 const std::filesystem::path& folder) {
  return folder / std::to_string(std::distance(images.begin(), image));
}

absl::Status MakeFolder(const std::filesystem::path& folder) {
  constexpr auto kReadable = static_cast<std::filesystem::perms>(0755);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) std::filesystem::permissions(folder, kReadable, error);
  return error ? Unavailable("{}: {}", folder.string(), error.message()) : absl::OkStatus();
}

// Login shells set a PATH of their own in /etc/profile, which then reads the files of kProfiles.
absl::Status WriteProfile(const std::filesystem::path& folder) {
  constexpr auto kReadable = static_cast<std::filesystem::perms>(0644);
  const std::filesystem::path file = folder / kProfile;
  std::ofstream out(file, std::ios::trunc);
  out << "PATH=" << kNeuronPath << ":$PATH\n";
  out.close();
  std::error_code error;
  std::filesystem::permissions(file, kReadable, error);
  return out && !error ? absl::OkStatus() : Unavailable("{} cannot be written", file.string());
}

absl::Status AddTool(const std::string& program, const std::filesystem::path& tool) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(program, error);
  if (error) return absl::OkStatus();  // found when the program is started
  std::filesystem::create_hard_link(file, tool, error);
  if (error) std::filesystem::copy_file(file, tool, error);
  return error ? Unavailable("{}: {}", tool.string(), error.message()) : absl::OkStatus();
}

}  // namespace

ImageMap::const_iterator FindImage(const ImageMap& images, const std::string& image) {
  const auto found = images.find(image);
  return found != images.end() ? found : images.find(WithoutTag(image));
}

absl::Status MakeToolFolders(const ImageMap& images, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (error) return Unavailable("{}: {}", folder.string(), error.message());
  TAHOMA_RETURN_IF_ERROR(MakeFolder(folder));
  TAHOMA_RETURN_IF_ERROR(WriteProfile(folder));
  for (auto image = images.begin(); image != images.end(); ++image) {
    const std::filesystem::path tools = ToolFolder(images, image, folder);
    TAHOMA_RETURN_IF_ERROR(MakeFolder(tools));
    for (const auto& [command, program] : image->second.commands) {
      if (command.find('/') != std::string::npos || IsOnMachinePath(command)) continue;
      TAHOMA_RETURN_IF_ERROR(AddTool(program, tools / command));
    }
  }
  return absl::OkStatus();
}

std::vector<BoundFile> ToolFiles(const ImageMap& images, const std::string& image,
                                 const std::filesystem::path& folder) {
  const auto found = FindImage(images, image);
  if (found == images.end()) return {};
  const std::filesystem::path tools = std::filesystem::absolute(folder);
  std::vector<BoundFile> files = {
      {.source = ToolFolder(images, found, tools), .target = std::string(kNeuronPath)}};
  std::error_code error;
  if (std::filesystem::is_directory(kProfiles, error)) {
    files.push_back({.source = tools / kProfile,
                     .target = fmt::format("{}/aws-neuron-{}", kProfiles, kProfile)});
  }
  return files;
}

std::string PathOf(const ImageMap& images, const std::string& image,
                   const std::filesystem::path& folder) {
  const auto found = FindImage(images, image);
  if (found == images.end()) return std::string(kMachinePath);
  return fmt::format("{}:{}:{}", kNeuronPath,
                     std::filesystem::absolute(ToolFolder(images, found, folder)).string(),
                     kMachinePath);
}

absl::StatusOr<Program> FindCommand(const ImageMap& images, const std::string& image,
                                    const std::vector<std::string>& command,
                                    const std::string& path) {
  if (command.empty() || command[0].empty()) {
    return InvalidArgument("you must specify at least one command for the container");
  }
  auto known = FindProgram(images, image, command, {});
  if (auto* program = std::get_if<Program>(&known)) return std::move(*program);
  if (command[0].find('/') != std::string::npos)
    return Program{.path = command[0], .argv = command};
  for (const std::string_view folder : tahoma::Split(path, ':')) {
    const std::filesystem::path file = std::filesystem::path(folder) / command[0];
    std::error_code error;
    if (!folder.empty() && std::filesystem::is_regular_file(file, error)) {
      return Program{.path = file.string(), .argv = command};
    }
  }
  return NotFound("exec: \"{}\": executable file not found in $PATH", command[0]);
}

std::variant<Program, StartFailure> FindProgram(const ImageMap& images, const std::string& image,
                                                const std::vector<std::string>& command,
                                                const std::vector<std::string>& args) {
  const auto found = FindImage(images, image);
  if (found == images.end()) {
    return StartFailure{
        "ErrImagePull",
        fmt::format("image \"{}\" stands for no program on this node; known images: {}", image,
                    Keys(images))};
  }
  if (command.empty()) {
    const bool has_entrypoint = !found->second.entrypoint.empty();
    const std::vector<std::string>& words = args.empty() ? found->second.default_command : args;
    if (!has_entrypoint && !words.empty()) return FindProgram(images, image, words, {});
    if (!has_entrypoint) {
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
