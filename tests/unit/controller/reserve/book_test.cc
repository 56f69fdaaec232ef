// The life of a Capacity Block: bought, paid, bound, delivered, extended, taken back.

#include "controller/reserve/book.h"

#include <gtest/gtest.h>

#include "controller/reserve/refusal.h"
#include "lib/base/status.h"
#include "tests/unit/controller/reserve/block_world.h"

namespace tahoma::controller {
namespace {

BlockWorld::Setup PaidLater(std::chrono::seconds delay, int hosts = 4) {
  BlockWorld::Setup setup{.hosts = hosts};
  setup.book.payment.delay = delay;
  return setup;
}

TEST(BookTest, ABlockIsBoughtPaidBoundDeliveredWarnedAndExpired) {
  BlockWorld world(PaidLater(kMinute * 20));
  const auto block = world.Buy({.days = 2, .count = 2});
  EXPECT_EQ(world.StateOf(*block), "payment-pending");
  EXPECT_EQ(block->block_ids.size(), 2U);
  EXPECT_EQ(block->key.name, block->reservation);
  world.MoveBy(kMinute * 20);
  EXPECT_EQ(world.StateOf(*block), "scheduled");
  world.MoveTo(block->start() - kBindingLead);
  EXPECT_EQ(world.Now(*block)->hosts, (std::vector<std::string>{"us-00", "us-01"}));
  EXPECT_EQ(world.StateOf(*block), "scheduled");
  world.MoveTo(block->start());
  EXPECT_EQ(world.StateOf(*block), "active");
  EXPECT_EQ(world.Now(*block)->delivered, block->start());
  world.MoveTo(block->end - kMinute * 70);
  EXPECT_TRUE(world.Now(*block)->warned);
  EXPECT_EQ(world.Now(*block)->reclaim(), block->end - kHour);
  world.MoveTo(block->end);
  EXPECT_EQ(world.StateOf(*block), "expired");
  EXPECT_TRUE(world.Now(*block)->hosts.empty());
  EXPECT_EQ(world.NewsOf(*block),
            "CapacityBlockPurchased, CapacityBlockScheduled, CapacityBlockHardwareBound, "
            "CapacityBlockDelivered, CapacityBlockExpirationWarning, CapacityBlockReclaimed, "
            "CapacityBlockExpired");
}

TEST(BookTest, InstancesAreTakenBackHalfAnHourBeforeTheEnd) {
  BlockWorld world({.product = "trn2.48xlarge"});
  const auto block = world.Buy({.days = 1});
  EXPECT_EQ(block->block_ids.size(), 1U);
  EXPECT_EQ(block->reclaim(), block->end - kMinute * 30);
  world.MoveTo(block->end - kMinute * 50);
  EXPECT_FALSE(world.Now(*block)->warned);
  world.MoveTo(block->end - kMinute * 40);
  EXPECT_TRUE(world.Now(*block)->warned);
}

// At once thousands of programs would write their checkpoints.
TEST(BookTest, WarningsOfBlocksThatEndTogetherAreSpreadOverTenMinutes) {
  BookOptions options;
  options.hosts.one_spare_in = 0;
  BlockWorld world({.hosts = 128, .book = options});
  std::vector<std::shared_ptr<const Block>> blocks;
  while (blocks.size() < 128) {
    blocks.push_back(world.Buy({.days = 1, .owner = fmt::format("team-{}", blocks.size())}));
  }
  const WallTime reclaim = blocks.front()->reclaim();
  std::size_t before = 0;
  for (int minute = -20; minute <= -10; ++minute) {
    world.MoveTo(reclaim + kMinute * minute);
    const auto warned = static_cast<std::size_t>(std::ranges::count_if(
        blocks, [&](const auto& block) { return world.Now(*block)->warned; }));
    EXPECT_LE(warned - before, 32U) << minute;
    before = warned;
  }
  EXPECT_EQ(before, blocks.size());
}

TEST(BookTest, OfSeveralPurchasesAllHappenOrNone) {
  BlockWorld world({.hosts = 1});
  BlockBook& book = world.book();
  const Offering first = world.Find({.days = 1});
  const Offering second = world.Find({.days = 1, .start_in_days = 7});
  const auto buy = [&](const Offering& offering) {
    return book.Purchase({.offering_id = OfferingId(offering), .key = {"team-a", ""}}, world.now())
        .status();
  };
  const auto refused = book.AllOrNothing([&]() -> absl::Status {
    TAHOMA_RETURN_IF_ERROR(buy(first));
    TAHOMA_RETURN_IF_ERROR(buy(second));
    return buy(second);  // the only host is sold
  });
  EXPECT_EQ(Ec2CodeOf(refused), "InvalidCapacityBlockOfferingIdExpired");
  EXPECT_EQ(book.blocks().size(), 0U);
  EXPECT_TRUE(book.TakeChanges().empty());
  EXPECT_EQ(book.UseOf("team-a").peak, 0);
  EXPECT_EQ(world.Find({.days = 1}), first);
  world.Audit();
  EXPECT_TRUE(book.AllOrNothing([&]() -> absl::Status {
                    TAHOMA_RETURN_IF_ERROR(buy(first));
                    return buy(second);
                  })
                  .ok());
  EXPECT_EQ(book.blocks().size(), 2U);
  world.Audit();
}

TEST(BookTest, ABlockThatIsNotPaidIsForSaleAgain) {
  BlockWorld world({.hosts = 1});
  const Wish wish{.days = 1, .tags = {{"tahoma.dev/simulated-payment", "fail"}}};
  const auto block = world.Buy(wish);
  EXPECT_EQ(world.StateOf(*block), "payment-failed");
  EXPECT_EQ(world.Find({.days = 1}).start, block->start());
}

TEST(BookTest, APaymentIsDueAfterTwelveHoursOrFiveMinutesBeforeTheStart) {
  BlockWorld world(PaidLater(kHour * 13));
  const auto soon = world.Buy({.days = 1});
  const auto later = world.Buy({.days = 1, .start_in_days = 5});
  world.MoveTo(soon->start() - kMinute * 6);
  EXPECT_EQ(world.StateOf(*soon), "payment-pending");
  world.MoveTo(soon->start() - kMinute * 5);
  EXPECT_EQ(world.StateOf(*soon), "payment-failed");
  EXPECT_EQ(world.StateOf(*later), "payment-pending");
  world.MoveTo(later->created + kHour * 12);
  EXPECT_EQ(world.StateOf(*later), "payment-failed");
}

TEST(BookTest, AnImmediateBlockBeginsInHalfAnHour) {
  BlockWorld world(PaidLater(kMinute * 24));
  const auto block = world.Buy({.days = 1, .at_once = true});
  EXPECT_EQ(block->start(), world.now() + kMinute * 30);
  world.MoveTo(block->start());
  EXPECT_EQ(world.StateOf(*block), "active");
}

TEST(BookTest, TheLastCapacityIsSoldOnce) {
  BlockWorld world({.hosts = 1});
  const Offering offering = world.Find({.days = 1});
  EXPECT_TRUE(world.TryToBuy(offering, {.owner = "team-a"}).ok());
  const auto second = world.TryToBuy(offering, {.owner = "team-b"});
  EXPECT_EQ(Ec2CodeOf(second.status()), "InvalidCapacityBlockOfferingIdExpired");
}

TEST(BookTest, RepeatingAPurchaseBuysNothing) {
  BlockWorld world({.hosts = 4});
  const Offering offering = world.Find({.days = 1});
  const auto first = world.TryToBuy(offering, {.token = "t1"});
  const auto again = world.TryToBuy(offering, {.token = "t1"});
  EXPECT_EQ((*first)->reservation, (*again)->reservation);
  EXPECT_NE((*first)->reservation,
            (*world.TryToBuy(offering, {.owner = "team-b", .token = "t1"}))->reservation);
  world.Restart();
  EXPECT_EQ((*world.TryToBuy(offering, {.token = "t1"}))->reservation, (*first)->reservation);
  const auto other = world.TryToBuy(world.Find({.days = 2}), {.token = "t1"});
  EXPECT_EQ(Ec2CodeOf(other.status()), "IdempotentParameterMismatch");
  EXPECT_EQ(world.book().blocks().size(), 2U);
  // An object of another name does not get this object's block.
  const auto named = world.book().Purchase(
      {.offering_id = OfferingId(offering), .key = {"team-a", "mine"}, .token = "t1"}, world.now());
  EXPECT_EQ(Ec2CodeOf(named.status()), "IdempotentParameterMismatch");
}

// The defect: a request sent again with another attempts id bought twice.
TEST(BookTest, ASignedRequestBuysOnceWhateverItsToken) {
  BlockWorld world({.hosts = 4});
  const std::string offering = OfferingId(world.Find({.days = 1}));
  const auto buy = [&](const std::string& token, const std::string& signature) {
    auto block = world.book().Purchase(
        {.offering_id = offering, .key = {"team-a", ""}, .token = token, .signature = signature},
        world.now());
    world.MoveBy(kMinute);
    return block.ok() ? (*block)->reservation : Ec2CodeOf(block.status());
  };
  const std::string first = buy("call-1", "s1");
  EXPECT_EQ(buy("call-1", "s2"), first) << "the client tries again, and signs anew";
  for (const char* signature : {"s1", "s2"}) {
    EXPECT_EQ(buy("call-2", signature), "IdempotentParameterMismatch") << signature;
  }
  world.Restart();
  for (const char* signature : {"s1", "s2"}) {
    EXPECT_EQ(buy("call-2", signature), "IdempotentParameterMismatch") << signature;
  }
  EXPECT_NE(buy("call-2", "s3"), first) << "a call of its own";
  EXPECT_EQ(world.book().blocks().size(), 2U);
}

TEST(BookTest, OfManyAttemptsTheLatestAreKnown) {
  BlockWorld world({.hosts = 4});
  const std::string offering = OfferingId(world.Find({.days = 1}));
  const auto buy = [&](const std::string& token, int attempt) {
    return world.book()
        .Purchase({.offering_id = offering,
                   .key = {"team-a", ""},
                   .token = token,
                   .signature = fmt::format("s{}", attempt)},
                  world.now())
        .status();
  };
  for (int attempt = 0; attempt < 100; ++attempt) ASSERT_TRUE(buy("call", attempt).ok());
  EXPECT_EQ(world.book().blocks().size(), 1U);
  EXPECT_FALSE(buy("other", 99).ok());
  EXPECT_TRUE(buy("other", 0).ok()) << "more attempts than any client makes";
}

TEST(BookTest, ADryRunIsRefusedAsThePurchaseWouldBe) {
  BlockWorld world({.hosts = 1});
  world.book().SetQuota("team-b", Quota{.instances = 3});
  const Offering offering = world.Find({.days = 1});
  const auto code = [&](PurchaseOrder order) {
    if (order.key.ns.empty()) order.key.ns = "team-a";
    order.dry_run = true;
    const auto dry = world.book().Purchase(order, world.now());
    EXPECT_FALSE(world.book().has_changes());
    return dry.ok() ? "" : Ec2CodeOf(dry.status());
  };
  const std::string id = OfferingId(offering);
  EXPECT_EQ(code({.offering_id = id}), "");
  EXPECT_EQ(code({.offering_id = "cb-0123456789abcdef0"}),
            "InvalidCapacityBlockOfferingIdNotFound");
  EXPECT_EQ(code({.offering_id = id, .platform = "Windows"}), "InvalidParameterValue");
  EXPECT_EQ(code({.offering_id = id, .key = {"team-b", ""}}), "InstanceLimitExceeded");
  const auto bought = world.TryToBuy(offering, {.token = "t"});
  ASSERT_TRUE(bought.ok()) << bought.status();
  world.book().TakeChanges();
  EXPECT_EQ(code({.offering_id = id}), "InvalidCapacityBlockOfferingIdExpired") << "it is sold";
  EXPECT_EQ(code({.offering_id = id, .token = "t"}), "") << "it would be answered as the first";
}

TEST(BookTest, ADryRunOfAnExtensionExtendsNothing) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 1});
  const auto offering = world.book().OfferExtension(block->reservation, 24, world.now());
  ASSERT_TRUE(offering.ok()) << offering.status();
  ExtensionOrder order{.reservation = block->reservation,
                       .offering_id = ExtensionOfferingId(*offering),
                       .dry_run = true};
  world.book().TakeChanges();
  const auto dry = world.book().Extend(order, world.now());
  ASSERT_TRUE(dry.ok()) << dry.status();
  EXPECT_EQ((*dry)->extensions.size(), 1U);
  EXPECT_FALSE(world.book().has_changes());
  EXPECT_TRUE(world.Now(*block)->extensions.empty());
  world.Buy({.days = 1});  // the next day is sold
  world.book().TakeChanges();
  EXPECT_EQ(Ec2CodeOf(world.book().Extend(order, world.now()).status()),
            "InsufficientInstanceCapacity");
}

