#include "sim-node/serve/communicator_messages.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

constexpr LinkId kLinks = 384;

TEST(CommunicatorMessagesTest, AJoinComesBackAsItWas) {
  const Joiner joiner{
      .number = 7,
      .world_size = 4,
      .members = {{.chip = ChipIndex(3), .ranks = 4, .banks = 2}, {.chip = ChipIndex(63)}}};
  const auto join = DecodeJoin(EncodeJoin("gang", 2, joiner));
  ASSERT_TRUE(join.ok()) << join.status();
  EXPECT_EQ(join->comm_id, "gang");
  EXPECT_EQ(join->rank, 2);
  EXPECT_EQ(join->joiner.number, 7u);
  EXPECT_EQ(join->joiner.world_size, 4);
  EXPECT_EQ(join->joiner.members, joiner.members);
}

TEST(CommunicatorMessagesTest, AChipWithoutBanksHasBuffersInAllOfThem) {
  const auto join = DecodeJoin({.method = "peerJoin",
                                .params = R"({"commId":"x","rank":0,"number":1,"worldSize":1,)"
                                          R"("chips":[{"chip":1,"ranks":2}]})"});
  ASSERT_TRUE(join.ok()) << join.status();
  EXPECT_EQ(join->joiner.members, MembersOf(0b10, 2));
}

