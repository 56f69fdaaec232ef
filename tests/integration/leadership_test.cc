// Two controllers of a cluster: the lease goes from one to the other.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/files.h"
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
                                 dir_.path() + "/" + data, "--admin-address", "127.0.0.1:0",
                                 "--port-file", dir_.path() + "/" + data + "-ports"},
        dir_.path() + "/" + log);
  }
  // Sends a request to the admin API of the controller with the data folder; null without an
  // answer.
  Json Ask(const std::string& data, const std::string& method, const std::string& target,
           const Json& body = nullptr) {
    const std::string ports = ReadFile(dir_.path() + "/" + data + "-ports").value_or("");
    const std::size_t begin = ports.find("adminAddress: ");
    if (begin == std::string::npos) return {};
    const std::string address = ports.substr(begin + 14, ports.find('\n', begin) - begin - 14);
    const auto admin = kube::HttpTransport::Create({.server = "http://" + address});
    const auto answer = (*admin)->Send({.method = method,
                                        .target = target,
                                        .headers = {{"Content-Type", "application/json"}},
                                        .body = body.is_null() ? "" : body.dump()});
    return answer.ok() ? TryParseJson(answer->body) : Json();
  }
  // Returns the controller's offering of one host for a day; empty while there is none.
  std::string Offering(const std::string& data) {
    const Json found = Ask(data, "GET",
                           "/v1/capacityblockofferings?instanceType=trn2.48xlarge&instanceCount=1"
                           "&capacityDurationHours=24");
    if (!found.contains("capacityBlockOfferings")) return "";
    const Json& offerings = found.at("capacityBlockOfferings");
    return offerings.empty() ? "" : offerings[0].at("capacityBlockOfferingId").get<std::string>();
  }
  Json Buy(const std::string& data, const std::string& offering, const std::string& token) {
    return Ask(data, "POST", "/v1/capacityblocks/default",
               {{"capacityBlockOfferingId", offering}, {"clientToken", token}});
  }

  TempDir dir_;
  const std::string kubeconfig_ = dir_.path() + "/kubeconfig";
  Standalone cluster_{dir_.path(), [this](const std::string& data, const std::string& port_file) {
                        std::vector<std::string> command = RealController(data, port_file);
                        command.insert(command.end(), {"--write-kubeconfig", kubeconfig_});
                        return command;
                      }};
};

// The defect: the leader gave the lease up over connections that were closed by then, and a
// stand-by waited for the lease's end.
TEST_F(LeadershipTest, ALeaderThatIsToldToEndGivesTheLeaseUp) {
  ASSERT_TRUE(cluster_.started()) << cluster_.program().log();
  const auto leader = StartController("leader", "leader.log");
  ASSERT_TRUE(cluster_.Eventually([&] { return IsHeld(cluster_.api()); })) << leader->log();
  leader->Kill(SIGTERM);
  EXPECT_EQ(leader->Wait(), 0) << leader->log();
  EXPECT_EQ(Holder(cluster_.api()), "") << leader->log();
}

// The defect: the leader waited 16 s for the end of its own lease. A copy of the folder has another
// identity.
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

// A leader is stopped for longer than its lease, with a purchase in its socket, and continues: it
// sells no capacity that its successor has sold, acknowledges no sale, and ends.
TEST_F(LeadershipTest, ALeaderThatWasStoppedSellsNothingWhenItGoesOn) {
  ASSERT_TRUE(cluster_.started()) << cluster_.program().log();
  MakeNode(cluster_.api(), "n0");
  const auto stopped = StartController("stopped", "stopped.log");
  std::string offering;
  ASSERT_TRUE(cluster_.Eventually([&] {
    offering = Offering("stopped");
    return !offering.empty();
  })) << stopped->log();
  stopped->Kill(SIGSTOP);
  const auto next = StartController("next", "next.log");
  Json late;
  {
    std::jthread buys([&] { late = Buy("stopped", offering, "late"); });
    Json sold;
    EXPECT_TRUE(cluster_.Eventually([&] {
      sold = Buy("next", Offering("next"), "in-time");
      return sold.contains("capacityReservationId");
    })) << next->log();
    // The next leader has another folder and another key of offerings.
    const Json old = Buy("next", offering, "other");
    EXPECT_NE(old.dump().find("InvalidCapacityBlockOfferingIdExpired"), std::string::npos)
        << old.dump();
    stopped->Kill(SIGCONT);
  }
  EXPECT_FALSE(late.contains("capacityReservationId")) << late.dump();
  EXPECT_EQ(stopped->Wait(), 1) << stopped->log();
  EXPECT_NE(stopped->log().find("the leader lease was lost"), std::string::npos) << stopped->log();
  EXPECT_EQ(Buy("next", offering, "late").value("code", ""),
            "InvalidCapacityBlockOfferingIdExpired");
  const Json blocks = Ask("next", "GET", "/v1/capacityblocks");
  EXPECT_EQ(blocks.at("capacityBlocks").size(), 1U) << blocks.dump();
}

}  // namespace
}  // namespace tahoma::testing
