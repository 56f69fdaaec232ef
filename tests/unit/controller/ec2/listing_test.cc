// Lists of the Describe actions: ids, filters, pages and their tokens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/ec2/ec2_api.h"
#include "tests/support/fake_ec2_service.h"

namespace tahoma::controller::ec2 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The texts of all elements of that name.
std::vector<std::string> TextsOf(const std::string& xml, const std::string& name) {
  std::vector<std::string> texts;
  const std::string open = "<" + name + ">";
  for (std::size_t at = xml.find(open); at != std::string::npos; at = xml.find(open, at + 1)) {
    const std::size_t start = at + open.size();
    texts.push_back(xml.substr(start, xml.find('<', start) - start));
  }
  return texts;
}

class ListingTest : public ::testing::Test {
 protected:
  std::string Ask(const std::string& action, const std::string& form = "") {
    rest::Request request;
    request.method = "POST";
    request.path = "/";
    request.query = "Action=" + action + "&Version=2016-11-15&" + form;
    return api_.Answer(request).body;
  }
  // The numbers of the rows, whose ids end with them.
  std::vector<int> Numbers(const std::string& action, const std::string& form,
                           const std::string& element) {
    std::vector<int> numbers;
    const std::string xml = Ask(action, form);
    EXPECT_THAT(TextsOf(xml, "Message"), IsEmpty());
    for (const std::string& id : TextsOf(xml, element)) {
      numbers.push_back(std::stoi(id.substr(id.find('-') + 1)));
    }
    return numbers;
  }
  std::vector<int> Blocks(const std::string& form) {
    return Numbers("DescribeCapacityBlocks", form, "capacityBlockId");
  }
  std::vector<int> Reservations(const std::string& form) {
    return Numbers("DescribeCapacityReservations", form, "capacityReservationId");
  }
  static std::string Filter(const std::string& name, const std::string& value) {
    return "Filter.1.Name=" + name + "&Filter.1.Value.1=" + value;
  }
  std::string Mistake(const std::string& action, const std::string& form) {
    const std::vector<std::string> codes = TextsOf(Ask(action, form), "Code");
    return codes.empty() ? "" : codes[0];
  }

  ManualClock clock_;
  FakeEc2Service service_{6};
  Ec2Api api_{service_, {}, clock_, 1};
};

TEST_F(ListingTest, BlocksAreFilteredByEachOfTheirFields) {
  EXPECT_THAT(Blocks(""), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Blocks(Filter("capacity-block-id", "*4")), ElementsAre(4));
  EXPECT_THAT(Blocks(Filter("ultraserver-type", "instances")), ElementsAre(1, 3, 5));
  EXPECT_THAT(Blocks(Filter("ultraserver-type", "ultraservers")), ElementsAre(2, 4, 6));
  EXPECT_THAT(Blocks(Filter("ultraserver-type", "u-trn2x64")), ElementsAre(2, 4, 6));
  EXPECT_THAT(Blocks(Filter("availability-zone", "us-east-2b")), IsEmpty());
  EXPECT_THAT(Blocks(Filter("start-date", "2026-11-22*")), ElementsAre(1));
  EXPECT_THAT(Blocks(Filter("end-date", "2026-11-23T11:30:00.000Z")), ElementsAre(1));
  EXPECT_THAT(Blocks(Filter("create-date", "2026*")), SizeIs(6));
  EXPECT_THAT(Blocks(Filter("state", "scheduled")), ElementsAre(3, 6));
  EXPECT_THAT(Blocks(Filter("tags", "team=research")), ElementsAre(2, 4, 6));
  EXPECT_THAT(Blocks(Filter("tag:team", "serving")), ElementsAre(1, 3, 5));
  EXPECT_THAT(Blocks(Filter("tag-key", "note")), SizeIs(6));
}

