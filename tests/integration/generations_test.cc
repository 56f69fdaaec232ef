// A sim-node of each other generation starts, publishes chips, and its workloads see them and move
// data over their links.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/wire/call.h"
#include "lib/wire/messages.h"
#include "tests/integration/node_claims.h"
#include "tests/support/child_program.h"
#include "tests/support/temp_dir.h"

namespace tahoma {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class GenerationsTest : public ::testing::Test {
 protected:
  void Start(const std::string& instance_type) {
    std::ofstream(Path("config")) << fmt::format(
        "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nnodeName: n\ninstanceType: {}\n"
        "nodeSocket: {}\nworkloadSocket: {}\nstateDir: {}\nportFile: {}\n",
        instance_type, Path("node"), Path("work/socket"), Path("state"), Path("ports"));
    node_ = std::make_unique<testing::ChildProgram>(
        std::vector<std::string>{testing::Bin("sim-node"), "--config", Path("config")},
        Path("log"));
    while (!std::filesystem::exists(Path("ports"))) {
      ASSERT_FALSE(node_->WaitEnd(milliseconds(10))) << node_->log();
    }
  }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  absl::StatusOr<std::string> Call(std::string_view method, const std::string& params) {
    wire::Client client("unix:" + Path("node"));
    TAHOMA_ASSIGN_OR_RETURN(
        const wire::Reply reply,
        client.Call({.method = std::string(method), .params = params}, std::chrono::seconds(30)));
    return reply.result;
  }
  wire::Inventory Inventory() {
    const auto text = Call(wire::kInventory, "{}");
    EXPECT_TRUE(text.ok()) << text.status();
    return *wire::DecodeInventory(*text);
  }
  // The token of a claim for the node's first `chips` chips.
  std::string Claim(int chips, int lnc) {
    const auto ask_once = [](const std::function<bool()>& is_given) { return is_given(); };
    return testing::ClaimChips(Path("node"), chips, {.lnc = lnc}, ask_once);
  }
  // Runs a program of the claim's pod and returns what it prints.
  std::string Run(const std::string& token, std::vector<std::string> command, int status = 0) {
    command[0] = testing::Bin(command[0]);
    const testing::PodPlace place{.socket = Path("work/socket"), .token = token, .job = "test"};
    testing::ChildProgram program(testing::PodCommand(place, command), Path("out"));
    EXPECT_EQ(program.Wait(), status) << program.log();
    return program.log();
  }

  testing::TempDir dir_;
  std::unique_ptr<testing::ChildProgram> node_;
};

TEST_F(GenerationsTest, AnInf2RunsCollectivesOnItsRingOfTwelve) {
  Start("inf2.48xlarge");
  EXPECT_EQ(Inventory().chips.size(), 12U);
  const std::string token = Claim(12, 1);
  const std::string devices = Run(token, {"neuron-ls"});
  EXPECT_THAT(devices, HasSubstr("instance-type: inf2.48xlarge"));
  EXPECT_THAT(devices, HasSubstr("| 0      | 2      | 0-1      | 32 GB  | 11, 1"));
  EXPECT_THAT(devices, Not(HasSubstr("logical-neuroncore-config")));
  for (const char* operation : {"allr", "allg", "redsct", "alltoall", "sendrecv", "permute"}) {
    const std::string out = Run(token, {"nccom-test", operation, "-b", "96K", "-e", "96K", "-c"});
    EXPECT_THAT(out, HasSubstr("98304")) << operation;
    EXPECT_THAT(out, Not(HasSubstr("rdh"))) << "a ring of twelve is no hypercube";
  }
}

TEST_F(GenerationsTest, ATrn1RunsCollectivesOnItsTorus) {
  Start("trn1.32xlarge");
  EXPECT_EQ(Inventory().chips.size(), 16U);
  EXPECT_EQ(Inventory().chips[0].bdf, "0000:10:1c.0");
  const std::string token = Claim(16, 1);
  EXPECT_THAT(Run(token, {"neuron-ls"}), HasSubstr("| 15     | 2      | 30-31    | 32 GB  |"));
  EXPECT_THAT(Run(token, {"nccom-test", "allr", "-b", "1M", "-e", "1M", "-c"}),
              HasSubstr("1048576"));
}

TEST_F(GenerationsTest, ATrn3SaysThatItsSwitchesAreNotEmulated) {
  Start("trn3-gen1");
  EXPECT_EQ(Inventory().chips.size(), 16U);
  const std::string token = Claim(16, 2);
  EXPECT_THAT(Run(token, {"neuron-ls"}), HasSubstr("144 GB"));
  EXPECT_THAT(Run(token, {"nccom-test", "allr", "-b", "4M", "-e", "4M"}, 1),
              HasSubstr("collectives over the switches of a trn3-gen1 are not emulated"));
}

TEST_F(GenerationsTest, SmallTypesHaveOneChip) {
  Start("trn1.2xlarge");
  const std::string token = Claim(1, 1);
  EXPECT_THAT(Run(token, {"nccom-test", "allr", "-b", "1K", "-e", "1K", "-c"}), HasSubstr("1024"));
}

}  // namespace
}  // namespace tahoma
