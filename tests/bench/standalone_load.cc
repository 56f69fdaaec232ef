// Creates pods or gangs over HTTP against `controller --standalone` and measures until all are
// seen bound over an HTTP watch.
//
//   standalone_load SERVER pods 8000       one line: pods bound per second
//   standalone_load SERVER gangs 1000      gangs (four pods and four claims each) bound per second
//   standalone_load SERVER gangs 1000 500  the same while 500 gangs wait for nodes that are full;
//                                          says "ready" when the load begins
//   standalone_load SERVER replace 2048    milliseconds from the loss of a pod of a gang of 2,048
//                                          until the next pod is seen bound, median of five
//   standalone_load SERVER fleet 62500     nothing: makes so many nodes in UltraServers, each with
//                                          a slice of one device for the whole node
//
// For pods and gangs the fleet is made first: Ready nodes of trn2.48xlarge with one ResourceSlice
// of 16 chips each. No kubelet takes part: bound is where scheduling ends. Load generator and
// controller share the machine.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "dra-plugin/inventory/pool.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/hw/catalogue.h"
#include "lib/kube/http_transport.h"
#include "tests/bench/api_load.h"

namespace tahoma {
namespace {

using std::chrono::steady_clock;

constexpr int kConnections = 32;
constexpr int kChipsPerNode = 16;
constexpr int kMembers = 4;
constexpr int kFullNodes = 16;  // for which gangs wait
constexpr int kLosses = 5;
constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kGangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";
constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
constexpr const char* kMergePatch = "application/merge-patch+json";

std::string NodeName(int index) { return "node-" + std::to_string(index); }

wire::Inventory InventoryOf(int index, const std::string& instance_type) {
  const hw::InstanceType& type = *hw::FindInstanceType(instance_type);
  wire::Inventory inventory;
  inventory.node_name = NodeName(index);
  inventory.instance_type = type.name;
  inventory.driver_version = "2.26.10.0";
  for (int chip = 0; chip < type.chip_count(); ++chip) {
    inventory.chips.push_back({.index = chip, .healthy = true, .lnc = 2});
  }
  return inventory;
}

// `pool`: a label by which pods choose the node.
void MakeNode(kube::Transport& api, const wire::Inventory& inventory, const dra::Publish& publish,
              const std::string& pool = "none") {
  const std::string& name = inventory.node_name;
  Json metadata = {{"name", name}, {"labels", {{"pool", pool}}}};
  if (inventory.ultra_server) {
    metadata["labels"]["topology.k8s.aws/ultraserver-id"] = inventory.ultra_server->id;
  }
  const Json ready = {{{"type", "Ready"}, {"status", "True"}}};
  const Json node = bench::Send(api, "/api/v1/nodes",
                                {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", metadata}});
  bench::Send(api, "/api/v1/nodes/" + name + "/status", {{"status", {{"conditions", ready}}}},
              "PATCH", kMergePatch);
  bench::Send(api, kLeases, {{"metadata", {{"name", name}}}});
  const auto slices = dra::CutIntoSlices(*dra::BuildPool(inventory, {.publish = publish}));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    bench::Send(api, "/apis/resource.k8s.io/v1/resourceslices",
                dra::SliceObject({inventory.node_name, node["metadata"]["uid"]},
                                 {.slice_count = slices.size()}, slices[i], i));
  }
}

void MakeTemplate(kube::Transport& api, const std::string& name, int chips) {
  const Json request = {{"name", "neurons"},
                        {"exactly",
                         {{"deviceClassName", "neuron.aws.com"},
                          {"allocationMode", "ExactCount"},
                          {"count", chips}}}};
  bench::Send(api, "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
              {{"apiVersion", "resource.k8s.io/v1"},
               {"kind", "ResourceClaimTemplate"},
               {"metadata", {{"name", name}}},
               {"spec", {{"spec", {{"devices", {{"requests", {request}}}}}}}}});
}

// One keep-alive connection. Requests of one piece of work are sent in one write and their answers
// awaited together (HTTP pipelining), so the client costs little of the cores it shares.
class Connection {
 public:
  explicit Connection(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
    TAHOMA_CHECK(inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) == 1);
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    TAHOMA_CHECK(fd_ >= 0 && connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    const int yes = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }

  void Post(std::string_view path, std::string_view body) {
    out_ += fmt::format(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\n"
        "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        path, body.size(), body);
    ++unanswered_;
  }
  void Send() {
    TAHOMA_CHECK(write(fd_, out_.data(), out_.size()) == static_cast<ssize_t>(out_.size()));
    out_.clear();
  }
  // Reads what has come. True when every request is answered; ends the program on any answer but
  // 201: a benchmark of failures says nothing.
  bool Read() {
    std::array<char, 65536> bytes;
    const ssize_t got = read(fd_, bytes.data(), bytes.size());
    TAHOMA_CHECK(got > 0);
    in_.append(bytes.data(), static_cast<std::size_t>(got));
    std::size_t at = 0;
    while (const std::size_t size = AnswerSize(std::string_view(in_).substr(at))) {
      at += size;
      --unanswered_;
    }
    in_.erase(0, at);
    return unanswered_ == 0;
  }

 private:
  // Returns the size of the first answer, head and body; 0 while it is incomplete.
  static std::size_t AnswerSize(std::string_view text) {
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t head = text.find("\r\n\r\n");
    if (head == std::string_view::npos) return 0;
    const std::size_t length = text.find(kLength);
    TAHOMA_CHECK(length < head);
    const std::size_t size = head + 4 + std::strtoul(&text[length + kLength.size()], nullptr, 10);
    if (size > text.size()) return 0;
    if (!text.starts_with("HTTP/1.1 201 ")) {
      std::fprintf(stderr, "%.*s\n", static_cast<int>(size), text.data());
      std::exit(1);
    }
    return size;
  }

  int fd_ = -1;
  std::string out_;
  std::string in_;
  int unanswered_ = 0;
};

std::string Pod(const std::string& name, const std::string& gang,
                const std::string& claims = "chips", const std::string& pool = "none") {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}"{}}},"spec":{{)"
      R"("schedulerName":"tahoma","nodeSelector":{{"pool":"{}"}},)"
      R"("containers":[{{"name":"main","image":"none",)"
      R"("resources":{{"claims":[{{"name":"neurons"}}]}}}}],"resourceClaims":[)"
      R"({{"name":"neurons","resourceClaimTemplateName":"{}"}}]}}}})",
      name, gang.empty() ? "" : fmt::format(R"(,"labels":{{"tahoma.dev/gang":"{}"}})", gang), pool,
      claims);
}

std::string Gang(const std::string& name, int members, const std::string& more) {
  return fmt::format(
      R"({{"apiVersion":"tahoma.dev/v1alpha1","kind":"Gang","metadata":{{"name":"{}"}},)"
      R"("spec":{{"members":{},{}}}}})",
      name, members, more);
}

void PostGang(Connection& to, const std::string& name) {
  to.Post(kGangs, Gang(name, kMembers, R"("shape":"4x4")"));
  for (int i = 0; i < kMembers; ++i) to.Post(kPods, Pod(fmt::format("{}-{}", name, i), name));
}

// Posts what belongs to a number.
using PostOne = std::function<void(Connection&, int)>;

// Creates everything from one thread over kConnections connections, each with the next number as
// soon as the one before is answered.
void Create(const std::string& server, int count, const PostOne& post) {
  const std::string address = server.substr(server.find("//") + 2);
  std::list<Connection> connections;
  const int epoll = epoll_create1(0);
  int sent = 0;
  int answered = 0;
  const auto send_next = [&](Connection& connection) {
    if (sent == count) return;
    post(connection, sent++);
    connection.Send();
  };
  for (int i = 0; i < std::min(kConnections, count); ++i) {
    Connection& connection = connections.emplace_back(address);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
    TAHOMA_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, connection.fd(), &event) == 0);
    send_next(connection);
  }
  std::array<epoll_event, kConnections> ready{};
  while (answered < count) {
    const int most = epoll_wait(epoll, ready.data(), kConnections, -1);
    for (int i = 0; i < most; ++i) {
      auto& connection = *static_cast<Connection*>(ready[static_cast<std::size_t>(i)].data.ptr);
      if (!connection.Read()) continue;
      ++answered;
      send_next(connection);
    }
  }
  close(epoll);
}

