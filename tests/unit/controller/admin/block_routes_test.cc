// The routes of Capacity Blocks: which order a request becomes, and what is refused before one is
// made.

#include "controller/reserve/extension.h"
#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BlockRoutesTest : public AdminFixture {
 protected:
  BlockRoutesTest() {
    const WallTime now = clock_.WallNow();
    block_.reservation = "cr-1";
    block_.key = {"team-a", "pretrain"};
    block_.state = BlockState::kActive;
    block_.bought = {.product = FindProduct("u-trn2x64"),
                     .count = 2,
                     .zone = "z",
                     .start = StartOf(SlotOf(now)),
                     .end = StartOf(SlotOf(now) + 7)};
    block_.end = block_.bought.end;
    block_.cells = {{.cell = "c", .hosts = 2}};
    snapshot_.profile = TimeProfile(SlotOf(now));
    const PoolId pool = snapshot_.profile.IdOf(PoolOf(block_, "c"));
    snapshot_.profile.SetSupply(pool, {.healthy = 4});
    snapshot_.profile.Book(pool, block_.slots(), 2);
    Show();
  }

  void Show() {
    const auto block = std::make_shared<const Block>(block_);
    snapshot_.blocks.Put(block_.key, std::make_shared<const BlockView>(BlockView{.block = block}));
    snapshot_.block_list.Put(block_.reservation, block);
    answer_ = block;
  }

  Block block_;
};

constexpr const char* kExtend = "/v1/capacityblocks/team-a/pretrain/extensions";

TEST_F(BlockRoutesTest, APurchaseBecomesAnOrder) {
  const Outcome answer = Post("/v1/capacityblocks/team-a", {{"capacityBlockOfferingId", "cb-1"},
                                                            {"name", "pretrain"},
                                                            {"clientToken", "t"},
                                                            {"tags", {{"team", "a"}}}});
  EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(answer.body["capacityReservationId"], "cr-1");
  ASSERT_THAT(orders_, SizeIs(1));
  const auto& order = std::get<PurchaseOrder>(orders_[0]);
  EXPECT_EQ(order.key, (BlockKey{"team-a", "pretrain"}));
  EXPECT_EQ(order.offering_id, "cb-1");
  EXPECT_EQ(order.platform, "Linux/UNIX");
  EXPECT_EQ(order.token, "t");
  EXPECT_EQ(order.tags, (Tags{{"team", "a"}}));
}

TEST_F(BlockRoutesTest, ADryRunIsAnOrderThatChangesNothing) {
  Post("/v1/capacityblocks/team-a?dryRun=true", {{"capacityBlockOfferingId", "cb-1"}});
  Post("/v1/capacityblocks/team-a?dryRun=false", {{"capacityBlockOfferingId", "cb-1"}});
  Post(std::string(kExtend) + "?dryRun=true", {{"capacityBlockExtensionDurationHours", 24}});
  ASSERT_THAT(orders_, SizeIs(3));
  EXPECT_TRUE(std::get<PurchaseOrder>(orders_[0]).dry_run);
  EXPECT_FALSE(std::get<PurchaseOrder>(orders_[1]).dry_run);
  EXPECT_TRUE(std::get<ExtensionOrder>(orders_[2]).dry_run);
  EXPECT_EQ(
      Post("/v1/capacityblocks/team-a?dryRun=All", {{"capacityBlockOfferingId", "cb-1"}}).status,
      400);
}

TEST_F(BlockRoutesTest, AnUnsyncedControllerDoesNotSayThatThereAreNoBlocks) {
  snapshot_.synced = false;
  for (const char* path : {"/v1/capacityblocks", "/v1/capacityblocks/team-a/pretrain",
                           "/v1/capacityblocks/team-a/pretrain/usage",
                           "/v1/capacityblocks/team-a/pretrain/extensionofferings"}) {
    EXPECT_EQ(Get(path).status, 503) << path;
  }
}

TEST_F(BlockRoutesTest, ASearchForANamespaceFindsNothingThatItsQuotaRefuses) {
  QuotaTable quotas(SlotOf(clock_.WallNow()));
  quotas.Set("team-a", Quota{.instances = 0});
  snapshot_.quotas = std::make_shared<const QuotaTable>(quotas);
  const std::string search =
      "/v1/capacityblockofferings?ultraserverType=u-trn2x64&ultraserverCount=1&"
      "capacityDurationHours=24";
  EXPECT_FALSE(Get(search).body["capacityBlockOfferings"].empty());
  EXPECT_FALSE(Get(search + "&namespace=team-b").body["capacityBlockOfferings"].empty());
  const Json body = Get(search + "&namespace=team-a").body;
  EXPECT_TRUE(body["capacityBlockOfferings"].empty());
  EXPECT_EQ(body["reasons"][0]["code"], "InstanceLimitExceeded");
}

