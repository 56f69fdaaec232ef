// The API as requests and answers of HTTP, over a fake seller. tests/integration/ec2_client_test.py
// asks it with the real boto3.

#include "controller/ec2/ec2_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/ec2/actions.h"
#include "controller/ec2/signature.h"
#include "lib/base/digest.h"
#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/support/fake_ec2_service.h"

namespace tahoma::controller::ec2 {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Ec2ApiTest : public ::testing::Test {
 protected:
  static rest::Request RequestOf(const std::string& method, const std::string& form) {
    rest::Request request;
    request.method = method;
    request.target = request.path = "/";
    if (method == "POST") {
      request.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
      request.body = form;
    } else {
      request.query = form;
    }
    return request;
  }
  rest::Response Ask(const std::string& action, const std::string& form = "") {
    return api_.Answer(RequestOf(
        "POST", "Action=" + action + "&Version=2016-11-15" + (form.empty() ? "" : "&" + form)));
  }
  static std::string CodeOf(const rest::Response& response) {
    const std::size_t start = response.body.find("<Code>");
    if (start == std::string::npos) return "";
    return response.body.substr(start + 6, response.body.find("</Code>") - start - 6);
  }
  static std::string CodeOf(const std::optional<rest::Response>& response) {
    return response ? CodeOf(*response) : "";
  }

  ManualClock clock_{*ParseTime("2026-11-21T10:00:00Z")};
  FakeEc2Service service_{3};
  Ec2Api api_{service_, {.account = "123456789012"}, clock_, 1};
};

TEST_F(Ec2ApiTest, AnAnswerIsXmlOfTheActionWithAnId) {
  const rest::Response response =
      Ask("DescribeCapacityBlocks", "CapacityBlockId.1=cb-00000000000000002");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/xml;charset=UTF-8");
  EXPECT_THAT(response.body,
              StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                         "<DescribeCapacityBlocksResponse "
                         "xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>"));
  EXPECT_THAT(response.body,
              HasSubstr("<capacityBlockSet><item><capacityBlockId>cb-00000000000000002"
                        "</capacityBlockId><ultraserverType>u-trn2x64</ultraserverType>"));
  EXPECT_THAT(response.body, HasSubstr("<startDate>2026-11-23T11:30:00.000Z</startDate>"));
  EXPECT_THAT(response.body, HasSubstr("<value>&lt;block&gt; &amp; &quot;2&quot;</value>"));
  EXPECT_THAT(response.body, Not(HasSubstr("nextToken")));
  ASSERT_EQ(response.headers[0].first, "x-amzn-requestid");
  EXPECT_THAT(response.body, HasSubstr("<requestId>" + response.headers[0].second + "<"));
  EXPECT_NE(Ask("DescribeCapacityBlocks").headers[0].second, response.headers[0].second);
}

TEST_F(Ec2ApiTest, AnErrorIsXmlOfEc2sForm) {
  const rest::Response response = Ask("DescribeCapacityBlocks", "MaxResults=0");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body,
              HasSubstr("<Response><Errors><Error><Code>InvalidParameterValue</Code><Message>"
                        "MaxResults is &apos;0&apos;; a whole number from 1 to 1000 is legal"
                        "</Message></Error></Errors><RequestID>"));
}

TEST_F(Ec2ApiTest, GetAndPostAskTheSame) {
  const std::string form = "Action=DescribeCapacityBlockStatus&Version=2016-11-15&MaxResults=1";
  const rest::Response get = api_.Answer(RequestOf("GET", form));
  EXPECT_EQ(get.status, 200) << get.body;
  rest::Request split = RequestOf("POST", "MaxResults=1");
  split.query = "Action=DescribeCapacityBlockStatus&Version=2016-11-15";
  EXPECT_EQ(api_.Answer(split).status, 200);
}

