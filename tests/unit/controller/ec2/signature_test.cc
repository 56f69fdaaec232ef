// The requests and signatures are those of AWS's published test suite for Signature Version 4 (as
// in github.com/awslabs/aws-c-auth, tests/aws-signing-test-suite/v4), whose path is "/".

#include "controller/ec2/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "controller/ec2/error.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

using ::testing::HasSubstr;

constexpr char kSecret[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

struct Vector {
  std::string name, method;
  std::string query = {};
  rest::Headers headers = {};
  std::string body = {};
  std::string signed_headers, signature;
};

rest::Request RequestOf(const Vector& vector) {
  rest::Request request;
  request.method = vector.method;
  request.path = "/";
  request.query = vector.query;
  request.headers = vector.headers;
  request.headers.emplace_back("Host", "example.amazonaws.com");
  request.headers.emplace_back("X-Amz-Date", "20150830T123600Z");
  request.headers.emplace_back(
      "Authorization",
      fmt::format(
          "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
          "SignedHeaders={}, Signature={}",
          vector.signed_headers, vector.signature));
  request.body = vector.body;
  return request;
}

Vector Vanilla() {
  return {.name = "get-vanilla",
          .method = "GET",
          .signed_headers = "host;x-amz-date",
          .signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"};
}

// A form whose digest is also in a header.
Vector Form(const std::string& type, const std::string& signature) {
  return {.name = "post-x-www-form-urlencoded",
          .method = "POST",
          .headers = {{"Content-Type", type},
                      {"Content-Length", "13"},
                      {"x-amz-content-sha256", Sha256Hex("Param1=value1")}},
          .body = "Param1=value1",
          .signed_headers = "content-length;content-type;host;x-amz-content-sha256;x-amz-date",
          .signature = signature};
}

constexpr char kDated[] = "host;x-amz-date";
constexpr char kWithHeader[] = "host;my-header1;x-amz-date";

std::vector<Vector> VectorsOfQueries() {
  static const std::string all =
      "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const auto get = [](const std::string& name, const std::string& query,
                      const std::string& signature) {
    return Vector{.name = name,
                  .method = "GET",
                  .query = query,
                  .signed_headers = kDated,
                  .signature = signature};
  };
  return {
      Vanilla(),
      get("get-vanilla-query-order-key-case", "Param2=value2&Param1=value1",
          "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
      get("get-vanilla-query-order-encoded", "Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
          "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"),
      get("get-vanilla-query-unreserved", all + "=" + all,
          "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
      get("get-vanilla-empty-query-key", "Param1=value1",
          "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
      get("get-vanilla-utf8-query", "\xE1\x88\xB4=bar",
          "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
  };
}

std::vector<Vector> VectorsOfHeaders() {
  const auto get = [](const std::string& name, const rest::Headers& headers,
                      const std::string& signed_headers, const std::string& signature) {
    return Vector{.name = name,
                  .method = "GET",
                  .headers = headers,
                  .signed_headers = signed_headers,
                  .signature = signature};
  };
  return {
      get("get-header-key-duplicate",
          {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}},
          kWithHeader, "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
      get("get-header-value-order",
          {{"My-Header1", "value4"},
           {"My-Header1", "value1"},
           {"My-Header1", "value3"},
           {"My-Header1", "value2"}},
          kWithHeader, "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"),
      get("get-header-value-trim", {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}},
          "host;my-header1;my-header2;x-amz-date",
          "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
      get("get-vanilla-with-session-token",
          {{"X-Amz-Security-Token",
            "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"}},
          "host;x-amz-date;x-amz-security-token",
          "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"),
  };
}

std::vector<Vector> VectorsOfPosts() {
  const auto post = [](const std::string& name, const std::string& query,
                       const rest::Headers& headers, const std::string& signature) {
    return Vector{.name = name,
                  .method = "POST",
                  .query = query,
                  .headers = headers,
                  .signed_headers = headers.empty() ? kDated : kWithHeader,
                  .signature = signature};
  };
  return {
      post("post-vanilla", "", {},
           "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
      post("post-header-key-sort", "", {{"My-Header1", "value1"}},
           "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"),
      post("post-header-value-case", "", {{"My-Header1", "VALUE1"}},
           "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"),
      post("post-vanilla-query", "Param1=value1", {},
           "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"),
      Form("application/x-www-form-urlencoded",
           "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"),
      Form("application/x-www-form-urlencoded; charset=utf-8",
           "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422"),
  };
}

absl::Status Verify(const rest::Request& request, std::string_view secret = kSecret) {
  const auto signature = ReadSignature(request, "service");
  if (!signature.ok()) return signature.status();
  return VerifySignature(request, signature->value(), secret);
}

std::string CodeOf(const absl::Status& status) {
  return status.ok() ? "" : std::string(RefusalOf(status).code);
}

TEST(SignatureTest, TheSuitesSignaturesAreGood) {
  for (const auto& vectors : {VectorsOfQueries(), VectorsOfHeaders(), VectorsOfPosts()}) {
    for (const Vector& vector : vectors) {
      EXPECT_TRUE(Verify(RequestOf(vector)).ok()) << vector.name;
    }
  }
}

TEST(SignatureTest, TheCanonicalRequestIsTheSuites) {
  EXPECT_EQ(CanonicalRequest(RequestOf(Vanilla()), {"host", "x-amz-date"}),
            "GET\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
            "host;x-amz-date\n"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(SignatureTest, AnotherSecretOrRequestDoesNotMatch) {
  const Vector form = Form("application/x-www-form-urlencoded",
                           "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b");
  EXPECT_EQ(CodeOf(Verify(RequestOf(form), "another")), "SignatureDoesNotMatch");
  rest::Request request = RequestOf(form);
  request.body += "1";
  EXPECT_EQ(CodeOf(Verify(request)), "SignatureDoesNotMatch");
  request = RequestOf(form);
  request.query = "a=b";
  EXPECT_EQ(CodeOf(Verify(request)), "SignatureDoesNotMatch");
  request = RequestOf(form);
  request.method = "PUT";
  EXPECT_EQ(CodeOf(Verify(request)), "SignatureDoesNotMatch");
  request = RequestOf(form);
  request.headers[0].second = "text/plain";
  EXPECT_EQ(CodeOf(Verify(request)), "SignatureDoesNotMatch");
  request = RequestOf(form);
  request.headers[2].second = "UNSIGNED-PAYLOAD";
  EXPECT_EQ(CodeOf(Verify(request)), "SignatureDoesNotMatch");
  Vector changed = Vanilla();
  changed.signature.front() = '6';
  EXPECT_EQ(CodeOf(Verify(RequestOf(changed))), "SignatureDoesNotMatch");
}

TEST(SignatureTest, AHeaderThatIsNotSignedMayChangeUnlessItIsOfAws) {
  rest::Request request = RequestOf(Vanilla());
  request.headers.emplace_back("User-Agent", "a");
  EXPECT_EQ(CodeOf(Verify(request)), "");
  request.headers.emplace_back("X-Amz-Target", "a");
  EXPECT_EQ(CodeOf(Verify(request)), "IncompleteSignature");
}

// The head of a request with that Authorization and time.
absl::StatusOr<std::optional<Signature>> Read(const std::string& authorization,
                                              const std::string& date = "20150830T123600Z") {
  rest::Request head;
  head.headers = {{"Authorization", authorization}, {"X-Amz-Date", date}};
  return ReadSignature(head, "ec2");
}

std::string Authorization(const std::string& credential, const std::string& headers,
                          const std::string& signature = std::string(64, 'a')) {
  return fmt::format("AWS4-HMAC-SHA256 Credential={}, SignedHeaders={}, Signature={}", credential,
                     headers, signature);
}

constexpr char kCredential[] = "AKID/20150830/us-east-2/ec2/aws4_request";

TEST(SignatureTest, TheHeadIsRead) {
  const auto signature = Read(Authorization(kCredential, "host;x-amz-date"));
  ASSERT_TRUE(signature.ok()) << signature.status();
  EXPECT_EQ((*signature)->access_key_id, "AKID");
  EXPECT_EQ((*signature)->region, "us-east-2");
  EXPECT_EQ(FormatTime((*signature)->time), "2015-08-30T12:36:00Z");
  // botocore separates by ", ", others by ",".
  EXPECT_TRUE(Read(fmt::format("AWS4-HMAC-SHA256 Credential={},SignedHeaders=host;x-amz-date,"
                               "Signature={:064}",
                               kCredential, 1))
                  .ok());
}

TEST(SignatureTest, ARequestWithoutASignatureHasNone) {
  EXPECT_EQ(*ReadSignature(rest::Request(), "ec2"), std::nullopt);
  EXPECT_EQ(*Read("Bearer AWS4"), std::nullopt) << "for the server's gate";
}

TEST(SignatureTest, AMalformedSignatureIsRefused) {
  const std::string day = "20150830";
  for (const std::string& wrong : std::vector<std::string>{
           "AWS4-HMAC-SHA256",
           "AWS4-ECDSA-P256-SHA256 Credential=a",
           Authorization("AKID/20150830/us-east-2/ec2", "host;x-amz-date"),
           Authorization("AKID/20150830/us-east-2/ec2/aws4", "host;x-amz-date"),
           Authorization("/20150830/us-east-2/ec2/aws4_request", "host;x-amz-date"),
           Authorization("AKID/20150830//ec2/aws4_request", "host;x-amz-date"),
           Authorization("AKID/20150830/us-east-2/s3/aws4_request", "host;x-amz-date"),
           Authorization("AKID/20150831/us-east-2/ec2/aws4_request", "host;x-amz-date"),
           Authorization(kCredential, "x-amz-date"),
           Authorization(kCredential, "x-amz-date;host"),
           Authorization(kCredential, "host;host;x-amz-date"),
           Authorization(kCredential, "Host;x-amz-date"),
           Authorization(kCredential, "host"),
           Authorization(kCredential, "host;x-amz-date", "aa"),
           Authorization(kCredential, "host;x-amz-date", std::string(64, 'g')),
           Authorization(kCredential, "host;x-amz-date") + ", Credential=a",
           Authorization(kCredential, "host;x-amz-date") + ", More=a",
       }) {
    EXPECT_EQ(CodeOf(Read(wrong).status()), "IncompleteSignature") << wrong;
  }
  const std::string good = Authorization(kCredential, "host;x-amz-date");
  for (const std::string date : {"", "20150830", "20150830T123600", "2015-08-30T12:36:00Z",
                                 "20150830X123600Z", "20151330T123600Z"}) {
    EXPECT_EQ(CodeOf(Read(good, date).status()), "IncompleteSignature") << date;
  }
}

TEST(SignatureTest, FifteenMinutesApartAreLegal) {
  const Signature signature = **Read(Authorization(kCredential, "host;x-amz-date"));
  using std::chrono::seconds;
  for (const int offset : {-900, 0, 900}) {
    EXPECT_TRUE(CheckTime(signature, signature.time + seconds(offset)).ok()) << offset;
  }
  for (const int offset : {-901, 901}) {
    const absl::Status status = CheckTime(signature, signature.time + seconds(offset));
    EXPECT_EQ(CodeOf(status), "RequestExpired") << offset;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("signed at 2015-08-30T12:36:00Z"));
  }
}

}  // namespace
}  // namespace tahoma::controller::ec2
