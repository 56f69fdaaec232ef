#include "sim-node/podrunner/pod_runner.h"

#include <unistd.h>

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "sim-node/podrunner/cdi.h"

namespace tahoma::sim {
namespace {

using json = Json;

// A node holds at most kMaxPods pods; each makes a handful of steps at a time.
constexpr std::size_t kQueued = 16'384;
// A prepare may take kPluginCallTimeout; with a few threads one stuck claim delays no other.
constexpr int kCallers = 4;
constexpr std::chrono::milliseconds kLongestIdle{1000};
constexpr std::string_view kCheckpointFile = "claims.json";

std::string ContainerId(const PodRef& pod, const std::string& container, int attempt) {
  return fmt::format("{}_{}_{}", pod.uid, container, attempt);
}

std::string Decode64(std::string_view text) {
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) break;
    bits = (bits << 6U) | static_cast<unsigned>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU);
  }
  return out;
}

}  // namespace

PodRunner::PodRunner(Options options, Ports ports)
    : options_(std::move(options)),
      ports_(std::move(ports)),
      node_(options_.node),
      logs_(*ports_.logs),
      steps_(kQueued),
      calls_(kQueued),
      plugin_calls_(kQueued),
      pods_({.host_ip = node_.address, .pod_ip = node_.address}),
      election_(node_.election),
      rng_(ports_.seed) {}

PodRunner::~PodRunner() { Stop(); }

