#include "controller/core/journal/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "controller/core/facts/facts.h"
#include "controller/core/journal/entry_form.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

GangDecision Example() {
  GangDecision decision;
  decision.key = {"default", "train"};
  decision.uid = "gang-uid";
  decision.end = WallTime(std::chrono::seconds(1'800'000'000));
  decision.reservation = "cr-1";
  decision.placed = WallTime(std::chrono::seconds(1'700'000'000));
  decision.max_runtime = std::chrono::seconds(std::int64_t{999'999'999} * 3600);
  decision.preemptible = true;
  decision.priority = -10;
  decision.grace = std::chrono::seconds(90);
  decision.pods = {{.name = "train-0", .uid = "u0", .node = "node-a", .rank = 0, .slice = 0}};
  DecidedClaim claim;
  claim.name = "train-0-chips";
  claim.uid = "c0";
  claim.consumers = {0};
  claim.allocation.node = "node-a";
  DeviceResult result;
  result.request = "chips";
  result.driver = "neuron.aws.com";
  result.pool = "node-a";
  result.device = "neuron-device-3";
  result.tolerations = {ManagedToleration(),
                        {.key = "k",
                         .op = TolerationOperator::kEqual,
                         .value = "v",
                         .effect = TaintEffect::kNoExecute,
                         .seconds = 30}};
  claim.allocation.results = {result};
  claim.allocation.configs = {
      {ConfigSource::kClaim, {"chips"}, "neuron.aws.com", R"({"logicalNeuronCore":1})"}};
  decision.claims = {claim};
  decision.slices = {{"us-0", "4x4x2", "0,0,2", {"node-a", "node-b"}}};
  return decision;
}

TEST(RecordTest, ADecisionComesBackAsItWas) {
  const auto decision = std::make_shared<const GangDecision>(Example());
  const auto record = DecodeRecord(EncodeRecord(GangPrepared{decision}));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(*std::get<GangPrepared>(*record).decision, *decision);
}

TEST(RecordTest, SharesOfDevicesComeBackAsTheyWere) {
  GangDecision decision = Example();
  Allocation& allocation = decision.claims[0].allocation;
  allocation.results.push_back({.request = "nics",
                                .driver = "dra.net",
                                .pool = "node-a",
                                .device = "pci-3",
                                .tolerations = {}});
  allocation.details = {{.result = 1,
                         .share_id = "0aaf",
                         .consumed = {{.name = "bandwidth", .quantity = "5G"}},
                         .binding_conditions = {},
                         .binding_failure_conditions = {}}};
  const auto shared = std::make_shared<const GangDecision>(decision);
  const auto record = DecodeRecord(EncodeRecord(GangPrepared{shared}));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(*std::get<GangPrepared>(*record).decision, decision);
}

TEST(RecordTest, RecordsOfEarlierVersionsAreRead) {
  Json body;
  const std::string bytes = EncodeRecord(GangPrepared{std::make_shared<GangDecision>(Example())});
  ASSERT_TRUE(DecodeEntry(bytes, [&](EntryType, const Json& read) {
                body = read;
                return absl::OkStatus();
              }).ok());
  for (const char* added :
       {"reclaim", "reservation", "placed", "runtime", "preemptible", "priority", "grace"}) {
    EXPECT_EQ(body.erase(added), 1U) << added;
  }
  GangDecision earlier = Example();
  earlier.reservation = "";
  earlier.placed.reset();
  earlier.max_runtime.reset();
  earlier.preemptible = false;
  earlier.priority = 0;
  earlier.grace = std::chrono::seconds(30);
  const auto prepared = DecodeRecord(EncodeEntry(EntryType::kGangPrepared, body));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(*std::get<GangPrepared>(*prepared).decision, earlier);
  const auto bound = DecodeRecord(EncodeEntry(EntryType::kGangBound, {{"run", 7}}));
  EXPECT_EQ(std::get<GangBound>(*bound).at, std::nullopt);
  const auto undoing =
      DecodeRecord(EncodeEntry(EntryType::kGangUndoing, {{"run", 7}, {"reason", "why"}}));
  EXPECT_EQ(std::get<GangUndoing>(*undoing).cause, EndCause::kFailed);
}

TEST(RecordTest, EveryOtherRecordComesBackToo) {
  EXPECT_EQ(std::get<GangAllocated>(*DecodeRecord(EncodeRecord(GangAllocated{7}))).run, 7U);
  EXPECT_EQ(std::get<GangBound>(*DecodeRecord(EncodeRecord(GangBound{1ULL << 60U}))).run,
            1ULL << 60U);
  const auto released = std::get<ClaimReleased>(*DecodeRecord(EncodeRecord(ClaimReleased{7, 3})));
  EXPECT_EQ(released.claim, 3U);
  const auto undoing = std::get<GangUndoing>(*DecodeRecord(EncodeRecord(GangUndoing{7, "why"})));
  EXPECT_EQ(undoing.reason, "why");
  EXPECT_EQ(undoing.by, std::nullopt);
  const WallTime by(std::chrono::nanoseconds(1764095485000000001));
  const auto hurried =
      std::get<GangUndoing>(*DecodeRecord(EncodeRecord(GangUndoing{7, "why", by})));
  EXPECT_EQ(hurried.by, by);
  const WallTime when(std::chrono::nanoseconds(1'800'000'000'000'000'001));
  EXPECT_EQ(std::get<GangBound>(*DecodeRecord(EncodeRecord(GangBound{7, when}))).at, when);
  for (const EndCause cause :
       {EndCause::kFailed, EndCause::kReclaimed, EndCause::kPreempted, EndCause::kRuntimeOver,
        EndCause::kMemberLost, EndCause::kGangFailed, EndCause::kNotStarted, EndCause::kMoved}) {
    const auto ended =
        std::get<GangUndoing>(*DecodeRecord(EncodeRecord(GangUndoing{7, "why", by, cause})));
    EXPECT_EQ(ended.by, by);
    EXPECT_EQ(ended.cause, cause);
  }
}

MemberReplaced ReplacedExample() {
  return {.run = 7,
          .pod = 0,
          .name = "train-9",
          .uid = "u9",
          .node = {},
          .at = WallTime(std::chrono::nanoseconds(1'800'000'000'000'000'001)),
          .claims = {{0, "train-9-chips", "c9", Example().claims[0].allocation}}};
}

TEST(RecordTest, AReplacedMemberComesBackAndTakesItsPlaceInTheDecision) {
  const auto read =
      std::get<MemberReplaced>(*DecodeRecord(EncodeRecord(Record(ReplacedExample()))));
  EXPECT_EQ(read.run, 7U);
  EXPECT_EQ(read.at, ReplacedExample().at);
  ASSERT_TRUE(MayFollow(read, Example()));
  GangDecision expected = Example();
  expected.pods[0].name = "train-9";
  expected.pods[0].uid = "u9";
  expected.claims[0].name = "train-9-chips";
  expected.claims[0].uid = "c9";
  EXPECT_EQ(WithMember(Example(), read), expected);
}

TEST(RecordTest, AReplacedMemberMayHaveAnotherNode) {
  MemberReplaced record = ReplacedExample();
  record.node = "node-c";
  const auto read = std::get<MemberReplaced>(*DecodeRecord(EncodeRecord(Record(record))));
  EXPECT_EQ(WithMember(Example(), read).pods[0].node, "node-c");
}

TEST(RecordTest, AReplacedMemberOfAnotherDecisionIsRefused) {
  MemberReplaced record = ReplacedExample();
  record.pod = 1;
  EXPECT_FALSE(MayFollow(record, Example()));
  record = ReplacedExample();
  record.claims[0].index = 1;
  EXPECT_FALSE(MayFollow(record, Example()));
  GangDecision shared = Example();
  shared.pods.push_back(shared.pods[0]);
  shared.claims[0].consumers = {0, 1};
  EXPECT_FALSE(MayFollow(ReplacedExample(), shared)) << "the claim is not of that pod alone";
}

MemberAdded AddedExample(std::uint32_t pod, std::uint32_t claim) {
  return {.run = 7,
          .pod = pod,
          .name = "train-9",
          .uid = "u9",
          .node = "node-c",
          .rank = 5,
          .at = WallTime(std::chrono::nanoseconds(1'800'000'000'000'000'001)),
          .claims = {{claim, "train-9-chips", "c9", Example().claims[0].allocation}}};
}

TEST(RecordTest, AnAddedMemberComesBackAtTheEndOfTheDecisionOrInAPlaceThatWasGivenUp) {
  const auto pods = static_cast<std::uint32_t>(Example().pods.size());
  const auto claims = static_cast<std::uint32_t>(Example().claims.size());
  for (const bool at_end : {true, false}) {
    const MemberAdded record = at_end ? AddedExample(pods, claims) : AddedExample(0, 0);
    const auto read = std::get<MemberAdded>(*DecodeRecord(EncodeRecord(Record(record))));
    EXPECT_EQ(read.run, 7U);
    EXPECT_EQ(read.at, record.at);
    ASSERT_TRUE(MayFollow(read, Example()));
    GangDecision expected = Example();
    if (at_end) expected.pods.emplace_back();
    if (at_end) expected.claims.emplace_back();
    expected.pods[record.pod] = {.name = "train-9", .uid = "u9", .node = "node-c", .rank = 5};
    expected.claims[record.claims[0].index] = {.name = "train-9-chips",
                                               .uid = "c9",
                                               .consumers = {record.pod},
                                               .allocation = record.claims[0].allocation};
    EXPECT_EQ(WithMember(Example(), read), expected);
  }
}

TEST(RecordTest, TheClaimsOfAPlaceThatItsNextPodLacksAreNobodys) {
  MemberAdded record = AddedExample(0, 0);
  record.claims.clear();
  EXPECT_TRUE(WithMember(Example(), record).claims[0].consumers.empty());
}

TEST(RecordTest, AnAddedMemberOfAnotherDecisionIsRefused) {
  const auto pods = static_cast<std::uint32_t>(Example().pods.size());
  const auto claims = static_cast<std::uint32_t>(Example().claims.size());
  EXPECT_FALSE(MayFollow(AddedExample(pods + 1, claims), Example()));
  EXPECT_FALSE(MayFollow(AddedExample(pods, claims + 1), Example()));
  EXPECT_FALSE(MayFollow(AddedExample(pods, 0), Example())) << "another pod's claim";
  MemberAdded twice = AddedExample(0, 0);
  twice.claims.push_back(twice.claims[0]);
  EXPECT_FALSE(MayFollow(twice, Example()));
}

TEST(RecordTest, EnumeratorsHaveTheNumbersOfTheFormat) {
  auto decision = Example();
  auto& claim = decision.claims[0].allocation;
  claim.configs.push_back({ConfigSource::kClass, {}, "d", "{}"});
  const auto effects = {TaintEffect::kNone, TaintEffect::kNoSchedule, TaintEffect::kNoExecute};
  claim.results[0].tolerations.clear();
  for (const TaintEffect effect : effects) {
    claim.results[0].tolerations.push_back({.key = "k",
                                            .op = TolerationOperator::kExists,
                                            .value = "",
                                            .effect = effect,
                                            .seconds = {}});
  }
  claim.results[0].tolerations[0].op = TolerationOperator::kEqual;
  const std::string bytes =
      EncodeRecord(GangPrepared{std::make_shared<const GangDecision>(decision)});
  const Json body = Json::from_cbor(bytes.substr(8));
  const Json& allocation = body.at("claims").at(0).at(3);
  const Json& tolerations = allocation.at(0).at(0).at(5);
  EXPECT_EQ(tolerations.at(0).at(1), 0) << "Equal";
  EXPECT_EQ(tolerations.at(1).at(1), 1) << "Exists";
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(tolerations.at(i).at(3), i) << "effect " << i;
  EXPECT_EQ(allocation.at(1).at(0).at(0), 1) << "of the claim";
  EXPECT_EQ(allocation.at(1).at(1).at(0), 0) << "of the class";
}

TEST(RecordTest, EveryFlippedBitIsFound) {
  const std::string good =
      EncodeRecord(GangPrepared{std::make_shared<const GangDecision>(Example())});
  for (std::size_t byte = 0; byte < good.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[byte] = static_cast<char>(static_cast<unsigned char>(bad[byte]) ^ (1U << bit));
      ASSERT_EQ(DecodeRecord(bad).status().code(), absl::StatusCode::kDataLoss)
          << "byte " << byte << " bit " << bit;
    }
  }
}

TEST(RecordTest, EveryTornRecordIsFound) {
  const std::string good =
      EncodeRecord(GangPrepared{std::make_shared<const GangDecision>(Example())});
  for (std::size_t size = 0; size < good.size(); ++size) {
    ASSERT_FALSE(DecodeRecord(good.substr(0, size)).ok()) << size;
  }
}

TEST(RecordTest, AVersionOfTheFutureIsRefusedByName) {
  std::string bytes = EncodeRecord(GangAllocated{7});
  bytes[2] = 2;
  EXPECT_THAT(std::string(Message(DecodeRecord(bytes).status())), HasSubstr("version 2"));
}

constexpr char kUndoing = 5;

// Returns a record of the type whose body is `body`, under the right checksum.
std::string WithChecksum(const std::string& body, char type = kUndoing) {
  std::string bytes = {'T', 'J', 1, type};
  const std::uint32_t checksum = Crc32c(body) ^ Crc32c(bytes);
  for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>((checksum >> (8 * i)) & 0xffU);
  return bytes + body;
}

// The defect: such a record ended the program by its stack.
TEST(RecordTest, ABodyNestedThousandsDeepIsRefused) {
  constexpr std::size_t kDeep = 1'000'000;
  std::string maps;
  for (std::size_t i = 0; i < kDeep; ++i) maps += std::string("\xa1\x60", 2);
  for (const std::string& body :
       {std::string(kDeep, '\x81') + '\0', std::string(kDeep, '\x9f'), std::string(kDeep, '\x5f'),
        std::string(kDeep, '\x7f'), maps, std::string(kDeep, '\xc1') + '\0',
        std::string(10, '\x82') + std::string(kDeep, '\x81'),
        // The defect: behind a count of more items than there are bytes nobody looked.
        "\x9b" + std::string(8, '\xff') + std::string(kDeep, '\x81'),
        "\xbb" + std::string(8, '\xff') + maps, "\x9a\x80" + std::string(kDeep, '\x81')}) {
    const absl::Status status = DecodeRecord(WithChecksum(body)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
}

// The defect: made an integer of, whatever it was, -1e289 for one.
TEST(RecordTest, ANumberWithAFractionIsRefused) {
  using std::string_literals::operator""s;
  for (const std::string& body : {"\xf9\x3c\x00"s, "\x81\xfa\x3f\x80\x00\x00"s,
                                  "\xa1\x61n\x82\x00\xfb\xfb\xfb\xfb\xfb\xfb\xfb\xfb\xfb"s}) {
    const absl::Status status = DecodeRecord(WithChecksum(body)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_TRUE(Message(status).ends_with("CBOR with a fraction")) << status;
  }
}

// The record, with another value at a place of its body.
absl::Status Read(const std::string& record, const char* place, const Json& value) {
  Json body = Json::from_cbor(record.substr(8));
  body.at(Json::json_pointer(place)) = value;
  std::string bytes;
  Json::to_cbor(body, bytes);
  return DecodeRecord(WithChecksum(bytes, record[3])).status();
}

// The defect: of such numbers the low bits were taken.
TEST(RecordTest, ANumberBeyondItsFieldIsRefused) {
  const std::string good =
      EncodeRecord(GangPrepared{std::make_shared<const GangDecision>(Example())});
  for (const char* place : {"/pods/0/3", "/pods/0/4", "/claims/0/2/0",  // rank, slice, consumer
                            "/claims/0/3/0/0/5/1/1", "/claims/0/3/0/0/5/1/3",  // operator, effect
                            "/claims/0/3/1/0/0"}) {                            // source
    EXPECT_TRUE(Read(good, place, 0).ok()) << place;
    for (const Json& value : {Json(1ULL << 32U), Json(-(1LL << 32U)), Json(~0ULL), Json(-1)}) {
      EXPECT_EQ(Read(good, place, value).code(), absl::StatusCode::kDataLoss) << place << value;
    }
  }
  for (const char* place : {"/end", "/placed", "/runtime", "/grace", "/claims/0/3/0/0/5/1/4"}) {
    EXPECT_TRUE(Read(good, place, 1).ok()) << place;
    EXPECT_EQ(Read(good, place, ~0ULL).code(), absl::StatusCode::kDataLoss) << place;
  }
  const std::string released = EncodeRecord(ClaimReleased{7, 1});
  EXPECT_TRUE(Read(released, "/claim", 1).ok());
  EXPECT_EQ(Read(released, "/claim", 1ULL << 32U).code(), absl::StatusCode::kDataLoss);
}

TEST(RecordTest, TheChecksumIsCrc32c) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);  // the check value of every CRC catalogue
}

TEST(DecisionTest, PlacementReadsLikeTheAnnotation) {
  EXPECT_EQ(PlacementText(Example().slices[0]), "us-0 4x4x2+0,0,2");
  EXPECT_EQ(PlacementText({.domain = "node-a", .shape = "", .origin = "", .nodes = {}}), "node-a");
}

TEST(DecisionTest, APlacementIsReadBackAsItWasWritten) {
  for (const DecidedSlice& slice : {DecidedSlice{"us-0", "4x4x2", "0,0,2", {}},
                                    DecidedSlice{"node-a", "", "", {}}, DecidedSlice{}}) {
    EXPECT_EQ(ParsePlacement(PlacementText(slice)), slice) << PlacementText(slice);
  }
}

TEST(DecisionTest, WhatIsNoPlacementIsTakenForADomain) {
  for (const char* text : {"us-0 4x4x2", "us-0 ", "us-0"}) {
    EXPECT_EQ(ParsePlacement(text), (DecidedSlice{"us-0", "", "", {}})) << text;
  }
}

TEST(NaturalOrderTest, NumbersCompareAsNumbers) {
  EXPECT_TRUE(NaturalLess("train-2", "train-10"));
  EXPECT_FALSE(NaturalLess("train-10", "train-2"));
  EXPECT_TRUE(NaturalLess("train-1", "train-1a"));
  EXPECT_TRUE(NaturalLess("a-007", "a-8"));
  EXPECT_FALSE(NaturalLess("same", "same"));
}

}  // namespace
}  // namespace tahoma::controller