TEST(BookTest, OfferingsThatCouldNotHaveBeenMadeAreRefused) {
  BlockWorld world({.hosts = 64});
  world.MoveBy(kHour * 2);
  const Offering good = world.Find({.days = 1});
  const auto code = [&](auto change) {
    Offering offering = good;
    change(offering);
    return Ec2CodeOf(world.TryToBuy(offering, {}).status());
  };
  EXPECT_EQ(code([](Offering& o) { o.count = 65; }), "InvalidCapacityBlockOfferingIdNotFound");
  EXPECT_EQ(code([](Offering& o) { o.end += kDay * 14; }),
            "InvalidCapacityBlockOfferingIdNotFound");
  EXPECT_EQ(code([](Offering& o) { o.start += kHour; }), "InvalidCapacityBlockOfferingIdNotFound");
  EXPECT_EQ(code([&](Offering& o) {  // for seven minutes, which nobody can use
              o.start = world.now() + kMinute * 23;
              o.end = world.now() + kMinute * 30;
            }),
            "InvalidCapacityBlockOfferingIdNotFound");
  EXPECT_EQ(code([](Offering& o) {
              o.start += kDay * 57;
              o.end += kDay * 57;
            }),
            "InvalidCapacityBlockOfferingIdNotFound");
  EXPECT_EQ(code([](Offering& o) {
              o.start -= kDay;
              o.end -= kDay;
            }),
            "InvalidCapacityBlockOfferingIdExpired");
  EXPECT_EQ(code([](Offering& o) { o.rate.millionths -= 1; }),
            "InvalidCapacityBlockOfferingIdExpired");
  EXPECT_EQ(code([](Offering& o) { o.zone = "elsewhere"; }),
            "InvalidCapacityBlockOfferingIdExpired");
  EXPECT_EQ(world.book().blocks().size(), 0U);
}

