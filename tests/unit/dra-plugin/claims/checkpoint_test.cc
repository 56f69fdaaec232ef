#include "dra-plugin/claims/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dra-plugin/claims/cdi.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::dra {
namespace {

using json = Json;

PreparedClaim SampleClaim(std::string uid = "uid-1") {
  return {.grant = {.claim_uid = uid,
                    .name_space = "default",
                    .name = "a",
                    .lnc = 2,
                    .chips = {0, 1, 2, 3},
                    .cores = {{.chip = 5, .cores = {1, 2}}},
                    .ultra_server_mode = 4},
          .token = "0123456789abcdef0123456789abcdef",
          .workload_socket = "unix:/run/tahoma/node.sock",
          .ultra_server_id = "us-1",
          .ultra_server_node_id = 2,
          .devices = {{.request = "r", .pool = "node-a", .device = "neuron-device-0"},
                      {.request = "r", .pool = "node-a", .device = "neuron-device-1"}}};
}

Checkpoint Sample() {
  return {.claims = {{"uid-1", SampleClaim("uid-1")}, {"uid-2", SampleClaim("uid-2")}}};
}

TEST(CheckpointTest, ComesBackAsItWas) {
  Checkpoint in_block = Sample();
  in_block.claims.at("uid-2").reclaim_timestamp = 1764095485000;
  in_block.claims.at("uid-1").boot_id = "9d3c6c0e-5f0a-4c2b-8c52-0b8f4e9d3c11";
  for (const Checkpoint& checkpoint : {Checkpoint{}, Sample(), in_block}) {
    const auto back = DecodeCheckpoint(EncodeCheckpoint(checkpoint));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, checkpoint);
  }
}

TEST(CheckpointTest, AClaimUnderAnotherUidOrWithoutATokenIsAMistakeOfOurs) {
  EXPECT_DEATH((void)EncodeCheckpoint({.claims = {{"uid-2", SampleClaim("uid-1")}}}),
               "CHECK failed: uid == ");
  PreparedClaim claim = SampleClaim("uid-1");
  claim.token.clear();
  EXPECT_DEATH((void)EncodeCheckpoint({.claims = {{"uid-1", claim}}}),
               "CHECK failed: claim.token.size");
}

TEST(CheckpointTest, CutAnywhereIsDataLoss) {
  const std::string whole = EncodeCheckpoint(Sample());
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeCheckpoint(whole.substr(0, size)).status())) << size;
  }
}

TEST(CheckpointTest, EveryChangedByteIsFoundOrChangesNothing) {
  const Checkpoint sample = Sample();
  const std::string whole = EncodeCheckpoint(sample);
  Rng rng(8);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1 + rng.Below(127)));
    const auto decoded = DecodeCheckpoint(changed);
    if (decoded.ok()) {
      EXPECT_EQ(*decoded, sample) << at;
    } else {
      EXPECT_TRUE(absl::IsDataLoss(decoded.status())) << at;
    }
  }
}

TEST(CheckpointTest, AnotherVersionIsNamed) {
  json document = ParseJson(EncodeCheckpoint(Sample()));
  document["version"] = 2;
  EXPECT_EQ(Message(DecodeCheckpoint(document.dump()).status()),
            "version is 2; this program reads version 1");
}

TEST(CdiTest, EnvironmentIsAsTheSeamsSay) {
  const std::vector<std::string> expected = {"AWS_NEURON_VISIBLE_DEVICES=0,1,2,3,5",
                                             "NEURON_RT_VISIBLE_CORES=0-15,21-22",
                                             "NEURON_LOGICAL_NC_CONFIG=2",
                                             "NEURON_RT_ULTRASERVER_MODE=4",
                                             "NEURON_RT_ULTRASERVER_SERVER_ID=us-1",
                                             "NEURON_RT_ULTRASERVER_NODE_ID=2",
                                             "TAHOMA_NODE_SOCKET=/run/tahoma/node.sock",
                                             "TAHOMA_CLAIM_TOKEN=0123456789abcdef0123456789abcdef",
                                             "TAHOMA_NODE_NAME=node-a"};
  EXPECT_EQ(ClaimEnvironment(SampleClaim()), expected);
}