TEST_F(BlockRoutesTest, APurchaseLeavesALineInTheAuditAndARefusedOneToo) {
  Identities({AdminOfToken("ops"),
              {.name = "ed", .token = Sha256("ed"), .role = Role::kEdit, .namespaces = {"team-a"}},
              {.name = "vera", .token = Sha256("vera"), .role = Role::kView}});
  const Json order = {{"capacityBlockOfferingId", "cb-1"}};
  token_ = "ed";
  EXPECT_EQ(Post("/v1/capacityblocks/team-a", order).status, 201);
  EXPECT_EQ(Post("/v1/capacityblocks/team-b", order).status, 403);
  token_ = "vera";
  EXPECT_EQ(Post("/v1/capacityblocks/team-a", order).status, 403);
  token_ = "nobody";
  EXPECT_EQ(Post("/v1/capacityblocks/team-a", order).status, 401);
  EXPECT_THAT(orders_, SizeIs(1));
  ASSERT_THAT(audit_, SizeIs(3));
  const Json bought = ParseJson(audit_[0]);
  EXPECT_EQ(bought["user"]["username"], "ed");
  EXPECT_EQ(bought["verb"], "create");
  EXPECT_EQ(bought["objectRef"]["resource"], "capacityblocks");
  EXPECT_EQ(bought["objectRef"]["namespace"], "team-a");
  EXPECT_EQ(bought["objectRef"]["name"], "pretrain");
  EXPECT_EQ(bought["responseStatus"]["code"], 201);
  EXPECT_EQ(ParseJson(audit_[1])["responseStatus"]["code"], 403);
  EXPECT_EQ(ParseJson(audit_[2])["user"]["username"], "vera");
}

TEST_F(BlockRoutesTest, AnExtensionIsThatOfTheBooksOwnOffer) {
  const Outcome answer =
      Post(kExtend, {{"capacityBlockExtensionDurationHours", 24.0}, {"clientToken", "t"}});
  EXPECT_EQ(answer.status, 201) << answer.body;
  ASSERT_THAT(orders_, SizeIs(1));
  const auto& order = std::get<ExtensionOrder>(orders_[0]);
  EXPECT_EQ(order.reservation, "cr-1");
  EXPECT_EQ(order.token, "t");
  const auto offer =
      OfferExtension(snapshot_.profile, snapshot_.prices, block_, 24, clock_.WallNow());
  EXPECT_EQ(order.offering_id, ExtensionOfferingId(*offer));
}

TEST_F(BlockRoutesTest, RepeatingAnExtensionThatIsPaidAsksForTheSameOne) {
  Post(kExtend, {{"capacityBlockExtensionDurationHours", 24}, {"clientToken", "t"}});
  ASSERT_THAT(orders_, SizeIs(1));
  const std::string bought = std::get<ExtensionOrder>(orders_[0]).offering_id;
  block_.extensions.push_back({.offering_id = bought,
                               .token = "t",
                               .purchased = clock_.WallNow(),
                               .start = block_.end,
                               .end = block_.end + hours(24),
                               .fee = {},
                               .payment = {},
                               .state = ExtensionState::kPaymentSucceeded});
  block_.end += hours(24);
  Show();
  const Outcome again =
      Post(kExtend, {{"capacityBlockExtensionDurationHours", 24}, {"clientToken", "t"}});
  EXPECT_EQ(again.status, 201) << again.body;
  ASSERT_THAT(orders_, SizeIs(2));
  EXPECT_EQ(std::get<ExtensionOrder>(orders_[1]).offering_id, bought);

  const Outcome other =
      Post(kExtend, {{"capacityBlockExtensionDurationHours", 48}, {"clientToken", "t"}});
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(other.code(), "IdempotentParameterMismatch");
  EXPECT_THAT(orders_, SizeIs(2));
}

