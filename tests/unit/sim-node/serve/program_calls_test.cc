// Programs that pods send: computed on the claim's memory, bounded and refused.

#include "sim-node/serve/program_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/isa/assemble.h"
#include "lib/isa/binary.h"
#include "lib/isa/text.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kShare = std::uint64_t{1} << 20U;
const torus::ChipIndex kChip(3);
const ClaimCore kCore = {.chip = kChip, .core = 1};

constexpr std::string_view kProduct = R"(
tensor a fp32 [2, 2] in @ 0
tensor b fp32 [2, 3] in @ 64
tensor c fp32 [2, 3] out @ 128
sbuf   at fp32 [2, 2]
sbuf   bt fp32 [2, 3]
psum   p  fp32 [2, 3]
sbuf   ct fp32 [2, 3]
dma_copy    at <- a
dma_copy    bt <- b
nc_matmul   p  <- at bt
tensor_copy ct <- p
dma_copy    c  <- ct
)";

std::string Bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class ProgramCallsTest : public ::testing::Test {
 protected:
  static ProgramRank RankOn(const ClaimCore& core, std::uint64_t address = 0) {
    return {.core = core, .address = address, .bytes_of_stack = kShare, .stacks = {0}};
  }
  absl::StatusOr<wire::Reply> Run(const std::string& payload,
                                  const ProgramCalls::Options& options = {},
                                  const std::vector<ProgramRank>& ranks = {RankOn(kCore)}) {
    return calls_.Run(payload, ranks, links_, options, memory_,
                      [this](torus::ChipIndex) { return may_run_(); });
  }
  static std::string Binary(std::string_view text) {
    const auto program = isa::ParseText(text, "test");
    EXPECT_TRUE(program.ok()) << program.status();
    return isa::Encode(*program);
  }
  std::string Complaint(const std::string& payload, absl::StatusCode code,
                        const std::vector<ProgramRank>& ranks = {RankOn(kCore)}) {
    const auto reply = Run(payload, {}, ranks);
    EXPECT_EQ(reply.status().code(), code) << reply.status();
    return std::string(Message(reply.status()));
  }

  ClaimMemory memory_{{{kChip, kShare}}, std::make_shared<PageBudget>(kShare)};
  InstanceLinks links_{.fabric = Fabric(TorusLinks(torus::kInstanceShape, hw::kTrainium2.links))};
  ManualClock clock_;
  ProgramCalls calls_{clock_};
  std::function<absl::Status()> may_run_ = [] { return absl::OkStatus(); };
};

TEST_F(ProgramCallsTest, AProgramFindsItsTensorsInTheClaimsMemoryAndWritesThere) {
  ASSERT_TRUE(memory_.Write({kChip, 4096}, Bytes({1, 2, 3, 4})).ok());
  ASSERT_TRUE(memory_.Write({kChip, 4096 + 64}, Bytes({1, 0, 2, 0, 1, 3})).ok());
  const auto reply = Run(Binary(kProduct), {}, {RankOn(kCore, 4096)});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(*memory_.Read({.at = {kChip, 4096 + 128}, .bytes = 24}), Bytes({1, 3, 11, 2, 4, 16}));
  const Json result = ParseJson(reply->result);
  EXPECT_EQ(result["instructions"], 5);
  ASSERT_EQ(result["ranks"].size(), 1U);
  const Json& rank = result["ranks"][0];
  EXPECT_EQ(rank["chip"], 3);
  EXPECT_EQ(rank["core"], 1);
  EXPECT_EQ(rank["timePs"], result["timePs"]);
  EXPECT_GT(rank["timePs"], rank["boundPs"]);
  EXPECT_EQ(reply->payload, "");
}

TEST_F(ProgramCallsTest, WithoutDataTheTimeIsTheSameAndNothingIsWritten) {
  const auto with = Run(Binary(kProduct), {.timeline = true});
  const std::string zeros = *memory_.Read({.at = {kChip, 128}, .bytes = 24});
  ASSERT_TRUE(memory_.Write({kChip, 0}, Bytes({1, 2, 3, 4})).ok());
  ASSERT_TRUE(memory_.Write({kChip, 64}, Bytes({1, 2, 3, 4})).ok());
  const auto without = Run(Binary(kProduct), {.data = false, .timeline = true});
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_EQ(with->result, without->result);
  EXPECT_EQ(*memory_.Read({.at = {kChip, 128}, .bytes = 24}), zeros);
  EXPECT_TRUE(ParseJson(without->payload).contains("traceEvents"));
}