TEST(CdiTest, AClaimInABlockKnowsWhenItIsTakenBack) {
  PreparedClaim claim = SampleClaim();
  claim.reclaim_timestamp = 1764095485000;
  EXPECT_THAT(ClaimEnvironment(claim),
              ::testing::Contains("TAHOMA_CAPACITY_BLOCK_RECLAIM_TIMESTAMP=1764095485000"));
}

TEST(CheckpointTest, AClaimInNoBlockIsWrittenAsBefore) {
  EXPECT_EQ(EncodeCheckpoint(Sample()).find("reclaimTimestamp"), std::string::npos);
}

TEST(CdiTest, LogicalCoresAreCountedUnderTheClaimsLnc) {
  PreparedClaim claim = SampleClaim();
  claim.grant = {.claim_uid = "u", .name_space = "n", .name = "c", .lnc = 1, .chips = {0, 2}};
  EXPECT_EQ(ClaimEnvironment(claim)[1], "NEURON_RT_VISIBLE_CORES=0-7,16-23");
}

TEST(CdiTest, SpecIsWhatARuntimeTakes) {
  const json spec = ParseJson(CdiSpec(SampleClaim()));
  EXPECT_EQ(spec["cdiVersion"], "0.5.0");
  EXPECT_EQ(spec["kind"], "neuron.aws.com/device");
  EXPECT_EQ(spec.size(), 3u) << "runtimes refuse unknown fields";
  ASSERT_EQ(spec["devices"].size(), 2u);
  EXPECT_EQ(spec["devices"][1]["name"], "uid-1-neuron-device-1");
  const json& edits = spec["devices"][0]["containerEdits"];
  EXPECT_EQ(edits["env"].size(), 9u);
  EXPECT_EQ(edits["mounts"][0], ParseJson(R"({"hostPath":"/run/tahoma",
      "containerPath":"/run/tahoma","options":["bind","ro","nosuid","nodev"]})"));
}

TEST(CdiTest, EachChipOfTheClaimHasTheSocketForADeviceNodeAndNoOtherChip) {
  const json spec = ParseJson(CdiSpec(SampleClaim()));
  const json& mounts = spec["devices"][1]["containerEdits"]["mounts"];
  std::vector<std::string> stand_ins;
  for (std::size_t i = 1; i < mounts.size(); ++i) {
    EXPECT_EQ(mounts[i]["hostPath"], "/run/tahoma/node.sock");
    stand_ins.push_back(mounts[i]["containerPath"]);
  }
  EXPECT_THAT(stand_ins, ::testing::ElementsAre("/dev/neuron0", "/dev/neuron1", "/dev/neuron2",
                                                "/dev/neuron3", "/dev/neuron5"));
}

TEST(CdiTest, ATcpNodeNeedsNoMount) {
  PreparedClaim claim = SampleClaim();
  claim.workload_socket = "127.0.0.1:4000";
  const json spec = ParseJson(CdiSpec(claim));
  EXPECT_TRUE(spec["devices"][0]["containerEdits"]["mounts"].empty());
  EXPECT_NE(CdiSpec(claim).find("TAHOMA_NODE_SOCKET=127.0.0.1:4000"), std::string::npos);
}

TEST(CdiTest, FileNamesLeadBackToTheClaim) {
  EXPECT_EQ(CdiFileName("uid-1"), "neuron.aws.com-device_uid-1.json");
  EXPECT_EQ(ClaimUidOfCdiFile("neuron.aws.com-device_uid-1.json"), "uid-1");
  for (const char* other : {"neuron.aws.com-device_.json", "nvidia.com-gpu_uid.json", "x", "",
                            ".neuron.aws.com-device_uid-1.json.tmp"}) {
    EXPECT_EQ(ClaimUidOfCdiFile(other), "") << other;
  }
}

TEST(CdiTest, RangesAreShort) {
  EXPECT_EQ(Ranges({}), "");
  EXPECT_EQ(Ranges({4}), "4");
  EXPECT_EQ(Ranges({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

}  // namespace
}  // namespace tahoma::dra
