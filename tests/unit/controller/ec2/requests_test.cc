#include "controller/ec2/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tahoma::controller::ec2 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Reads a form with one of the functions: "" or "Code: message", and the request.
template <typename T>
std::pair<std::string, T> Read(T (*read)(Reader&), const std::string& form) {
  const auto parameters = Parameters::Parse(form);
  EXPECT_TRUE(parameters.ok()) << parameters.status();
  Reader reader(*parameters);
  T request = read(reader);
  const absl::Status status = reader.Finish();
  if (status.ok()) return {"", std::move(request)};
  const Refusal refusal = RefusalOf(status);
  return {fmt::format("{}: {}", refusal.code, refusal.message), std::move(request)};
}

template <typename T>
std::string Mistake(T (*read)(Reader&), const std::string& form) {
  return Read(read, form).first;
}

TEST(OfferingSearchTest, InstancesAreSearchedFor) {
  const auto [mistake, search] =
      Read(&ReadOfferingSearch,
           "InstanceType=trn2.48xlarge&InstanceCount=8&CapacityDurationHours=48&"
           "StartDateRange=2026-11-21T11:30:00Z&EndDateRange=2026-12-21T11:30:00.000Z&"
           "AllAvailabilityZones=true");
  EXPECT_EQ(mistake, "");
  EXPECT_THAT(search.instance_types, ElementsAre("trn2.48xlarge"));
  EXPECT_EQ(search.instance_count, 8);
  EXPECT_EQ(search.duration_hours, 48);
  EXPECT_EQ(search.ultraserver_type, "");
  EXPECT_EQ(FormatTime(*search.earliest_start), "2026-11-21T11:30:00Z");
  EXPECT_EQ(FormatTime(*search.latest_end), "2026-12-21T11:30:00Z");
  EXPECT_TRUE(search.all_availability_zones);
}

TEST(OfferingSearchTest, UltraServersAreSearchedFor) {
  const auto [mistake, search] = Read(
      &ReadOfferingSearch, "UltraserverType=u-trn2x64&UltraserverCount=2&CapacityDurationHours=24");
  EXPECT_EQ(mistake, "");
  EXPECT_THAT(search.instance_types, IsEmpty());
  EXPECT_EQ(search.ultraserver_type, "u-trn2x64");
  EXPECT_EQ(search.ultraserver_count, 2);
  EXPECT_FALSE(search.earliest_start);
}

TEST(OfferingSearchTest, SeveralTypesMayBePreferred) {
  const auto [mistake, search] =
      Read(&ReadOfferingSearch,
           "InstanceTypePreference.1.InstanceType=a&InstanceTypePreference.2.InstanceType=b&"
           "CapacityDurationHours=24");
  EXPECT_EQ(mistake, "");
  EXPECT_THAT(search.instance_types, ElementsAre("a", "b"));
  EXPECT_EQ(search.instance_count, std::nullopt);
}

TEST(OfferingSearchTest, WhatDoesNotGoTogetherIsRefused) {
  for (const std::string form :
       {"InstanceType=a&UltraserverType=u",
        "InstanceType=a&InstanceTypePreference.1.InstanceType=b",
        "UltraserverType=u&InstanceTypePreference.1.InstanceType=b",
        "UltraserverType=u&InstanceCount=1", "InstanceType=a&UltraserverCount=1"}) {
    EXPECT_THAT(Mistake(&ReadOfferingSearch, form + "&CapacityDurationHours=24"),
                HasSubstr("InvalidParameterCombination: "))
        << form;
  }
  EXPECT_THAT(Mistake(&ReadOfferingSearch,
                      "InstanceType=a&CapacityDurationHours=24&"
                      "StartDateRange=2026-11-21T11:30:00Z&EndDateRange=2026-11-21T11:30:00Z"),
              HasSubstr("InvalidParameterCombination: EndDateRange"));
}

TEST(OfferingSearchTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(Mistake(&ReadOfferingSearch, "InstanceType=a"),
              HasSubstr("MissingParameter: the request must have the parameter "
                        "CapacityDurationHours"));
  EXPECT_THAT(Mistake(&ReadOfferingSearch, "CapacityDurationHours=24"),
              HasSubstr("MissingParameter: the request must have one of InstanceType"));
  EXPECT_THAT(
      Mistake(&ReadOfferingSearch, "CapacityDurationHours=24&InstanceType=a&InstanceCount=0"),
      HasSubstr("InvalidParameterValue: InstanceCount is '0'"));
}

constexpr char kPurchase[] = "CapacityBlockOfferingId=cb-0a1&InstancePlatform=Linux%2FUNIX";

TEST(BlockPurchaseTest, APurchaseHasTags) {
  const auto [mistake, purchase] = Read(
      &ReadBlockPurchase, std::string(kPurchase) +
                              "&TagSpecification.1.ResourceType=capacity-reservation&"
                              "TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a&"
                              "TagSpecification.1.Tag.2.Key=empty&ClientToken=t-1");
  EXPECT_EQ(mistake, "");
  EXPECT_EQ(purchase.offering_id, "cb-0a1");
  EXPECT_EQ(purchase.instance_platform, "Linux/UNIX");
  EXPECT_THAT(purchase.tags, ElementsAre(Tag{"team", "a"}, Tag{"empty", ""}));
  EXPECT_EQ(purchase.client_token, "t-1");
}