TEST_F(ProgramCallsTest, ASeedRoundsStochasticallyAndAlwaysAlike) {
  const std::string program = Binary(
      "tensor a fp32 [128, 8] in @ 0\ntensor c bf16 [128, 8] out @ 4096\nsbuf t fp32 [128, 8]\n"
      "sbuf h bf16 [128, 8]\ndma_copy t <- a\ntensor_copy h <- t\ndma_copy c <- h\n");
  ASSERT_TRUE(memory_.Write({kChip, 0}, Bytes(std::vector<float>(1024, 1.0F / 3))).ok());
  const auto rounded = [&](std::optional<std::uint64_t> seed) {
    EXPECT_TRUE(Run(program, {.rounding_seed = seed}).ok());
    return *memory_.Read({.at = {kChip, 4096}, .bytes = 2048});
  };
  const std::string nearest = rounded(std::nullopt);
  const std::string seven = rounded(7);
  EXPECT_NE(seven, nearest);
  EXPECT_NE(seven, rounded(8));
  EXPECT_EQ(seven, rounded(7));
  EXPECT_EQ(nearest, rounded(std::nullopt));
}

TEST_F(ProgramCallsTest, TheCoreThatRanCounts) {
  ASSERT_TRUE(Run(Binary(kProduct)).ok());
  ASSERT_TRUE(
      Run(Binary(kProduct), {.data = false}, {RankOn({.chip = kChip, .core = 3, .physical = 2})})
          .ok());
  ASSERT_FALSE(Run("hello").ok());
  for (const int physical : {1, 6}) {
    const CoreCounts counts = calls_.counters().Of({.chip = kChip, .core = physical});
    EXPECT_EQ(counts.ended, (std::array<std::uint64_t, 3>{1, 0, 0}));
    EXPECT_EQ(counts.flops, 2U * 2 * 2 * 3);
    EXPECT_EQ(counts.hbm_bytes, 4U * (2 * 2 + 2 * 3 + 2 * 3));
  }
  EXPECT_EQ(calls_.counters().Of({.chip = kChip, .core = 7}).flops, 0U);
}

TEST_F(ProgramCallsTest, AFaultEndsAProgramBeforeItsNextInstruction) {
  ASSERT_TRUE(memory_.Write({kChip, 0}, Bytes({1, 2, 3, 4})).ok());
  const std::string zeros = *memory_.Read({.at = {kChip, 128}, .bytes = 24});
  for (int good = 0; good < 5; ++good) {
    may_run_ = [left = good]() mutable {
      return left-- > 0 ? absl::OkStatus() : Aborted("NRT_EXEC_HW_ERR_NC_UE (1202)");
    };
    EXPECT_EQ(Complaint(Binary(kProduct), absl::StatusCode::kAborted),
              "NRT_EXEC_HW_ERR_NC_UE (1202)");
    EXPECT_EQ(*memory_.Read({.at = {kChip, 128}, .bytes = 24}), zeros);
  }
  EXPECT_EQ(calls_.counters().Of({.chip = kChip, .core = 1}).ended,
            (std::array<std::uint64_t, 3>{0, 0, 5}));
  may_run_ = [] { return absl::OkStatus(); };
  EXPECT_TRUE(Run(Binary(kProduct)).ok());
}

TEST_F(ProgramCallsTest, WhatIsNoProgramIsRefused) {
  Complaint("", absl::StatusCode::kInvalidArgument);
  Complaint("hello", absl::StatusCode::kInvalidArgument);
  std::string broken = Binary(kProduct);
  broken.back() ^= 1;
  Complaint(broken, absl::StatusCode::kDataLoss);
}

TEST_F(ProgramCallsTest, AnInstructionThatReadsWhatNobodyWroteIsNamed) {
  const std::string text = "tensor c fp32 [2, 2] out\nsbuf t fp32 [2, 2]\ndma_copy c <- t\n";
  const auto reply = Run(Binary(text));
  EXPECT_FALSE(reply.ok());
  EXPECT_THAT(std::string(Message(reply.status())), HasSubstr("dma_copy"));
  EXPECT_EQ(calls_.counters().Of({.chip = kChip, .core = 1}).ended[1], 1U);
  EXPECT_TRUE(Run(Binary(text), {.data = false}).ok());
}

