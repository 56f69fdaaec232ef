#include "sim-node/serve/memory_calls.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using json = Json;
using torus::ChipIndex;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

class MemoryCallsTest : public ::testing::Test {
 protected:
  absl::StatusOr<wire::Reply> Call(std::string_view method, const json& params,
                                   const std::string& payload = "",
                                   const std::string& claim = "token-a") {
    const wire::Request request{
        .method = std::string(method), .params = params.dump(), .payload = payload};
    if (!CommunicatorCalls::Serves(method)) return memory_.Call(request, claim, shares_);
    std::vector<Member> cores;
    for (const ClaimMemory::Share& share : shares_) {
      cores.push_back({.chip = share.chip, .ranks = 4});
    }
    return ranks_.Call(request, claim, cores);
  }
  absl::StatusOr<json> Access(json accesses, bool move = true,
                              const std::string& claim = "token-a") {
    auto reply =
        Call(kCommAccess, {{"commId", "c"}, {"rank", 0}, {"move", move}, {"accesses", accesses}},
             "", claim);
    if (!reply.ok()) return reply.status();
    return ParseJson(reply->result);
  }
  static json One(const std::string& kind, int chip, int remote, std::uint64_t bytes) {
    return {{"kind", kind},         {"chip", chip},         {"address", 0},
            {"remoteChip", remote}, {"remoteAddress", 100}, {"bytes", bytes}};
  }
  void Join() {
    ASSERT_TRUE(Call(kCommJoin, {{"commId", "c"}, {"rank", 0}, {"worldSize", 1}}).ok());
  }

  const std::vector<ClaimMemory::Share> shares_ = {{ChipIndex(4), kGiB}, {ChipIndex(6), kGiB}};
  Communicators communicators_{
      {.node_id = 0, .links = TorusLinks(torus::kInstanceShape, hw::kTrainium2.links)}};
  CommunicatorCalls ranks_{communicators_};
  MemoryCalls memory_{communicators_, ranks_};
};

TEST_F(MemoryCallsTest, TheHostFindsWhatItStoredAndZerosElsewhere) {
  ASSERT_TRUE(Call(kMemStore, {{"chip", 1}, {"address", 7}}, "hello").ok());
  const json whole = {{"chip", 1}, {"address", 6}, {"bytes", 7}};
  EXPECT_EQ(Call(kMemLoad, whole)->payload, std::string("\0hello\0", 7));
  EXPECT_EQ(Call(kMemLoad, whole, "", "token-b")->payload, std::string(7, '\0'))
      << "another claim's memory";
  memory_.Drop("token-a");
  EXPECT_EQ(Call(kMemLoad, whole)->payload, std::string(7, '\0'));
  EXPECT_EQ(memory_.resident_bytes(), 0U);
}

TEST_F(MemoryCallsTest, AChipWritesAnothersMemoryAndReadsIt) {
  Join();
  ASSERT_TRUE(Call(kMemStore, {{"chip", 0}, {"address", 0}}, "bytes").ok());
  const auto written = Access({One("write", 0, 1, 5)});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ((*written)["accesses"][0]["hops"], 2);
  EXPECT_EQ((*written)["timePs"], (*written)["accesses"][0]["timePs"]);
  EXPECT_EQ(Call(kMemLoad, {{"chip", 1}, {"address", 100}, {"bytes", 5}})->payload, "bytes");
  const auto read = Access({One("read", 0, 1, 5)}, /*move=*/false);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_GT((*read)["timePs"], (*written)["timePs"]) << "the request goes first";
  EXPECT_EQ((*read)["clockPs"],
            (*read)["timePs"].get<std::int64_t>() + (*written)["timePs"].get<std::int64_t>());
}