TEST(BlockPurchaseTest, IdsHaveAForm) {
  EXPECT_THAT(Mistake(&ReadBlockPurchase, "InstancePlatform=x"),
              HasSubstr("MissingParameter: the request must have the parameter "
                        "CapacityBlockOfferingId"));
  for (const std::string id : {"cb-", "cr-1", "cb-a.b", "cbe-1x/", "0"}) {
    EXPECT_THAT(Mistake(&ReadBlockPurchase, "InstancePlatform=x&CapacityBlockOfferingId=" + id),
                HasSubstr("InvalidCapacityBlockOfferingIdMalformed: "))
        << id;
  }
  EXPECT_THAT(Mistake(&ReadExtensionPurchase,
                      "CapacityBlockExtensionOfferingId=cb-1&"
                      "CapacityReservationId=cr-1"),
              HasSubstr("InvalidCapacityBlockOfferingIdMalformed: "));
  EXPECT_THAT(Mistake(&ReadExtensionSearch,
                      "CapacityBlockExtensionDurationHours=24&"
                      "CapacityReservationId=r"),
              HasSubstr("InvalidCapacityReservationId.Malformed: "));
}

std::string TagForm(int number, const std::string& key, const std::string& value) {
  return fmt::format("&TagSpecification.1.Tag.{0}.Key={1}&TagSpecification.1.Tag.{0}.Value={2}",
                     number, key, value);
}

TEST(BlockPurchaseTest, TagsHaveBounds) {
  const std::string start =
      std::string(kPurchase) + "&TagSpecification.1.ResourceType=capacity-reservation";
  const auto mistake = [&](const std::string& tags) {
    return Mistake(&ReadBlockPurchase, start + tags);
  };
  std::string umlauts;
  for (int i = 0; i < 128; ++i) umlauts += "%C3%BC";
  EXPECT_EQ(mistake(TagForm(1, umlauts, std::string(256, 'v'))), "") << "characters, not bytes";
  EXPECT_THAT(mistake(TagForm(1, umlauts + "x", "")), HasSubstr("at most 128 are legal"));
  EXPECT_THAT(mistake(TagForm(1, "k", std::string(257, 'v'))), HasSubstr("at most 256 are legal"));
  EXPECT_THAT(mistake(TagForm(1, "AWS:x", "")), HasSubstr("which is reserved"));
  EXPECT_EQ(mistake(TagForm(1, "aws", "")), "");
  EXPECT_THAT(mistake(TagForm(1, "", "a")), HasSubstr("is empty"));
  EXPECT_THAT(mistake(TagForm(1, "a", "") + TagForm(2, "a", "b")), HasSubstr("given twice"));
  std::string many;
  for (int i = 1; i <= 50; ++i) many += TagForm(i, fmt::format("k{}", i), "");
  EXPECT_EQ(mistake(many), "");
  EXPECT_THAT(mistake(many + TagForm(51, "k51", "")),
              HasSubstr("TagLimitExceeded: there are 51 tags; at most 50 are legal"));
}

TEST(BlockPurchaseTest, OnlyReservationsAreTagged) {
  EXPECT_THAT(Mistake(&ReadBlockPurchase,
                      std::string(kPurchase) + "&TagSpecification.1.ResourceType=instance"),
              HasSubstr("TagSpecification.1.ResourceType is 'instance'; capacity-reservation is "
                        "legal"));
  EXPECT_THAT(
      Mistake(&ReadBlockPurchase, std::string(kPurchase) + "&TagSpecification.1.Tag.1.Key=a"),
      HasSubstr("MissingParameter: "));
}

TEST(BlockPurchaseTest, ClientTokensAreShort) {
  const std::string form = std::string(kPurchase) + "&ClientToken=";
  EXPECT_EQ(Mistake(&ReadBlockPurchase, form + std::string(64, 'a')), "");
  EXPECT_THAT(Mistake(&ReadBlockPurchase, form + std::string(65, 'a')), HasSubstr("at most 64"));
  EXPECT_THAT(Mistake(&ReadBlockPurchase, form + "a%20b"), HasSubstr("visible ASCII"));
}

TEST(IdsTest, AreSortedAndWithoutRepetition) {
  const auto parameters = Parameters::Parse("Id.1=b&Id.2=a&Id.3=b");
  Reader reader(*parameters);
  EXPECT_THAT(ReadIds(reader, "Id", 3, kBlockMalformed), ElementsAre("a", "b"));
  EXPECT_TRUE(reader.Finish().ok());
  for (const std::string wrong : {"a%20b", "a/b", "%C3%BC"}) {
    const auto form = Parameters::Parse("Id.1=" + wrong);
    Reader other(*form);
    ReadIds(other, "Id", 3, kBlockMalformed);
    EXPECT_EQ(RefusalOf(other.Finish()).code, "InvalidCapacityBlockId.Malformed");
  }
}

}  // namespace
}  // namespace tahoma::controller::ec2