absl::Status PodRunner::Start() {
  const std::filesystem::path containers = options_.state_dir / "containers";
  std::error_code error;
  std::filesystem::create_directories(containers, error);
  if (error) return Unavailable("stateDir {}: {}", containers.string(), error.message());
  for (const std::string& id : PosixSpawner::Sweep(containers)) {
    ports_.log(fmt::format("container {} of a former run was ended", id));
  }
  const std::string checkpoint = options_.state_dir / kCheckpointFile;
  if (const absl::StatusOr<std::string> text = ReadFile(checkpoint); text.ok()) {
    TAHOMA_RETURN_IF_ERROR(Annotate(pods_.Restore(*text), checkpoint));
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  TAHOMA_RETURN_IF_ERROR(MakeToolFolders(options_.images, options_.tools_dir));
  TAHOMA_RETURN_IF_ERROR(Annotate(RegisterNode(), "node " + node_.name));
  spawner_ = std::make_unique<PosixSpawner>(ports_.clock, containers,
                                            [this](const Ended& ended) { OnEnded(ended); });
  if (ports_.sessions) ports_.sessions->Begin(*spawner_, options_.images);
  started_once_ = true;
  decider_ = std::thread([this] { DecideLoop(); });
  writer_ = std::thread([this] { WriteLoop(); });
  for (Calls* calls : {&calls_, &plugin_calls_}) {
    for (int i = 0; i < kCallers; ++i) threads_.emplace_back([this, calls] { CallLoop(*calls); });
  }
  threads_.emplace_back([this] { LeaseLoop(); });
  return absl::OkStatus();
}

void PodRunner::Stop() {
  if (!std::exchange(started_once_, false)) return;
  Post([grace = options_.shutdown_grace](NodePods& pods, WallTime now) {
    return pods.OnShutdown(grace, now);
  });
  {
    // The grace, and as much again for unprepare calls and the last status of each pod.
    const auto deadline = CondVar::In(2 * options_.shutdown_grace);
    const MutexLock lock(stop_mutex_);
    while (!pods_stopped_ && stop_wake_.WaitUntil(stop_mutex_, deadline)) {
    }
  }
  steps_.Close();
  decider_.join();
  {
    const auto deadline = CondVar::In(options_.shutdown_grace);
    const MutexLock lock(write_mutex_);
    while ((!writes_.empty() || writing_) && write_idle_.WaitUntil(write_mutex_, deadline)) {
    }
    stopping_ = true;
  }
  write_wake_.NotifyAll();
  ended_ = true;
  calls_.Close();
  plugin_calls_.Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  writer_.join();
  if (ports_.sessions) ports_.sessions->End();
  spawner_.reset();
}

void PodRunner::OnPod(const json& pod) {
  Post([pod](NodePods& pods, WallTime now) { return pods.OnPod(pod, now); });
}

void PodRunner::OnPodGone(const std::string& uid) {
  Post([this, uid](NodePods& pods, WallTime now) {
    if (const PodMachine* pod = pods.Find(uid)) {
      vanished_.push_back({pod->spec().name_space, pod->spec().name, uid});
    }
    return pods.OnPodGone(uid, now);
  });
}

void PodRunner::OnPodsSynced() {
  Post([this](NodePods& pods, WallTime now) {
    logs_.RemoveOthers([&](const std::string& uid) { return pods.Find(uid) != nullptr; });
    if (std::exchange(listed_, true)) ReportNode();
    NodeActions actions = pods.OnPodsSynced(now);
    const auto again = std::count_if(actions.begin(), actions.end(), [](const NodeAction& action) {
      return std::holds_alternative<WriteStatus>(action) ||
             std::holds_alternative<DeletePod>(action);
    });
    if (again > 0) {
      ports_.log(fmt::format(
          "node {}: {} statuses and removals of pods are written again: the API server has others",
          node_.name, again));
    }
    return actions;
  });
}

void PodRunner::Post(Step step) { steps_.Push(std::move(step)); }

void PodRunner::CallLoop(Calls& calls) {
  while (true) {
    const auto next = calls.PopAll(1);
    if (next.empty() || ended_) return;
    next[0]();
  }
}

void PodRunner::DecideLoop() {
  while (true) {
    const WallTime before = ports_.clock.WallNow();
    std::chrono::nanoseconds wait = kLongestIdle;
    if (const std::optional<WallTime> due = pods_.NextDeadline()) {
      wait = std::clamp<std::chrono::nanoseconds>(*due - before, std::chrono::nanoseconds(0),
                                                  kLongestIdle);
    }
    const std::vector<Step> steps = steps_.PopAllFor(64, wait);
    if (steps.empty() && steps_.closed()) return;
    if (!saved_.ok()) SaveClaims();
    for (const Step& step : steps) Carry(step(pods_, ports_.clock.WallNow()));
    Carry(pods_.OnTick(ports_.clock.WallNow()));
    RemoveLogs();
    const MutexLock lock(stop_mutex_);
    pods_stopped_ = pods_.shut_down();
    if (pods_stopped_) stop_wake_.NotifyAll();
  }
}

void PodRunner::Carry(NodeActions actions) {
  for (NodeAction& action : actions) {
    if (const auto* read = std::get_if<ReadClaims>(&action)) {
      calls_.Push([this, read = *read] { ReadClaimsOf(read); });
    } else if (const auto* prepare = std::get_if<PrepareClaim>(&action)) {
      CallPlugin([this, claim = prepare->claim] { PrepareOne(claim); },
                 [uid = prepare->claim.uid, saved = saved_](NodePods& pods, WallTime now) {
                   return pods.OnClaimPrepared(uid, saved, now);
                 });
    } else if (const auto* unprepare = std::get_if<UnprepareClaim>(&action)) {
      CallPlugin([this, claim = unprepare->claim] { UnprepareOne(claim); },
                 [uid = unprepare->claim.uid, saved = saved_](NodePods& pods, WallTime now) {
                   return pods.OnClaimUnprepared(uid, saved, now);
                 });
    } else if (const auto* run = std::get_if<RunContainer>(&action)) {
      calls_.Push(
          [this, run = *run, spec = pods_.Find(run->pod.uid)->spec()] { RunOne(run, spec); });
    } else if (const auto* stop = std::get_if<StopContainer>(&action)) {
      spawner_->Signal(ContainerId(stop->pod, stop->container, stop->attempt), stop->kill);
    } else if (std::holds_alternative<SaveCheckpoint>(action)) {
      SaveClaims();
    } else {
      const MutexLock lock(write_mutex_);
      if (auto* status = std::get_if<WriteStatus>(&action)) {
        const PodMachine* machine = pods_.Find(status->pod.uid);
        logs_.AddPod(status->pod,
                     machine == nullptr ? std::set<std::string>() : machine->awaited());
        // Only the newest status matters, in the place of the first that waits.
        const bool waits = statuses_.contains(status->pod.uid);
        statuses_[status->pod.uid] = std::move(status->status);
        if (!waits) writes_.push_back({.pod = status->pod});
      } else if (const auto* remove = std::get_if<DeletePod>(&action)) {
        writes_.push_back({.pod = remove->pod, .kind = Write::Kind::kDelete});
      } else if (const auto* event = std::get_if<WriteEvent>(&action)) {
        writes_.push_back({.pod = event->pod, .kind = Write::Kind::kEvent, .event = event->event});
      }
      write_wake_.NotifyAll();  // the writer and the lease both wait on it
    }
  }
}

// A claim that no checkpoint on disk names would stay prepared for ever after a crash: while there
// is none, the call is not made but has failed.
void PodRunner::CallPlugin(std::function<void()> call, Step failed) {
  if (saved_.ok()) {
    plugin_calls_.Push(std::move(call));
  } else {
    Post(std::move(failed));
  }
}

void PodRunner::ReadClaimsOf(const ReadClaims& read) {
  absl::StatusOr<std::vector<ClaimFacts>> claims = std::vector<ClaimFacts>();
  for (const std::string& name : read.names) {
    const absl::StatusOr<json> object =
        ports_.api.Get(kube::kResourceClaims, {read.pod.name_space, name});
    absl::StatusOr<ClaimFacts> facts =
        object.ok() ? ParseClaimFacts(*object) : absl::StatusOr<ClaimFacts>(object.status());
    if (!facts.ok()) {
      claims =
          Annotate(facts.status(), fmt::format("resourceclaim {}/{}", read.pod.name_space, name));
      break;
    }
    claims->push_back(*std::move(facts));
  }
  Post([uid = read.pod.uid, claims](NodePods& pods, WallTime now) {
    return pods.OnClaimsRead(uid, claims, now);
  });
}

void PodRunner::PrepareOne(const ClaimFacts& claim) {
  absl::StatusOr<std::vector<PreparedDevice>> all = std::vector<PreparedDevice>();
  for (const std::string& driver : claim.drivers) {
    const auto plugin = ports_.plugins(driver);
    absl::StatusOr<std::vector<PreparedDevice>> devices =
        plugin.ok() ? (*plugin)->Prepare(claim)
                    : absl::StatusOr<std::vector<PreparedDevice>>(plugin.status());
    if (!devices.ok()) {
      all = devices.status();
      break;
    }
    all->insert(all->end(), devices->begin(), devices->end());
  }
  Post([uid = claim.uid, all](NodePods& pods, WallTime now) {
    return pods.OnClaimPrepared(uid, all, now);
  });
}

void PodRunner::UnprepareOne(const ClaimFacts& claim) {
  absl::Status status;
  for (const std::string& driver : claim.drivers) {
    const auto plugin = ports_.plugins(driver);
    const absl::Status done = plugin.ok() ? (*plugin)->Unprepare(claim) : plugin.status();
    if (!done.ok()) status = done;
  }
  Post([uid = claim.uid, status](NodePods& pods, WallTime now) {
    return pods.OnClaimUnprepared(uid, status, now);
  });
}

absl::StatusOr<std::map<std::string, std::string>> PodRunner::ReadKeyed(
    const std::string& name_space, KeyedObject kind, const std::string& name) {
  const bool is_map = kind == KeyedObject::kConfigMap;
  const auto object =
      ports_.api.Get(is_map ? kube::kConfigMaps : kube::kSecrets, {name_space, name});
  if (!object.ok()) {
    return Annotate(object.status(), fmt::format("{} {}", is_map ? "configmap" : "secret", name));
  }
  std::map<std::string, std::string> entries;
  for (const char* key : {"data", "binaryData"}) {
    if (!object->contains(key) || !(*object)[key].is_object()) continue;
    const bool encoded = !is_map || std::string_view(key) == "binaryData";
    for (const auto& [entry, value] : (*object)[key].items()) {
      if (!value.is_string()) continue;
      const std::string text = value.get<std::string>();
      entries[entry] = encoded ? Decode64(text) : text;
    }
  }
  return entries;
}

std::variant<Launch, StartFailure> PodRunner::MakeLaunch(const RunContainer& run,
                                                         const PodSpec& spec) {
  const ContainerSpec* container = spec.FindContainer(run.container);
  TAHOMA_CHECK(container != nullptr);
  const absl::StatusOr<Environment> own =
      BuildEnvironment(spec, *container, {.host_ip = node_.address, .pod_ip = node_.address},
                       [&](KeyedObject kind, const std::string& name) {
                         return ReadKeyed(spec.name_space, kind, name);
                       });
  if (!own.ok()) {
    return StartFailure{"CreateContainerConfigError", std::string(Message(own.status()))};
  }
  auto program = FindProgram(options_.images, container->image, ExpandAll(container->command, *own),
                             ExpandAll(container->args, *own));
  if (auto* failure = std::get_if<StartFailure>(&program)) return std::move(*failure);
  const absl::StatusOr<CdiEdits> edits = ReadCdi(options_.cdi_dir, run.cdi_ids);
  if (!edits.ok()) {
    return StartFailure{"CreateContainerError", std::string(Message(edits.status()))};
  }
  for (const BoundFile& mount : edits->mounts) {
    std::error_code error;
    if (std::filesystem::exists(mount.source, error)) continue;
    return StartFailure{"CreateContainerError",
                        fmt::format("the devices' mount {} does not exist", mount.source)};
  }
  Launch launch{.id = ContainerId(run.pod, run.container, run.attempt),
                .program = std::get<Program>(std::move(program))};
  // A container runtime sets these when the image says nothing else.
  launch.environment = {{"PATH", PathOf(options_.images, container->image, options_.tools_dir)},
                        {"HOSTNAME", spec.name},
                        {"HOME", "/"}};
  for (const auto& [name, value] : *own) launch.environment[name] = value;
  for (const auto& [name, value] : edits->env) launch.environment[name] = value;
  launch.working_dir = container->working_dir.empty()
                           ? logs_.WorkFolder(run.pod, run.container)
                           : std::filesystem::path(container->working_dir);
  // /tmp is everybody's, and a container has one of its own.
  launch.environment.try_emplace("TMPDIR", logs_.TemporaryFolder(run.pod, run.container));
  const absl::StatusOr<std::optional<uid_t>> user = UserOf(run.pod, spec);
  if (!user.ok()) {
    return StartFailure{"CreateContainerConfigError", std::string(Message(user.status()))};
  }
  const auto stdin_use = spec.stdin_uses.find(run.container);
  if (stdin_use != spec.stdin_uses.end()) {
    launch.has_in = stdin_use->second.open;
    launch.one_in = stdin_use->second.once;
    launch.has_tty = stdin_use->second.tty;
  }
  if (launch.has_tty) launch.environment.try_emplace("TERM", "xterm");
  launch.image = container->image;
  launch.user = *user;
  launch.processes_most = options_.processes_most;
  launch.root = RootOf(container->image, *edits);
  const absl::Status mounted = AddVolumes(run, spec, *edits, launch);
  if (mounted.ok()) return launch;
  return StartFailure{"CreateContainerConfigError", std::string(Message(mounted))};
}

// The programs of the image, the devices of the claims and, with devices, what AWS's driver shows.
ContainerRoot PodRunner::RootOf(const std::string& image, const CdiEdits& edits) const {
  std::vector<BoundFile> files = ToolFiles(options_.images, image, options_.tools_dir);
  files.insert(files.end(), edits.mounts.begin(), edits.mounts.end());
  if (!edits.mounts.empty()) {
    files.push_back({options_.driver_files / "devices", "/sys/devices/virtual/neuron_device"});
    files.push_back({options_.driver_files / "class", "/sys/class/neuron_device"});
  }
  return ContainerRoot::Plan(files);
}

absl::Status PodRunner::AddVolumes(const RunContainer& run, const PodSpec& spec,
                                   const CdiEdits& edits, Launch& launch) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<VolumeBind> volumes,
                          VolumesOf(run, spec, launch.environment, launch.user));
  if (volumes.empty()) return absl::OkStatus();
  std::vector<std::string> kept = {launch.program.path, options_.tools_dir,
                                   logs_.ContainerFolder(run.pod, run.container)};
  for (const auto& [name, value] : edits.env) {
    if (value.starts_with('/')) kept.push_back(value);
  }
  std::error_code error;  // the folder's own start says it again
  std::filesystem::create_directories(logs_.ContainerFolder(run.pod, run.container), error);
  return launch.root.AddVolumes(std::move(volumes), launch.user, kept);
}

