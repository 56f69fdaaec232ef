#include "sim-node/serve/communicator_calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

class CommunicatorCallsTest : public ::testing::Test {
 protected:
  absl::StatusOr<Json> Call(std::string_view method, const Json& params,
                            const std::string& claim = "token-a") {
    auto reply =
        calls_.Call({.method = std::string(method), .params = params.dump()}, claim, cores_);
    if (!reply.ok()) return reply.status();
    return ParseJson(reply->result);
  }

  std::vector<Member> cores_ = {{.chip = ChipIndex(0), .ranks = 4},
                                {.chip = ChipIndex(1), .ranks = 4}};
  Communicators communicators_{
      {.node_id = 0, .links = TorusLinks(torus::kInstanceShape, hw::kTrainium2.links)}};
  CommunicatorCalls calls_{communicators_};
  const Json join_ = {{"commId", "c"}, {"rank", 0}, {"worldSize", 1}};
  const Json run_ = {{"commId", "c"},   {"rank", 0},     {"op", "allr"},
                     {"dtype", "fp32"}, {"bytes", 4096}, {"check", true}};
};

TEST_F(CommunicatorCallsTest, AWorkloadJoinsRunsAndLeaves) {
  const auto joined = Call(kCommJoin, join_);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)["ranks"], 8);
  EXPECT_EQ((*joined)["chips"], 2);
  const auto run = Call(kCommRun, run_);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ((*run)["wrongElements"], 0);
  EXPECT_EQ((*run)["algorithm"], "mesh");
  EXPECT_GT((*run)["timePs"], 0);
  ASSERT_TRUE(Call(kCommLeave, {{"commId", "c"}, {"rank", 0}}).ok());
  EXPECT_EQ(Call(kCommRun, run_).status().code(), absl::StatusCode::kFailedPrecondition);
}

// The defect: the call waited on for the ranks that did not come, 120 s, and a node with it.
TEST_F(CommunicatorCallsTest, WhoeverWaitsForOthersIsSentAwayWhenItsClaimIsReleased) {
  auto waiting = std::async(std::launch::async, [this] {
    return Call(kCommJoin, {{"commId", "c"}, {"rank", 0}, {"worldSize", 2}}).status();
  });
  while (waiting.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    calls_.LeaveAll("token-a");
  }
  const absl::Status left = waiting.get();
  EXPECT_TRUE(absl::IsAborted(left)) << left;
  EXPECT_EQ(Message(left), "rank 0 left communicator \"c\" before all had joined");
  ASSERT_TRUE(Call(kCommJoin, join_).ok()) << "its place is free";
}

TEST_F(CommunicatorCallsTest, FewerCoresThanTheClaimHasMayBeUsedButNotMore) {
  Json join = join_;
  join["cores"] = 6;
  EXPECT_EQ((*Call(kCommJoin, join))["ranks"], 6);
  join["cores"] = 9;
  EXPECT_EQ(Message(Call(kCommJoin, join).status()),
            "9 logical cores are asked for, the claim has 8");
}

TEST_F(CommunicatorCallsTest, AnotherClaimCannotTouchTheRank) {
  ASSERT_TRUE(Call(kCommJoin, join_).ok());
  EXPECT_EQ(Call(kCommRun, run_, "token-b").status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Call(kCommJoin, join_, "token-b").status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Call(kCommLeave, {{"commId", "c"}, {"rank", 0}}, "token-b").status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Call(kCommRun, run_).ok());
}

TEST_F(CommunicatorCallsTest, WhenAClaimIsReleasedItsRanksAreOut) {
  ASSERT_TRUE(Call(kCommJoin, join_).ok());
  calls_.LeaveAll("token-a");
  EXPECT_EQ(communicators_.Run("c", 0, {.request = {.bytes = 4}}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Call(kCommJoin, join_, "token-b").ok());
}

TEST_F(CommunicatorCallsTest, ThePayloadOfARunDividesTheRanks) {
  ASSERT_TRUE(Call(kCommJoin, join_).ok());
  Json run = run_;
  const auto call = [&](const std::string& payload) {
    return calls_
        .Call({.method = std::string(kCommRun), .params = run.dump(), .payload = payload},
              "token-a", cores_)
        .status();
  };
  EXPECT_TRUE(call(R"({"replicaGroups": [[0, 4], [1, 5]]})").ok());
  run["pattern"] = "all_ones";
  EXPECT_TRUE(call("").ok());
  run["op"] = "alltoallv";
  EXPECT_TRUE(call(R"({"counts": [{"sendCounts": [1, 2, 3, 4, 5, 6, 7, 8]}]})").ok());
  run["op"] = "permute";
  EXPECT_TRUE(call(R"({"pairs": [[0, 7]]})").ok());
  EXPECT_EQ(Message(call("[]")), "commRun's payload is of type array; expected an object");
  EXPECT_EQ(Message(call(R"({"pairs": [[0, 7, 1]]})")),
            "commRun's payload.pairs must hold pairs of ranks");
  EXPECT_EQ(Message(call(R"({"pairs": [3]})")), "commRun's payload.pairs must hold lists of ranks");
  EXPECT_EQ(Message(call(R"({"replicaGroups": [[-1]]})")),
            "commRun's payload.replicaGroups must hold whole numbers from 0 to 1048575");
  EXPECT_EQ(Message(call(R"({"counts": [{"sendCounts": ["a"]}]})")),
            "commRun's payload.counts.sendCounts must hold whole numbers from 0 to 8589934592");
  EXPECT_EQ(Message(call(R"({"pairs": [[0, 8]]})")),
            "the pair [0, 8] names rank 8; expected 0 to 7");
}

TEST_F(CommunicatorCallsTest, WrongFieldsAreNamed) {
  ASSERT_TRUE(Call(kCommJoin, join_).ok());
  const auto message = [&](std::string_view key, const Json& value) {
    Json run = run_;
    run[std::string(key)] = value;
    const absl::Status status = Call(kCommRun, run).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
    return std::string(Message(status));
  };
  EXPECT_NE(message("op", "gather").find("unknown operation"), std::string::npos);
  EXPECT_NE(message("dtype", "fp64").find("unknown data type"), std::string::npos);
  EXPECT_NE(message("redOp", "avg").find("unknown reduce operation"), std::string::npos);
  EXPECT_EQ(message("pattern", "zeros"),
            "commRun.pattern is \"zeros\"; expected random or all_ones");
  EXPECT_NE(message("bytes", 0).find("bytes"), std::string::npos);
  EXPECT_NE(message("iterations", 0).find("iterations"), std::string::npos);
  EXPECT_NE(message("check", 1).find("check"), std::string::npos);
  EXPECT_EQ(message("bytes", 4095), "4095 bytes are not a whole number of fp32 elements");
  EXPECT_EQ(Call("commOther", {}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(CommunicatorCalls::Serves("devices"));
  EXPECT_TRUE(CommunicatorCalls::Serves("commRun"));
}

}  // namespace
}  // namespace tahoma::sim