TEST(BookTest, AnOwnerBuysNoMoreThanTheQuota) {
  BlockWorld world({.hosts = 8});
  world.book().SetQuota("team-a", Quota{.instances = 8});
  world.Buy({.days = 3, .count = 2});
  const auto more = world.TryToBuy(world.Find({.days = 1}), {});
  EXPECT_EQ(Ec2CodeOf(more.status()), "InstanceLimitExceeded");
  EXPECT_TRUE(world.TryToBuy(world.Find({.days = 1, .start_in_days = 3}), {}).ok());
}

TEST(BookTest, BlocksFollowOneAnotherOnTheSameHostWithoutAGap) {
  BlockWorld world({.hosts = 1});
  const auto first = world.Buy({.days = 1, .owner = "team-a"});
  const auto second = world.Buy({.days = 1, .owner = "team-b"});
  ASSERT_EQ(first->end, second->start());
  world.MoveTo(second->start() - kMinute);
  EXPECT_EQ(world.Now(*second)->hosts, world.Now(*first)->hosts);
  EXPECT_EQ(world.StateOf(*first), "active");
  world.MoveTo(second->start());
  EXPECT_EQ(world.StateOf(*first), "expired");
  EXPECT_EQ(world.StateOf(*second), "active");
}

TEST(BookTest, AdjoiningBlocksOfOneOwnerKeepTheirHosts) {
  BlockWorld world({.hosts = 4});
  const auto other = world.Buy({.days = 1, .count = 2, .owner = "team-b"});
  const auto first = world.Buy({.days = 1, .count = 2, .owner = "team-a"});
  const auto next = world.Buy({.days = 1, .count = 2, .owner = "team-a"});
  ASSERT_EQ(first->start(), other->start());
  ASSERT_EQ(next->start(), first->end);
  world.MoveTo(first->start());
  const std::vector<std::string> hosts = world.Now(*first)->hosts;
  const int gangs_host = hosts.front() == "us-02" ? 2 : 0;
  world.SetHeld(gangs_host, "team-a");  // a gang of the owner goes on working
  world.MoveTo(next->start());
  EXPECT_EQ(world.StateOf(*next), "active");
  EXPECT_EQ(world.Now(*next)->hosts, hosts);
}

