#include "sim-node/podrunner/log_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "lib/base/status.h"
#include "sim-node/podrunner/container_log.h"
#include "sim-node/podrunner/pod_volumes.h"

namespace tahoma::sim {
namespace {

namespace fs = std::filesystem;

// The delay until a follower sees new lines: short for people, long for an idle stream's thread.
constexpr std::chrono::milliseconds kFollowStep{100};

std::filesystem::path LogFile(const std::filesystem::path& folder, int attempt) {
  return folder / fmt::format("{}.log", attempt);
}

// The attempts with a log, ascending.
std::vector<int> Attempts(const std::filesystem::path& folder) {
  std::vector<int> attempts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".log") continue;
    const std::string stem = entry.path().stem();
    int attempt = 0;
    const auto [end, failed] = std::from_chars(stem.data(), stem.data() + stem.size(), attempt);
    if (failed == std::errc() && end == stem.data() + stem.size()) attempts.push_back(attempt);
  }
  std::sort(attempts.begin(), attempts.end());
  return attempts;
}

// Gives the folder and its contents, made under the pod's former user, to the pod's present user.
// Links are not followed, so nothing outside changes its owner; no process of the pod runs now.
absl::Status GiveTo(const std::filesystem::path& folder, uid_t user) {
  struct stat found = {};
  if (lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == user) {
    return absl::OkStatus();
  }
  std::error_code error;
  bool given = true;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    given = given && lchown(entry->path().c_str(), user, user) == 0;
  }
  if (error) return Unavailable("{}: {}", folder.string(), error.message());
  if (given && lchown(folder.c_str(), user, user) == 0) return absl::OkStatus();
  return Unavailable("{} cannot become user {}'s: {}", folder.string(), user, std::strerror(errno));
}

// Removes the pod's emptyDirs in memory.
void RemoveMemory(const std::string& pod_uid) {
  std::error_code error;
  const fs::path folder = MemoryFolder(pod_uid);
  if (!folder.empty() && !pod_uid.empty()) fs::remove_all(folder, error);
}

absl::StatusOr<std::optional<std::int64_t>> Number(const rest::Request& request, const char* key) {
  const std::optional<std::string> text = request.query_value(key);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (failed != std::errc() || end != text->data() + text->size() || value < 0) {
    return InvalidArgument("{} is \"{}\"; expected a number from 0", key, *text);
  }
  return value;
}

bool Flag(const rest::Request& request, const char* key) {
  const std::optional<std::string> text = request.query_value(key);
  return text && (text->empty() || *text == "true" || *text == "1");
}

absl::StatusOr<LogReader::Options> ReaderOptions(const rest::Request& request, WallTime now) {
  LogReader::Options options;
  TAHOMA_ASSIGN_OR_RETURN(options.tail_lines, Number(request, "tailLines"));
  TAHOMA_ASSIGN_OR_RETURN(options.limit_bytes, Number(request, "limitBytes"));
  TAHOMA_ASSIGN_OR_RETURN(const std::optional<std::int64_t> seconds,
                          Number(request, "sinceSeconds"));
  if (seconds) {
    // A century bounds the subtraction; no log is older.
    constexpr std::int64_t kCentury = 100LL * 365 * 24 * 3600;
    options.since = now - std::chrono::seconds(std::min(*seconds, kCentury));
  }
  if (const std::optional<std::string> since = request.query_value("sinceTime")) {
    TAHOMA_ASSIGN_OR_RETURN(options.since, ParseTime(*since));
  }
  options.timestamps = Flag(request, "timestamps");
  return options;
}

rest::Response StreamLog(const std::filesystem::path& log, const LogReader::Options& options,
                         bool follow, const LogFolder& logs) {
  auto reader = std::make_shared<LogReader>(log, options);
  return rest::Response::Stream(
      "text/plain; charset=utf-8",
      [reader, log, follow, &logs](std::string& out, std::chrono::milliseconds wait) {
        // Read before the file: otherwise lines written between the read and the end would be lost.
        const bool grows = follow && logs.Grows(log);
        const std::size_t before = out.size();
        if (!reader->Next(out)) return false;
        if (out.size() != before) return true;
        if (!grows) return false;
        logs.WaitForEnd(std::min(wait, kFollowStep));
        return true;
      });
}

}  // namespace

std::filesystem::path LogFolder::ContainerFolder(const PodRef& pod,
                                                 const std::string& container) const {
  return state_ / "pods" / pod.uid / container;
}

void LogFolder::AddPod(const PodRef& pod, const std::set<std::string>& awaited) {
  const MutexLock lock(mutex_);
  uids_[{pod.name_space, pod.name}] = pod.uid;
  awaited_[pod.uid] = awaited;
}