TEST_F(Ec2ApiTest, RequestsThatAreNoneAreRefused) {
  const auto code = [&](const std::string& method, const std::string& form) {
    return CodeOf(api_.Answer(RequestOf(method, form)));
  };
  EXPECT_EQ(code("POST", ""), "MissingAction");
  EXPECT_EQ(code("POST", "Version=2016-11-15"), "MissingAction");
  EXPECT_EQ(code("POST", "Action=RunInstances&Version=2016-11-15"), "InvalidAction");
  EXPECT_EQ(code("POST", "Action=describecapacityblocks&Version=2016-11-15"), "InvalidAction");
  EXPECT_EQ(code("POST", "Action=DescribeCapacityBlocks"), "MissingParameter");
  EXPECT_EQ(code("POST", "Action=DescribeCapacityBlocks&Version=2014-01-01"), "NoSuchVersion");
  EXPECT_EQ(code("POST", "Action=DescribeCapacityBlocks&Version=2016-11-15&Foo=1"),
            "UnknownParameter");
  EXPECT_EQ(code("POST", "%"), "MalformedQueryString");
  rest::Request json = RequestOf("POST", "{}");
  json.headers = {{"Content-Type", "application/json"}};
  EXPECT_EQ(CodeOf(api_.Answer(json)), "MalformedQueryString");
}

// A seller whose disk is gone.
class BrokenService final : public Ec2Service {
 public:
  absl::StatusOr<std::vector<Ec2Offering>> FindOfferings(const Caller&,
                                                         const OfferingSearch&) override {
    return Gone();
  }
  absl::StatusOr<BlockPurchased> PurchaseBlock(const Caller&, const BlockPurchase&) override {
    return Gone();
  }
  absl::StatusOr<std::vector<ExtensionOffering>> FindExtensionOfferings(
      const Caller&, const ExtensionSearch&) override {
    return Gone();
  }
  absl::StatusOr<std::vector<Extension>> PurchaseExtension(const Caller&,
                                                           const ExtensionPurchase&) override {
    return Gone();
  }
  absl::Status VisitBlocks(const Caller&, const Selection&, const Visit<Ec2Block>&) override {
    return Gone();
  }
  absl::Status VisitBlockStatuses(const Caller&, const Selection&,
                                  const Visit<BlockStatus>&) override {
    return Gone();
  }
  absl::Status VisitReservations(const Caller&, const Selection&,
                                 const Visit<Reservation>&) override {
    return Gone();
  }
  absl::Status VisitInstances(const Caller&, const Selection&,
                              const Visit<InstanceTopology>&) override {
    return Gone();
  }
  absl::Status VisitExtensions(const Caller&, const Selection&, const Visit<Extension>&) override {
    return Gone();
  }
  absl::Status VisitReservationTopology(const Caller&, const Selection&,
                                        const Visit<ReservationTopology>&) override {
    return Gone();
  }
  absl::StatusOr<std::vector<OfferedType>> FindOfferedTypes(const Caller&) override {
    return Gone();
  }
  absl::Status ChangeTags(const Caller&, const std::vector<std::string>&,
                          const TagChange&) override {
    return Gone();
  }

 private:
  static absl::Status Gone() { return Internal("/var/lib/tahoma: the disk is gone"); }
};

TEST_F(Ec2ApiTest, AFailureOfTheServerIsLoggedAndNotTold) {
  BrokenService broken;
  std::vector<std::string> lines;
  Ec2Api api(broken, {.log = [&](const std::string& line) { lines.push_back(line); }}, clock_, 1);
  const rest::Response answer =
      api.Answer(RequestOf("POST", "Action=DescribeCapacityBlocks&Version=2016-11-15"));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(CodeOf(answer), "InternalError");
  EXPECT_THAT(answer.body, Not(HasSubstr("disk")));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0],
            "EC2 request " + answer.headers[0].second + ": /var/lib/tahoma: the disk is gone");
}

TEST_F(Ec2ApiTest, AHeadRequestBuysNothing) {
  const rest::Response response =
      api_.Answer(RequestOf("HEAD",
                            "Action=PurchaseCapacityBlock&Version=2016-11-15&"
                            "CapacityBlockOfferingId=cb-00000000000000001&InstancePlatform=x"));
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(service_.purchases(), 0);
}