TEST_F(BlockRoutesTest, ExtensionsHaveAPriceBeforeTheyAreBought) {
  constexpr char kQuote[] = "/v1/capacityblocks/team-a/pretrain/extensionofferings";
  // From the fourth day after the end on there is room for one of its two UltraServers.
  const PoolId pool = *snapshot_.profile.Find(PoolOf(block_, "c"));
  snapshot_.profile.Book(pool, {SlotOf(block_.end) + 3, SlotOf(block_.end) + 30}, 3);
  const Json all = Get(kQuote).body.at("capacityBlockExtensionOfferings");
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[2]["capacityBlockExtensionDurationHours"], 72);
  EXPECT_EQ(all[2]["startDate"], FormatTime(block_.end));
  const auto offer =
      OfferExtension(snapshot_.profile, snapshot_.prices, block_, 72, clock_.WallNow());
  EXPECT_EQ(all[2]["capacityBlockExtensionOfferingId"], ExtensionOfferingId(*offer));
  EXPECT_EQ(all[2]["upfrontFee"], offer->fee().ToString());
  const Outcome one = Get(std::string(kQuote) + "?capacityBlockExtensionDurationHours=48");
  EXPECT_THAT(one.body.at("capacityBlockExtensionOfferings"), SizeIs(1));
  const Outcome none = Get(std::string(kQuote) + "?capacityBlockExtensionDurationHours=96");
  EXPECT_EQ(none.status, 200);
  EXPECT_THAT(none.body.at("capacityBlockExtensionOfferings"), IsEmpty());
  EXPECT_EQ(none.body.at("reason"), "InsufficientInstanceCapacity");
  EXPECT_EQ(Get("/v1/capacityblocks/team-a/other/extensionofferings").status, 404);
  EXPECT_THAT(orders_, IsEmpty());
}

TEST_F(BlockRoutesTest, AnOfferingInSegmentsIsOneThatEndsSooner) {
  const PoolId pool = *snapshot_.profile.Find(PoolOf(block_, "c"));
  snapshot_.profile.Book(pool, {SlotOf(block_.end) - 4, SlotOf(block_.end) + 3}, 2);
  const std::string search =
      "/v1/capacityblockofferings?ultraserverType=u-trn2x64&ultraserverCount=2&"
      "capacityDurationHours=96";
  EXPECT_FALSE(Get(search).body.contains("splitOfferings"));
  const Json split = Get(search + "&segments=2").body.at("splitOfferings");
  ASSERT_THAT(split, SizeIs(1));
  EXPECT_EQ(split[0]["capacityBlockDurationHours"], 96);
  ASSERT_THAT(split[0]["segments"], SizeIs(2));
  EXPECT_EQ(split[0]["startDate"], split[0]["segments"][0]["startDate"]);
  EXPECT_EQ(split[0]["endDate"], split[0]["segments"][1]["endDate"]);
  EXPECT_EQ(Get(search + "&segments=6").status, 400);
}

TEST_F(BlockRoutesTest, AnExtensionThatTheProfileHasNoRoomForIsRefusedBeforeAnOrderIsMade) {
  const PoolId pool = *snapshot_.profile.Find(PoolOf(block_, "c"));
  snapshot_.profile.Book(pool, SlotsOf(block_.end, block_.end + hours(24)), 3);
  const Outcome answer = Post(kExtend, {{"capacityBlockExtensionDurationHours", 24}});
  EXPECT_EQ(answer.code(), "InsufficientInstanceCapacity") << answer.body;
  EXPECT_THAT(orders_, IsEmpty());
}