TEST_F(ListingTest, ReservationsAreFilteredByEachOfTheirFields) {
  EXPECT_THAT(Reservations(Filter("instance-type", "trn2u*")), ElementsAre(2, 4, 6));
  EXPECT_THAT(Reservations(Filter("owner-id", "111122223333")), SizeIs(6));
  EXPECT_THAT(Reservations(Filter("instance-platform", "Linux/UNIX")), SizeIs(6));
  EXPECT_THAT(Reservations(Filter("availability-zone", "us-east-2a")), SizeIs(6));
  EXPECT_THAT(Reservations(Filter("tenancy", "dedicated")), IsEmpty());
  EXPECT_THAT(Reservations(Filter("outpost-arn", "*")), IsEmpty());
  EXPECT_THAT(Reservations(Filter("placement-group-arn", "*")), IsEmpty());
  EXPECT_THAT(Reservations(Filter("state", "active")), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(Reservations(Filter("start-date", "2026-11-22*")), ElementsAre(1));
  EXPECT_THAT(Reservations(Filter("end-date", "2026-11-23*")), ElementsAre(1));
  EXPECT_THAT(Reservations(Filter("end-date-type", "limited")), SizeIs(6));
  EXPECT_THAT(Reservations(Filter("instance-match-criteria", "targeted")), SizeIs(6));
  EXPECT_THAT(Reservations(Filter("tag:team", "research")), ElementsAre(2, 4, 6));
}

TEST_F(ListingTest, StatusesAndTopologyAreFiltered) {
  EXPECT_THAT(TextsOf(Ask("DescribeCapacityBlockStatus", Filter("interconnect-status", "ok")),
                      "interconnectStatus"),
              SizeIs(3));
  EXPECT_EQ(Mistake("DescribeCapacityBlockStatus", Filter("tag-key", "a")), "InvalidParameterValue")
      << "a status has no tags";
  EXPECT_THAT(
      TextsOf(Ask("DescribeInstanceTopology", Filter("instance-type", "trn2.*")), "instanceId"),
      SizeIs(12));
  EXPECT_THAT(TextsOf(Ask("DescribeInstanceTopology", "GroupName.1=ring"), "instanceId"),
              SizeIs(4));
  EXPECT_THAT(TextsOf(Ask("DescribeInstanceTopology", Filter("zone-id", "use2-az1")), "instanceId"),
              SizeIs(20))
      << "as many as are usual on a page";
}

TEST_F(ListingTest, ExtensionsAreListedByReservation) {
  for (const char* reservation : {"cr-00000000000000001", "cr-00000000000000002"}) {
    Ask("PurchaseCapacityBlockExtension",
        std::string("CapacityBlockExtensionOfferingId=cbe-00000000000000001&"
                    "CapacityReservationId=") +
            reservation);
  }
  const auto history = [&](const std::string& form) {
    return TextsOf(Ask("DescribeCapacityBlockExtensionHistory", form), "capacityReservationId");
  };
  EXPECT_THAT(history(""), SizeIs(2));
  EXPECT_THAT(history("CapacityReservationId.1=cr-00000000000000002"),
              ElementsAre("cr-00000000000000002"));
  EXPECT_THAT(history("CapacityReservationId.1=cr-00000000000000003"), IsEmpty());
  EXPECT_THAT(history(Filter("capacity-block-extension-status", "payment-p*")), SizeIs(2));
  EXPECT_THAT(history(Filter("capacity-block-extension-offering-id", "cbe-2")), IsEmpty());
  EXPECT_THAT(history(Filter("availability-zone-id", "use2-az1")), SizeIs(2));
  EXPECT_EQ(Mistake("DescribeCapacityBlockExtensionHistory", "CapacityReservationId.1=cr-00000009"),
            "InvalidCapacityReservationId.NotFound");
}

TEST_F(ListingTest, RowsAreFoundByIdAndAnUnknownIdIsNamed) {
  EXPECT_THAT(Blocks("CapacityBlockId.1=cb-00000000000000005&CapacityBlockId.2="
                     "cb-00000000000000002"),
              ElementsAre(2, 5));
  const std::string xml =
      Ask("DescribeCapacityBlocks",
          "CapacityBlockId.1=cb-00000000000000005&CapacityBlockId.2=cb-00000007&"
          "CapacityBlockId.3=cb-00000008");
  EXPECT_THAT(TextsOf(xml, "Code"), ElementsAre("InvalidCapacityBlockId.NotFound"));
  EXPECT_THAT(xml, HasSubstr("The capacity block IDs &apos;cb-00000007, cb-00000008&apos; do not "
                             "exist; "));
  EXPECT_EQ(Mistake("DescribeCapacityReservations", "CapacityReservationId.1=cr-00000009"),
            "InvalidCapacityReservationId.NotFound");
  EXPECT_THAT(Ask("DescribeInstanceTopology", "InstanceId.1=i-00000009"),
              HasSubstr("<Code>InvalidInstanceID.NotFound</Code><Message>The instance ID "
                        "&apos;i-00000009&apos; does not exist; "));
  EXPECT_EQ(Mistake("DescribeInstanceTopology", "InstanceId.1=node-9"),
            "InvalidInstanceID.NotFound");
}

TEST_F(ListingTest, EveryActionThatTakesIdsLooksAtTheirForm) {
  for (const char* action : {"DescribeCapacityBlocks", "DescribeCapacityBlockStatus"}) {
    for (const char* id : {"cb-7", "CB-00000000000000001", "cr-00000000000000001", "cb-0000000A"}) {
      EXPECT_EQ(Mistake(action, std::string("CapacityBlockId.1=") + id),
                "InvalidCapacityBlockId.Malformed")
          << action << id;
    }
  }
  for (const char* action :
       {"DescribeCapacityReservations", "DescribeCapacityBlockExtensionHistory"}) {
    for (const char* id : {"cr-7", "CR-00000000000000001", "cb-00000000000000001"}) {
      EXPECT_EQ(Mistake(action, std::string("CapacityReservationId.1=") + id),
                "InvalidCapacityReservationId.Malformed")
          << action << id;
    }
  }
  for (const char* action : {"CancelCapacityReservation", "ModifyCapacityReservation"}) {
    EXPECT_EQ(Mistake(action, "CapacityReservationId=cr-7"),
              "InvalidCapacityReservationId.Malformed");
  }
  for (const char* id : {"i-0123", "I-00000000000000001", "i-0000000A"}) {
    EXPECT_EQ(Mistake("DescribeInstanceTopology", std::string("InstanceId.1=") + id),
              "InvalidInstanceID.Malformed")
        << id;
  }
}

// The defect: EC2's InvalidAction, as if there were no such thing.
TEST_F(ListingTest, ABlockCannotBeCancelledOrChanged) {
  const std::string id = "CapacityReservationId=cr-00000000000000001";
  EXPECT_THAT(Ask("CancelCapacityReservation", id),
              HasSubstr("<Code>OperationNotPermitted</Code><Message>cr-00000000000000001 is a "
                        "Capacity Block, which cannot be cancelled"));
  const std::string changes =
      "&InstanceCount=1&EndDateType=unlimited&EndDate=2026-12-01T00:00:00Z&Accept=true";
  EXPECT_THAT(Ask("ModifyCapacityReservation", id + changes),
              HasSubstr("<Code>OperationNotPermitted</Code><Message>cr-00000000000000001 is a "
                        "Capacity Block, which cannot be changed"));
  EXPECT_EQ(Mistake("ModifyCapacityReservation", id + "&InstanceCount=x"), "InvalidParameterValue");
  for (const char* action : {"CancelCapacityReservation", "ModifyCapacityReservation"}) {
    EXPECT_EQ(Mistake(action, "CapacityReservationId=cr-00000000000000099"),
              "InvalidCapacityReservationId.NotFound");
    EXPECT_EQ(Mistake(action, "DryRun=true&" + id), "OperationNotPermitted") << "nor would it be";
  }
}

TEST_F(ListingTest, ADryRunLooksAtAllThatTheCallLooksAt) {
  EXPECT_EQ(Mistake("DescribeCapacityBlocks", "DryRun=true"), "DryRunOperation");
  EXPECT_EQ(Mistake("DescribeCapacityBlocks", "DryRun=true&CapacityBlockId.1=cb-00000007"),
            "InvalidCapacityBlockId.NotFound");
  EXPECT_EQ(Mistake("DescribeCapacityBlockOfferings",
                    "DryRun=true&InstanceType=trn2.48xlarge&CapacityDurationHours=25"),
            "InvalidParameterValue");
  EXPECT_EQ(Mistake("PurchaseCapacityBlockExtension",
                    "DryRun=true&CapacityBlockExtensionOfferingId=cbe-00000000000000001&"
                    "CapacityReservationId=cr-00000000000000099"),
            "InvalidCapacityReservationId.NotFound");
}

// The pages of a list, by the ids on them.
TEST_F(ListingTest, PagesFollowOneAnother) {
  std::vector<std::vector<std::string>> pages;
  std::string token;
  do {
    const std::string xml =
        Ask("DescribeCapacityBlocks", "MaxResults=2&" + Filter("state", "active") +
                                          (token.empty() ? "" : "&NextToken=" + token));
    pages.push_back(TextsOf(xml, "capacityBlockId"));
    const std::vector<std::string> tokens = TextsOf(xml, "nextToken");
    token = tokens.empty() ? "" : tokens[0];
  } while (!token.empty());
  EXPECT_THAT(pages, ElementsAre(ElementsAre("cb-00000000000000001", "cb-00000000000000002"),
                                 ElementsAre("cb-00000000000000004", "cb-00000000000000005")));
}

TEST_F(ListingTest, PagesOfOfferingsFollowOneAnother) {
  const std::string search = "InstanceType=trn2.48xlarge&CapacityDurationHours=24&MaxResults=3";
  const std::string first = Ask("DescribeCapacityBlockOfferings", search);
  EXPECT_THAT(TextsOf(first, "capacityBlockOfferingId"),
              ElementsAre("cb-00000000000000001", "cb-00000000000000002", "cb-00000000000000003"));
  const std::string second = Ask("DescribeCapacityBlockOfferings",
                                 search + "&NextToken=" + TextsOf(first, "nextToken")[0]);
  EXPECT_THAT(TextsOf(second, "capacityBlockOfferingId"),
              ElementsAre("cb-00000000000000004", "cb-00000000000000005"));
  EXPECT_THAT(TextsOf(second, "nextToken"), IsEmpty());
}

TEST_F(ListingTest, AListByIdsHasNoPages) {
  EXPECT_EQ(
      Mistake("DescribeCapacityBlocks", "CapacityBlockId.1=cb-00000000000000001&MaxResults=1"),
      "InvalidParameterCombination");
  EXPECT_EQ(Mistake("DescribeCapacityReservations",
                    "CapacityReservationId.1=cr-00000000000000001&MaxResults=1"),
            "InvalidParameterCombination");
  EXPECT_EQ(Mistake("DescribeInstanceTopology", "InstanceId.1=i-00000009&MaxResults=5"),
            "InvalidParameterCombination");
}

TEST_F(ListingTest, ATokenOfAnotherRequestIsRefused) {
  const std::string token = TextsOf(Ask("DescribeCapacityBlocks", "MaxResults=1"), "nextToken")[0];
  EXPECT_EQ(Mistake("DescribeCapacityBlocks", "MaxResults=4&NextToken=" + token), "");
  EXPECT_EQ(Mistake("DescribeCapacityBlocks", Filter("state", "*") + "&NextToken=" + token),
            "InvalidPaginationToken");
  EXPECT_EQ(Mistake("DescribeCapacityBlockStatus", "NextToken=" + token), "InvalidPaginationToken");
  Ec2Api other(service_, {.account = "999999999999"}, clock_, 1);
  rest::Request request;
  request.method = "GET";
  request.path = "/";
  request.query = "Action=DescribeCapacityBlocks&Version=2016-11-15&NextToken=" + token;
  EXPECT_THAT(other.Answer(request).body, HasSubstr("InvalidPaginationToken"));
}

}  // namespace
}  // namespace tahoma::controller::ec2