TEST_F(Ec2ApiTest, ADryRunChecksAndDoesNothing) {
  const std::string purchase =
      "CapacityBlockOfferingId=cb-00000000000000001&InstancePlatform=x&DryRun=true";
  const rest::Response dry = Ask("PurchaseCapacityBlock", purchase);
  EXPECT_EQ(dry.status, 412);
  EXPECT_EQ(CodeOf(dry), "DryRunOperation");
  EXPECT_EQ(service_.purchases(), 0);
  EXPECT_EQ(CodeOf(Ask("PurchaseCapacityBlock", "DryRun=true")), "MissingParameter");
  EXPECT_EQ(CodeOf(Ask("PurchaseCapacityBlock",
                       "CapacityBlockOfferingId=cb-00000000000000009&InstancePlatform=x&"
                       "DryRun=true")),
            "InvalidCapacityBlockOfferingIdNotFound");
  for (const std::string_view action : ActionNames()) {
    EXPECT_EQ(Ask(std::string(action), "DryRun=true").status / 100, 4) << action;
  }
}

TEST_F(Ec2ApiTest, AnswersAndRefusalsAreDated) {
  const auto date = [](const rest::Response& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Date") return value;
    }
    return std::string();
  };
  EXPECT_EQ(date(Ask("DescribeCapacityBlocks")), "Sat, 21 Nov 2026 10:00:00 GMT");
  EXPECT_EQ(date(Ask("Nonsense")), "Sat, 21 Nov 2026 10:00:00 GMT");
}

constexpr char kBuyOne[] =
    "Action=PurchaseCapacityBlock&Version=2016-11-15&"
    "CapacityBlockOfferingId=cb-00000000000000001&InstancePlatform=x";

// The defect: an image of a page bought a block.
TEST_F(Ec2ApiTest, ARequestThatAWebPageCanMakeABrowserSendBuysNothing) {
  EXPECT_EQ(CodeOf(api_.Answer(RequestOf("GET", kBuyOne))), "UnauthorizedOperation");
  for (const auto& [name, value] : rest::Headers{{"Origin", "http://localhost:8002"},
                                                 {"Referer", "http://evil.example/"},
                                                 {"Sec-Fetch-Site", "same-site"},
                                                 {"Sec-Fetch-Site", "same-origin"},
                                                 {"Sec-Fetch-Site", "none"}}) {
    for (const char* method : {"GET", "POST"}) {
      rest::Request request = RequestOf(method, kBuyOne);
      request.headers.emplace_back(name, value);
      const rest::Response response = api_.Answer(request);
      EXPECT_EQ(response.status, 403) << method << name << value;
    }
  }
  EXPECT_EQ(service_.purchases(), 0);
  EXPECT_EQ(api_.Answer(RequestOf("POST", kBuyOne)).status, 200);
  EXPECT_EQ(service_.purchases(), 1);
}

