#include "tests/integration/ultraserver_nodes.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace tahoma::testing {

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