TEST(BookTest, ABlockThatNeedsMoreHostsThanEndTakesNoneFromAnotherThatAdjoins) {
  BlockWorld world({.hosts = 128});
  const auto first = world.Buy({.days = 1, .owner = "team-a"});
  const auto small = world.Buy({.days = 1, .owner = "team-a", .start_in_days = 1});
  auto large = small;
  while (large->reservation >= small->reservation) {  // until its turn is before the small block's
    large = world.Buy({.days = 1, .count = 2, .owner = "team-a", .start_in_days = 1});
    ASSERT_EQ(large->start(), first->end);
  }
  ASSERT_EQ(small->start(), first->end);
  world.MoveTo(first->start());
  const std::vector<std::string> hosts = world.Now(*first)->hosts;
  world.MoveTo(first->reclaim());
  EXPECT_TRUE(world.Now(*large)->hosts.empty());
  EXPECT_EQ(world.Now(*small)->hosts, hosts);
  world.MoveTo(small->start());
  EXPECT_EQ(world.StateOf(*large), "active");
  EXPECT_EQ(world.StateOf(*small), "active");
  EXPECT_EQ(world.Now(*small)->hosts, hosts);
}

// A story of StoryTest, made small: the next block got a host that another block then had. The
// other block was bound long before its start, because the clock was set back.
TEST(BookTest, AnAdjoiningBlockDoesNotKeepAHostThatIsAnothersByThen) {
  BlockWorld world({.hosts = 2});
  const auto other = world.Buy({.days = 1, .owner = "team-b", .start_in_days = 9});
  world.SetHealthy(0, false);
  world.SetHealthy(1, false);
  world.MoveTo(other->start() - kMinute);
  world.Restart(world.now() - kDay * 8);
  world.SetHealthy(0, true);
  ASSERT_EQ(world.Now(*other)->hosts, std::vector<std::string>{"us-00"});
  world.SetHealthy(1, true);
  const auto first = world.Buy({.days = 1, .owner = "team-a", .start_in_days = 7});
  const auto next = world.Buy({.days = 1, .owner = "team-a", .start_in_days = 8});
  ASSERT_EQ(first->end, other->start());
  ASSERT_EQ(next->start(), other->start());
  world.MoveTo(first->start());
  ASSERT_EQ(world.Now(*first)->hosts, std::vector<std::string>{"us-00"});
  world.MoveTo(first->end - kMinute);
  world.Audit();
  world.MoveTo(next->start());
  EXPECT_EQ(world.Now(*other)->hosts, std::vector<std::string>{"us-00"});
  EXPECT_EQ(world.Now(*next)->hosts, std::vector<std::string>{"us-01"});
}