void PodRunner::Warn(const PodRef& pod, const char* reason, std::string message) {
  RecordEvent event{.warning = true, .reason = reason, .message = std::move(message)};
  Post([pod, event = std::move(event)](NodePods&, WallTime) {
    return NodeActions{WriteEvent{.pod = pod, .event = event}};
  });
}

absl::StatusOr<std::vector<VolumeBind>> PodRunner::VolumesOf(const RunContainer& run,
                                                             const PodSpec& spec,
                                                             const Environment& environment,
                                                             std::optional<uid_t> user) {
  const auto mounts = spec.mounts.find(run.container);
  if (mounts == spec.mounts.end() || mounts->second.empty()) return std::vector<VolumeBind>();
  if (const absl::Status can_mount = ContainerRoot::CanMount(); !can_mount.ok()) {
    Warn(run.pod, "VolumesNotMounted",
         fmt::format("the containers run without their volumes: {}", Message(can_mount)));
    return std::vector<VolumeBind>();
  }
  const PodVolumes volumes(
      logs_.VolumeFolder(run.pod), MemoryFolder(run.pod.uid), user,
      {.read = [&](KeyedObject kind,
                   const std::string& name) { return ReadKeyed(spec.name_space, kind, name); },
       .find_claim =
           [&](const std::string& claim) {
             auto found = FindVolume(spec.name_space, claim);
             if (found.ok() && found->path.empty()) {
               Warn(run.pod, "VolumesNotMounted",
                    fmt::format("the volume of claim {} is no folder of the host: the containers "
                                "run without it",
                                claim));
             }
             return found;
           },
       .field =
           [&](const std::string& path) {
             return FieldText(spec, {.host_ip = node_.address, .pod_ip = node_.address}, path);
           },
       .token = [&](const FileSource& token) { return RequestToken(spec, token); }});
  return volumes.For(spec, run.container, environment);
}