TEST_F(BlockRoutesTest, ARequestThatBreaksTheSchemaIsRefusedAndOrdersNothing) {
  const std::string buy = "/v1/capacityblocks/team-a";
  struct Case {
    std::string target, body, code, says;
  };
  const std::string deep(100'000, '[');
  for (const Case& bad : std::vector<Case>{
           {buy, "", "InvalidParameterValue", "not JSON"},
           {buy, "[", "InvalidParameterValue", "not JSON"},
           {buy, deep, "InvalidParameterValue", "nested deeper than 32 levels"},
           {buy, "{\"name\":" + deep + std::string(100'000, ']') + "}", "InvalidParameterValue",
            "nested deeper than 32 levels"},
           {buy, R"({"capacityBlockOfferingId":"x","capacityBlockOfferingId":"y"})",
            "InvalidParameterValue", "the body has the key \"capacityBlockOfferingId\" twice"},
           {buy, "[]", "InvalidParameterValue", "the body […]: must be a JSON object"},
           {buy, "null", "InvalidParameterValue", "the body null: must be a JSON object"},
           {buy, "{}", "MissingParameter", "capacityBlockOfferingId is missing"},
           {buy, R"({"capacityBlockOfferingId":7})", "InvalidParameterValue",
            "capacityBlockOfferingId 7: must be text"},
           {buy, R"({"capacityBlockOfferingId":"x","nam":"y"})", "InvalidParameterValue",
            "nam: there is no such field"},
           {buy, R"({"capacityBlockOfferingId":"x","tags":{"a":1}})", "InvalidParameterValue",
            "tags.a 1: must be text"},
           {buy,
            R"({"capacityBlockOfferingId":"x","clientToken":")" + std::string(129, 'a') + R"("})",
            "InvalidParameterValue", "must have at most 128 characters"},
           {kExtend, R"({"capacityBlockExtensionDurationHours":"24"})", "InvalidParameterValue",
            "must be a whole number"},
           {kExtend, R"({"capacityBlockExtensionDurationHours":24.5})", "InvalidParameterValue",
            "must be a whole number"},
           {kExtend, R"({"capacityBlockExtensionDurationHours":1e400})", "InvalidParameterValue",
            ""},
           {kExtend, R"({"capacityBlockExtensionDurationHours":99999999999999999999})",
            "InvalidParameterValue", "must be a whole number"},
           {kExtend, R"({"capacityBlockExtensionDurationHours":25})", "InvalidParameterValue",
            "24 to 336"},
       }) {
    const Outcome answer = Ask("POST", bad.target, bad.body);
    EXPECT_EQ(answer.status, 400) << bad.body.substr(0, 100);
    EXPECT_EQ(answer.code(), bad.code) << bad.body.substr(0, 100);
    EXPECT_THAT(answer.detail(), HasSubstr(bad.says));
    EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
  }
  EXPECT_THAT(orders_, IsEmpty());
}

TEST_F(BlockRoutesTest, ABodyOfAnotherTypeIsRefused) {
  const std::string body = R"({"capacityBlockOfferingId":"x"})";
  for (const std::string type : {"", "text/plain", "application/jsonx", "application/x-www-form"}) {
    const Outcome answer = Ask("POST", "/v1/capacityblocks/team-a", body,
                               type.empty() ? "" : "Content-Type: " + type + "\r\n");
    EXPECT_EQ(answer.status, 415) << type;
    EXPECT_THAT(answer.detail(), HasSubstr("application/json"));
  }
  EXPECT_THAT(orders_, IsEmpty());
  EXPECT_EQ(Ask("POST", "/v1/capacityblocks/team-a", body,
                "Content-Type: Application/JSON; charset=utf-8\r\n")
                .status,
            201);
}

TEST_F(BlockRoutesTest, AMalformedSearchIsRefused) {
  const std::string path = "/v1/capacityblockofferings?";
  for (const auto& [query, says] : std::vector<std::pair<std::string, std::string>>{
           {"instanceCount=x", "instanceCount x: must be a whole number"},
           {"instanceCount=1e3", "must be a whole number"},
           {"maxResults=0", "1 to 1000"},
           {"maxResults=1001", "1 to 1000"},
           {"orderBy=Colour", "must be one of Price, Start, End"},
           {"startDateRange=tomorrow", "must be a time in UTC"},
           {"anyCell=yes", "must be true or false"},
           {"namespace=" + std::string(64, 'a'), "at most 63 characters"},
           {"kind=x", "there is no parameter"}}) {
    const Outcome answer = Get(path + query);
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_EQ(answer.code(), "InvalidParameterValue") << query;
    EXPECT_THAT(answer.detail(), HasSubstr(says));
  }
}

TEST_F(BlockRoutesTest, BlocksAreReadInPages) {
  for (int i = 0; i < 1200; ++i) {
    snapshot_.blocks.Put({"team-b", std::to_string(10'000 + i)},
                         std::make_shared<const BlockView>(BlockView{.refusal = "NoSuch"}));
  }
  const Outcome first = Get("/v1/capacityblocks");
  EXPECT_EQ(first.body["total"], 1201);
  ASSERT_THAT(first.body["capacityBlocks"], SizeIs(1000));
  EXPECT_EQ(first.body["capacityBlocks"][0]["name"], "pretrain");
  ASSERT_EQ(first.body["next"], "team-b/10999");
  const Outcome second = Get("/v1/capacityblocks?from=team-b/10999");
  ASSERT_THAT(second.body["capacityBlocks"], SizeIs(201));
  EXPECT_EQ(second.body["capacityBlocks"][0]["name"], "10999");
  EXPECT_FALSE(second.body.contains("next"));
}

}  // namespace
}  // namespace tahoma::controller