// Our folders, open only to callers that know the names below when pods have users; the lowest
// folders belong to the container alone.
absl::Status LogFolder::MakeFolders(const PodRef& pod, const std::string& container,
                                    std::optional<uid_t> user) const {
  const std::filesystem::path folder = ContainerFolder(pod, container);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Unavailable("{}: {}", folder.string(), error.message());
  if (user) {
    for (const auto& path : {state_, state_ / "pods", folder.parent_path(), folder}) {
      std::filesystem::permissions(path, fs::perms::group_exec | fs::perms::others_exec,
                                   fs::perm_options::add, error);
      if (error) return Unavailable("{}: {}", path.string(), error.message());
    }
  }
  for (const auto& own : {WorkFolder(pod, container), TemporaryFolder(pod, container)}) {
    if (mkdir(own.c_str(), 0700) != 0 && errno != EEXIST) {
      return Unavailable("{}: {}", own.string(), std::strerror(errno));
    }
    TAHOMA_RETURN_IF_ERROR(GiveTo(own, user.value_or(geteuid())));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::filesystem::path> LogFolder::Begin(const PodRef& pod,
                                                       const std::string& container, int attempt,
                                                       std::optional<uid_t> user) {
  TAHOMA_RETURN_IF_ERROR(MakeFolders(pod, container, user));
  const std::filesystem::path folder = ContainerFolder(pod, container);
  std::error_code error;
  for (const int old : Attempts(folder)) {
    if (old >= attempt - 1) break;
    std::filesystem::remove(LogFile(folder, old), error);
    std::filesystem::remove(LogFile(folder, old).string() + ".1", error);
  }
  const std::filesystem::path log = LogFile(folder, attempt);
  const MutexLock lock(mutex_);
  uids_[{pod.name_space, pod.name}] = pod.uid;
  awaited_[pod.uid].erase(container);
  growing_.insert(log);
  return log;
}

void LogFolder::End(const std::filesystem::path& log) {
  {
    const MutexLock lock(mutex_);
    growing_.erase(log);
  }
  ended_.NotifyAll();
}

void LogFolder::RemovePod(const PodRef& pod) {
  {
    const MutexLock lock(mutex_);
    const auto found = uids_.find({pod.name_space, pod.name});
    if (found != uids_.end() && found->second == pod.uid) uids_.erase(found);
    awaited_.erase(pod.uid);
  }
  std::error_code error;
  std::filesystem::remove_all(state_ / "pods" / pod.uid, error);
  RemoveMemory(pod.uid);
}

void LogFolder::RemoveOthers(const std::function<bool(const std::string& uid)>& known) {
  std::vector<std::filesystem::path> others;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(state_ / "pods", error)) {
    if (!known(entry.path().filename())) others.push_back(entry.path());
  }
  for (const std::filesystem::path& folder : others) {
    std::filesystem::remove_all(folder, error);
    RemoveMemory(folder.filename());
  }
}

absl::StatusOr<std::filesystem::path> LogFolder::Find(const std::string& name_space,
                                                      const std::string& pod,
                                                      const std::string& container,
                                                      Which which) const {
  std::string uid;
  bool awaited = false;
  {
    const MutexLock lock(mutex_);
    const auto found = uids_.find({name_space, pod});
    if (found == uids_.end()) return NotFound("pod {}/{} is not on this node", name_space, pod);
    uid = found->second;
    const auto containers = awaited_.find(uid);
    awaited = containers != awaited_.end() && containers->second.contains(container);
  }
  if (container.empty() || container.find('/') != std::string::npos || container[0] == '.') {
    return InvalidArgument("\"{}\" is no container name", container);
  }
  const std::filesystem::path folder = state_ / "pods" / uid / container;
  const std::vector<int> attempts = Attempts(folder);
  if (attempts.empty()) {
    return NotFound("container \"{}\" in pod \"{}\" is waiting to start or does not exist",
                    container, pod);
  }
  if (which == Which::kCurrent || awaited) return LogFile(folder, attempts.back());
  if (attempts.size() < 2) {
    return NotFound("previous terminated container \"{}\" in pod \"{}\" not found", container, pod);
  }
  return LogFile(folder, attempts[attempts.size() - 2]);
}

std::string LogFolder::UidOf(const std::string& name_space, const std::string& pod) const {
  const MutexLock lock(mutex_);
  const auto found = uids_.find({name_space, pod});
  return found == uids_.end() ? std::string() : found->second;
}

std::map<std::string, std::pair<std::string, std::string>> LogFolder::Names() const {
  std::map<std::string, std::pair<std::string, std::string>> names;
  const MutexLock lock(mutex_);
  for (const auto& [name, uid] : uids_) names[uid] = name;
  return names;
}

bool LogFolder::Grows(const std::filesystem::path& log) const {
  const MutexLock lock(mutex_);
  return growing_.contains(log);
}

void LogFolder::WaitForEnd(std::chrono::milliseconds wait) const {
  const auto deadline = CondVar::In(wait);
  const MutexLock lock(mutex_);
  ended_.WaitUntil(mutex_, deadline);
}

void InstallLogRoutes(rest::Server& server, const LogFolder& logs, const Clock& clock) {
  server.Route(
      "GET", "/containerLogs/{namespace}/{pod}/{container}", [&](const rest::Request& request) {
        const auto which =
            Flag(request, "previous") ? LogFolder::Which::kPrevious : LogFolder::Which::kCurrent;
        const auto options = ReaderOptions(request, clock.WallNow());
        if (!options.ok()) return rest::Response::FromStatus(options.status());
        const auto log =
            logs.Find(std::string(request.param("namespace")), std::string(request.param("pod")),
                      std::string(request.param("container")), which);
        if (!log.ok()) {
          // A kubelet answers in plain text, and kubectl shows the text.
          const bool missing = log.status().code() == absl::StatusCode::kNotFound;
          return rest::Response::Text(missing ? 404 : 400,
                                      std::string(Message(log.status())) + "\n");
        }
        return StreamLog(*log, *options, Flag(request, "follow"), logs);
      });
}

}  // namespace tahoma::sim
