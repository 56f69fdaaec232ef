#include "sim-node/podrunner/plugin_registry.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::chrono::seconds kAskTimeout{5};
constexpr int kRetryMilliseconds = 1000;

// Names a socket so that no later socket on the same path has the same name. File systems reuse
// inodes, so the inode number is not enough; nothing changes a socket's modification time after
// bind.
std::string KeyOf(const std::filesystem::path& socket, const struct stat& found) {
  return fmt::format("{}#{}#{}.{:09}", socket.string(), found.st_ino, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PluginRegistry>> PluginRegistry::Watch(std::filesystem::path folder,
                                                                      Log log) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const int inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (inotify < 0 || inotify_add_watch(inotify, folder.c_str(),
                                       IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM) < 0) {
    const absl::Status status =
        Unavailable("plugin registry {}: {}", folder.string(), std::strerror(errno));
    if (inotify >= 0) close(inotify);
    return status;
  }
  int wake[2];
  if (pipe2(wake, O_CLOEXEC) != 0) {
    close(inotify);
    return Unavailable("pipe: {}", std::strerror(errno));
  }
  std::unique_ptr<PluginRegistry> registry(
      new PluginRegistry(std::move(folder), std::move(log), inotify, wake[0], wake[1]));
  registry->thread_ = std::thread([raw = registry.get()] { raw->Loop(); });
  return registry;
}

PluginRegistry::PluginRegistry(std::filesystem::path folder, Log log, int inotify, int wake_read,
                               int wake_write)
    : folder_(std::move(folder)),
      log_(std::move(log)),
      inotify_(inotify),
      wake_read_(wake_read),
      wake_write_(wake_write) {}

PluginRegistry::~PluginRegistry() {
  close(wake_write_);
  if (thread_.joinable()) thread_.join();
  close(wake_read_);
  close(inotify_);
}

void PluginRegistry::Loop() {
  while (true) {
    const bool settled = Reconcile();
    pollfd polled[] = {{.fd = wake_read_, .events = POLLIN, .revents = 0},
                       {.fd = inotify_, .events = POLLIN, .revents = 0}};
    poll(polled, 2, settled ? -1 : kRetryMilliseconds);
    if (polled[0].revents != 0) return;
    char drained[4096];
    while (read(inotify_, drained, sizeof drained) > 0) {
    }
  }
}

bool PluginRegistry::Reconcile() {
  // A replaced socket is another plugin, even under the same name.
  std::map<std::string, std::filesystem::path> present;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    struct stat found = {};
    const bool is_socket = lstat(entry.path().c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
    if (!is_socket || entry.path().filename().string().starts_with(".")) continue;
    present[KeyOf(entry.path(), found)] = entry.path();
  }
  {
    const MutexLock lock(mutex_);
    std::erase_if(plugins_, [&](const auto& plugin) {
      if (present.contains(plugin.first)) return false;
      if (plugin.second.client) log_(fmt::format("plugin {} signed off", plugin.second.driver));
      return true;
    });
    for (const auto& [key, plugin] : plugins_) present.erase(key);
  }
  bool settled = true;
  for (const auto& [key, socket] : present) {
    if (!Register(socket)) settled = false;
  }
  return settled;
}

bool PluginRegistry::Register(const std::filesystem::path& socket) {
  struct stat found = {};
  if (lstat(socket.c_str(), &found) != 0) return true;
  const std::string key = KeyOf(socket, found);
  const absl::StatusOr<PluginFacts> facts = AskPlugin(socket, kAskTimeout);
  if (!facts.ok() && facts.status().code() != absl::StatusCode::kInvalidArgument) {
    log_(fmt::format("plugin socket {}: {}", socket.string(), Message(facts.status())));
    return false;
  }
  Plugin plugin{.driver = facts.ok() ? facts->driver : std::string(), .order = ++last_order_};
  if (facts.ok()) plugin.client = std::make_shared<PluginClient>(facts->endpoint, facts->version);
  {
    const MutexLock lock(mutex_);
    plugins_[key] = plugin;
  }
  const std::string refusal(facts.ok() ? std::string_view() : Message(facts.status()));
  const absl::Status told = NotifyPlugin(socket, refusal, kAskTimeout);
  log_(fmt::format("plugin {}: {}{}", facts.ok() ? facts->driver : socket.string(),
                   facts.ok() ? "registered" : refusal,
                   told.ok() ? "" : fmt::format(" ({})", Message(told))));
  return true;
}

absl::StatusOr<std::shared_ptr<PluginClient>> PluginRegistry::Find(
    const std::string& driver) const {
  const MutexLock lock(mutex_);
  const Plugin* best = nullptr;
  for (const auto& [key, plugin] : plugins_) {
    if (plugin.driver != driver || !plugin.client) continue;
    if (best == nullptr || plugin.order > best->order) best = &plugin;
  }
  if (best == nullptr) {
    return Unavailable("DRA driver {} is not registered on this node", driver);
  }
  return best->client;
}

}  // namespace tahoma::sim
