// The use of a reservation, and its place in the network.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/ec2/ec2_api.h"
#include "tests/support/fake_ec2_service.h"

namespace tahoma::controller::ec2 {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ReservationActionsTest : public ::testing::Test {
 protected:
  std::string Ask(const std::string& action, const std::string& form = "") {
    rest::Request request;
    request.method = "GET";
    request.path = "/";
    request.query = "Action=" + action + "&Version=2016-11-15&" + form;
    return api_.Answer(request).body;
  }

  ManualClock clock_;
  FakeEc2Service service_{3};
  Ec2Api api_{service_, {}, clock_, 1};
};

TEST_F(ReservationActionsTest, TheUseOfAReservationIsItsOwners) {
  EXPECT_THAT(
      Ask("GetCapacityReservationUsage", "CapacityReservationId=cr-00000000000000002"),
      HasSubstr("<capacityReservationId>cr-00000000000000002</capacityReservationId>"
                "<instanceType>trn2u.48xlarge</instanceType><totalInstanceCount>4"
                "</totalInstanceCount><availableInstanceCount>3</availableInstanceCount>"
                "<state>active</state><instanceUsageSet><item><accountId>111122223333</accountId>"
                "<usedInstanceCount>1</usedInstanceCount></item></instanceUsageSet>"));
  EXPECT_THAT(Ask("GetCapacityReservationUsage", "CapacityReservationId=cr-00000000000000009"),
              HasSubstr("InvalidCapacityReservationId.NotFound"));
  for (const char* id : {"cb-0", "cr-", "cr-A", "cr-a.b"}) {
    EXPECT_THAT(Ask("GetCapacityReservationUsage", std::string("CapacityReservationId=") + id),
                HasSubstr("InvalidCapacityReservationId.Malformed"))
        << id;
  }
  EXPECT_THAT(Ask("GetCapacityReservationUsage"), HasSubstr("<Code>MissingParameter</Code>"));
}

TEST_F(ReservationActionsTest, TheTopologyIsListedByPagesOrByIds) {
  const std::string all = Ask("DescribeCapacityReservationTopology");
  EXPECT_THAT(all, HasSubstr("<capacityReservationId>cr-00000000000000002</capacityReservationId>"
                             "<capacityBlockId>cb-00000000000000002</capacityBlockId>"));
  EXPECT_THAT(all, HasSubstr("<networkNodeSet><item>nn-1</item><item>nn-22</item>"));
  EXPECT_THAT(Ask("DescribeCapacityReservationTopology", "MaxResults=1"), HasSubstr("<nextToken>"));
  EXPECT_THAT(Ask("DescribeCapacityReservationTopology", "MaxResults=11"),
              HasSubstr("from 1 to 10 is legal"));
  EXPECT_THAT(Ask("DescribeCapacityReservationTopology",
                  "Filter.1.Name=instance-type&Filter.1.Value.1=trn2.*"),
              Not(HasSubstr("trn2u.48xlarge")));
  const std::string one = "CapacityReservationId.1=cr-00000000000000001";
  EXPECT_THAT(Ask("DescribeCapacityReservationTopology", one), Not(HasSubstr("capacityBlockId")))
      << "a block of instances";
  EXPECT_THAT(Ask("DescribeCapacityReservationTopology", one + "&MaxResults=5"),
              HasSubstr("InvalidParameterCombination"));
  EXPECT_THAT(
      Ask("DescribeCapacityReservationTopology", "CapacityReservationId.1=cr-00000000000000009"),
      HasSubstr("InvalidCapacityReservationId.NotFound"));
}

}  // namespace
}  // namespace tahoma::controller::ec2
