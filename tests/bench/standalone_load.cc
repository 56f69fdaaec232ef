// Creates pods or gangs over HTTP against `controller --standalone` and measures until they are
// seen bound over an HTTP watch.
//
//   standalone_load SERVER pods 8000       one line: pods bound per second
//   standalone_load SERVER gangs 1000      gangs (four pods and four claims each) bound per second
//   standalone_load SERVER fleet 62500     nothing: makes that many nodes in UltraServers, each of
//                                          which publishes itself as one device
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
#include <list>
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
constexpr const char* kPods = "/api/v1/namespaces/default/pods";

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

void MakeNode(kube::Transport& api, const wire::Inventory& inventory, const dra::Publish& publish) {
  const std::string& name = inventory.node_name;
  Json metadata = {{"name", name}};
  if (inventory.ultra_server) {
    metadata["labels"] = {{"topology.k8s.aws/ultraserver-id", inventory.ultra_server->id}};
  }
  const Json ready = {{{"type", "Ready"}, {"status", "True"}}};
  const Json node = bench::Send(api, "/api/v1/nodes",
                                {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", metadata}});
  bench::Send(api, "/api/v1/nodes/" + name + "/status", {{"status", {{"conditions", ready}}}},
              "PATCH", "application/merge-patch+json");
  const auto slices = dra::CutIntoSlices(*dra::BuildPool(inventory, {.publish = publish}));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    bench::Send(api, "/apis/resource.k8s.io/v1/resourceslices",
                dra::SliceObject({inventory.node_name, node["metadata"]["uid"]},
                                 {.slice_count = slices.size()}, slices[i], i));
  }
}

void MakeTemplate(kube::Transport& api, int chips) {
  const Json request = {{"name", "neurons"},
                        {"exactly",
                         {{"deviceClassName", "neuron.aws.com"},
                          {"allocationMode", "ExactCount"},
                          {"count", chips}}}};
  bench::Send(api, "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
              {{"apiVersion", "resource.k8s.io/v1"},
               {"kind", "ResourceClaimTemplate"},
               {"metadata", {{"name", "chips"}}},
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

std::string Pod(const std::string& name, const std::string& gang) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}"{}}},"spec":{{)"
      R"("schedulerName":"tahoma","containers":[{{"name":"main","image":"none",)"
      R"("resources":{{"claims":[{{"name":"neurons"}}]}}}}],"resourceClaims":[)"
      R"({{"name":"neurons","resourceClaimTemplateName":"chips"}}]}}}})",
      name, gang.empty() ? "" : fmt::format(R"(,"labels":{{"tahoma.dev/gang":"{}"}})", gang));
}

void PostGang(Connection& to, const std::string& name) {
  to.Post("/apis/tahoma.dev/v1alpha1/namespaces/default/gangs",
          fmt::format(R"({{"apiVersion":"tahoma.dev/v1alpha1","kind":"Gang","metadata":)"
                      R"({{"name":"{}"}},"spec":{{"members":{},"shape":"4x4"}}}})",
                      name, kMembers));
  for (int i = 0; i < kMembers; ++i) to.Post(kPods, Pod(fmt::format("{}-{}", name, i), name));
}

// Creates everything from one thread over kConnections connections, each with the next pod or gang
// as soon as the one before is answered.
void Create(const std::string& address, bool gangs, int count) {
  std::list<Connection> connections;
  const int epoll = epoll_create1(0);
  int sent = 0;
  int answered = 0;
  const auto send_next = [&](Connection& connection) {
    if (sent == count) return;
    const int index = sent++;
    if (gangs) {
      PostGang(connection, fmt::format("g{}", index));
    } else {
      connection.Post(kPods, Pod(fmt::format("p{}", index), ""));
    }
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

// Nodes in UltraServers, 512 of them below each of the lowest network layers.
int RunFleet(const std::string& server, int count) {
  auto api = kube::HttpTransport::Create({.server = server});
  TAHOMA_CHECK_OK(api.status());
  bench::InParallel(count, [&](int i) {
    wire::Inventory inventory = InventoryOf(i, "trn2u.48xlarge");
    inventory.ultra_server = {.id = fmt::format("us-{}", i / kMembers), .node_id = i % kMembers};
    inventory.network_layers = {fmt::format("nn-{}", i / 16384), fmt::format("nn-b{}", i / 2048),
                                fmt::format("nn-c{}", i / 512)};
    MakeNode(**api, inventory, {.chips = false, .lnc1 = false, .lnc2 = false});
  });
  return 0;
}

int Run(const std::string& server, bool gangs, int count) {
  auto api = kube::HttpTransport::Create({.server = server});
  TAHOMA_CHECK_OK(api.status());
  kube::Transport& transport = **api;
  const int nodes = gangs ? count : (count + kChipsPerNode - 1) / kChipsPerNode;
  const dra::Publish chips = {.lnc1 = false, .lnc2 = false, .node = false};
  bench::InParallel(nodes,
                    [&](int i) { MakeNode(transport, InventoryOf(i, "trn2.48xlarge"), chips); });
  MakeTemplate(transport, gangs ? kChipsPerNode / kMembers : 1);

  bench::BoundPods bound(static_cast<std::size_t>(gangs ? count * kMembers : count));
  std::jthread watch([&] { bound.Watch(transport); });
  const auto begin = steady_clock::now();
  Create(server.substr(server.find("//") + 2), gangs, count);
  const bool all = bound.Wait();
  const std::chrono::duration<double> took = steady_clock::now() - begin;
  if (!all) {
    std::fprintf(stderr, "not everything was bound within the deadline\n");
    std::exit(1);  // the watch would go on
  }
  std::printf("%.0f\n", count / took.count());
  return 0;
}

}  // namespace
}  // namespace tahoma

int main(int argc, char** argv) {
  const std::string mode = argc == 4 ? argv[2] : "";
  const int count = argc == 4 ? std::atoi(argv[3]) : 0;
  if ((mode != "pods" && mode != "gangs" && mode != "fleet") || count < 1) {
    std::fprintf(stderr, "usage: standalone_load SERVER pods|gangs|fleet COUNT\n");
    return 2;
  }
  if (mode == "fleet") return tahoma::RunFleet(argv[1], count);
  return tahoma::Run(argv[1], mode == "gangs", count);
}