TEST_F(Ec2ApiTest, TheCallerIsToldWhoHeIs) {
  const rest::Response answer =
      api_.Answer(RequestOf("POST", "Action=GetCallerIdentity&Version=2011-06-15"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("<Arn>arn:aws:iam::123456789012:user/anonymous</Arn>"
                                     "<UserId>anonymous</UserId><Account>123456789012</Account>"));
  EXPECT_EQ(CodeOf(Ask("GetCallerIdentity")), "NoSuchVersion") << "EC2's version";
  EXPECT_THAT(ActionNames(), Not(Contains("GetCallerIdentity"))) << "EC2 has no such action";
}

TEST_F(Ec2ApiTest, ASignatureForAnotherServiceIsNotGoodForTheAction) {
  const auto ask = [&](const std::string& service, const std::string& form) {
    rest::Request request = RequestOf("POST", form);
    request.headers.emplace_back("Host", "localhost");
    request.headers.emplace_back("X-Amz-Date", "20261121T100000Z");
    request.headers.emplace_back(
        "Authorization",
        fmt::format("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE000000001/20261121/us-east-2/{}/"
                    "aws4_request, SignedHeaders=host;x-amz-date, Signature={:064}",
                    service, 0));
    return CodeOf(api_.Answer(request));
  };
  const std::string identity = "Action=GetCallerIdentity&Version=2011-06-15";
  EXPECT_EQ(ask("sts", identity), "");
  EXPECT_EQ(ask("ec2", identity), "SignatureDoesNotMatch");
  EXPECT_EQ(ask("sts", "Action=DescribeRegions&Version=2016-11-15"), "SignatureDoesNotMatch");
  EXPECT_EQ(ask("s3", identity), "IncompleteSignature");
}

TEST_F(Ec2ApiTest, NoPageCanSign) {
  rest::Request request = RequestOf("GET", kBuyOne);
  request.headers.emplace_back("Host", "localhost");
  request.headers.emplace_back("X-Amz-Date", "20261121T100000Z");
  request.headers.emplace_back(
      "Authorization",
      fmt::format("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE000000001/20261121/us-east-2/ec2/"
                  "aws4_request, SignedHeaders=host;x-amz-date, Signature={:064}",
                  0));
  EXPECT_EQ(api_.Answer(request).status, 200);
  request.headers.back().second = "Basic YTpi";  // which a browser sends by itself
  EXPECT_EQ(CodeOf(api_.Answer(request)), "UnauthorizedOperation");
}

TEST_F(Ec2ApiTest, AllAttemptsOfOneCallBuyOnce) {
  const std::string purchase =
      "Action=PurchaseCapacityBlock&Version=2016-11-15&CapacityBlockOfferingId=cb-"
      "00000000000000001&"
      "InstancePlatform=x";
  rest::Request request = RequestOf("POST", purchase);
  request.headers.emplace_back("amz-sdk-invocation-id", "3f0c8a1e");
  EXPECT_EQ(api_.Answer(request).status, 200);
  EXPECT_EQ(api_.Answer(request).status, 200);
  EXPECT_EQ(service_.purchases(), 1);
  EXPECT_EQ(service_.last_purchase().client_token, "3f0c8a1e");
  request.headers.back().second = "another";
  api_.Answer(request);
  EXPECT_EQ(service_.purchases(), 2);
  request.body += "&ClientToken=mine";
  api_.Answer(request);
  EXPECT_EQ(service_.last_purchase().client_token, "mine") << "what the client says comes first";
}

TEST_F(Ec2ApiTest, WithoutAccessKeysEveryoneIsACallerOfOneAccount) {
  Ask("DescribeCapacityBlocks");
  EXPECT_EQ(service_.last_caller().account, "123456789012");
  EXPECT_TRUE(service_.last_caller().may_buy);
  rest::Request request = RequestOf("POST", "Action=DescribeCapacityBlocks&Version=2016-11-15");
  request.identity = std::make_shared<const rest::Identity>(rest::Identity{.name = "vera"});
  api_.Answer(request);
  EXPECT_EQ(service_.last_caller().name, "vera");
}

TEST_F(Ec2ApiTest, WithoutAccessKeysAMalformedSignatureIsStillRefused) {
  rest::Request request = RequestOf("POST", "Action=DescribeCapacityBlocks&Version=2016-11-15");
  request.headers.emplace_back("Authorization", "AWS4-HMAC-SHA256 Credential=x");
  EXPECT_EQ(CodeOf(api_.Answer(request)), "IncompleteSignature");
}

class SignedEc2ApiTest : public Ec2ApiTest {
 protected:
  SignedEc2ApiTest() {
    auto keys = AccessKeys::Parse(
        "apiVersion: tahoma.dev/v1alpha1\nkind: AccessKeyFile\naccessKeys:\n"
        "- {accessKeyId: AKIAEXAMPLE000000001, secretAccessKey: 0123456789abcdef, name: ana, "
        "account: \"111122223333\"}\n",
        "keys.yaml");
    keys_ = std::make_shared<const AccessKeys>(*std::move(keys));
    signed_.emplace(service_, Ec2Options{.keys = [this] { return keys_; }}, clock_, 2);
  }
  // The head of a request that says it is signed with that key at 2026-11-21T10:00:00Z.
  static rest::Request HeadOf(const std::string& key) {
    rest::Request request = RequestOf("POST", "Action=DescribeCapacityBlocks&Version=2016-11-15");
    request.headers.emplace_back("Host", "localhost");
    request.headers.emplace_back("X-Amz-Date", "20261121T100000Z");
    request.headers.emplace_back(
        "Authorization",
        fmt::format("AWS4-HMAC-SHA256 Credential={}/20261121/us-east-2/ec2/aws4_request, "
                    "SignedHeaders=host;x-amz-date, Signature={:064}",
                    key, 0));
    return request;
  }
  // The code with which the gate refuses.
  std::string Admit(rest::Request head) {
    return CodeOf(signed_->GateBefore([](const rest::Request&) { return std::nullopt; })(head));
  }

  std::shared_ptr<const AccessKeys> keys_;
  std::optional<Ec2Api> signed_;
};

TEST_F(SignedEc2ApiTest, ACallerIsRefusedByTheHeadAlone) {
  const rest::Request unsigned_request =
      RequestOf("POST", "Action=DescribeCapacityBlocks&Version=2016-11-15");
  EXPECT_EQ(Admit(unsigned_request), "MissingAuthenticationToken");
  EXPECT_EQ(Admit(HeadOf("AKIAEXAMPLE000000009")), "AuthFailure");
  rest::Request session = HeadOf("AKIAEXAMPLE000000001");
  session.headers.emplace_back("X-Amz-Security-Token", "a");
  EXPECT_EQ(Admit(session), "IncompleteSignature") << "it is not signed";
  EXPECT_EQ(Admit(HeadOf("AKIAEXAMPLE000000001")), "");
  clock_.Advance(std::chrono::minutes(16));
  EXPECT_EQ(Admit(HeadOf("AKIAEXAMPLE000000001")), "RequestExpired");
}

TEST_F(SignedEc2ApiTest, ASignatureStandsForTheCallAndIsToldToTheSeller) {
  const auto sign = [](rest::Request request) {
    request.headers = {{"Content-Type", "application/x-www-form-urlencoded"},
                       {"Host", "localhost"},
                       {"X-Amz-Date", "20261121T100000Z"},
                       {"Authorization", ""}};
    const std::vector<std::string> headers = {"host", "x-amz-date"};
    std::string key = "AWS40123456789abcdef";
    for (const char* part : {"20261121", "us-east-2", "ec2", "aws4_request"}) {
      key = HmacSha256(key, part);
    }
    const std::string text =
        fmt::format("AWS4-HMAC-SHA256\n20261121T100000Z\n20261121/us-east-2/ec2/aws4_request\n{}",
                    Sha256Hex(CanonicalRequest(request, headers)));
    const std::string signature = Hex(HmacSha256(key, text));
    request.headers.back().second = fmt::format(
        "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE000000001/20261121/us-east-2/ec2/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature={}",
        signature);
    return std::pair(request, signature);
  };
  auto [request, signature] = sign(RequestOf("POST", kBuyOne));
  EXPECT_EQ(signed_->Answer(request).status, 200);
  EXPECT_EQ(service_.last_purchase().signature, signature);
  EXPECT_EQ(service_.last_purchase().client_token, signature) << "there is no other token";
  request.headers.emplace_back("amz-sdk-invocation-id", "3f0c8a1e");
  EXPECT_EQ(signed_->Answer(request).status, 200);
  EXPECT_EQ(service_.last_purchase().signature, signature);
  EXPECT_EQ(service_.last_purchase().client_token, "3f0c8a1e");
  EXPECT_EQ(signed_->Answer(sign(RequestOf("GET", kBuyOne)).first).status, 200);
}

rest::Request SignedForSts(rest::Request head) {
  for (auto& [name, value] : head.headers) {
    if (name == "Authorization") value.replace(value.find("/ec2/"), 5, "/sts/");
  }
  return head;
}

TEST_F(SignedEc2ApiTest, AClientOfStsIsRefusedInItsWords) {
  EXPECT_EQ(Admit(SignedForSts(HeadOf("AKIAEXAMPLE000000001"))), "");
  const auto refused = signed_->GateBefore([](const rest::Request&) { return std::nullopt; });
  rest::Request unknown = SignedForSts(HeadOf("AKIAEXAMPLE000000009"));
  const std::optional<rest::Response> answer = refused(unknown);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 401);
  EXPECT_THAT(answer->body, HasSubstr("<ErrorResponse xmlns="));
  EXPECT_THAT(answer->body, HasSubstr("<Type>Sender</Type><Code>AuthFailure</Code>"));
}