TEST(BookTest, ABlockWaitsForAHostThatOthersStillUse) {
  BlockWorld world({.hosts = 1});
  const auto first = world.Buy({.days = 1, .owner = "team-a"});
  const auto second = world.Buy({.days = 1, .owner = "team-b"});
  world.MoveTo(first->start());
  world.SetHeld(0, "team-a");
  world.MoveTo(second->start() + kMinute);
  EXPECT_EQ(world.StateOf(*second), "scheduled");
  EXPECT_EQ(world.Now(*second)->trouble, "0 of 1 hosts are free and healthy");
  world.SetHeld(0, "");
  EXPECT_EQ(world.StateOf(*second), "active");
}

TEST(BookTest, ASpareIsDeliveredForAHostThatFailed) {
  BlockWorld world({.hosts = 32});
  const auto block = world.Buy({.days = 1, .count = 31});
  world.SetHealthy(7, false);
  world.MoveTo(block->start() - kMinute);
  world.SetHealthy(8, false);
  world.SetHealthy(7, true);
  world.MoveTo(block->start());
  EXPECT_EQ(world.StateOf(*block), "active");
  const auto hosts = world.Now(*block)->hosts;
  EXPECT_EQ(std::count(hosts.begin(), hosts.end(), "us-08"), 0);
}

TEST(BookTest, ABlockWhoseHardwareNeverComesFailsAfterAnHour) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 1});
  world.SetHealthy(0, false);
  world.MoveTo(block->start() + kDeliveryGrace - kMinute);
  EXPECT_EQ(world.StateOf(*block), "scheduled");
  world.MoveTo(block->start() + kDeliveryGrace);
  EXPECT_EQ(world.StateOf(*block), "failed");
  EXPECT_EQ(world.NewsOf(*block),
            "CapacityBlockPurchased, CapacityBlockScheduled, CapacityBlockUndelivered, "
            "CapacityBlockFailed");
  world.SetHealthy(0, true);
  EXPECT_TRUE(world.TryToBuy(world.Find({.days = 1}), {}).ok());
}

