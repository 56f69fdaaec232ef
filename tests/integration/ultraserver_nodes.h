// Four sim-node programs that form one UltraServer, without a pod runner.
//
//   UltraServerNodes nodes(/*peer_timeout=*/"10s");
//   nodes[2].Kill(SIGKILL);
//   nodes.Start(2);
//   wire::Client client("unix:" + nodes.Path("socket", 2));
//
// Thread safety: belongs to one thread.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/child_program.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {

class UltraServerNodes {
 public:
  static constexpr int kCount = 4;

  // Starts all four. `peer_timeout` is in their configuration.
  explicit UltraServerNodes(const std::string& peer_timeout = "10s");

  // Returns a node's "config", "socket", "link", "state", "ports" or "log", or a file of the test.
  std::string Path(const std::string& name, int node) const;
  // Starts a program that has ended; its "ports" file appears when it serves.
  void Start(int node);
  // Returns the answer of the node's admin API; empty while it does not answer.
  std::string Admin(int node, const std::string& method, const std::string& target,
                    const std::string& body = "") const;
  // Waits until the node serves, makes a claim of all its chips as dra-plugin does, and returns the
  // claim's token. Asks again, as a kubelet does, until the four nodes have elected their
  // UltraServer. `token` is the claim's token from before a restart of the node.
  std::string Claim(int node, const std::string& token = "");
  // Runs `command` as the program of a pod on the node: rank `node` of the job, with the token. The
  // log is the node's file `job`.
  std::unique_ptr<ChildProgram> RunRank(int node, const std::string& token, const std::string& job,
                                        const std::vector<std::string>& command,
                                        int world_size = kCount) const;
  ChildProgram& operator[](int node) { return *programs_[static_cast<std::size_t>(node)]; }

 private:
  void WriteConfig(int node, const std::string& peer_timeout) const;

  TempDir dir_;
  std::vector<std::unique_ptr<ChildProgram>> programs_;
};

}  // namespace tahoma::testing
