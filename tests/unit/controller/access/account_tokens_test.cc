// Tokens of service accounts: only what this key signed is read, whole and unchanged.

#include "controller/access/account_tokens.h"

#include <absl/strings/escaping.h>
#include <gtest/gtest.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;

AccountClaims SomeClaims() {
  return {.name_space = "team",
          .account = {.name = "builder", .uid = "u-1"},
          .pod = ClaimedObject{.name = "p", .uid = "u-2"},
          .secret = {},
          .node = ClaimedObject{.name = "n", .uid = "u-3"},
          .audiences = {"a", "b"},
          .id = "j",
          .issued = kNow,
          .expires = kNow + 3600};
}

std::string ToBase64(std::string_view bytes) {
  std::string text;
  absl::WebSafeBase64Escape({bytes.data(), bytes.size()}, &text);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::string FromBase64(std::string_view text) {
  std::string bytes;
  EXPECT_TRUE(absl::WebSafeBase64Unescape({text.data(), text.size()}, &bytes)) << text;
  return bytes;
}

struct Parts {
  std::string head, body, signature;
};
Parts PartsOf(const std::string& token) {
  const std::size_t first = token.find('.');
  const std::size_t last = token.rfind('.');
  return {token.substr(0, first), token.substr(first + 1, last - first - 1),
          token.substr(last + 1)};
}

// Signs any text with the key, by OpenSSL's older calls.
std::string SignedRaw(const std::string& pem, const std::string& text) {
  BIO* in = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(in, nullptr, nullptr, nullptr);
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EXPECT_EQ(EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key), 1);
  std::string der(200, '\0');
  std::size_t size = der.size();
  auto* out = reinterpret_cast<unsigned char*>(der.data());
  EXPECT_EQ(EVP_DigestSign(context, out, &size, reinterpret_cast<const unsigned char*>(text.data()),
                           text.size()),
            1);
  const unsigned char* at = out;
  ECDSA_SIG* parsed = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size));
  std::string raw(64, '\0');
  BN_bn2binpad(ECDSA_SIG_get0_r(parsed), reinterpret_cast<unsigned char*>(raw.data()), 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(parsed), reinterpret_cast<unsigned char*>(raw.data()) + 32, 32);
  ECDSA_SIG_free(parsed);
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);
  BIO_free(in);
  return raw;
}

class AccountTokensTest : public ::testing::Test {
 protected:
  bool Reads(const std::string& token) const {
    const auto claims = tokens_.Read(token);
    if (!claims.ok()) {
      EXPECT_TRUE(absl::IsUnauthenticated(claims.status())) << claims.status();
      EXPECT_EQ(Message(claims.status()), "invalid bearer token");
    }
    return claims.ok();
  }
  // A token with this body that the key did sign.
  std::string TokenOf(const Json& body) const {
    const std::string text = PartsOf(token_).head + "." + ToBase64(body.dump());
    return text + "." + ToBase64(SignedRaw(pem_, text));
  }

  const std::string pem_ = NewAccountKey();
  const AccountTokens tokens_ = *AccountTokens::Of(pem_);
  const std::string token_ = tokens_.Sign(SomeClaims());
};

TEST_F(AccountTokensTest, SaysWhatKubernetesTokensSay) {
  const Parts parts = PartsOf(token_);
  const Json head = ParseJson(FromBase64(parts.head));
  EXPECT_EQ(head.at("alg"), "ES256");
  EXPECT_EQ(head.at("kid"), tokens_.PublicKeys().at("keys").at(0).at("kid"));
  EXPECT_EQ(ParseJson(FromBase64(parts.body)), ParseJson(R"({
    "iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:team:builder",
    "aud": ["a", "b"], "jti": "j", "iat": 1800000000, "nbf": 1800000000, "exp": 1800003600,
    "kubernetes.io": {"namespace": "team", "serviceaccount": {"name": "builder", "uid": "u-1"},
                      "pod": {"name": "p", "uid": "u-2"}, "node": {"name": "n", "uid": "u-3"}}})"));
  EXPECT_EQ(FromBase64(parts.signature).size(), 64U);
}

TEST_F(AccountTokensTest, ReadsWhatItHasSigned) {
  EXPECT_EQ(*tokens_.Read(token_), SomeClaims());
  AccountClaims claims = SomeClaims();
  claims.pod = claims.node = std::nullopt;
  claims.secret = ClaimedObject{.name = "s", .uid = "u-4"};
  EXPECT_EQ(*tokens_.Read(tokens_.Sign(claims)), claims);
  EXPECT_TRUE(AccountTokens::Of(pem_)->Read(token_).ok()) << "the same key, read again";
}

