// EC2's view of a real book of blocks: what is found, bought, extended and listed, and by whom.

#include "controller/ec2/book_seller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/ec2/ec2_api.h"
#include "controller/ec2/error.h"
#include "lib/base/status.h"
#include "tests/support/fleet.h"
#include "tests/unit/controller/reserve/block_world.h"

namespace tahoma::controller::ec2 {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kPlatform[] = "Linux/UNIX";

class BookSellerTest : public ::testing::Test {
 protected:
  explicit BookSellerTest(BlockWorld::Setup setup = {})
      : hosts_(setup.hosts), world_(std::move(setup)), seller_(OwnerOf(), clock_) {
    fleet_.PutNode(NodeFactsOf({.name = "lone"}));
    for (int i = 0; i < hosts_; ++i) AddUltraServer(fleet_, BlockWorld::NameOf(i));
  }

  BookOwner OwnerOf() {
    BookOwner owner;
    owner.view = [this] { return std::make_shared<const BookView>(View()); };
    owner.purchase = [this](const PurchaseOrder& order) {
      auto block = world_.book().Purchase(order, world_.now());
      MoveTo(world_.now());
      return block;
    };
    owner.extend = [this](const ExtensionOrder& order) {
      return world_.book().Extend(order, world_.now());
    };
    owner.change_tags = [this](const Block& block, const TagChange& change) {
      changed_.push_back(block.reservation);
      return change.remove_all ? absl::UnavailableError("away") : absl::OkStatus();
    };
    return owner;
  }
  BookView View() {
    return {.blocks = world_.book().blocks(),
            .now = world_.book().now(),
            .profile = world_.book().profile(),
            .prices = world_.book().prices(),
            .quotas = world_.book().quotas(),
            .find_host = [this](const std::string& name) -> std::optional<HostState> {
              const HostState* host = world_.book().hosts().Find(name);
              return host == nullptr ? std::nullopt : std::optional(*host);
            },
            .cluster = std::make_shared<const ClusterState>(fleet_)};
  }
  void MoveTo(WallTime time) {
    world_.MoveTo(time);
    clock_.Advance(time - clock_.WallNow());
  }

  static OfferingSearch SearchOf(std::int64_t count, std::int64_t hours = 24) {
    OfferingSearch search;
    search.ultraserver_type = "u-trn2x64";
    search.ultraserver_count = count;
    search.duration_hours = hours;
    return search;
  }
  // Buys what is found first that begins at a boundary.
  BlockPurchased Buy(std::int64_t count, std::vector<Tag> tags = {},
                     const std::string& token = "") {
    const auto found = seller_.FindOfferings(ana_, SearchOf(count));
    EXPECT_TRUE(found.ok()) << found.status();
    for (const Ec2Offering& offering : *found) {
      if (!IsBoundary(offering.start)) continue;
      const auto bought = seller_.PurchaseBlock(ana_, {.offering_id = offering.id,
                                                       .instance_platform = kPlatform,
                                                       .tags = std::move(tags),
                                                       .client_token = token});
      EXPECT_TRUE(bought.ok()) << bought.status();
      return *bought;
    }
    ADD_FAILURE() << "nothing is for sale";
    return {};
  }
  template <typename T>
  std::vector<T> List(absl::Status (Ec2Service::*visit)(const Caller&, const Selection&,
                                                        const Visit<T>&),
                      const Caller& caller, const Selection& selection = {}) {
    std::vector<T> rows;
    std::string last;
    const absl::Status status =
        (seller_.*visit)(caller, selection, [&](std::string_view key, const T& row) {
          EXPECT_LT(last, key) << "in order";
          last = key;
          rows.push_back(row);
          return true;
        });
    EXPECT_TRUE(status.ok()) << status;
    return rows;
  }

