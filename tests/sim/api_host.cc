#include "tests/sim/api_host.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "controller/apiserver/verbs/watch_stream.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::simulation {
namespace {

using json = Json;

constexpr std::array kCrds = {"charts/tahoma/crds/tahoma.dev_gangs.yaml",
                              "charts/tahoma/crds/tahoma.dev_queuecalendars.yaml",
                              "charts/tahoma/crds/tahoma.dev_maintenancewindows.yaml",
                              "charts/tahoma/crds/tahoma.dev_defragmentations.yaml",
                              "charts/tahoma/crds/tahoma.dev_queues.yaml",
                              "charts/tahoma/crds/tahoma.dev_capacityblockextensions.yaml",
                              "charts/tahoma/crds/tahoma.dev_capacityblockquotas.yaml",
                              "charts/tahoma/crds/tahoma.dev_capacityblockseries.yaml",
                              "charts/tahoma/crds/tahoma.dev_capacityblockwaitlistentries.yaml",
                              "charts/tahoma/crds/tahoma.dev_capacityreservations.yaml",
                              "charts/tahoma/crds/tahoma.dev_ultraservers.yaml",
                              "charts/tahoma/crds/tahoma.dev_capacityblocks.yaml"};
constexpr char kClasses[] = "/apis/resource.k8s.io/v1/deviceclasses";
constexpr std::chrono::milliseconds kNoWait{0};

json DeviceClass(const std::string& name, const std::string& expression) {
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "DeviceClass"},
          {"metadata", {{"name", name}}},
          {"spec", {{"selectors", json::array({json{{"cel", {{"expression", expression}}}}})}}}};
}

}  // namespace

Disk::Disk(World& world) : world_(world), faults_(std::make_shared<testing::FaultFileSystem>()) {}

absl::Status Disk::Open() {
  TAHOMA_ASSIGN_OR_RETURN(
      store_,
      controller::Store::Open({.dir = Folder(), .file_system = faults_, .single_threaded = true}));
  return absl::OkStatus();
}

void Disk::Close(bool power_cut) {
  store_.reset();
  if (power_cut) faults_->PowerCut(world_.rng);
  faults_->Heal();
}

void Disk::Replace() {
  TAHOMA_CHECK(store_ == nullptr);
  ++number_;
}

// Between two steps every commit is synced: a copy of the files is what a power cut would leave.
void Disk::Save() {
  std::filesystem::remove_all(Backup());
  std::filesystem::copy(Folder(), Backup(), std::filesystem::copy_options::recursive);
  has_backup_ = true;
}

void Disk::Restore() {
  TAHOMA_CHECK(has_backup_);
  Replace();
  std::filesystem::copy(Backup(), Folder(), std::filesystem::copy_options::recursive);
}

void ApiHost::RollBack() {
  Stop(false);
  disk_.Restore();
  ++rollbacks_;
}

absl::Status ApiHost::Start() {
  if (disk_.store() == nullptr) TAHOMA_RETURN_IF_ERROR(disk_.Open());
  auto server = controller::apiserver::ApiServer::Open(*disk_.store(), world_.clock,
                                                       {.seed = world_.rng.Next()});
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  ++life_;
  if (absl::Status installed = Install(); !installed.ok()) {
    server_.reset();
    return installed;
  }
  controllers_link_ = std::make_unique<Link>(world_, *this, "controllers");
  controllers_ = std::make_unique<controller::apiserver::Controllers>(
      [this] { return server_->Kinds(); }, server_->objects(), *controllers_link_,
      controller::apiserver::ControllerOptions{.protect_claims = world_.swarm.one_process});
  WakeControllers();
  return absl::OkStatus();
}

absl::Status ApiHost::Install() {
  for (const char* crd : kCrds) {
    std::ifstream file(crd);
    if (!file) return NotFound("{} is not here: start in the source tree", crd);
    TAHOMA_RETURN_IF_ERROR(
        server_->InstallCrd(std::string((std::istreambuf_iterator<char>(file)), {})));
  }
  const std::string type = "device.attributes[\"neuron.aws.com\"].resourceType";
  const std::string driver = "device.driver == \"neuron.aws.com\" && ";
  const json classes[] = {
      DeviceClass("neuron.aws.com", driver + type + " in [\"neuron_device\", \"neuron_node\"]"),
      DeviceClass("neuroncore.tahoma.dev", driver + type + " == \"neuron_core\""),
      DeviceClass("nics", "device.driver == \"nics.example.com\"")};
  for (const json& one : classes) {
    const Answer made = Call("POST", kClasses, one);
    if (made.status != 201 && made.status != 409) {
      return Unavailable("a DeviceClass was answered with {}", made.status);
    }
  }
  return absl::OkStatus();
}

void ApiHost::Stop(bool power_cut) {
  controllers_.reset();
  controllers_link_.reset();
  server_.reset();
  disk_.Close(power_cut);
}

