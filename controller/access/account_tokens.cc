#include "controller/access/account_tokens.h"

#include <absl/strings/escaping.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <utility>

#include "controller/access/access_table.h"
#include "lib/base/check.h"
#include "lib/base/digest.h"
#include "lib/base/freed_by.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kNumberBytes = 32;  // of a number of P-256
constexpr std::size_t kSignatureBytes = 2 * kNumberBytes;
constexpr std::int64_t kLeewaySeconds = 60;  // as in go-jose, the library of kube-apiserver
constexpr int kUncompressedPoint = 1 + 2 * kNumberBytes;

using KeyPointer = std::unique_ptr<EVP_PKEY, FreedBy<&EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, FreedBy<&BIO_free>>;
using Digester = std::unique_ptr<EVP_MD_CTX, FreedBy<&EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, FreedBy<&ECDSA_SIG_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

// Base64 of RFC 7515: for URLs, without padding.
std::string Encode(std::string_view bytes) {
  std::string text;
  absl::WebSafeBase64Escape({bytes.data(), bytes.size()}, &text);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

// Nothing unless `text` is the one way to write its bytes.
std::optional<std::string> Decode(std::string_view text) {
  std::string bytes;
  if (!absl::WebSafeBase64Unescape({text.data(), text.size()}, &bytes)) return std::nullopt;
  if (Encode(bytes) != text) return std::nullopt;
  return bytes;
}

// The two numbers of a signature one after the other, as RFC 7518 has them, from OpenSSL's DER.
std::string RawOfDer(const std::string& der) {
  const unsigned char* at = Bytes(der);
  const Signature parsed(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  TAHOMA_CHECK(parsed != nullptr);
  std::string raw(kSignatureBytes, '\0');
  TAHOMA_CHECK(BN_bn2binpad(ECDSA_SIG_get0_r(parsed.get()), Bytes(raw), kNumberBytes) >= 0);
  TAHOMA_CHECK(
      BN_bn2binpad(ECDSA_SIG_get0_s(parsed.get()), Bytes(raw) + kNumberBytes, kNumberBytes) >= 0);
  return raw;
}

std::string DerOfRaw(std::string_view raw) {
  const Signature made(ECDSA_SIG_new());
  TAHOMA_CHECK(made != nullptr);
  TAHOMA_CHECK(ECDSA_SIG_set0(made.get(), BN_bin2bn(Bytes(raw), kNumberBytes, nullptr),
                              BN_bin2bn(Bytes(raw) + kNumberBytes, kNumberBytes, nullptr)) == 1);
  std::string der(static_cast<std::size_t>(i2d_ECDSA_SIG(made.get(), nullptr)), '\0');
  unsigned char* at = Bytes(der);
  i2d_ECDSA_SIG(made.get(), &at);
  return der;
}

Json RefOf(const ClaimedObject& object) {
  Json ref = {{"name", object.name}};
  if (!object.uid.empty()) ref["uid"] = object.uid;
  return ref;
}

Json ValueOf(const AccountClaims& claims) {
  Json about = {{"namespace", claims.name_space}, {"serviceaccount", RefOf(claims.account)}};
  if (claims.pod) about["pod"] = RefOf(*claims.pod);
  if (claims.secret) about["secret"] = RefOf(*claims.secret);
  if (claims.node) about["node"] = RefOf(*claims.node);
  return {{"iss", kAccountIssuer},
          {"sub", fmt::format("{}{}:{}", kAccountPrefix, claims.name_space, claims.account.name)},
          {"aud", claims.audiences},
          {"jti", claims.id},
          {"iat", claims.issued},
          {"nbf", claims.issued},
          {"exp", claims.expires},
          {"kubernetes.io", std::move(about)}};
}

// Nothing when the claim is there and is no reference.
bool TakeRef(const Json& about, std::string_view key, std::optional<ClaimedObject>& into) {
  const Json* const ref = FindMember(about, key);
  if (ref == nullptr) return true;
  into = ClaimedObject{.name = std::string(kube::StringAt(*ref, {"name"})),
                       .uid = std::string(kube::StringAt(*ref, {"uid"}))};
  return !into->name.empty();
}

std::optional<std::int64_t> NumberIn(const Json& value, std::string_view key) {
  const Json* const number = FindMember(value, key);
  if (number == nullptr || !number->is_number_integer()) return std::nullopt;
  return number->get<std::int64_t>();
}

// This server signed the value: a value that does not fit is of another version of the server.
std::optional<AccountClaims> ClaimsIn(const Json& value) {
  const Json* const about = FindMember(value, "kubernetes.io");
  const Json* const audiences = FindMember(value, "aud");
  const auto issued = NumberIn(value, "iat");
  const auto begins = NumberIn(value, "nbf");
  const auto expires = NumberIn(value, "exp");
  if (about == nullptr || audiences == nullptr || !audiences->is_array() || !issued ||
      begins != issued || !expires || kube::StringAt(value, {"iss"}) != kAccountIssuer) {
    return std::nullopt;
  }
  AccountClaims claims{.name_space = std::string(kube::StringAt(*about, {"namespace"})),
                       .account = {},
                       .audiences = {},
                       .id = std::string(kube::StringAt(value, {"jti"})),
                       .issued = *issued,
                       .expires = *expires};
  std::optional<ClaimedObject> account;
  if (!TakeRef(*about, "serviceaccount", account) || !account) return std::nullopt;
  claims.account = *std::move(account);
  if (!TakeRef(*about, "pod", claims.pod) || !TakeRef(*about, "secret", claims.secret) ||
      !TakeRef(*about, "node", claims.node)) {
    return std::nullopt;
  }
  for (const Json& audience : *audiences) {
    if (!audience.is_string()) return std::nullopt;
    claims.audiences.push_back(audience.get<std::string>());
  }
  const bool is_whole =
      !claims.name_space.empty() && !claims.account.uid.empty() &&
      kube::StringAt(value, {"sub"}) ==
          fmt::format("{}{}:{}", kAccountPrefix, claims.name_space, claims.account.name);
  return is_whole ? std::optional(std::move(claims)) : std::nullopt;
}

absl::Status NotOurs() { return Unauthenticated("invalid bearer token"); }

}  // namespace

struct AccountTokens::Key {
  KeyPointer pointer;
  std::string x, y;  // of the public point
  std::string id;    // of the public key, as kube-apiserver derives it

  std::string Sign(std::string_view text) const {
    const Digester digester(EVP_MD_CTX_new());
    TAHOMA_CHECK(digester != nullptr);
    TAHOMA_CHECK(
        EVP_DigestSignInit(digester.get(), nullptr, EVP_sha256(), nullptr, pointer.get()) == 1);
    std::size_t size = 0;
    TAHOMA_CHECK(EVP_DigestSign(digester.get(), nullptr, &size, Bytes(text), text.size()) == 1);
    std::string der(size, '\0');
    TAHOMA_CHECK(EVP_DigestSign(digester.get(), Bytes(der), &size, Bytes(text), text.size()) == 1);
    der.resize(size);
    return RawOfDer(der);
  }

  bool Signed(std::string_view text, std::string_view raw) const {
    if (raw.size() != kSignatureBytes) return false;
    const std::string der = DerOfRaw(raw);
    const Digester digester(EVP_MD_CTX_new());
    TAHOMA_CHECK(digester != nullptr);
    TAHOMA_CHECK(
        EVP_DigestVerifyInit(digester.get(), nullptr, EVP_sha256(), nullptr, pointer.get()) == 1);
    return EVP_DigestVerify(digester.get(), Bytes(der), der.size(), Bytes(text), text.size()) == 1;
  }
};

std::string NewAccountKey() {
  const KeyPointer key(EVP_EC_gen("P-256"));
  const Memory out(BIO_new(BIO_s_mem()));
  TAHOMA_CHECK(key != nullptr && out != nullptr);
  TAHOMA_CHECK(
      PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

AccountTokens::AccountTokens(std::shared_ptr<const Key> key)
    : key_(std::move(key)),
      head_(Encode(Json{{"alg", "ES256"}, {"kid", key_->id}, {"typ", "JWT"}}.dump()) + ".") {}

absl::StatusOr<AccountTokens> AccountTokens::Of(std::string_view pem) {
  const Memory in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  TAHOMA_CHECK(in != nullptr);
  // Without a password: OpenSSL would ask on the terminal.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  auto key = std::make_shared<Key>();
  key->pointer.reset(PEM_read_bio_PrivateKey(in.get(), nullptr, no_password, nullptr));
  std::array<char, 32> group = {};
  std::size_t size = 0;
  if (key->pointer == nullptr ||
      EVP_PKEY_get_group_name(key->pointer.get(), group.data(), group.size(), &size) != 1 ||
      std::string_view(group.data(), size) != "prime256v1") {
    return DataLoss("no private key of the curve P-256 in PEM");
  }
  std::string point(kUncompressedPoint, '\0');
  TAHOMA_CHECK(EVP_PKEY_get_octet_string_param(key->pointer.get(), OSSL_PKEY_PARAM_PUB_KEY,
                                               Bytes(point), point.size(), &size) == 1);
  if (size != point.size()) return DataLoss("the key's public point is not written in full");
  key->x = point.substr(1, kNumberBytes);
  key->y = point.substr(1 + kNumberBytes);
  std::string der(static_cast<std::size_t>(i2d_PUBKEY(key->pointer.get(), nullptr)), '\0');
  unsigned char* at = Bytes(der);
  i2d_PUBKEY(key->pointer.get(), &at);
  const Sha256Digest digest = Sha256(der);
  key->id = Encode(std::string(digest.begin(), digest.end()));
  return AccountTokens(std::move(key));
}

std::string AccountTokens::Sign(const AccountClaims& claims) const {
  std::string token = head_ + Encode(ValueOf(claims).dump());
  const std::string signature = Encode(key_->Sign(token));
  return token + "." + signature;
}

absl::StatusOr<AccountClaims> AccountTokens::Read(std::string_view token) const {
  // The head is compared, not read: a stranger's head has no effect.
  if (token.size() > kAccountTokenBytesMost || !token.starts_with(head_)) return NotOurs();
  const std::size_t dot = token.rfind('.');
  if (dot < head_.size()) return NotOurs();
  const std::optional<std::string> signature = Decode(token.substr(dot + 1));
  const std::optional<std::string> body = Decode(token.substr(head_.size(), dot - head_.size()));
  if (!signature || !body || !key_->Signed(token.substr(0, dot), *signature)) return NotOurs();
  std::optional<AccountClaims> claims = ClaimsIn(TryParseJson(*body));
  if (!claims) return NotOurs();
  return *std::move(claims);
}

Json AccountTokens::PublicKeys() const {
  return {{"keys", Json::array({Json{{"use", "sig"},
                                     {"kty", "EC"},
                                     {"kid", key_->id},
                                     {"crv", "P-256"},
                                     {"alg", "ES256"},
                                     {"x", Encode(key_->x)},
                                     {"y", Encode(key_->y)}}})}};
}

absl::Status CheckTimes(const AccountClaims& claims, WallTime now) {
  const std::int64_t at =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  if (at - kLeewaySeconds > claims.expires) {
    return Unauthenticated("service account token has expired");
  }
  if (at + kLeewaySeconds < claims.issued) {
    return Unauthenticated("service account token is not valid yet");
  }
  return absl::OkStatus();
}

}  // namespace tahoma::controller
