// Two controllers of one cluster: the lease goes from one to the other.

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "tests/integration/standalone.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {
namespace {

constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

// Who holds the controllers' lease; "nobody" when there is none.
std::string Holder(kube::Transport& api) {
  const Json leases = List(api, kLeases);
  if (leases.size() != 1) return "nobody";
  return leases[0]["spec"].value("holderIdentity", "");
}

// The defect: it was given up over connections that were closed by then, and a stand-by waited for
// the lease's end.
TEST(LeadershipTest, ALeaderThatIsToldToEndGivesTheLeaseUp) {
  TempDir dir;
  const std::string kubeconfig = dir.path() + "/kubeconfig";
  Standalone cluster(dir.path(), [&](const std::string& data, const std::string& port_file) {
    std::vector<std::string> command = RealController(data, port_file);
    command.insert(command.end(), {"--write-kubeconfig", kubeconfig});
    return command;
  });
  ASSERT_TRUE(cluster.started()) << cluster.program().log();
  ChildProgram leader({Bin("controller"), "--kubeconfig", kubeconfig, "--data-dir",
                       dir.path() + "/leader", "--admin-address", "127.0.0.1:0"},
                      dir.path() + "/leader.log");
  ASSERT_TRUE(cluster.Eventually([&] {
    const std::string holder = Holder(cluster.api());
    return holder != "nobody" && !holder.empty();
  })) << leader.log();
  leader.Kill(SIGTERM);
  EXPECT_EQ(leader.Wait(), 0) << leader.log();
  EXPECT_EQ(Holder(cluster.api()), "") << leader.log();
}

}  // namespace
}  // namespace tahoma::testing