TEST_F(MemoryCallsTest, WrongFieldsAndPlacesAreNamed) {
  Join();
  const auto refusal = [&](json access) {
    const auto answer = Access({std::move(access)});
    EXPECT_FALSE(answer.ok());
    return std::string(Message(answer.status()));
  };
  EXPECT_EQ(refusal(One("copy", 0, 1, 5)),
            "commAccess.accesses[0].kind is \"copy\"; expected read or write");
  EXPECT_NE(refusal(One("read", 0, 2, 5)).find("accesses[0].remoteChip is 2; expected 0 to 1"),
            std::string::npos);
  EXPECT_NE(refusal(One("read", 0, 1, 0)).find("accesses[0].bytes"), std::string::npos);
  EXPECT_EQ(refusal(One("read", 0, 1, 2 * kGiB)),
            "the memory of rank 0: chip 6: 2147483648 bytes from 100 are not in a memory of "
            "1073741824");
  EXPECT_EQ(refusal(One("write", 0, 1, kGiB / 2)),
            "the memory of rank 0: more than 268435456 bytes would leave this rank; ask for less "
            "or without moving them");
  EXPECT_NE(Message(Call(kMemStore, {{"chip", 2}, {"address", 0}}, "x").status())
                .find("chip is 2; expected 0 to 1"),
            std::string_view::npos);
  EXPECT_EQ(Call(kMemStore, {{"chip", 0}, {"address", kGiB}}, "x").status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(Call(kMemLoad, {{"chip", 0}, {"address", 0}, {"bytes", kMaxHostBytes + 1}}).ok());
  EXPECT_EQ(Call("memOther", {}).status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(MemoryCallsTest, OnlyTheClaimThatJoinedMayAccess) {
  EXPECT_EQ(Access({One("read", 0, 1, 5)}).status().code(), absl::StatusCode::kFailedPrecondition);
  Join();
  EXPECT_EQ(Access({One("read", 0, 1, 5)}, true, "token-b").status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Access({One("read", 0, 1, 5)}).ok());
}

Instance MakeInstance() {
  auto instance = Instance::Create({.type = hw::FindInstanceType("trn2.48xlarge"), .name = "node"},
                                   [n = std::uint64_t{0}]() mutable {
                                     return std::array<std::uint64_t, 2>{++n, 7};
                                   });
  EXPECT_TRUE(instance.ok()) << instance.status();
  return *std::move(instance);
}

TEST(MemoryOfClaimTest, AClaimHasAsMuchOfAChipsMemoryAsOfItsCores) {
  HeldClaim claim;
  claim.chips = {3};
  claim.cores = {{.chip = 1, .cores = {0, 2}}};
  const std::vector<ClaimMemory::Share> shares = MemoryOfClaim(MakeInstance(), claim);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].chip, ChipIndex(1));
  EXPECT_EQ(shares[0].bytes, 48 * kGiB);
  EXPECT_EQ(shares[1].bytes, 96 * kGiB);
}

TEST(AddMemoryCallsTest, ATokenOpensItsMemoryUntilItsClaimIsReleased) {
  LiveInstance live(MakeInstance());
  const auto token = live.Change([](Instance& node) {
    HeldClaim claim;
    claim.claim_uid = "uid";
    claim.chips = {0};
    return node.ApplyClaim(claim);
  });
  ASSERT_TRUE(token.ok()) << token.status();
  Communicators communicators(
      {.node_id = 0, .links = TorusLinks(torus::kInstanceShape, hw::kTrainium2.links)});
  CommunicatorCalls ranks(communicators);
  MemoryCalls memory(communicators, ranks);
  NodeServer server(live, {});
  // The claim is released while its call is in progress.
  bool release = false;
  AddMemoryCalls(server, live, memory, [&](const std::string&) {
    if (!release) return;
    live.Change([](Instance& node) {
      node.ReleaseClaim("uid");
      return true;
    });
  });
  const auto store = [&] {
    const json params = {{"token", *token}, {"chip", 0}, {"address", 0}};
    return server.ServeWorkload({.method = "memStore", .params = params.dump(), .payload = "x"});
  };
  ASSERT_TRUE(store().ok());
  EXPECT_EQ(memory.resident_bytes(), kHbmPageBytes);
  release = true;
  (void)store();
  EXPECT_EQ(memory.resident_bytes(), 0U) << "a released claim keeps nothing";
  EXPECT_EQ(store().status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace tahoma::sim