TEST_F(ProgramCallsTest, ATensorBeyondTheClaimsMemoryIsRefused) {
  EXPECT_THAT(
      Complaint(Binary(kProduct), absl::StatusCode::kOutOfRange, {RankOn(kCore, kShare - 100)}),
      HasSubstr("not in a memory"));
}

TEST_F(ProgramCallsTest, MoreWorkThanASimNodeWillDoIsRefusedButTimed) {
  const std::string huge =
      "tensor a int8 [16384, 4194304] in\ntensor c int8 [16384, 4194304] out\ndma_copy c <- "
      "a\ndma_copy c <- a\n";
  EXPECT_THAT(Complaint(Binary(huge), absl::StatusCode::kResourceExhausted),
              HasSubstr("run without data"));
}

TEST_F(ProgramCallsTest, MoreInstructionsOnAllRanksThanTheHostKeepsAreRefused) {
  std::string text = "sbuf t fp32 [1, 1]\n";
  for (std::size_t i = 0; i <= kMaxRankInstructions / 128; ++i) text += "memset t value=0\n";
  std::vector<ProgramRank> ranks;
  for (int core = 0; core < 128; ++core) ranks.push_back(RankOn({.chip = kChip, .core = core}));
  EXPECT_THAT(Complaint(Binary(text), absl::StatusCode::kResourceExhausted, ranks),
              HasSubstr("131073 instructions on 128 ranks"));
}

