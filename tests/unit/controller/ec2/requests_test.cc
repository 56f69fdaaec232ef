#include "controller/ec2/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace tahoma::controller::ec2 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
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

TEST(OfferingSearchTest, ParametersThatExcludeEachOtherAreRefused) {
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

TEST(OfferingSearchTest, AMissingParameterIsNamed) {
  EXPECT_THAT(Mistake(&ReadOfferingSearch, "InstanceType=a"),
              HasSubstr("MissingParameter: the request must have the parameter "
                        "CapacityDurationHours"));
  EXPECT_THAT(Mistake(&ReadOfferingSearch, "CapacityDurationHours=24"),
              HasSubstr("MissingParameter: the request must have one of InstanceType"));
  EXPECT_THAT(
      Mistake(&ReadOfferingSearch, "CapacityDurationHours=24&InstanceType=a&InstanceCount=0"),
      HasSubstr("InvalidParameterValue: InstanceCount is '0'"));
}

constexpr char kPurchase[] =
    "CapacityBlockOfferingId=cb-0123456789abcdef0&InstancePlatform=Linux%2FUNIX";

TEST(BlockPurchaseTest, APurchaseHasTags) {
  const auto [mistake, purchase] = Read(
      &ReadBlockPurchase, std::string(kPurchase) +
                              "&TagSpecification.1.ResourceType=capacity-reservation&"
                              "TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a&"
                              "TagSpecification.1.Tag.2.Key=empty&ClientToken=t-1");
  EXPECT_EQ(mistake, "");
  EXPECT_EQ(purchase.offering_id, "cb-0123456789abcdef0");
  EXPECT_EQ(purchase.instance_platform, "Linux/UNIX");
  EXPECT_THAT(purchase.tags, ElementsAre(Tag{"team", "a"}, Tag{"empty", ""}));
  EXPECT_EQ(purchase.client_token, "t-1");
}

TEST(BlockPurchaseTest, IdsHaveAForm) {
  EXPECT_THAT(Mistake(&ReadBlockPurchase, "InstancePlatform=x"),
              HasSubstr("MissingParameter: the request must have the parameter "
                        "CapacityBlockOfferingId"));
  for (const std::string id :
       {"cb-", "cr-0123456789abcdef0", "cb-a.b", "cbe-1x/", "0", "cb-012345678",
        "cb-0123456789ABCDEF0", "CB-0123456789abcdef0", "cb-0123456789abcdefg"}) {
    EXPECT_EQ(Mistake(&ReadBlockPurchase, "InstancePlatform=x&CapacityBlockOfferingId=" + id),
              "InvalidCapacityBlockOfferingIdMalformed: Invalid id: \"" + id +
                  "\" (expecting \"cb-...\" with 17 hexadecimal digits in small letters)");
  }
  for (const std::string& id : {std::string("cb-01234567"), "cb-" + std::string(600, 'a')}) {
    EXPECT_EQ(Mistake(&ReadBlockPurchase, "InstancePlatform=x&CapacityBlockOfferingId=" + id), "");
  }
  EXPECT_THAT(Mistake(&ReadExtensionPurchase,
                      "CapacityBlockExtensionOfferingId=cb-0123456789abcdef0&"
                      "CapacityReservationId=cr-0123456789abcdef0"),
              HasSubstr("InvalidCapacityBlockOfferingIdMalformed: "));
  for (const std::string id : {"r", "cr-1", "cr-0123456789abcdef01", "CR-0123456789abcdef0"}) {
    EXPECT_THAT(Mistake(&ReadExtensionSearch,
                        "CapacityBlockExtensionDurationHours=24&CapacityReservationId=" + id),
                HasSubstr("InvalidCapacityReservationId.Malformed: Invalid id: "))
        << id;
  }
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

// The tags of a purchase with specifications "RESOURCE KEY VALUE".
std::pair<std::string, std::vector<Tag>> TagsOf(const std::vector<std::array<std::string, 3>>& of) {
  std::string form = kPurchase;
  for (std::size_t i = 0; i < of.size(); ++i) {
    form += fmt::format(
        "&TagSpecification.{0}.ResourceType={1}&TagSpecification.{0}.Tag.1.Key={2}&"
        "TagSpecification.{0}.Tag.1.Value={3}",
        i + 1, of[i][0], of[i][1], of[i][2]);
  }
  auto [mistake, purchase] = Read(&ReadBlockPurchase, form);
  return {mistake, purchase.tags};
}

TEST(BlockPurchaseTest, ABlockAndItsReservationHaveTheSameTags) {
  constexpr char kBlock[] = "capacity-block";
  constexpr char kReservation[] = "capacity-reservation";
  EXPECT_THAT(TagsOf({{kBlock, "a", "1"}}).second, ElementsAre(Tag{"a", "1"}));
  EXPECT_THAT(TagsOf({{kBlock, "a", "1"}, {kReservation, "b", "2"}}).second,
              ElementsAre(Tag{"a", "1"}, Tag{"b", "2"}));
  EXPECT_THAT(TagsOf({{kBlock, "a", "1"}, {kReservation, "a", "1"}}),
              Pair("", ElementsAre(Tag{"a", "1"})));
  EXPECT_THAT(TagsOf({{kBlock, "a", "1"}, {kReservation, "a", "2"}}).first,
              HasSubstr("InvalidParameterValue: the tag 'a' has the values '1' and '2'"));
  EXPECT_THAT(TagsOf({{kBlock, "a", "1"}, {kBlock, "b", "1"}}).first,
              HasSubstr("there are two TagSpecification.N of capacity-block"));
}

TEST(BlockPurchaseTest, NothingElseIsTagged) {
  EXPECT_THAT(Mistake(&ReadBlockPurchase,
                      std::string(kPurchase) + "&TagSpecification.1.ResourceType=instance"),
              HasSubstr("TagSpecification.1.ResourceType is 'instance'; legal are "
                        "capacity-reservation, capacity-block"));
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
  const auto parameters = Parameters::Parse(
      "CapacityBlockId.1=cb-0000000b&CapacityBlockId.2=cb-0000000a&CapacityBlockId.3=cb-0000000b");
  Reader reader(*parameters);
  EXPECT_THAT(ReadIds(reader, kBlockIds, 3), ElementsAre("cb-0000000a", "cb-0000000b"));
  EXPECT_TRUE(reader.Finish().ok());
}

std::string MistakeOfId(const IdList& list, const std::string& id, const std::string& more = "") {
  const auto form = Parameters::Parse(fmt::format("{}.1={}{}", list.name, id, more));
  Reader reader(*form);
  ReadIds(reader, list, 3);
  if (!more.empty()) reader.Text("MaxResults");
  const absl::Status status = reader.Finish();
  return status.ok() ? "" : RefusalOf(status).code;
}

TEST(IdsTest, EachKindHasItsForm) {
  for (const IdList& list : {kBlockIds, kReservationIds, kInstanceIds}) {
    const std::string prefix(list.prefix);
    EXPECT_EQ(MistakeOfId(list, prefix + "0123456789abcdef0"), "");
    EXPECT_EQ(MistakeOfId(list, prefix + "01234567"), "");
    for (const std::string digits :
         {"", "0123", "0123456789ABCDEF0", "0123456789abcdef01", "%20"}) {
      EXPECT_EQ(MistakeOfId(list, prefix + digits), list.malformed.name) << prefix << digits;
    }
    for (const std::string wrong : {"a%20b", "a/b", "%C3%BC", "A-01234567"}) {
      EXPECT_EQ(MistakeOfId(list, wrong), list.malformed.name) << wrong;
    }
  }
  EXPECT_EQ(MistakeOfId(kInstanceIds, "node-1.example"), "") << "a node has any name";
}

TEST(IdsTest, AListByIdsIsComplete) {
  EXPECT_EQ(MistakeOfId(kBlockIds, "cb-01234567", "&MaxResults=5"), "InvalidParameterCombination");
}

}  // namespace
}  // namespace tahoma::controller::ec2
