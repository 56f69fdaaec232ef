// Regions, zones and instance types of a fleet, as clients ask for them before anything else.

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

class PlaceActionsTest : public ::testing::Test {
 protected:
  std::string Ask(const std::string& action, const std::string& form = "") {
    rest::Request request;
    request.method = "GET";
    request.path = "/";
    request.headers = {{"Host", "127.0.0.1:8002"}};
    request.query = "Action=" + action + "&Version=2016-11-15&" + form;
    return api_.Answer(request).body;
  }
  std::vector<std::string> Texts(const std::string& action, const std::string& form,
                                 const std::string& element) {
    return TextsOf(Ask(action, form), element);
  }
  static std::string Filter(const std::string& name, const std::string& value) {
    return "Filter.1.Name=" + name + "&Filter.1.Value.1=" + value;
  }

  ManualClock clock_;
  FakeEc2Service service_{2};
  Ec2Api api_{service_, {}, clock_, 1};
};

TEST_F(PlaceActionsTest, RegionsAreThoseOfTheZones) {
  EXPECT_THAT(Texts("DescribeRegions", "", "regionName"), ElementsAre("us-east-2", "us-west-2"));
  EXPECT_THAT(Texts("DescribeRegions", "", "regionEndpoint"),
              ElementsAre("127.0.0.1:8002", "127.0.0.1:8002"))
      << "who follows it stays here";
  EXPECT_THAT(Texts("DescribeRegions", "RegionName.1=us-west-2&AllRegions=true", "regionName"),
              ElementsAre("us-west-2"));
  EXPECT_THAT(Texts("DescribeRegions", Filter("region-name", "*east*"), "regionName"),
              ElementsAre("us-east-2"));
  EXPECT_THAT(Ask("DescribeRegions", "RegionName.1=mars-1"),
              HasSubstr("<Code>InvalidParameterValue</Code><Message>Invalid region: [mars-1]"));
}

TEST_F(PlaceActionsTest, ZonesAreThoseOfTheFleet) {
  EXPECT_THAT(Texts("DescribeAvailabilityZones", "", "zoneName"),
              ElementsAre("us-east-2a", "us-east-2b", "us-west-2a"));
  EXPECT_THAT(Texts("DescribeAvailabilityZones", "ZoneId.1=use2-az2", "zoneName"),
              ElementsAre("us-east-2b"));
  EXPECT_THAT(Texts("DescribeAvailabilityZones", "ZoneName.1=us-east-2a", "zoneId"),
              ElementsAre("use2-az1"));
  EXPECT_THAT(Texts("DescribeAvailabilityZones", Filter("region-name", "us-west-2"), "groupName"),
              ElementsAre("us-west-2-zg-1"));
  EXPECT_THAT(Texts("DescribeAvailabilityZones", Filter("state", "unavailable"), "zoneName"),
              IsEmpty());
  EXPECT_THAT(Texts("DescribeAvailabilityZones", "ZoneName.1=us-east-2z", "Code"),
              ElementsAre("InvalidParameterValue"));
}

TEST_F(PlaceActionsTest, TypesAreThoseOfTheFleetUnlessAllAreAskedFor) {
  EXPECT_THAT(Texts("DescribeInstanceTypes", "", "instanceType"),
              ElementsAre("inf2.xlarge", "trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge",
                          "trn2u.48xlarge"));
  const std::string all = "IncludeUnsupportedInRegion=true";
  EXPECT_THAT(Texts("DescribeInstanceTypes", all, "instanceType"), SizeIs(10));
  EXPECT_THAT(
      Texts("DescribeInstanceTypes", all + "&InstanceType.1=trn1.2xlarge", "supportedInRegion"),
      ElementsAre("false"));
  EXPECT_THAT(
      Ask("DescribeInstanceTypes", "InstanceType.1=trn1.2xlarge&InstanceType.2=p5.48xlarge"),
      HasSubstr("<Code>InvalidInstanceType</Code><Message>The following supplied instance "
                "types do not exist: [p5.48xlarge, trn1.2xlarge]"));
  EXPECT_THAT(Texts("DescribeInstanceTypes", "MaxResults=4", "Code"),
              ElementsAre("InvalidParameterValue"));
}