// A node of an UltraServer, of which 512 are below each of the lowest network layers.
wire::Inventory MemberOf(int i) {
  wire::Inventory inventory = InventoryOf(i, "trn2u.48xlarge");
  inventory.ultra_server = {.id = fmt::format("us-{}", i / kMembers), .node_id = i % kMembers};
  inventory.network_layers = {fmt::format("nn-{}", i / 16384), fmt::format("nn-b{}", i / 2048),
                              fmt::format("nn-c{}", i / 512)};
  return inventory;
}

int RunFleet(kube::Transport& api, int count) {
  bench::InParallel(count, [&](int i) {
    MakeNode(api, MemberOf(i), {.chips = false, .lnc1 = false, .lnc2 = false});
  });
  return 0;
}

// Runs `create` and returns the seconds until so many pods were seen bound.
double SecondsUntilBound(kube::Transport& api, int pods, const std::function<void()>& create) {
  bench::BoundPods bound(static_cast<std::size_t>(pods));
  std::jthread watch([&] { bound.Watch(api); });
  const auto begin = steady_clock::now();
  create();
  const bool all = bound.Wait();
  const std::chrono::duration<double> took = steady_clock::now() - begin;
  if (!all) {
    std::fprintf(stderr, "not everything was bound within the deadline\n");
    std::exit(1);  // the watch would go on
  }
  return took.count();
}

