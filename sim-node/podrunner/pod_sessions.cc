#include "sim-node/podrunner/pod_sessions.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "lib/base/ascii.h"
#include "lib/base/status.h"
#include "lib/rest/websocket.h"
#include "sim-node/podrunner/container_session.h"
#include "sim-node/podrunner/port_forward.h"

namespace tahoma::sim {
namespace {

// Each takes a thread of the log server, which has more for logs.
constexpr int kSessionsMost = 200;
constexpr std::size_t kArgumentsMost = 4096;

rest::Response RefuseText(int status, std::string_view why) {
  return rest::Response::Text(status, std::string(why) + "\n");
}

rest::Response RefuseHandshake(const rest::Request& request, const absl::Status& why) {
  return RefuseText(rest::AsksUpgrade(request, "websocket") ? 400 : 426, Message(why));
}

// Returns all values of a query key, decoded, in their order.
std::vector<std::string> QueryValues(const rest::Request& request, std::string_view key) {
  std::vector<std::string> values;
  for (std::string_view rest = request.query; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != key || values.size() >= kArgumentsMost) continue;
    const auto value =
        rest::PercentDecode(pair.substr(std::min(equals + 1, pair.size())), /*plus_is_space=*/true);
    values.push_back(value.value_or(""));
  }
  return values;
}

// As an API server reads flags: Python's clients write "True".
bool Asks(const rest::Request& request, const char* key) {
  const std::optional<std::string> text = request.query_value(key);
  return text && *text != "0" && !EqualsIgnoringCase(*text, "false");
}

}  // namespace

struct PodSessions::Wish {
  ContainerSession::Options options;
  std::vector<std::string> command = {};
};

void PodSessions::Begin(PosixSpawner& spawner, ImageMap images) {
  const MutexLock lock(mutex_);
  spawner_ = &spawner;
  images_ = std::move(images);
}

void PodSessions::End() {
  const MutexLock lock(mutex_);
  spawner_ = nullptr;
}

absl::StatusOr<std::string> PodSessions::Running(const rest::Request& request,
                                                 std::string_view container) const {
  const std::string name_space(request.param("namespace"));
  const std::string pod(request.param("pod"));
  const std::string uid = pods_->UidOf(name_space, pod);
  const MutexLock lock(mutex_);
  if (uid.empty()) return NotFound("pod {}/{} is not on this node", name_space, pod);
  if (spawner_ == nullptr) return Unavailable("the pod runner does not run");
  std::string id = spawner_->FindRunning(uid, std::string(container));
  if (id.empty()) return NotFound("container not found (\"{}\")", container);
  return id;
}

void PodSessions::EndIn(const std::string& id) {
  const MutexLock lock(mutex_);
  if (spawner_ != nullptr) spawner_->EndIn(id);
}

std::shared_ptr<ContainerSession> PodSessions::StartExec(const std::string& id, const Wish& wish) {
  const std::shared_ptr<const Launch> launch =
      spawner_ == nullptr ? nullptr : spawner_->LaunchOf(id);
  const auto failed = [](const absl::Status& why) {
    return std::make_shared<ContainerSession>(
        FailedStatus(fmt::format("error executing command in container: {}", Message(why))));
  };
  if (launch == nullptr) return failed(NotFound("container {} does not run", id));
  const auto path = launch->environment.find("PATH");
  const auto program =
      FindCommand(images_, launch->image, wish.command,
                  path == launch->environment.end() ? std::string() : path->second);
  if (!program.ok()) return failed(program.status());
  const ContainerSession::Options& options = wish.options;
  auto process = spawner_->Run(
      id, *program, {.in = options.in, .out = options.out, .err = options.err, .tty = options.tty});
  if (!process.ok()) return failed(process.status());
  return std::make_shared<ContainerSession>(options, *std::move(process));
}

std::shared_ptr<ContainerSession> PodSessions::StartAttach(const std::string& id,
                                                           const Wish& wish) {
  const std::shared_ptr<const Launch> launch =
      spawner_ == nullptr ? nullptr : spawner_->LaunchOf(id);
  auto attachment =
      launch != nullptr
          ? spawner_->Attach(id)
          : absl::StatusOr<std::shared_ptr<Attachment>>(NotFound("container {} does not run", id));
  if (!attachment.ok()) {
    return std::make_shared<ContainerSession>(FailedStatus(Message(attachment.status())));
  }
  ContainerSession::Options options = wish.options;
  if (launch != nullptr && launch->one_in) {
    options.on_end_in = [self = weak_from_this(), id] {
      if (const auto sessions = self.lock()) sessions->EndIn(id);
    };
  }
  return std::make_shared<ContainerSession>(std::move(options), *std::move(attachment));
}

