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

  // Starts all four. `peer_timeout` as in their configuration.
  explicit UltraServerNodes(const std::string& peer_timeout = "10s");

  // A node's "config", "socket", "link", "state", "ports" or "log", or a file of the test's own.
  std::string Path(const std::string& name, int node) const;
  // Starts the program of one that has ended; its "ports" appear when it serves.
  void Start(int node);
  // Returns the answer of the node's admin API; empty while it does not answer.
  std::string Admin(int node, const std::string& method, const std::string& target,
                    const std::string& body = "") const;
  // Once it serves, what dra-plugin does for a claim of all chips of the node; gives its token.
  // Refused until the four have elected their UltraServer: it asks again, as a kubelet does.
  // `token` is the claim's from before the node's restart.
  std::string Claim(int node, const std::string& token = "");
  // `command` as the program of a pod on that node: rank `node` of the job, with that token. Its
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