// Renews the leases of so many nodes: a node with an old lease is lost.
void KeepAlive(kube::Transport& api, int nodes, const std::stop_token& stop) {
  for (int beat = 0; !stop.stop_requested(); ++beat) {
    const std::string time = fmt::format("2026-11-29T00:00:00.{:06}Z", beat);
    for (int i = 0; i < nodes && !stop.stop_requested(); ++i) {
      bench::Send(api, fmt::format("{}/{}", kLeases, NodeName(i)),
                  {{"spec", {{"renewTime", time}}}}, "PATCH", kMergePatch);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

constexpr dra::Publish kChipsAlone = {.lnc1 = false, .lnc2 = false, .node = false};

// Fills some nodes, and makes gangs of one pod that wait for those nodes and say why.
void MakeWaiting(kube::Transport& api, const std::string& server, int waiting) {
  MakeTemplate(api, "whole", kChipsPerNode);
  SecondsUntilBound(api, kFullNodes, [&] {
    for (int i = 0; i < kFullNodes; ++i) {
      bench::Send(api, kPods, ParseJson(Pod(fmt::format("full-{}", i), "", "whole", "full")));
    }
  });
  Create(server, waiting, [](Connection& to, int i) {
    const std::string name = fmt::format("w{}", i);
    to.Post(kGangs, Gang(name, 1, R"("shape":"4x4")"));
    to.Post(kPods, Pod(name + "-0", name, "whole", "full"));
  });
  const auto told = [&] {
    const Json pods = bench::Get(api, kPods);
    return std::ranges::all_of(pods["items"], [](const Json& pod) {
      return pod["spec"].contains("nodeName") ||
             (pod.contains("status") && pod["status"].contains("conditions"));
    });
  };
  while (!told()) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// Pods or gangs; `waiting`: gangs that wait meanwhile, nullopt: nobody asks when it begins.
int Run(kube::Transport& api, const std::string& server, bool gangs, int count,
        std::optional<int> waiting) {
  const int nodes = gangs ? count : (count + kChipsPerNode - 1) / kChipsPerNode;
  bench::InParallel(nodes,
                    [&](int i) { MakeNode(api, InventoryOf(i, "trn2.48xlarge"), kChipsAlone); });
  MakeTemplate(api, "chips", gangs ? kChipsPerNode / kMembers : 1);
  std::jthread alive;
  if (waiting) {
    bench::InParallel(kFullNodes, [&](int i) {
      MakeNode(api, InventoryOf(nodes + i, "trn2.48xlarge"), kChipsAlone, "full");
    });
    alive = std::jthread(
        [&](const std::stop_token& stop) { KeepAlive(api, nodes + kFullNodes, stop); });
    MakeWaiting(api, server, *waiting);
    std::puts("ready");
  }
  std::fflush(stdout);
  const int before = waiting ? kFullNodes : 0;
  const double seconds = SecondsUntilBound(api, before + (gangs ? count * kMembers : count), [&] {
    Create(server, count, [&](Connection& to, int i) {
      if (gangs) {
        PostGang(to, fmt::format("g{}", i));
      } else {
        to.Post(kPods, Pod(fmt::format("p{}", i), ""));
      }
    });
  });
  std::printf("%.0f\n", count / seconds);
  return 0;
}

// Says of a pod as a kubelet does: the pod runs and is ready.
void MakeReady(kube::Transport& api, const std::string& pod) {
  const Json ready = {{{"type", "Ready"}, {"status", "True"}}};
  bench::Send(api, fmt::format("{}/{}/status", kPods, pod),
              {{"status", {{"phase", "Running"}, {"conditions", ready}}}}, "PATCH", kMergePatch);
}

void WaitUntilItRuns(kube::Transport& api) {
  const auto runs = [&] {
    const Json gang = bench::Get(api, fmt::format("{}/big", kGangs));
    return gang.contains("status") && gang["status"].value("phase", "") == "Running";
  };
  while (!runs()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

// Deletes a pod of the gang, makes the next one, and returns the milliseconds until that is bound.
double ReplaceOne(kube::Transport& api, int number) {
  const auto begin = steady_clock::now();
  bench::Send(api, fmt::format("{}/p{}", kPods, 97 * number), {{"gracePeriodSeconds", 0}},
              "DELETE");
  const std::string next = fmt::format("next-{}", number);
  bench::Send(api, kPods, ParseJson(Pod(next, "big")));
  while (!bench::Get(api, fmt::format("{}/{}", kPods, next))["spec"].contains("nodeName")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::chrono::duration<double, std::milli> took = steady_clock::now() - begin;
  MakeReady(api, next);
  WaitUntilItRuns(api);
  return took.count();
}

int RunReplace(kube::Transport& api, const std::string& server, int count) {
  bench::InParallel(count, [&](int i) { MakeNode(api, MemberOf(i), kChipsAlone); });
  MakeTemplate(api, "chips", kChipsPerNode);
  bench::Send(api, kGangs,
              ParseJson(Gang("big", count,
                             fmt::format(R"("shape":"4x4x4","slices":{},"failurePolicy":"Replace")",
                                         count / kMembers))));
  SecondsUntilBound(api, count, [&] {
    Create(server, count,
           [](Connection& to, int i) { to.Post(kPods, Pod(fmt::format("p{}", i), "big")); });
  });
  bench::InParallel(count, [&](int i) { MakeReady(api, fmt::format("p{}", i)); });
  WaitUntilItRuns(api);
  std::vector<double> times;
  for (int i = 0; i < kLosses; ++i) times.push_back(ReplaceOne(api, i));
  std::ranges::sort(times);
  std::printf("%.1f\n", times[kLosses / 2]);
  return 0;
}

}  // namespace
}  // namespace tahoma

int main(int argc, char** argv) {
  const std::string mode = argc > 3 ? argv[2] : "";
  const int count = argc > 3 ? std::atoi(argv[3]) : 0;
  const auto waiting = argc > 4 ? std::optional<int>(std::atoi(argv[4])) : std::nullopt;
  const bool known = mode == "pods" || mode == "gangs" || mode == "fleet" || mode == "replace";
  if (!known || count < 1) {
    std::fprintf(stderr,
                 "usage: standalone_load SERVER pods|gangs|fleet|replace COUNT [WAITING]\n");
    return 2;
  }
  const std::string server = argv[1];
  auto api = tahoma::kube::HttpTransport::Create({.server = server});
  TAHOMA_CHECK_OK(api.status());
  if (mode == "fleet") return tahoma::RunFleet(**api, count);
  if (mode == "replace") return tahoma::RunReplace(**api, server, count);
  return tahoma::Run(**api, server, mode == "gangs", count, waiting);
}