rest::Response ApiHost::Handle(const kube::Request& request, const std::string& client) {
  rest::Request call;
  call.method = request.method;
  call.target = request.target;
  const std::size_t question = request.target.find('?');
  call.path = request.target.substr(0, question);
  if (question != std::string::npos) call.query = request.target.substr(question + 1);
  call.headers = request.headers;
  call.headers.emplace_back("User-Agent", client);
  call.body = request.Text();
  call.peer = "simulation";
  rest::Response response = server_->Handle(call);
  world_.Mix(client);
  world_.Mix(call.method);
  world_.Mix(call.target);
  world_.Mix(std::to_string(response.status));
  if (world_.verbose && call.method != "GET") {
    fmt::print("{:12.6f} {} {} {} {} {}\n",
               std::chrono::duration<double>(world_.events.elapsed()).count(), client, call.method,
               call.target, response.status,
               response.status < 300 ? call.body.substr(0, 400) : response.body.substr(0, 300));
  }
  return response;
}

Answer ApiHost::Call(const std::string& method, const std::string& target, const json& body,
                     const std::string& type) {
  if (!up()) return {};
  const rest::Response response = Handle({.method = method,
                                          .target = target,
                                          .headers = {{"Content-Type", type}},
                                          .body = body.is_null() ? "" : body.dump()},
                                         "user");
  return {.status = response.status, .body = TryParseJson(response.body)};
}

void ApiHost::WakeControllers() { WakeControllersAfter(world_.Latency()); }

void ApiHost::WakeControllersAfter(Duration delay) {
  const Duration when = world_.events.elapsed() + delay;
  if (controllers_at_ && *controllers_at_ <= when) return;
  controllers_at_ = when;
  world_.events.After(delay, Urgency::kNormal, [this, when] {
    if (controllers_at_ == when) StepControllers();
  });
}

void ApiHost::StepControllers() {
  controllers_at_.reset();
  if (!up()) return;
  const WallTime now = world_.clock.WallNow();
  controllers_->Step(now, 1 + static_cast<int>(world_.rng.Below(4)));
  if (const std::optional<WallTime> due = controllers_->NextDue()) {
    WakeControllersAfter(std::max<Duration>(*due - now, std::chrono::milliseconds(1)));
  }
}

kube::Response Link::OddAnswer() {
  constexpr std::array kCodes = {500, 500, 502, 503, 504};
  const int code = kCodes[world_.rng.Below(kCodes.size())];
  world_.Meet("odd answer");
  return {.status = code, .body = world_.rng.Chance(1, 2) ? "<html>oops</html>" : ""};
}

absl::StatusOr<kube::Response> Link::Send(const kube::Request& request) {
  if (world_.Happens(world_.swarm.odd_answer)) {
    if (world_.rng.Chance(1, 2)) (void)SendWith(request, Fate::kGood);
    return OddAnswer();
  }
  Fate fate = Fate::kGood;
  if (world_.Happens(world_.swarm.lose_request)) {
    fate = Fate::kRequestLost;
  } else if (world_.Happens(world_.swarm.lose_answer)) {
    fate = Fate::kAnswerLost;
  }
  return SendWith(request, fate);
}

absl::StatusOr<kube::Response> Link::SendWith(const kube::Request& request, Fate fate) {
  if (!host_.up() || fate == Fate::kRequestLost) return Unavailable("connection refused");
  rest::Response response = host_.Handle(request, client_);
  if (fate == Fate::kAnswerLost) return Unavailable("connection reset");
  kube::Response answer{.status = response.status, .headers = response.headers};
  answer.body = std::move(response.body);
  return answer;
}

absl::StatusOr<kube::Response> Link::Stream(const kube::Request& request,
                                            const kube::LineSink& sink, std::chrono::milliseconds) {
  if (!host_.up() || world_.Happens(world_.swarm.lose_request)) {
    return Unavailable("connection refused");
  }
  if (std::exchange(stream_broken_, false)) return Unavailable("connection reset");
  if (world_.Happens(world_.swarm.break_watch)) return kube::Response{.status = 410};
  const rest::Response response = host_.Handle(request, client_);
  if (!response.source) return kube::Response{.status = response.status, .body = response.body};
  // A read that gives nothing is not the end: it may have passed over events that were not asked
  // for. More such reads in a row than the server has events for are.
  const auto most_events = static_cast<std::size_t>(host_.version());
  const std::size_t most_empty = 2 + most_events / controller::apiserver::kWatchEventsPerRead;
  std::string text;
  for (std::size_t empty = 0, had = 0; empty < most_empty; had = text.size()) {
    if (!response.source(text, kNoWait)) break;
    empty = text.size() == had ? empty + 1 : 0;
  }
  if (response.closed) response.closed();
  const bool is_nodes = request.target.starts_with("/api/v1/nodes?");
  std::size_t from = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', from)) {
    const std::string_view line = std::string_view(text).substr(from, end - from);
    from = end + 1;
    if (world_.Happens(world_.swarm.repeat_event) && !sink(line)) break;
    if (is_nodes && world_.Happens(world_.swarm.node_flicker)) {
      json event = ParseJson(line);
      if (event["type"] == "MODIFIED") {
        world_.Meet("node flickers");
        event["type"] = "DELETED";
        if (!sink(event.dump())) break;
        event["type"] = "ADDED";
        if (!sink(event.dump())) break;
        continue;
      }
    }
    if (!sink(line)) break;
    if (world_.Happens(world_.swarm.break_watch)) break;
  }
  return kube::Response{.status = 200};
}

}  // namespace tahoma::simulation
