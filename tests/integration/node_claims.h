// Makes the calls of a dra-plugin to a sim-node for a claim, and the environment of its pod's
// programs.
//
//   const std::string token = ClaimChips("/tmp/x/socket0", 16, {.ultra_server_mode = 4});
//   ChildProgram rank(PodCommand({.socket = "/tmp/x/socket0.pods/workload.sock", .token = token,
//                                 .job = "job"}, {Bin("nccom-test"), "allr"}), "/tmp/x/log");
//
// Thread safety: pure but for the node that is asked.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/wire/messages.h"

namespace tahoma::testing {

struct ClaimWish {
  std::string name = "claim";
  int lnc = 2;
  int ultra_server_mode = 0;  // 0: none
  std::string token{};        // the claim's from before the node's restart
};

// Claims the node's first `chips` chips on its nodeSocket `socket` and gives the token. A node
// refuses until its UltraServer is elected: `wait_until` calls what it is given again, as a kubelet
// does, until that is true or it gives up (ChildProgram::WaitUntil). A test failure and "" when the
// claim is not given in the end.
std::string ClaimChips(const std::string& socket, int chips, const ClaimWish& wish,
                       const std::function<bool(const std::function<bool()>&)>& wait_until);

struct PodPlace {
  std::string socket{};  // the node's workloadSocket
  std::string token{};
  std::string job{};
  int rank = 0;
  int world_size = 1;
};

// `command` with the environment that a pod's containers have.
std::vector<std::string> PodCommand(const PodPlace& place, const std::vector<std::string>& command);

}  // namespace tahoma::testing