rest::Response PodSessions::Answer(const rest::Request& request, const Wish& wish, bool exec) {
  const auto id = Running(request, request.param("container"));
  if (!id.ok()) return RefuseText(absl::IsNotFound(id.status()) ? 404 : 503, Message(id.status()));
  if (exec && wish.command.empty()) {
    return RefuseText(400, "you must specify at least one command for the container");
  }
  const auto protocol =
      rest::WebSocketProtocol(request, {"v5.channel.k8s.io", "v4.channel.k8s.io"});
  if (!protocol.ok()) return RefuseHandshake(request, protocol.status());
  return Serve(request, *protocol, [&]() -> rest::UpgradeStep {
    const MutexLock again(mutex_);
    return [session = exec ? StartExec(*id, wish) : StartAttach(*id, wish)](
               rest::Upgraded& peer, std::chrono::milliseconds wait) {
      return session->Step(peer, wait);
    };
  });
}

rest::Response PodSessions::Serve(const rest::Request& request, const std::string& protocol,
                                  const std::function<rest::UpgradeStep()>& start) {
  if (open_.fetch_add(1) >= kSessionsMost) {
    open_.fetch_sub(1);
    return RefuseText(429, fmt::format("{} sessions are open on this node", kSessionsMost));
  }
  rest::Response answer = rest::AcceptWebSocket(request, protocol);
  answer.upgrade = start();
  answer.closed = [self = shared_from_this()] { self->open_.fetch_sub(1); };
  return answer;
}

rest::Response PodSessions::Exec(const rest::Request& request) {
  const bool tty = Asks(request, "tty");
  return Answer(request,
                {.options = {.in = Asks(request, "stdin"),
                             .out = Asks(request, "stdout"),
                             .err = Asks(request, "stderr") && !tty,
                             .tty = tty},
                 .command = QueryValues(request, "command")},
                true);
}

rest::Response PodSessions::Attach(const rest::Request& request) {
  return Answer(request,
                {.options = {.in = Asks(request, "stdin"),
                             .out = Asks(request, "stdout"),
                             .err = Asks(request, "stderr")}},
                false);
}

rest::Response PodSessions::Forward(const rest::Request& request) {
  constexpr std::size_t kPortsMost = 64;
  const auto id = Running(request, "");
  if (!id.ok()) return RefuseText(absl::IsNotFound(id.status()) ? 404 : 503, Message(id.status()));
  const auto protocol = rest::WebSocketProtocol(
      request, {std::string(kSpdyPortForward), "v4.channel.k8s.io", "portforward.k8s.io"});
  if (!protocol.ok()) return RefuseHandshake(request, protocol.status());
  PortForward::Options options{.pod = std::string(request.param("pod")),
                               .spdy = *protocol == kSpdyPortForward};
  for (const std::string& list : QueryValues(request, "ports")) {
    for (const std::string_view text : tahoma::Split(list, ',')) {
      std::uint16_t port = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
      if (error != std::errc() || end != text.data() + text.size() || port == 0 ||
          options.ports.size() >= kPortsMost) {
        return RefuseText(400, fmt::format("ports has \"{}\"; expected at most {} ports from 1 to "
                                           "65535",
                                           text, kPortsMost));
      }
      options.ports.push_back(port);
    }
  }
  if (!options.spdy && options.ports.empty()) {
    return RefuseText(400, "query parameter \"ports\" is required");
  }
  return Serve(request, *protocol, [&]() -> rest::UpgradeStep {
    const MutexLock lock(mutex_);
    const auto launch = spawner_ == nullptr ? nullptr : spawner_->LaunchOf(*id);
    options.user = launch != nullptr && launch->user ? *launch->user : geteuid();
    return [session = std::make_shared<PortForward>(options)](rest::Upgraded& peer,
                                                              std::chrono::milliseconds wait) {
      return session->Step(peer, wait);
    };
  });
}

void InstallSessionRoutes(rest::Server& server, const std::shared_ptr<PodSessions>& sessions) {
  server.Route("GET", "/exec/{namespace}/{pod}/{container}",
               [sessions](const rest::Request& request) { return sessions->Exec(request); });
  server.Route("GET", "/attach/{namespace}/{pod}/{container}",
               [sessions](const rest::Request& request) { return sessions->Attach(request); });
  server.Route("GET", "/portForward/{namespace}/{pod}",
               [sessions](const rest::Request& request) { return sessions->Forward(request); });
}

}  // namespace tahoma::sim