TEST(BookTest, AnActiveBlockSaysWhichHostsFailed) {
  BlockWorld world({.hosts = 3});
  const auto block = world.Buy({.days = 1, .count = 2});
  world.MoveTo(block->start());
  world.SetHealthy(1, false);
  EXPECT_EQ(world.Now(*block)->trouble, "1 of 2 hosts failed: us-01");
  EXPECT_EQ(world.StateOf(*block), "active");
  world.SetHealthy(0, false);
  EXPECT_EQ(world.StateOf(*block), "unavailable");
  world.SetHealthy(1, true);
  EXPECT_EQ(world.StateOf(*block), "active");
  world.SetHealthy(0, true);
  EXPECT_EQ(world.Now(*block)->trouble, "");
  world.SetHealthy(0, false);
  world.SetHealthy(1, false);
  world.MoveTo(block->end);
  EXPECT_EQ(world.StateOf(*block), "expired");
}

TEST(BookTest, AHostThatFailedIsReplacedWhereItsOwnerWantsIt) {
  BlockWorld world({.hosts = 3});
  const auto block =
      world.Buy({.days = 1, .count = 2, .terms = {.replace = ReplacePolicy::kAutomatic}});
  world.MoveTo(block->start());
  world.SetHealthy(1, false);
  EXPECT_EQ(world.Now(*block)->hosts, (std::vector<std::string>{"us-00", "us-02"}));
  EXPECT_EQ(world.Now(*block)->trouble, "");
  world.SetHealthy(0, false);
  EXPECT_EQ(world.Now(*block)->trouble, "1 of 2 hosts failed: us-00");
  world.SetHealthy(1, true);
  EXPECT_EQ(world.Now(*block)->hosts, (std::vector<std::string>{"us-02", "us-01"}));
}

TEST(BookTest, HostsThatAreChosenAtThePurchaseStay) {
  BlockWorld world({.hosts = 2});
  const auto block =
      world.Buy({.days = 1, .start_in_days = 5, .terms = {.binding = BindingMode::kAtPurchase}});
  EXPECT_EQ(block->hosts, (std::vector<std::string>{"us-00"}));
  EXPECT_TRUE(world.Search({.days = 1, .count = 2}).offerings.front().start >= block->end);
  const auto other = world.Buy({.days = 14});
  world.MoveTo(other->start());
  EXPECT_EQ(world.Now(*other)->hosts, (std::vector<std::string>{"us-01"}));
  world.MoveTo(block->start());
  EXPECT_EQ(world.StateOf(*block), "active");
  EXPECT_EQ(world.Now(*block)->hosts, (std::vector<std::string>{"us-00"}));
}

TEST(BookTest, AnExtensionMovesTheEndAndKeepsTheReservation) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 1});
  world.MoveTo(block->end - kHour);
  EXPECT_TRUE(world.Now(*block)->warned);
  const auto extended = world.TryToExtend(*block, 2);
  ASSERT_TRUE(extended.ok()) << extended.status();
  EXPECT_EQ(world.Now(*block)->end, block->end + kDay * 2);
  EXPECT_FALSE(world.Now(*block)->warned);
  world.MoveTo(block->end + kDay);
  EXPECT_EQ(world.StateOf(*block), "active");
  EXPECT_EQ(world.Now(*block)->fee().ToString(), "10299.11");  // 3 days of 4 x 35.7608 an hour
}

TEST(BookTest, ExtensionsFollowEc2sRules) {
  BlockWorld world({.hosts = 2});
  const auto block = world.Buy({.days = 14});
  const auto code = [&](int days) { return Ec2CodeOf(world.TryToExtend(*block, days).status()); };
  EXPECT_EQ(code(15), "InvalidParameterValue");
  EXPECT_EQ(code(175), "InvalidParameterValue");  // 189 days in all
  world.Buy({.days = 1, .count = 2, .owner = "team-b", .start_in_days = 14});
  EXPECT_EQ(code(1), "InsufficientInstanceCapacity");
  world.MoveTo(block->end - kHour + kMinute);
  EXPECT_EQ(code(1), "InvalidCapacityReservationState");
  world.MoveTo(block->end);
  EXPECT_EQ(code(1), "InvalidCapacityReservationState");
  EXPECT_EQ(Ec2CodeOf(world.book().OfferExtension("cr-0", 24, world.now()).status()),
            "InvalidCapacityReservationId.NotFound");
}

