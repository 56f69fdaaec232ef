// Tags of reservations and blocks: set, deleted and listed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/ec2/actions.h"
#include "controller/ec2/ec2_api.h"
#include "tests/support/fake_ec2_service.h"

namespace tahoma::controller::ec2 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kReservation[] = "ResourceId.1=cr-00000000000000001";

class TagActionsTest : public ::testing::Test {
 protected:
  rest::Response Answer(const std::string& action, const std::string& form) {
    rest::Request request;
    request.method = "POST";
    request.path = "/";
    request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
    request.body = "Action=" + action + "&Version=2016-11-15&" + form;
    return api_.Answer(request);
  }
  std::string Ask(const std::string& action, const std::string& form) {
    return Answer(action, form).body;
  }
  // "key=value" of the tags of a resource.
  std::vector<std::string> TagsOf(const std::string& id) {
    const std::string xml = Ask("DescribeTags", "Filter.1.Name=resource-id&Filter.1.Value.1=" + id);
    std::vector<std::string> tags;
    for (std::size_t at = xml.find("<key>"); at != std::string::npos; at = xml.find("<key>", at)) {
      const std::size_t end = xml.find("</key>", at);
      const std::size_t value = xml.find("<value>", at) + 7;
      tags.push_back(xml.substr(at + 5, end - at - 5) + "=" +
                     xml.substr(value, xml.find("</value>", at) - value));
      at = end;
    }
    return tags;
  }

  ManualClock clock_;
  FakeEc2Service service_{3};
  Ec2Api api_{service_, {}, clock_, 1};
};

TEST_F(TagActionsTest, AReservationAndItsBlocksHaveOneSetOfTags) {
  ASSERT_THAT(Ask("DeleteTags", kReservation), HasSubstr("<return>true</return>"));
  EXPECT_THAT(TagsOf("cr-00000000000000001"), IsEmpty());
  ASSERT_THAT(Ask("CreateTags",
                  "ResourceId.1=cb-00000000000000001&Tag.1.Key=team&Tag.1.Value=a&Tag.2.Key=b"),
              HasSubstr("<return>true</return>"));
  EXPECT_THAT(TagsOf("cr-00000000000000001"), ElementsAre("b=", "team=a"));
  EXPECT_THAT(TagsOf("cb-00000000000000001"), ElementsAre("b=", "team=a"));
  EXPECT_THAT(Ask("DescribeCapacityBlocks", "Filter.1.Name=tag:team&Filter.1.Value.1=a"),
              HasSubstr("cb-00000000000000001"));
}

TEST_F(TagActionsTest, ATagIsDeletedByItsKeyOrOnlyWithItsValue) {
  Ask("DeleteTags", kReservation);
  Ask("CreateTags",
      std::string(kReservation) + "&Tag.1.Key=a&Tag.1.Value=1&Tag.2.Key=b&Tag.3.Key=c");
  Ask("DeleteTags",
      std::string(kReservation) + "&Tag.1.Key=a&Tag.1.Value=&Tag.2.Key=b&Tag.2.Value=");
  EXPECT_THAT(TagsOf("cr-00000000000000001"), ElementsAre("a=1", "c="));
  Ask("DeleteTags", std::string(kReservation) + "&Tag.1.Key=a&Tag.2.Key=none");
  EXPECT_THAT(TagsOf("cr-00000000000000001"), ElementsAre("c="));
}

TEST_F(TagActionsTest, OthersIdsAreRefusedBeforeAnythingIsChanged) {
  const auto code = [&](const std::string& id) {
    return Ask("CreateTags", std::string(kReservation) + "&ResourceId.2=" + id + "&Tag.1.Key=z");
  };
  EXPECT_THAT(code("i-0123"), HasSubstr("<Code>InvalidID</Code>"));
  EXPECT_THAT(code("cr-A"), HasSubstr("<Code>InvalidCapacityReservationId.Malformed</Code>"));
  EXPECT_THAT(code("cb-"), HasSubstr("<Code>InvalidCapacityBlockId.Malformed</Code>"));
  EXPECT_THAT(code("cr-00000000000000009"),
              HasSubstr("<Code>InvalidCapacityReservationId.NotFound</Code>"));
  EXPECT_THAT(code("cb-00000000000000009"),
              HasSubstr("<Code>InvalidCapacityBlockId.NotFound</Code>"));
  EXPECT_THAT(Ask("DescribeTags", "Filter.1.Name=key&Filter.1.Value.1=z"),
              HasSubstr("<tagSet></tagSet>"));
}

