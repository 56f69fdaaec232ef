#include "tests/integration/ultraserver_nodes.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "lib/kube/http_transport.h"
#include "tests/integration/node_claims.h"
#include "tests/support/patience.h"

namespace tahoma::testing {
namespace {

constexpr std::chrono::seconds kSoon = Patience(20);

}  // namespace

UltraServerNodes::UltraServerNodes(const std::string& peer_timeout) : programs_(kCount) {
  for (int node = 0; node < kCount; ++node) {
    WriteConfig(node, peer_timeout);
    Start(node);
  }
}

std::string UltraServerNodes::Path(const std::string& name, int node) const {
  return dir_.path() + "/" + name + std::to_string(node);
}

void UltraServerNodes::Start(int node) {
  std::filesystem::remove(Path("ports", node));
  programs_[static_cast<std::size_t>(node)] = std::make_unique<ChildProgram>(
      std::vector<std::string>{Bin("sim-node"), "--config", Path("config", node)},
      Path("log", node));
}

std::string UltraServerNodes::Admin(int node, const std::string& method, const std::string& target,
                                    const std::string& body) const {
  std::ifstream ports(Path("ports", node));
  std::string key;
  std::string address;
  if (!(ports >> key >> address) || address.size() < 3) return "";
  address = address.substr(1, address.size() - 2);
  auto api = kube::HttpTransport::Create({.server = "http://" + address});
  if (!api.ok()) return "";
  const auto answer =
      (*api)->Send({.method = method, .target = target, .headers = {}, .body = body});
  return answer.ok() ? answer->body : "";
}

std::string UltraServerNodes::Claim(int node, const std::string& token) {
  return ClaimChips(
      Path("socket", node), 16,
      {.name = fmt::format("claim-{}", node), .ultra_server_mode = kCount, .token = token},
      [&](const std::function<bool()>& is_given) {
        return (*this)[node].WaitUntil(is_given, kSoon);
      });
}

std::unique_ptr<ChildProgram> UltraServerNodes::RunRank(int node, const std::string& token,
                                                        const std::string& job,
                                                        const std::vector<std::string>& command,
                                                        int world_size) const {
  return std::make_unique<ChildProgram>(
      PodCommand({.socket = Path("socket", node) + ".pods/workload.sock",
                  .token = token,
                  .job = job,
                  .rank = node,
                  .world_size = world_size},
                 command),
      Path(job, node));
}

void UltraServerNodes::WriteConfig(int node, const std::string& peer_timeout) const {
  std::string peers;
  for (int peer = 0; peer < kCount; ++peer) {
    if (peer == node) continue;
    peers += fmt::format("  - {{nodeId: {}, address: \"unix:{}\"}}\n", peer, Path("link", peer));
  }
  std::ofstream(Path("config", node)) << fmt::format(
      "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nnodeName: n{0}\n"
      "instanceType: trn2u.48xlarge\nlinkAddress: unix:{1}\nnodeSocket: {2}\nstateDir: {3}\n"
      "portFile: {4}\nultraServer:\n  id: us-1\n  nodeId: {0}\n  peerTimeout: {5}\n  peers:\n{6}",
      node, Path("link", node), Path("socket", node), Path("state", node), Path("ports", node),
      peer_timeout, peers);
}

}  // namespace tahoma::testing