TEST(CommunicatorMessagesTest, ALeaveAndLinksComeBackAsTheyWere) {
  const auto leave = DecodeLeave(
      EncodeLeave({.comm_id = "gang", .rank = 2, .number = 9, .reason = "it \xff left"}));
  ASSERT_TRUE(leave.ok()) << leave.status();
  EXPECT_EQ(leave->number, 9u);
  EXPECT_EQ(leave->reason.find("it "), 0u);
  const NodeLinks view{.node = 2, .epoch = 5, .unhealthy = {{383, 0}, {1, 999}}};
  EXPECT_EQ(*DecodeLinks(EncodeLinks(view), kLinks), view);
  EXPECT_FALSE(DecodeLinks(EncodeLinks(view), 383).ok());
  const Flapping flapping{.period = Microseconds(100), .down = Microseconds(7)};
  const NodeLinks worse{.node = 1,
                        .epoch = 6,
                        .unhealthy = {{5, 1000, 20'000}, {7, 500, 0, flapping}},
                        .dead = {ChipIndex(0), ChipIndex(63)},
                        .efa_down = {ChipIndex(5)}};
  EXPECT_EQ(*DecodeLinks(EncodeLinks(worse), kLinks), worse);
  EXPECT_FALSE(DecodeLinks(EncodeLinks(worse), 96).ok()) << "a torus of 16 chips has no chip 63";
}

TEST(CommunicatorMessagesTest, StatesOfLinksOutOfTheirRangeAreRefused) {
  const auto refused = [](const std::string& link, const std::string& dead = "[]") {
    const std::string params =
        R"({"node":0,"epoch":1,"links":[)" + link + R"(],"dead":)" + dead + "}";
    const auto view = DecodeLinks({.method = "peerLinks", .params = params}, kLinks);
    return !view.ok();
  };
  EXPECT_FALSE(refused(R"({"link":1,"permille":5})"));
  EXPECT_TRUE(refused(R"({"link":1,"permille":1001})"));
  EXPECT_TRUE(refused(R"({"link":1,"permille":5,"lossPpm":500001})"));
  EXPECT_TRUE(refused(R"({"link":1,"permille":5,"flapPeriodPs":5,"flapDownPs":1})"));
  EXPECT_TRUE(refused(R"({"link":1,"permille":5,"flapPeriodPs":100000000})"));
  EXPECT_FALSE(refused(R"({"link":1,"permille":5})", "[63]"));
  EXPECT_TRUE(refused(R"({"link":1,"permille":5})", "[64]"));
  EXPECT_TRUE(refused(R"({"link":1,"permille":5})", R"(["a"])"));
}

TEST(CommunicatorMessagesTest, EveryKindOfDataComesBackAsItWas) {
  const VirtualTime time{VirtualDuration(123'456)};
  const auto opening =
      DecodeData(EncodeData("key", 1, 2,
                            Opening{.operation = 3,
                                    .spec = "s",
                                    .ready = time,
                                    .views = {{.node = 1, .epoch = 0, .unhealthy = {}}}}),
                 kLinks);
  ASSERT_TRUE(opening.ok()) << opening.status();
  EXPECT_EQ(opening->group, "key");
  EXPECT_EQ(opening->from, 1);
  EXPECT_EQ(opening->to, 2);
  EXPECT_EQ(std::get<Opening>(opening->message).ready, time);
  EXPECT_EQ(std::get<Opening>(opening->message).views.size(), 1u);
  const std::string payload("\0\1\2", 3);
  const auto chunk = DecodeData(EncodeData("key", 0, 1,
                                           Chunk{.operation = 1,
                                                 .step = 4,
                                                 .departure = time,
                                                 .arrival = time + Microseconds(1),
                                                 .payload = payload}),
                                kLinks);
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ(std::get<Chunk>(chunk->message).payload, payload);
  EXPECT_EQ(std::get<Chunk>(chunk->message).arrival, time + Microseconds(1));
  const auto closing =
      DecodeData(EncodeData("key", 0, 1, Closing{.operation = 1, .wrong_elements = 2}), kLinks);
  EXPECT_EQ(std::get<Closing>(closing->message).wrong_elements, 2u);
}

TEST(CommunicatorMessagesTest, DamagedMessagesAreRefused) {
  for (const char* params :
       {"", "[]", "{}", R"({"commId":"x","rank":-1,"number":1,"worldSize":1,"chips":[]})",
        R"({"commId":"x","rank":0,"number":1,"worldSize":2049,"chips":[]})",
        R"({"commId":"x","rank":0,"number":1,"worldSize":1,"chips":[{"chip":64,"ranks":1}]})",
        R"({"commId":"x","rank":0,"number":1,"worldSize":1,"chips":[{"chip":1,"ranks":9}]})",
        R"({"commId":"x","rank":0,"number":1,"worldSize":1,)"
        R"("chips":[{"chip":1,"ranks":1,"banks":0}]})",
        R"({"commId":"x","rank":0,"number":1,"worldSize":1,)"
        R"("chips":[{"chip":1,"ranks":1,"banks":5}]})",
        R"({"commId":"x","rank":0,"number":1,"worldSize":1,)"
        R"("chips":[{"chip":1,"ranks":1,"banks":"4"}]})",
        R"({"commId":7,"rank":0,"number":1,"worldSize":1,"chips":[]})"}) {
    EXPECT_EQ(DecodeJoin({.method = "peerJoin", .params = params}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << params;
  }
  for (const char* params :
       {"{}", R"({"group":"k","from":0,"to":1,"kind":"other","operation":0})",
        R"({"group":"k","from":0,"to":2048,"kind":"closing","operation":0})",
        R"({"group":"k","from":0,"to":1,"kind":"chunk","operation":0,"step":-1})"}) {
    EXPECT_EQ(DecodeData({.method = "peerData", .params = params}, kLinks).status().code(),
              absl::StatusCode::kInvalidArgument)
        << params;
  }
}

// The defect: what came after it was added to this, beyond what a clock holds.
TEST(CommunicatorMessagesTest, ARankIsNotReadyAfterTheLastTime) {
  const auto ready = [](VirtualTime time) {
    const Opening opening{.operation = 0, .spec = "s", .ready = time, .views = {}};
    return DecodeData(EncodeData("key", 1, 0, opening), kLinks).status();
  };
  EXPECT_TRUE(ready(kLastTime).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ready(kLastTime + VirtualDuration(1))));
  EXPECT_TRUE(absl::IsInvalidArgument(ready(VirtualTime::max())));
}

TEST(CommunicatorMessagesTest, EveryCutOfAMessageIsRefusedOrReadAndNeverCrashes) {
  const wire::Request whole = EncodeJoin(
      "gang", 2, {.number = 7, .world_size = 4, .members = {{.chip = ChipIndex(3), .ranks = 4}}});
  for (std::size_t length = 0; length < whole.params.size(); ++length) {
    wire::Request cut = whole;
    cut.params.resize(length);
    EXPECT_FALSE(DecodeJoin(cut).ok());
  }
}

}  // namespace
}  // namespace tahoma::sim