TEST_F(TagActionsTest, ADryRunFindsOutWhatTheCallWould) {
  const auto dry = [&](const std::string& form) {
    return Ask("CreateTags", form + "&DryRun=true");
  };
  EXPECT_THAT(dry(std::string(kReservation) + "&Tag.1.Key=z"), HasSubstr("DryRunOperation"));
  EXPECT_THAT(dry("ResourceId.1=cr-00000000000000009&Tag.1.Key=z"),
              HasSubstr("InvalidCapacityReservationId.NotFound"));
  std::string many = kReservation;
  for (int i = 1; i <= 50; ++i) many += fmt::format("&Tag.{0}.Key=k{0}", i);
  EXPECT_THAT(dry(many), HasSubstr("<Code>TagLimitExceeded</Code>")) << "it has two of its own";
  EXPECT_THAT(TagsOf("cr-00000000000000001"),
              ElementsAre("note=&lt;block&gt; &amp; &quot;1&quot;", "team=serving"));
}

TEST_F(TagActionsTest, ACallerWhoMayNotBuyMayNotTag) {
  const auto form = Parameters::Parse(std::string(kReservation) + "&Tag.1.Key=a");
  const Caller viewer{.name = "bob", .name_space = "a", .account = "1", .may_buy = false};
  for (const char* name : {"CreateTags", "DeleteTags"}) {
    Reader reader(*form);
    const auto answer = FindAction(name)->run({.reader = reader,
                                               .caller = viewer,
                                               .service = service_,
                                               .head = {.action = name, .request_id = "id"}});
    EXPECT_EQ(Ec2CodeOf(answer.status()), "UnauthorizedOperation");
  }
}

TEST_F(TagActionsTest, TagsHaveBounds) {
  const auto ask = [&](const std::string& tags) { return Ask("CreateTags", kReservation + tags); };
  EXPECT_THAT(ask(""), HasSubstr("<Code>MissingParameter</Code>"));
  EXPECT_THAT(Ask("CreateTags", "Tag.1.Key=a"), HasSubstr("<Code>MissingParameter</Code>"));
  EXPECT_THAT(ask("&Tag.1.Value=a"), HasSubstr("<Code>MissingParameter</Code>"));
  EXPECT_THAT(ask("&Tag.1.Key=aws:x"), HasSubstr("which is reserved"));
  EXPECT_THAT(ask("&Tag.1.Key=a&Tag.2.Key=a"), HasSubstr("is given twice"));
  EXPECT_THAT(ask("&Tag.1.Key=" + std::string(129, 'k')), HasSubstr("at most 128 are legal"));
}

TEST_F(TagActionsTest, TagsOfTheLongestKeysHavePages) {
  std::string umlauts;
  for (int i = 0; i < 127; ++i) umlauts += "%F0%9F%9A%80";  // four bytes
  for (int i = 0; i < 6; ++i) {
    Ask("CreateTags", fmt::format("{}&Tag.1.Key={}{}", kReservation, umlauts, i));
  }
  const std::string filter = "MaxResults=5&Filter.1.Name=resource-id&Filter.1.Value.1=cr-*1";
  const std::string first = Ask("DescribeTags", filter);
  const std::size_t start = first.find("<nextToken>") + 11;
  ASSERT_NE(first.find("<nextToken>"), std::string::npos) << first;
  const std::string token = first.substr(start, first.find('<', start) - start);
  EXPECT_THAT(Ask("DescribeTags", filter + "&NextToken=" + token), HasSubstr("<tagSet><item>"));
}

TEST(TagChangeTest, Ec2sOwnTagsStayAndAreNotCounted) {
  const Tag own{.key = "aws:ec2capacityreservation:incrementalRequestedQuantity", .value = "4"};
  const auto cleared = ApplyTagChange({own, {.key = "a", .value = ""}}, {.remove_all = true});
  EXPECT_THAT(*cleared, ElementsAre(own));
  TagChange change;
  for (int i = 0; i < 50; ++i) change.set.push_back({.key = fmt::format("k{}", i), .value = ""});
  EXPECT_TRUE(ApplyTagChange({own}, change).ok());
  EXPECT_EQ(Ec2CodeOf(ApplyTagChange({own, {.key = "a", .value = ""}}, change).status()),
            "TagLimitExceeded");
}

TEST(TagAuditTest, AChangeIsAPatchOfABlock) {
  ManualClock clock;
  FakeEc2Service service(1);
  std::vector<std::string> lines;
  Ec2Options options;
  options.audit.append = [&](const std::string& line) { lines.push_back(line); };
  Ec2Api api(service, options, clock, 1);
  rest::Request request;
  request.method = "POST";
  request.path = "/";
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  request.body = "Action=CreateTags&Version=2016-11-15&Tag.1.Key=a&" + std::string(kReservation);
  EXPECT_EQ(api.Answer(request).status, 200);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("\"verb\":\"patch\""));
  EXPECT_THAT(lines[0], HasSubstr("capacityblocks"));
}

}  // namespace
}  // namespace tahoma::controller::ec2