// In the kubelet's words where it has any.
absl::StatusOr<HostVolume> PodRunner::FindVolume(const std::string& name_space,
                                                 const std::string& claim) {
  const auto object = ports_.api.Get(kube::kVolumeClaims, {name_space, claim});
  if (absl::IsNotFound(object.status())) {
    return NotFound("persistentvolumeclaim \"{}\" not found", claim);
  }
  if (!object.ok()) return Annotate(object.status(), "persistentvolumeclaim " + claim);
  const std::string name(kube::StringAt(*object, {"spec", "volumeName"}));
  if (name.empty() || kube::StringAt(*object, {"status", "phase"}) != "Bound") {
    return FailedPrecondition("persistentvolumeclaim \"{}\" is not bound", claim);
  }
  const auto volume = ports_.api.Get(kube::kVolumes, {"", name});
  if (!volume.ok()) return Annotate(volume.status(), "persistentvolume " + name);
  if (kube::StringAt(*volume, {"spec", "claimRef", "uid"}) != kube::UidOf(*object)) {
    return FailedPrecondition("persistentvolume \"{}\" is bound to another claim", name);
  }
  if (const auto local = kube::StringAt(*volume, {"spec", "local", "path"}); !local.empty()) {
    return HostVolume{.path = std::string(local), .path_type = "Directory"};
  }
  return HostVolume{
      .path = std::string(kube::StringAt(*volume, {"spec", "hostPath", "path"})),
      .path_type = std::string(kube::StringAt(*volume, {"spec", "hostPath", "type"}))};
}