TEST_F(ProgramCallsTest, TwoCoresRunAtOnceAndOneCoreOneProgram) {
  // Many products keep a core busy while the others ask.
  std::string text(kProduct);
  for (int i = 0; i < 20'000; ++i) text += "nc_matmul p <- at bt\n";
  const std::string slow = Binary(text);
  bool refused = false;
  while (!refused) {  // unless this thread waits for a processor as long as the products take
    std::atomic<bool> ended = false;
    std::thread other([&] {
      // The other thread's program may have found the core busy, too.
      const auto reply = Run(slow);
      EXPECT_TRUE(reply.ok() || absl::IsUnavailable(reply.status())) << reply.status();
      ended = true;
    });
    while (!refused && !ended) refused = absl::IsUnavailable(Run(Binary(kProduct)).status());
    EXPECT_TRUE(Run(Binary(kProduct), {}, {RankOn({.chip = kChip, .core = 0})}).ok());
    other.join();
  }
  EXPECT_TRUE(Run(Binary(kProduct)).ok());
}

// The calls of the bearer of a claim's token, by way of the node's server.
class AddProgramCallsTest : public ProgramCallsTest {
 protected:
  AddProgramCallsTest() {
    AddProgramCalls(server_, live_, calls_, claims_, [](const std::string&) {});
    const auto token = live_.Change([](Instance& node) {
      return node.ApplyClaim({.claim_uid = "uid", .lnc = 2, .chips = {kChip.value()}});
    });
    EXPECT_TRUE(token.ok()) << token.status();
    token_ = token.value_or("");
  }
  absl::Status Call() {
    const Json params = {{"token", token_}, {"ranks", {{{"core", 1}}}}};
    return server_
        .ServeWorkload(
            {.method = std::string(kCoreRun), .params = params.dump(), .payload = Binary(kProduct)})
        .status();
  }
  static Instance MakeInstance() {
    auto instance =
        Instance::Create({.type = hw::FindInstanceType("trn2.48xlarge"), .name = "node-0"},
                         [last = std::uint64_t{0}]() mutable {
                           return std::array<std::uint64_t, 2>{++last, 2};
                         });
    EXPECT_TRUE(instance.ok()) << instance.status();
    return *std::move(instance);
  }

  LiveInstance live_{MakeInstance()};
  Communicators communicators_{
      {.node_id = 0, .links = TorusLinks(torus::kInstanceShape, hw::kTrainium2.links)}};
  CommunicatorCalls ranks_{communicators_};
  MemoryCalls claims_{communicators_, ranks_};
  NodeServer server_{live_, {}};
  std::string token_;
};

TEST_F(AddProgramCallsTest, AFaultOfTheChipIsTheRuntimesStatusUntilTheRepair) {
  const std::map<ChipFault, std::string> expected = {
      {ChipFault::kSramUncorrectable, "NRT_EXEC_HW_ERR_NC_UE (1202)"},
      {ChipFault::kNcUncorrectable, "NRT_EXEC_HW_ERR_NC_UE (1202)"},
      {ChipFault::kHbmUncorrectable, "NRT_EXEC_HW_ERR_HBM_UE (1201)"},
      {ChipFault::kDma, "NRT_EXEC_HW_ERR_DMA_ABORT (1203)"},
      {ChipFault::kDead, "NRT_TIMEOUT (5)"}};
  for (const auto& [fault, status] : expected) {
    ASSERT_TRUE(
        live_.Change([&](Instance& node) { return node.BreakChip(kChip.value(), fault); }).ok());
    const absl::Status ended = Call();
    EXPECT_EQ(ended.code(), absl::StatusCode::kAborted);
    EXPECT_EQ(Message(ended), fmt::format("{}: chip 3 is broken: {}", status, FaultName(fault)));
    ASSERT_TRUE(live_.Change([](Instance& node) { return node.RepairChip(kChip.value()); }).ok());
    EXPECT_TRUE(Call().ok());
  }
  EXPECT_EQ(calls_.counters().Of({.chip = kChip, .core = 2}).ended,
            (std::array<std::uint64_t, 3>{5, 0, 5}));
}

TEST_F(AddProgramCallsTest, AClaimReadsTheCountersOfItsOwnCores) {
  clock_.Advance(std::chrono::seconds(5));
  ASSERT_TRUE(Call().ok());
  const auto reply = server_.ServeWorkload(
      {.method = std::string(kCoreCounters), .params = Json{{"token", token_}}.dump()});
  ASSERT_TRUE(reply.ok()) << reply.status();
  const Json counters = ParseJson(reply->result);
  EXPECT_EQ(counters["clockNs"], 5'000'000'000);
  ASSERT_EQ(counters["chips"].size(), 1U);
  const Json& chip = counters["chips"][0];
  EXPECT_EQ(chip["chip"], 3);
  EXPECT_EQ(chip["capacityBytes"], std::int64_t{96} << 30U);
  EXPECT_EQ(chip["usedBytes"], kHbmPageBytes);
  ASSERT_EQ(chip["cores"].size(), 4U);
  const Json& core = chip["cores"][1];
  EXPECT_EQ(core["id"], 13);
  ASSERT_EQ(core["physical"].size(), 2U);
  EXPECT_EQ(core["physical"][0]["completed"], 1);
  EXPECT_EQ(core["physical"][0]["flops"], 24);
  EXPECT_GT(core["physical"][0]["enginesPs"]["tensor"], 0);
  EXPECT_EQ(core["physical"][1]["completed"], 0);
}

TEST_F(AddProgramCallsTest, AFaultOfAnotherChipIsNoMatter) {
  ASSERT_TRUE(
      live_.Change([](Instance& node) { return node.BreakChip(4, ChipFault::kDead); }).ok());
  EXPECT_TRUE(Call().ok());
}

TEST_F(AddProgramCallsTest, AReleasedClaimMayNotRunOn) {
  EXPECT_TRUE(MayRun(live_.Read([](const Instance& node) { return node; }), token_, kChip).ok());
  live_.Change([](Instance& node) {
    node.ReleaseClaim("uid");
    return true;
  });
  EXPECT_TRUE(absl::IsPermissionDenied(
      live_.Read([&](const Instance& node) { return MayRun(node, token_, kChip); })));
}

// An all-reduce of four ranks on two chips: each adds its tensor to those of the others.
constexpr std::string_view kSum = R"(
tensor a fp32 [128] in @ 0
tensor b fp32 [128] out @ 512
all_reduce b <- a
)";

TEST_F(AddProgramCallsTest, RanksAddUpThroughACollective) {
  const auto token = live_.Change([](Instance& node) {
    return node.ApplyClaim({.claim_uid = "two", .lnc = 2, .chips = {8, 12}});
  });
  ASSERT_TRUE(token.ok()) << token.status();
  constexpr std::uint64_t kCoreBytes = std::uint64_t{24} << 30U;
  const auto call = [&](std::string_view method, Json params, const std::string& payload = "") {
    params["token"] = *token;
    return server_.ServeWorkload(
        {.method = std::string(method), .params = params.dump(), .payload = payload});
  };
  AddMemoryCalls(server_, live_, claims_, [](const std::string&) {});
  Json ranks = Json::array();
  for (int chip = 0; chip < 2; ++chip) {
    for (int core = 0; core < 2; ++core) {
      const std::uint64_t address = static_cast<std::uint64_t>(core) * kCoreBytes;
      ranks.push_back({{"chip", chip}, {"core", core}, {"address", address}});
      const std::string bytes = Bytes(std::vector<float>(128, static_cast<float>(2 * chip + core)));
      ASSERT_TRUE(call(kMemStore, {{"chip", chip}, {"address", address}}, bytes).ok());
    }
  }
  const auto reply = call(kCoreRun, {{"ranks", ranks}, {"timeline", true}}, Binary(kSum));
  ASSERT_TRUE(reply.ok()) << reply.status();
  const Json result = ParseJson(reply->result);
  ASSERT_EQ(result["ranks"].size(), 4U);
  EXPECT_EQ(result["ranks"][3]["chip"], 12);
  EXPECT_EQ(result["ranks"][3]["bound"], "collectives");
  EXPECT_THAT(reply->payload, HasSubstr(R"("name":"chip 12")"));
  for (const Json& rank : ranks) {
    const auto sum = call(kMemLoad, {{"chip", rank["chip"]},
                                     {"address", rank["address"].get<std::uint64_t>() + 512},
                                     {"bytes", 512}});
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ(sum->payload, Bytes(std::vector<float>(128, 6)));
  }
  ranks.push_back(ranks[0]);
  EXPECT_THAT(Message(call(kCoreRun, {{"ranks", ranks}}, Binary(kSum)).status()),
              HasSubstr("names core 0 of chip 0 twice"));
  ranks[4] = {{"chip", 0}, {"core", 2}};
  EXPECT_THAT(Message(call(kCoreRun, {{"ranks", ranks}}, Binary(kSum)).status()),
              HasSubstr("comes back to chip 0"));
  EXPECT_THAT(Message(call(kCoreRun, {{"ranks", Json::array()}}, Binary(kSum)).status()),
              HasSubstr("1 to 128 cores"));
}

class RankOfClaimTest : public ::testing::Test {
 protected:
  static Instance Of(std::string_view type) {
    auto instance = Instance::Create({.type = hw::FindInstanceType(type), .name = "node-0"}, [] {
      return std::array<std::uint64_t, 2>{1, 2};
    });
    EXPECT_TRUE(instance.ok()) << instance.status();
    return *std::move(instance);
  }
};

TEST_F(RankOfClaimTest, CoresAreCountedThroughTheClaimsOwn) {
  const Instance instance = Of("trn2.48xlarge");
  const HeldClaim whole{.lnc = 2, .chips = {9, 4}};
  const auto core_of = [&](const HeldClaim& claim, std::int64_t chip, std::int64_t core) {
    return RankOfClaim(instance, claim, {.chip = chip, .core = core});
  };
  EXPECT_EQ(core_of(whole, 0, 3)->core, (ClaimCore{torus::ChipIndex(4), 3, 2}));
  EXPECT_EQ(core_of(whole, 1, 0)->core, (ClaimCore{torus::ChipIndex(9), 0, 2}));
  EXPECT_EQ(core_of(whole, 2, 0).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(Message(core_of(whole, 0, 4).status())), HasSubstr("cores 0 to 3 there"));
  const HeldClaim part{.lnc = 1, .cores = {{.chip = 2, .cores = {7, 5}}}};
  EXPECT_EQ(core_of(part, 0, 1)->core, (ClaimCore{torus::ChipIndex(2), 7}));
  EXPECT_EQ(core_of(part, 0, 2).status().code(), absl::StatusCode::kOutOfRange);
  // Cores 5 and 7 of LNC 1 belong to stacks 2 and 3; the claim has an eighth of the chip for each.
  EXPECT_EQ(core_of(part, 0, 1)->stacks, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(core_of(part, 0, 1)->bytes_of_stack, std::uint64_t{12} << 30U);
  EXPECT_EQ(core_of(whole, 0, 1)->stacks, (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST_F(RankOfClaimTest, AnotherGenerationOfCoresIsRefused) {
  const HeldClaim claim{.lnc = 1, .chips = {0}};
  const absl::Status status = RankOfClaim(Of("trn1.32xlarge"), claim, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("trn1.32xlarge has NeuronCore-v2"));
}

}  // namespace
}  // namespace tahoma::sim