TEST_F(AccountTokensTest, RefusesATokenOfWhichAnyCharacterIsAnother) {
  const std::string_view others = "AQgw019_-.= ";
  for (std::size_t at = 0; at < token_.size(); ++at) {
    for (const char other : others) {
      std::string changed = token_;
      changed[at] = other;
      if (changed == token_) continue;
      ASSERT_FALSE(Reads(changed)) << at << " " << other;
    }
    std::string shorter = token_;
    shorter.erase(at, 1);
    ASSERT_FALSE(Reads(shorter)) << at;
    ASSERT_FALSE(Reads(token_.substr(0, at))) << at;
  }
  EXPECT_FALSE(Reads(token_ + "A"));
  EXPECT_FALSE(Reads(token_ + "="));
  EXPECT_FALSE(Reads(token_ + "."));
  EXPECT_FALSE(Reads(token_ + std::string(1 << 20, 'A')));
}

TEST_F(AccountTokensTest, RefusesAnotherKeyAnotherAlgorithmAndNone) {
  EXPECT_FALSE(Reads(AccountTokens::Of(NewAccountKey())->Sign(SomeClaims())));
  const Parts parts = PartsOf(token_);
  const std::string kid = tokens_.PublicKeys().at("keys").at(0).at("kid");
  for (const char* alg : {"none", "None", "HS256", "RS256", "ES384", ""}) {
    const std::string head = ToBase64(Json{{"alg", alg}, {"kid", kid}, {"typ", "JWT"}}.dump());
    EXPECT_FALSE(Reads(head + "." + parts.body + "." + parts.signature)) << alg;
    EXPECT_FALSE(Reads(head + "." + parts.body + ".")) << alg;
    // Signed by the key itself, so that the algorithm alone is wrong.
    const std::string text = head + "." + parts.body;
    EXPECT_FALSE(Reads(text + "." + ToBase64(SignedRaw(pem_, text)))) << alg;
  }
  EXPECT_FALSE(Reads(parts.head + "." + parts.body + "."));
  EXPECT_FALSE(Reads(parts.head + "." + parts.body + "." + ToBase64(std::string(64, '\0'))));
  EXPECT_FALSE(Reads(parts.head + "." + parts.body + "." + ToBase64(std::string(64, '\xff'))));
}

TEST_F(AccountTokensTest, RefusesASignedBodyOfOtherTypes) {
  const Json body = ParseJson(FromBase64(PartsOf(token_).body));
  EXPECT_TRUE(Reads(TokenOf(body)));
  const std::vector<Json> values = {
      nullptr,          true, 0, -1, 1.5, "x", "", Json::array(), Json::object(), Json::array({1}),
      Json{{"name", 1}}};
  const std::vector<std::string> claims = {"iss", "sub", "aud",          "iat",
                                           "nbf", "exp", "kubernetes.io"};
  for (const std::string& field : claims) {
    Json less = body;
    less.erase(field);
    EXPECT_FALSE(Reads(TokenOf(less))) << field;
    for (const Json& value : values) {
      Json swapped = body;
      swapped[field] = value;
      const bool may = (field == "aud" && value == Json::array()) ||
                       (field == "exp" && value.is_number_integer());
      EXPECT_EQ(Reads(TokenOf(swapped)), may) << field << " " << value.dump();
    }
  }
  const std::vector<std::string> parts = {"namespace", "serviceaccount", "pod", "node"};
  for (const std::string& field : parts) {
    for (const Json& value : values) {
      Json swapped = body;
      swapped["kubernetes.io"][field] = value;
      EXPECT_FALSE(Reads(TokenOf(swapped))) << field << " " << value.dump();
    }
  }
  for (const Json& value : values) EXPECT_FALSE(Reads(TokenOf(value))) << value.dump();
}

RC_GTEST_FIXTURE_PROP(AccountTokensTest, RefusesWhateverAStrangerSends, (const std::string& text)) {
  RC_ASSERT(!Reads(text));
  const Parts parts = PartsOf(token_);
  RC_ASSERT(!Reads(parts.head + "." + text));
  RC_ASSERT(!Reads(parts.head + "." + parts.body + "." + ToBase64(text)));
}

TEST_F(AccountTokensTest, ATokenIsGoodFromItsIssueToItsEndAndAMinuteMore) {
  const auto at = [](std::int64_t seconds) {
    return std::string(
        Message(CheckTimes(SomeClaims(), WallTime(std::chrono::seconds(kNow + seconds)))));
  };
  EXPECT_EQ(at(0), "");
  EXPECT_EQ(at(-60), "");
  EXPECT_EQ(at(-61), "service account token is not valid yet") << "the clock was set back";
  EXPECT_EQ(at(3660), "");
  EXPECT_EQ(at(3661), "service account token has expired");
}

TEST_F(AccountTokensTest, ATextThatIsNoKeyIsDamage) {
  for (const std::string& text :
       {std::string(), std::string("x"), pem_.substr(0, pem_.size() / 2), pem_.substr(40)}) {
    EXPECT_TRUE(absl::IsDataLoss(AccountTokens::Of(text).status())) << text;
  }
  EVP_PKEY* other = EVP_EC_gen("P-384");
  BIO* out = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(out, other, nullptr, nullptr, 0, nullptr, nullptr);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out, &text);
  EXPECT_TRUE(absl::IsDataLoss(AccountTokens::Of({text, static_cast<std::size_t>(size)}).status()));
  BIO_free(out);
  EVP_PKEY_free(other);
}

}  // namespace
}  // namespace tahoma::controller