absl::StatusOr<std::string> PodRunner::RequestToken(const PodSpec& spec, const FileSource& token) {
  const std::string account = spec.service_account.empty() ? "default" : spec.service_account;
  json wanted = {{"expirationSeconds", token.life.count()},
                 {"boundObjectRef",
                  {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", spec.name}, {"uid", spec.uid}}}};
  if (!token.audience.empty()) wanted["audiences"] = json::array({token.audience});
  const auto made =
      ports_.api.Call({.method = "POST",
                       .target = fmt::format("/api/v1/namespaces/{}/serviceaccounts/{}/token",
                                             spec.name_space, account),
                       .headers = {{"Content-Type", "application/json"}},
                       .body = json{{"apiVersion", "authentication.k8s.io/v1"},
                                    {"kind", "TokenRequest"},
                                    {"spec", std::move(wanted)}}
                                   .dump()},
                      kube::Client::Repeat::kMay);
  if (!made.ok()) {
    return Annotate(made.status(),
                    fmt::format("the API server gives no token of service account {}", account));
  }
  return std::string(kube::StringAt(*made, {"status", "token"}));
}

// Returns the pod's own user, if pods have users here. The user that the pod asks for is taken only
// where nobody else can have it: it could be anybody's on this machine.
absl::StatusOr<std::optional<uid_t>> PodRunner::UserOf(const PodRef& pod, const PodSpec& spec) {
  if (!options_.users) {
    if (!spec.run_as_non_root || geteuid() != 0) return std::optional<uid_t>();
    return FailedPrecondition(
        "the pod has runAsNonRoot, but pods of this node run as root (podRunner.podUser: same)");
  }
  TAHOMA_ASSIGN_OR_RETURN(const uid_t user, options_.users->Assign(pod.uid, spec.run_as_user));
  if (spec.run_as_user && *spec.run_as_user != user) {
    Warn(pod, "FieldsIgnored",
         fmt::format("the pod runs as user {} and not as {}: users of this node's pods are {} to "
                     "{}",
                     user, *spec.run_as_user, options_.users->first(), options_.users->last()));
  }
  return std::optional<uid_t>(user);
}

// Forgets a pod of which nothing runs any more, and whose logs nobody reads.
void PodRunner::Forget(const PodRef& pod) {
  logs_.RemovePod(pod);
  if (options_.users) options_.users->Release(pod.uid);
}

void PodRunner::RunOne(const RunContainer& run, const PodSpec& spec) {
  auto made = MakeLaunch(run, spec);
  const std::string id = ContainerId(run.pod, run.container, run.attempt);
  if (auto* launch = std::get_if<Launch>(&made)) {
    const auto log = logs_.Begin(run.pod, run.container, run.attempt, launch->user);
    absl::Status started = log.status();
    if (started.ok()) {
      launch->log_file = *log;
      started = spawner_->Start(*launch);
      if (!started.ok()) logs_.End(*log);
    }
    if (started.ok()) {
      Post([this, run, id](NodePods& pods, WallTime now) {
        NodeActions actions =
            pods.OnStarted(run.pod.uid, run.container, run.attempt, "tahoma://" + id, now);
        started_.insert(id);
        const auto ended = ended_early_.extract(id);
        if (!ended.empty()) {
          NodeActions more = Exited(pods, id, ended.mapped(), now);
          std::move(more.begin(), more.end(), std::back_inserter(actions));
        }
        return actions;
      });
      return;
    }
    made = StartFailure{"RunContainerError", std::string(Message(started))};
  }
  Post([run, failure = std::get<StartFailure>(made)](NodePods& pods, WallTime now) {
    return pods.OnStartFailed(run.pod.uid, run.container, run.attempt, failure, now);
  });
}

void PodRunner::OnEnded(const Ended& ended) {
  Post([this, ended](NodePods& pods, WallTime now) -> NodeActions {
    if (started_.contains(ended.id)) return Exited(pods, ended.id, ended.exit, now);
    ended_early_[ended.id] = ended.exit;
    return {};
  });
}

NodeActions PodRunner::Exited(NodePods& pods, const std::string& id, Exit exit, WallTime now) {
  started_.erase(id);
  // "<pod uid>_<container>_<attempt>"; neither uids nor container names have an underscore.
  const std::size_t first = id.find('_');
  const std::size_t last = id.rfind('_');
  const std::string uid = id.substr(0, first);
  const std::string container = id.substr(first + 1, last - first - 1);
  const int attempt = std::stoi(id.substr(last + 1));
  logs_.End(logs_.ContainerFolder({.uid = uid}, container) / fmt::format("{}.log", attempt));
  return pods.OnExited(uid, container, attempt, exit, now);
}

// Removes the logs of pods that are gone and whose containers have ended.
void PodRunner::RemoveLogs() {
  std::erase_if(vanished_, [this](const PodRef& pod) {
    if (pods_.Find(pod.uid) != nullptr) return false;
    Forget(pod);
    return true;
  });
}

void PodRunner::SaveClaims() {
  const bool failed_before = !saved_.ok();
  saved_ = Annotate(WriteAtomically(options_.state_dir / kCheckpointFile, pods_.Checkpoint(), 0600,
                                    ports_.before_write),
                    "the prepared claims cannot be recorded");
  if (!saved_.ok() && !failed_before) {
    ports_.log(
        fmt::format("{}; no claim is prepared or unprepared until they can be", Message(saved_)));
  }
  if (saved_.ok() && failed_before) ports_.log("the prepared claims are recorded again");
}

}  // namespace tahoma::sim