TEST_F(PlaceActionsTest, ATypeIsDescribedByTheCatalogue) {
  const std::string trn2 = Ask("DescribeInstanceTypes", "InstanceType.1=trn2.48xlarge");
  EXPECT_THAT(trn2, HasSubstr("<defaultVCpus>192</defaultVCpus><defaultCores>96</defaultCores>"));
  EXPECT_THAT(trn2, HasSubstr("<memoryInfo><sizeInMiB>2097152</sizeInMiB></memoryInfo>"));
  EXPECT_THAT(trn2, HasSubstr("<neuronInfo><neuronDevices><item><count>16</count>"
                              "<name>Trainium2</name><coreInfo><count>8</count>"
                              "<version>3</version></coreInfo><memoryInfo><sizeInMiB>98304"));
  EXPECT_THAT(trn2, HasSubstr("<efaInfo><maximumEfaInterfaces>16</maximumEfaInterfaces>"));
  EXPECT_THAT(TextsOf(trn2, "networkCardIndex"), SizeIs(16));
  EXPECT_THAT(trn2, HasSubstr("<supportedUsageClasses><item>capacity-block</item>"));
  const std::string inf2 = Ask("DescribeInstanceTypes", "InstanceType.1=inf2.xlarge");
  EXPECT_THAT(inf2, HasSubstr("<accelerators><item><count>1</count><name>Inferentia2</name>"));
  EXPECT_THAT(TextsOf(inf2, "instanceStorageSupported"), ElementsAre("false"));
  EXPECT_THAT(TextsOf(inf2, "totalSizeInGB"), IsEmpty());
}

TEST_F(PlaceActionsTest, TypesAreFilteredByWhatTheyHave) {
  const auto filtered = [&](const std::string& name, const std::string& value) {
    return Texts("DescribeInstanceTypes", Filter(name, value), "instanceType");
  };
  EXPECT_THAT(filtered("network-info.efa-info.maximum-efa-interfaces", "16"),
              ElementsAre("trn2.48xlarge", "trn2u.48xlarge"));
  EXPECT_THAT(filtered("instance-storage-info.disk.size-in-gb", "470"),
              ElementsAre("trn2.3xlarge"));
  EXPECT_THAT(filtered("supported-usage-class", "capacity-block"),
              ElementsAre("trn2.3xlarge", "trn2.48xlarge", "trn2u.48xlarge"))
      << "those that are sold here";
  EXPECT_THAT(filtered("vcpu-info.default-vcpus", "4"), ElementsAre("inf2.xlarge"));
  EXPECT_THAT(filtered("vcpu-info.valid-cores", "*"), IsEmpty());
}

TEST_F(PlaceActionsTest, OfferingsAreByRegionZoneOrZoneId) {
  const auto locations = [&](const std::string& form) {
    return Texts("DescribeInstanceTypeOfferings",
                 Filter("instance-type", "trn2.48xlarge") + "&" + form, "location");
  };
  EXPECT_THAT(locations(""), ElementsAre("us-east-2"));
  EXPECT_THAT(locations("LocationType=availability-zone"), ElementsAre("us-east-2a", "us-east-2b"));
  EXPECT_THAT(locations("LocationType=availability-zone-id"), ElementsAre("use2-az1", "use2-az2"));
  EXPECT_THAT(locations("LocationType=outpost"), IsEmpty());
  EXPECT_THAT(Texts("DescribeInstanceTypeOfferings", "LocationType=planet", "Code"),
              ElementsAre("InvalidParameterValue"));
  EXPECT_THAT(Texts("DescribeInstanceTypeOfferings", "LocationType=availability-zone&MaxResults=5",
                    "nextToken"),
              SizeIs(1));
}

}  // namespace
}  // namespace tahoma::controller::ec2