  const Caller ana_{.name = "ana", .name_space = "team-a", .account = "111122223333"};
  const Caller bob_{.name = "bob", .name_space = "team-b", .account = "444455556666"};
  std::vector<std::string> changed_;  // reservations, whose tags were changed
  int hosts_;
  BlockWorld world_;
  ClusterState fleet_;
  ManualClock clock_{*ParseTime("2026-11-23T09:00:00Z")};
  BookSeller seller_;
};

TEST_F(BookSellerTest, OfferingsAreThoseOfTheBook) {
  const auto found = seller_.FindOfferings(ana_, SearchOf(2));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_THAT(*found, SizeIs(3)) << "at a boundary, and two that begin at once";
  bool aligned = false;
  for (const Ec2Offering& offering : *found) {
    EXPECT_EQ(offering.instance_type, "trn2u.48xlarge");
    EXPECT_EQ(offering.ultraserver_type, "u-trn2x64");
    EXPECT_EQ(offering.ultraserver_count, 2);
    EXPECT_EQ(offering.instance_count, 8);
    EXPECT_EQ(offering.availability_zone, "tahoma-1a");
    ASSERT_THAT(offering.segments, SizeIs(1));
    EXPECT_EQ(offering.segments[0].start, offering.start);
    EXPECT_EQ(offering.segments[0].end, offering.end);
    EXPECT_EQ(offering.segments[0].instance_count, 8);
    EXPECT_EQ(offering.segments[0].upfront_fee, offering.upfront_fee);
    if (!IsBoundary(offering.start)) continue;
    aligned = true;
    EXPECT_EQ(FormatTime(offering.start), "2026-11-23T11:30:00Z");
    EXPECT_EQ(offering.duration_hours, 24);
    EXPECT_EQ(offering.duration_minutes, 0);
    EXPECT_EQ(offering.upfront_fee, "6866.07") << "8 instances, 24 hours, 35.7608 each";
  }
  EXPECT_TRUE(aligned);
}

TEST_F(BookSellerTest, NothingIsOfferedThatTheQuotaOfTheCallerRefuses) {
  world_.book().SetQuota("team-a", Quota{.instances = 4});  // one UltraServer
  EXPECT_THAT(*seller_.FindOfferings(ana_, SearchOf(1)), Not(IsEmpty()));
  EXPECT_THAT(*seller_.FindOfferings(ana_, SearchOf(2)), IsEmpty());
  EXPECT_THAT(*seller_.FindOfferings(bob_, SearchOf(2)), Not(IsEmpty()));
}

TEST_F(BookSellerTest, AWrongSearchIsRefusedByTheRulesOfTheBook) {
  const auto code = [&](const OfferingSearch& search) {
    return RefusalOf(seller_.FindOfferings(ana_, search).status()).code;
  };
  EXPECT_EQ(code(SearchOf(1, 25)), "InvalidParameterValue");
  EXPECT_EQ(code(SearchOf(65)), "InvalidParameterValue");
  OfferingSearch search = SearchOf(1);
  search.ultraserver_count = std::nullopt;
  EXPECT_EQ(code(search), "MissingParameter");
  search = {};
  search.instance_types = {"p5.48xlarge"};
  search.instance_count = 1;
  search.duration_hours = 24;
  EXPECT_EQ(code(search), "InvalidParameterValue");
  EXPECT_THAT(RefusalOf(seller_.FindOfferings(ana_, search).status()).message,
              HasSubstr("InstanceType p5.48xlarge is not supported for Capacity Blocks"));
  search.instance_types = {"p5.48xlarge", "u-trn2x64"};
  EXPECT_EQ(code(search), "InvalidParameterValue") << "none of them is an instance type here";
  search.instance_types = {"trn2.48xlarge"};
  EXPECT_THAT(*seller_.FindOfferings(ana_, search), IsEmpty()) << "there are UltraServers only";
}

TEST_F(BookSellerTest, EachUltraServerIsABlockOfOneReservation) {
  const BlockPurchased bought = Buy(2, {{"team", "a"}});
  ASSERT_THAT(bought.reservations, SizeIs(1));
  const Reservation& reservation = bought.reservations[0];
  EXPECT_EQ(reservation.owner_id, "111122223333");
  EXPECT_EQ(reservation.arn,
            "arn:aws:ec2:tahoma-1:111122223333:capacity-reservation/" + reservation.id);
  EXPECT_EQ(reservation.total_instance_count, 8);
  EXPECT_EQ(reservation.available_instance_count, 0) << "it has not begun";
  EXPECT_EQ(reservation.block_id, "") << "there are two";
  EXPECT_THAT(reservation.tags,
              ElementsAre(Tag{"team", "a"},
                          Tag{"aws:ec2capacityreservation:incrementalRequestedQuantity", "8"}));
  ASSERT_THAT(bought.blocks, SizeIs(2));
  EXPECT_NE(bought.blocks[0].id, bought.blocks[1].id);
  for (const Ec2Block& block : bought.blocks) {
    EXPECT_THAT(block.reservation_ids, ElementsAre(reservation.id));
    EXPECT_EQ(block.ultraserver_type, "u-trn2x64");
    EXPECT_EQ(FormatTime(block.start), "2026-11-23T11:30:00Z");
  }
  EXPECT_THAT(List<Ec2Block>(&Ec2Service::VisitBlocks, ana_), SizeIs(2));
  const auto listed = List<Reservation>(&Ec2Service::VisitReservations, ana_);
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_EQ(listed[0].id, reservation.id);
  EXPECT_EQ(listed[0].state, "scheduled") << "it was paid at once";
}

TEST_F(BookSellerTest, OwnersSeeAndExtendTheirOwnOnly) {
  const std::string id = Buy(1).reservations[0].id;
  EXPECT_THAT(List<Ec2Block>(&Ec2Service::VisitBlocks, bob_), IsEmpty());
  EXPECT_THAT(List<BlockStatus>(&Ec2Service::VisitBlockStatuses, bob_), IsEmpty());
  EXPECT_THAT(List<Reservation>(&Ec2Service::VisitReservations, bob_, {.ids = {id}}), IsEmpty());
  const auto code = [](const absl::Status& status) { return RefusalOf(status).code; };
  EXPECT_EQ(code(seller_.FindExtensionOfferings(bob_, {id, 24}).status()),
            "InvalidCapacityReservationId.NotFound");
  const auto offers = seller_.FindExtensionOfferings(ana_, {id, 24});
  ASSERT_TRUE(offers.ok()) << offers.status();
  EXPECT_EQ(code(seller_.PurchaseExtension(bob_, {offers->front().id, id, ""}).status()),
            "InvalidCapacityReservationId.NotFound");
  EXPECT_EQ(code(seller_.VisitExtensions(bob_, {.ids = {id}}, {})),
            "InvalidCapacityReservationId.NotFound");
}

TEST_F(BookSellerTest, ATokenBuysOnce) {
  const BlockPurchased first = Buy(1, {}, "token");
  const BlockPurchased again = Buy(1, {}, "token");
  EXPECT_EQ(first.reservations[0].id, again.reservations[0].id);
  EXPECT_THAT(List<Reservation>(&Ec2Service::VisitReservations, ana_), SizeIs(1));
}

TEST_F(BookSellerTest, AnExtensionIsOfferedBoughtAndInTheHistory) {
  const Reservation reservation = Buy(1).reservations[0];
  const auto offers = seller_.FindExtensionOfferings(ana_, {reservation.id, 48});
  ASSERT_TRUE(offers.ok()) << offers.status();
  ASSERT_THAT(*offers, SizeIs(1));
  const ExtensionOffering& offer = offers->front();
  EXPECT_EQ(offer.start, reservation.start);
  EXPECT_EQ(offer.extension_start, reservation.end);
  EXPECT_EQ(offer.extension_end, reservation.end + std::chrono::hours(48));
  EXPECT_EQ(offer.duration_hours, 48);
  EXPECT_EQ(offer.instance_count, 4);
  const auto bought = seller_.PurchaseExtension(ana_, {offer.id, reservation.id, "t"});
  ASSERT_TRUE(bought.ok()) << bought.status();
  ASSERT_THAT(*bought, SizeIs(1));
  EXPECT_EQ(bought->front().status, "payment-pending");
  EXPECT_EQ(bought->front().offering_id, offer.id);
  EXPECT_EQ(bought->front().upfront_fee, offer.upfront_fee);
  MoveTo(world_.now());
  const auto history = List<Extension>(&Ec2Service::VisitExtensions, ana_);
  ASSERT_THAT(history, SizeIs(1));
  EXPECT_EQ(history[0].status, "payment-succeeded");
  EXPECT_EQ(List<Reservation>(&Ec2Service::VisitReservations, ana_)[0].end, offer.extension_end);
}

TEST_F(BookSellerTest, ADryRunBuysNothing) {
  const auto found = seller_.FindOfferings(ana_, SearchOf(1));
  BlockPurchase purchase{
      .offering_id = found->front().id, .instance_platform = kPlatform, .dry_run = true};
  const auto code = [&] {
    const auto dry = seller_.PurchaseBlock(ana_, purchase);
    return dry.ok() ? "" : RefusalOf(dry.status()).code;
  };
  EXPECT_EQ(code(), "");
  purchase.instance_platform = "Windows";
  EXPECT_EQ(code(), "InvalidParameterValue");
  EXPECT_THAT(List<Reservation>(&Ec2Service::VisitReservations, ana_), IsEmpty());
  const std::string id = Buy(1).reservations[0].id;
  const auto offers = seller_.FindExtensionOfferings(ana_, {id, 24});
  EXPECT_TRUE(seller_.PurchaseExtension(ana_, {offers->front().id, id, "", true}).ok());
  EXPECT_THAT(List<Extension>(&Ec2Service::VisitExtensions, ana_), IsEmpty());
}

class OneHostTest : public BookSellerTest {
 protected:
  OneHostTest() : BookSellerTest({.hosts = 1}) {}
};

TEST_F(OneHostTest, AnExtensionForWhichThereIsNoRoomIsNotOffered) {
  const std::string id = Buy(1).reservations[0].id;
  Buy(1);
  const auto offers = seller_.FindExtensionOfferings(ana_, {id, 24});
  ASSERT_TRUE(offers.ok()) << offers.status();
  EXPECT_THAT(*offers, IsEmpty());
}

TEST_F(BookSellerTest, AStatusTellsOfHardware) {
  const Reservation reservation = Buy(2).reservations[0];
  const auto statuses = [&] { return List<BlockStatus>(&Ec2Service::VisitBlockStatuses, ana_); };
  ASSERT_THAT(statuses(), SizeIs(2));
  EXPECT_EQ(statuses()[0].interconnect_status, "insufficient-data") << "not bound yet";
  EXPECT_EQ(statuses()[0].total_capacity, 4);
  EXPECT_EQ(statuses()[0].available_capacity, 0);
  EXPECT_EQ(statuses()[0].unavailable_capacity, 0);
  MoveTo(reservation.start);
  world_.SetHeld(0, "team-a");
  const auto count = [&](std::int64_t BlockStatus::*field) {
    return statuses()[0].*field + statuses()[1].*field;
  };
  EXPECT_EQ(statuses()[0].interconnect_status, "ok");
  EXPECT_EQ(count(&BlockStatus::available_capacity), 4) << "the other runs something";
  const auto listed = [&] { return List<Reservation>(&Ec2Service::VisitReservations, ana_)[0]; };
  EXPECT_EQ(listed().state, "active");
  EXPECT_EQ(listed().available_instance_count, 4);
  ASSERT_THAT(listed().allocations, SizeIs(1));
  EXPECT_EQ(listed().allocations[0].count, 4);
  world_.SetHealthy(1, false);
  EXPECT_EQ(count(&BlockStatus::unavailable_capacity), 4);
  EXPECT_EQ(listed().available_instance_count, 0);
  EXPECT_EQ(statuses()[0].reservations[0].reservation_id, reservation.id);
}

TEST_F(BookSellerTest, TheTopologyIsThatOfTheNodes) {
  const auto instances = [&](const Caller& caller) {
    return List<InstanceTopology>(&Ec2Service::VisitInstances, caller);
  };
  ASSERT_THAT(instances(ana_), SizeIs(17)) << "four UltraServers and a lone instance";
  EXPECT_EQ(instances(ana_)[0].instance_id, "lone");
  EXPECT_EQ(instances(ana_)[0].instance_type, "trn2.48xlarge");
  EXPECT_EQ(instances(ana_)[1].block_id, "");
  const BlockPurchased bought = Buy(1);
  MoveTo(bought.blocks[0].start);
  int mine = 0;
  for (const InstanceTopology& instance : instances(ana_)) {
    if (instance.block_id == bought.blocks[0].id) ++mine;
  }
  EXPECT_EQ(mine, 4);
  for (const InstanceTopology& instance : instances(bob_)) EXPECT_EQ(instance.block_id, "");
}

class InstancesTest : public BookSellerTest {
 protected:
  InstancesTest() : BookSellerTest({.product = "trn2.48xlarge"}) {}
};

// The defect: one type that is not sold spoiled the whole search.
TEST_F(InstancesTest, APreferredTypeThatIsNotSoldIsPassedOver) {
  OfferingSearch search;
  search.instance_types = {"p5.48xlarge", "trn2.48xlarge", "m5.large"};
  search.instance_count = 1;
  search.duration_hours = 24;
  const auto found = seller_.FindOfferings(ana_, search);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_FALSE(found->empty());
  for (const Ec2Offering& offering : *found) EXPECT_EQ(offering.instance_type, "trn2.48xlarge");
}

TEST_F(BookSellerTest, TheTopologyOfAReservationIsThatOfItsHostsOnceItIsActive) {
  const BlockPurchased bought = Buy(2);
  const auto rows = [&](const Caller& caller) {
    return List<ReservationTopology>(&Ec2Service::VisitReservationTopology, caller);
  };
  ASSERT_THAT(rows(ana_), SizeIs(2)) << "one for each UltraServer";
  EXPECT_THAT(rows(ana_)[0].network_nodes, IsEmpty()) << "not bound yet";
  EXPECT_EQ(rows(ana_)[0].state, "scheduled");
  EXPECT_THAT(rows(bob_), IsEmpty());
  MoveTo(bought.blocks[0].start);
  for (const ReservationTopology& row : rows(ana_)) {
    EXPECT_EQ(row.reservation_id, bought.reservations[0].id);
    EXPECT_THAT(row.block_id, AnyOf(bought.blocks[0].id, bought.blocks[1].id));
    EXPECT_EQ(row.instance_type, "trn2u.48xlarge");
    EXPECT_EQ(row.availability_zone_id, "tahoma1-az1");
  }
}

TEST_F(BookSellerTest, TheTopologyNamesTheLayersThatAllNodesShare) {
  for (int i = 0; i < hosts_; ++i) {
    for (int z = 0; z < 4; ++z) {
      fleet_.PutNode(NodeFactsOf({.name = fmt::format("{}-n{}", BlockWorld::NameOf(i), z),
                                  .type = "trn2u.48xlarge",
                                  .ultra_server = BlockWorld::NameOf(i),
                                  .z = z,
                                  .top_layer = "nn-top"}));
    }
  }
  const BlockPurchased bought = Buy(1);
  MoveTo(bought.blocks[0].start);
  const auto rows = List<ReservationTopology>(&Ec2Service::VisitReservationTopology, ana_);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_THAT(rows[0].network_nodes, ElementsAre("nn-top"));
}

TEST_F(BookSellerTest, TheFleetSaysWhatIsOfferedWhere) {
  NodeFacts facts = NodeFactsOf({.name = "far", .type = "trn1.32xlarge", .aws_only = true});
  facts.labels = {{"topology.k8s.aws/zone-id", "use2-az3"},
                  {"topology.kubernetes.io/zone", "us-east-2a"}};
  fleet_.PutNode(std::move(facts));
  const auto offered = seller_.FindOfferedTypes(ana_);
  ASSERT_TRUE(offered.ok()) << offered.status();
  EXPECT_THAT(*offered, ElementsAre(OfferedType{"trn1.32xlarge", "us-east-2a", "use2-az3"},
                                    OfferedType{"trn2.48xlarge", "tahoma-1a", "tahoma1-az1"},
                                    OfferedType{"trn2u.48xlarge", "tahoma-1a", "tahoma1-az1"}));
}

TEST_F(BookSellerTest, EveryRowHasTheIdOfItsZone) {
  constexpr char kZoneId[] = "tahoma1-az1";
  const BlockPurchased bought = Buy(1);
  EXPECT_EQ(bought.blocks[0].availability_zone_id, kZoneId);
  EXPECT_EQ(bought.reservations[0].availability_zone_id, kZoneId);
  EXPECT_EQ(List<Ec2Block>(&Ec2Service::VisitBlocks, ana_)[0].availability_zone_id, kZoneId);
  EXPECT_EQ(List<Reservation>(&Ec2Service::VisitReservations, ana_)[0].availability_zone_id,
            kZoneId);
  EXPECT_EQ(List<InstanceTopology>(&Ec2Service::VisitInstances, ana_)[0].zone_id, kZoneId);
  EXPECT_EQ(seller_.FindOfferings(ana_, SearchOf(1))->front().segments[0].availability_zone_id,
            kZoneId);
  const auto offers = seller_.FindExtensionOfferings(ana_, {bought.reservations[0].id, 24});
  ASSERT_TRUE(offers.ok()) << offers.status();
  EXPECT_EQ(offers->front().availability_zone_id, kZoneId);
  const auto extended =
      seller_.PurchaseExtension(ana_, {offers->front().id, bought.reservations[0].id, "t"});
  ASSERT_TRUE(extended.ok()) << extended.status();
  EXPECT_EQ(extended->front().availability_zone_id, kZoneId);
  EXPECT_EQ(List<Extension>(&Ec2Service::VisitExtensions, ana_)[0].availability_zone_id, kZoneId);
}

TEST_F(BookSellerTest, OnlyTheOwnerChangesTags) {
  const std::string id = Buy(1).reservations[0].id;
  EXPECT_EQ(Ec2CodeOf(seller_.ChangeTags(bob_, {id}, {})), "InvalidCapacityReservationId.NotFound");
  EXPECT_THAT(changed_, IsEmpty());
  EXPECT_TRUE(seller_.ChangeTags(ana_, {id}, {}).ok());
  EXPECT_THAT(changed_, ElementsAre(id));
  EXPECT_TRUE(absl::IsUnavailable(seller_.ChangeTags(ana_, {id}, {.remove_all = true})));
}

TEST_F(BookSellerTest, TheApiSellsFromTheBook) {
  Ec2Api api(seller_, {.name_space = "team-a"}, clock_, 1);
  const auto ask = [&](const std::string& form) {
    rest::Request request;
    request.method = "POST";
    request.path = "/";
    request.query = "Version=2016-11-15&" + form;
    return api.Answer(request);
  };
  const std::string offers =
      ask("Action=DescribeCapacityBlockOfferings&UltraserverType=u-trn2x64&UltraserverCount=1&"
          "CapacityDurationHours=24")
          .body;
  const std::string open = "<capacityBlockOfferingId>";
  const std::size_t start = offers.find(open) + open.size();
  const std::string id = offers.substr(start, offers.find('<', start) - start);
  const rest::Response bought =
      ask("Action=PurchaseCapacityBlock&InstancePlatform=Linux/UNIX&CapacityBlockOfferingId=" + id);
  EXPECT_EQ(bought.status, 200) << bought.body;
  EXPECT_THAT(ask("Action=DescribeCapacityBlocks").body, HasSubstr("<state>scheduled</state>"));
  EXPECT_THAT(ask("Action=PurchaseCapacityBlock&InstancePlatform=Windows&"
                  "CapacityBlockOfferingId=" +
                  id)
                  .body,
              HasSubstr("<Code>InvalidParameterValue</Code><Message>InstancePlatform"));
}

}  // namespace
}  // namespace tahoma::controller::ec2
