// Two controllers of one cluster: the lease goes from one to the other.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "tests/integration/standalone.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {
namespace {

constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

// Returns the holder of the controllers' lease; "nobody" when there is none.
std::string Holder(kube::Transport& api) {
  const Json leases = List(api, kLeases);
  if (leases.size() != 1) return "nobody";
  return leases[0]["spec"].value("holderIdentity", "");
}

bool IsHeld(kube::Transport& api) {
  const std::string holder = Holder(api);
  return holder != "nobody" && !holder.empty();
}

class LeadershipTest : public ::testing::Test {
 protected:
  std::unique_ptr<ChildProgram> StartController(const std::string& data, const std::string& log) {
    return std::make_unique<ChildProgram>(
        std::vector<std::string>{Bin("controller"), "--kubeconfig", kubeconfig_, "--data-dir",
                                 dir_.path() + "/" + data, "--admin-address", "127.0.0.1:0"},
        dir_.path() + "/" + log);
  }

  TempDir dir_;
  const std::string kubeconfig_ = dir_.path() + "/kubeconfig";
  Standalone cluster_{dir_.path(), [this](const std::string& data, const std::string& port_file) {
                        std::vector<std::string> command = RealController(data, port_file);
                        command.insert(command.end(), {"--write-kubeconfig", kubeconfig_});
                        return command;
                      }};
};

// The defect: it was given up over connections that were closed by then, and a stand-by waited for
// the lease's end.
TEST_F(LeadershipTest, ALeaderThatIsToldToEndGivesTheLeaseUp) {
  ASSERT_TRUE(cluster_.started()) << cluster_.program().log();
  const auto leader = StartController("leader", "leader.log");
  ASSERT_TRUE(cluster_.Eventually([&] { return IsHeld(cluster_.api()); })) << leader->log();
  leader->Kill(SIGTERM);
  EXPECT_EQ(leader->Wait(), 0) << leader->log();
  EXPECT_EQ(Holder(cluster_.api()), "") << leader->log();
}

// The defect: it waited 16 s for the end of its own lease. A copy of its folder is somebody else.
TEST_F(LeadershipTest, AKilledLeaderLeadsAgainAtOnceAndACopyOfItsFolderDoesNot) {
  ASSERT_TRUE(cluster_.started()) << cluster_.program().log();
  const auto killed = StartController("leader", "killed.log");
  ASSERT_TRUE(cluster_.Eventually([&] { return IsHeld(cluster_.api()); })) << killed->log();
  const std::string holder = Holder(cluster_.api());
  killed->Kill(SIGKILL);
  EXPECT_EQ(killed->Wait(), std::nullopt);
  std::filesystem::copy(dir_.path() + "/leader", dir_.path() + "/copy",
                        std::filesystem::copy_options::recursive);

  const auto copy = StartController("copy", "copy.log");
  const auto says = [](const ChildProgram& program, const char* what) {
    return program.log().find(what) != std::string::npos;
  };
  ASSERT_TRUE(cluster_.Eventually([&] { return says(*copy, "standing by"); })) << copy->log();
  const auto again = StartController("leader", "again.log");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(cluster_.Eventually([&] { return says(*again, "leading: lease"); })) << again->log();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(12))
      << "the lease is of 15 seconds";
  EXPECT_EQ(Holder(cluster_.api()), holder);
  EXPECT_FALSE(says(*copy, "leading: lease")) << copy->log();
}

}  // namespace
}  // namespace tahoma::testing