TEST_F(SignedEc2ApiTest, AKeyThatIsTakenBackIsKnownNoMore) {
  EXPECT_EQ(Admit(HeadOf("AKIAEXAMPLE000000001")), "");
  keys_ = std::make_shared<const AccessKeys>();
  EXPECT_EQ(Admit(HeadOf("AKIAEXAMPLE000000001")), "AuthFailure");
  EXPECT_EQ(CodeOf(signed_->Answer(HeadOf("AKIAEXAMPLE000000001"))), "AuthFailure");
}

TEST_F(SignedEc2ApiTest, TheSignatureIsVerifiedBeforeAnythingIsRead) {
  rest::Request request = HeadOf("AKIAEXAMPLE000000001");
  request.body = "%";
  const rest::Response response = signed_->Answer(request);
  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(CodeOf(response), "SignatureDoesNotMatch");
  EXPECT_EQ(service_.last_caller().name, "");
}

TEST_F(Ec2ApiTest, WithoutAccessKeysTheOtherGateAdmits) {
  const rest::Gate gate = api_.GateBefore(
      [](const rest::Request&) { return rest::Response::Problem(401, "a token is needed"); });
  rest::Request request = RequestOf("POST", "Action=DescribeCapacityBlocks&Version=2016-11-15");
  EXPECT_EQ(gate(request)->status, 401);
  EXPECT_EQ(CodeOf(gate(request)), "AuthFailure") << "SDKs read only EC2's errors";
  EXPECT_THAT(gate(request)->body, testing::HasSubstr("accessKeyFile"));
  request.path = "/v1/gangs";
  EXPECT_EQ(gate(request)->content_type, "application/problem+json");
}

