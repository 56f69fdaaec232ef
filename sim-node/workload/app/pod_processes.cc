#include "sim-node/workload/app/pod_processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

namespace tahoma::sim {
namespace {

namespace fs = std::filesystem;

std::string Contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Whether one of the texts, which end with zero bytes, is `wanted`.
bool HasEntry(std::string_view texts, std::string_view wanted) {
  while (!texts.empty()) {
    const std::string_view entry = texts.substr(0, texts.find('\0'));
    if (entry == wanted) return true;
    texts.remove_prefix(std::min(texts.size(), entry.size() + 1));
  }
  return false;
}

bool HasSocket(const fs::path& process) {
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(entry->path(), gone).native().starts_with("socket:")) return true;
  }
  return false;
}

std::string CommandOf(const fs::path& process) {
  std::string command = Contents(process / "cmdline");
  while (command.ends_with('\0')) command.pop_back();
  std::ranges::replace_if(
      command, [](unsigned char c) { return c < ' '; }, ' ');
  return command;
}

}  // namespace

std::vector<ListedProcess> ProcessesOf(const std::string& token, bool with_self) {
  const std::string variable = fmt::format("TAHOMA_CLAIM_TOKEN={}", token);
  std::vector<ListedProcess> found;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || name.size() > 9) continue;
    const int pid = std::stoi(name);
    if (pid == getpid() && !with_self) continue;
    if (!HasEntry(Contents(entry->path() / "environ"), variable)) continue;
    if (pid != getpid() && !HasSocket(entry->path())) continue;
    found.push_back({.pid = pid, .command = CommandOf(entry->path())});
  }
  std::ranges::sort(found, {}, &ListedProcess::pid);
  return found;
}

}  // namespace tahoma::sim