TEST(BookTest, ALongBlockCanBeExtendedFrom57DaysBeforeItsEnd) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 70});
  EXPECT_FALSE(world.TryToExtend(*block, 1).ok());
  world.MoveTo(block->end - kDay * 57);
  EXPECT_TRUE(world.TryToExtend(*block, 112).ok());
  EXPECT_EQ(world.Now(*block)->end - block->start(), kDay * 182);
}

TEST(BookTest, AnExtensionThatIsNotPaidLeavesTheEnd) {
  BlockWorld world(PaidLater(kMinute * 20, 1));
  const auto block = world.Buy({.days = 1});
  world.MoveTo(block->end - kMinute * 60);
  ASSERT_TRUE(world.TryToExtend(*block, 1, "t").ok());
  EXPECT_TRUE(world.Search({.days = 1}).offerings.front().start >= block->end + kDay);
  EXPECT_EQ(Ec2CodeOf(world.TryToExtend(*block, 1).status()), "InvalidCapacityReservationState");
  world.MoveBy(kMinute * 20);
  EXPECT_EQ(world.Now(*block)->end, block->end + kDay);
  EXPECT_EQ(world.Now(*block)->extensions.size(), 1U);

  BlockWorld late(PaidLater(kMinute * 30, 1));
  const auto unpaid = late.Buy({.days = 1});
  late.MoveTo(unpaid->end - kMinute * 60);
  ASSERT_TRUE(late.TryToExtend(*unpaid, 1).ok());
  late.MoveTo(unpaid->end - kMinute * 35);
  EXPECT_EQ(StateName(late.Now(*unpaid)->extensions[0].state), "payment-failed");
  late.MoveTo(unpaid->end);
  EXPECT_EQ(late.StateOf(*unpaid), "expired");
}

TEST(BookTest, AClockThatIsSetForwardSkipsNothing) {
  BlockWorld world({.hosts = 1});
  const auto first = world.Buy({.days = 1});
  const auto second = world.Buy({.days = 1, .owner = "team-b"});
  world.SetClock(second->end + kDay * 300);
  EXPECT_EQ(world.NewsOf(*first),
            "CapacityBlockPurchased, CapacityBlockScheduled, CapacityBlockHardwareBound, "
            "CapacityBlockDelivered, CapacityBlockExpirationWarning, CapacityBlockReclaimed, "
            "CapacityBlockExpired");
  EXPECT_EQ(world.StateOf(*second), "expired");
}

TEST(BookTest, AClockThatIsSetBackBeginsNothingAgain) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 1});
  world.MoveTo(block->end);
  EXPECT_EQ(world.StateOf(*block), "expired");
  world.book().Advance(block->start() + kHour);
  EXPECT_EQ(world.StateOf(*block), "expired");
  // Blocks sold meanwhile begin after the latest time seen.
  const auto sold = world.book().Purchase(
      {.offering_id = OfferingId(block->bought), .key = {"team-b", ""}}, block->start() - kHour);
  EXPECT_EQ(Ec2CodeOf(sold.status()), "InvalidCapacityBlockOfferingIdExpired");
}

TEST(BookTest, ARestartAtAnyTimeChangesNothing) {
  BlockWorld world({.hosts = 2});
  const auto first = world.Buy({.days = 1, .count = 2});
  const auto second = world.Buy({.days = 2, .owner = "team-b"});
  for (int step = 0; step < 12; ++step) {
    world.MoveBy(kHour * 6 + kMinute * 10);
    const std::string before = world.StateOf(*first) + " " + world.StateOf(*second);
    const auto hosts = world.Now(*second)->hosts;
    world.Restart();
    EXPECT_EQ(world.StateOf(*first) + " " + world.StateOf(*second), before);
    EXPECT_EQ(world.Now(*second)->hosts, hosts);
  }
}

TEST(BookTest, BlocksThatContradictEachOtherAreNotRestored) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 1});
  world.MoveTo(block->start());
  BlockBook book({}, world.now());
  Block copy = *world.Now(*block);
  ASSERT_TRUE(book.Restore(copy).ok());
  EXPECT_TRUE(absl::IsDataLoss(book.Restore(copy).status()));
  copy.reservation = "cr-2";
  copy.key.name = "cr-2";
  EXPECT_EQ(book.Restore(copy).status().message(),
            fmt::format("host us-00 is bound to the Capacity Blocks {} and cr-2 at the same time",
                        block->reservation));
}