TEST_F(SignedEc2ApiTest, TheOtherGateAdmitsRequestsToOtherApis) {
  const rest::Gate gate = signed_->GateBefore(
      [](const rest::Request&) { return rest::Response::Problem(401, "a token is needed"); });
  rest::Request request = HeadOf("AKIAEXAMPLE000000001");
  EXPECT_EQ(gate(request), std::nullopt);
  request.path = "/v1/gangs";
  EXPECT_EQ(gate(request)->status, 401);
}

class AuditedEc2ApiTest : public Ec2ApiTest {
 protected:
  Json LineOf(const std::string& action, const std::string& form) {
    lines_.clear();
    rest::Request request = RequestOf("POST", "Action=" + action + "&Version=2016-11-15&" + form);
    request.identity = std::make_shared<const rest::Identity>(rest::Identity{.name = "ana"});
    api_with_audit_.Answer(request);
    return lines_.size() == 1 ? ParseJson(lines_[0]) : Json(lines_.size());
  }

  std::vector<std::string> lines_;
  bool writable_ = true;
  Ec2Api api_with_audit_{
      service_,
      {.name_space = "team-a",
       .audit = {.append = [this](const std::string& line) { lines_.push_back(line); },
                 .writable = [this] { return writable_; }}},
      clock_,
      1};
};

constexpr char kPurchase[] = "CapacityBlockOfferingId=cb-00000000000000001&InstancePlatform=x";

TEST_F(AuditedEc2ApiTest, APurchaseThatWasTriedHasALine) {
  const Json line = LineOf("PurchaseCapacityBlock", kPurchase);
  EXPECT_EQ(line.at("verb"), "create");
  EXPECT_EQ(line.at("user").at("username"), "ana");
  EXPECT_EQ(line.at("objectRef").at("resource"), "capacityblocks");
  EXPECT_EQ(line.at("objectRef").at("namespace"), "team-a");
  EXPECT_EQ(line.at("responseStatus").at("code"), 200);
  EXPECT_EQ(line.at("annotations").at("authorization.k8s.io/decision"), "allow");
  EXPECT_EQ(LineOf("PurchaseCapacityBlock", "InstancePlatform=x").at("responseStatus").at("code"),
            400);
  EXPECT_EQ(LineOf("PurchaseCapacityBlockExtension",
                   "CapacityBlockExtensionOfferingId=cbe-00000000000000001&"
                   "CapacityReservationId=cr-00000000000000001")
                .at("objectRef")
                .at("resource"),
            "capacityblockextensions");
}

TEST_F(AuditedEc2ApiTest, AReadAndADryRunHaveNoLine) {
  EXPECT_EQ(LineOf("DescribeCapacityBlocks", ""), 0);
  EXPECT_EQ(LineOf("PurchaseCapacityBlock", std::string(kPurchase) + "&DryRun=true"), 0);
}

TEST_F(AuditedEc2ApiTest, NothingIsBoughtWhileItsLineCannotBeWritten) {
  writable_ = false;
  EXPECT_EQ(LineOf("PurchaseCapacityBlock", kPurchase).at("responseStatus").at("code"), 503);
  EXPECT_EQ(service_.purchases(), 0);
}

}  // namespace
}  // namespace tahoma::controller::ec2