TEST(BookTest, ABlockWhoseNameIsTakenChangesNothing) {
  BlockWorld world({.hosts = 2});
  const auto block = world.Buy({.days = 1, .token = "t"});
  BlockBook book({}, world.now());
  ASSERT_TRUE(book.Restore(*block).ok());
  Block second = *block;
  second.reservation = "cr-2";
  second.token = "u";
  EXPECT_EQ(book.Restore(second).status().message(),
            fmt::format("Capacity Block cr-2 of {} is there twice", ToString(block->key)));
  EXPECT_EQ(book.FindByKey(block->key)->reservation, block->reservation);
  EXPECT_EQ(book.Find("cr-2"), nullptr);
  EXPECT_EQ(book.UseOf(block->key.ns).peak, block->bought.instances());
  second.key.name = "cr-2";  // neither its token nor any other part was kept
  EXPECT_TRUE(book.Restore(second).ok());
}

TEST(BookTest, ABlockThatContradictsItselfIsNotRestored) {
  BlockWorld world({.hosts = 2});
  const auto block = world.Buy({.days = 2, .count = 2, .token = "t"});
  world.MoveTo(block->start());
  ASSERT_TRUE(world.TryToExtend(*block, 1).ok());
  const auto restores = [&](auto change) {
    Block copy = *world.Now(*block);
    change(copy);
    BlockBook book({}, world.now());
    const absl::Status status = book.Restore(std::move(copy)).status();
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    return status.ok();
  };
  EXPECT_TRUE(restores([](Block&) {}));
  EXPECT_FALSE(restores([](Block& b) { b.reservation.clear(); }));
  EXPECT_FALSE(restores([](Block& b) { b.key.name.clear(); }));
  EXPECT_FALSE(restores([](Block& b) { b.bought.product = nullptr; }));
  EXPECT_FALSE(restores([](Block& b) { b.bought.end += kMinute; }));
  EXPECT_FALSE(restores([](Block& b) { b.bought.start = b.bought.end; }));
  EXPECT_FALSE(restores([](Block& b) { b.bought.start = b.created - kMinute; }));
  EXPECT_FALSE(restores([](Block& b) { b.created -= kDay * 60; }));
  EXPECT_FALSE(restores([](Block& b) { b.end += kDay; }));
  EXPECT_FALSE(restores([](Block& b) { b.bought.end = b.end = b.end + kDay * 200; }));
  EXPECT_FALSE(restores([](Block& b) { b.extensions.front().end += kHour; }));
  EXPECT_FALSE(restores([](Block& b) { b.extensions.front().start = b.start() - kDay; }));
  EXPECT_FALSE(restores([](Block& b) {
    b.end = b.bought.end;
    b.extensions.front().state = ExtensionState::kPaymentPending;
    b.extensions.push_back(b.extensions.front());
  }));
  EXPECT_FALSE(restores([](Block& b) { b.cells.clear(); }));
  EXPECT_FALSE(restores([](Block& b) { b.cells.push_back({.cell = "nn-7", .hosts = 0}); }));
  EXPECT_FALSE(restores([](Block& b) { b.hosts.pop_back(); }));
  EXPECT_FALSE(restores([](Block& b) { b.hosts.back() = b.hosts.front(); }));
  EXPECT_FALSE(restores([](Block& b) { b.state = BlockState::kExpired; }));
  EXPECT_FALSE(restores([](Block& b) {
    b.state = BlockState::kScheduled;
    b.payment.settles = b.payment.deadline = b.end + kHour;
  }));
}

TEST(BookTest, OneTokenHasBoughtOneBlock) {
  BlockWorld world({.hosts = 2});
  const auto block = world.Buy({.days = 1, .token = "t"});
  Block second = *block;
  second.reservation = second.key.name = "cr-2";
  BlockBook book({}, world.now());
  ASSERT_TRUE(book.Restore(*block).ok());
  EXPECT_TRUE(absl::IsDataLoss(book.Restore(second).status()));
}

TEST(BookTest, OnlyABlockWithoutCapacityIsForgotten) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 1});
  EXPECT_FALSE(world.book().Forget(block->reservation));
  world.MoveTo(block->end);
  EXPECT_TRUE(world.book().Forget(block->reservation));
  EXPECT_FALSE(world.book().Forget(block->reservation));
  EXPECT_EQ(world.book().FindByKey(block->key), nullptr);
}

}  // namespace
}  // namespace tahoma::controller
