// The tokens of service accounts: JSON Web Tokens (RFC 7519), signed with ES256 by a key of this
// server.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto tokens, AccountTokens::Of(kept_key));   // or NewAccountKey()
//   const std::string token = tokens.Sign(claims);
//   TAHOMA_ASSIGN_OR_RETURN(AccountClaims again, tokens.Read(token));    // signed by this key
//   TAHOMA_RETURN_IF_ERROR(CheckTimes(again, now));
//
// The claims have the names that kube-apiserver gives them, so that whoever reads its tokens reads
// these. Source: k8s.io/kubernetes pkg/serviceaccount/claims.go. Why there is no library of JWT
// here: docs/design/0027-account-tokens.md.
//
// Scope: texts and signatures. Whether account and pod are still there is account_callers.h's
// question.
//
// Thread safety: any thread; AccountTokens is immutable once made.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

// The issuer of all tokens, and the audience of this server: kube-apiserver's usual name.
inline constexpr std::string_view kAccountIssuer = "https://kubernetes.default.svc";

// No token is longer: a head of HTTP must have room for the token.
inline constexpr std::size_t kAccountTokenBytesMost = 16 << 10;

// Names and uid of an object that a token speaks of.
struct ClaimedObject {
  std::string name;
  std::string uid = {};

  friend bool operator==(const ClaimedObject&, const ClaimedObject&) = default;
};

struct AccountClaims {
  std::string name_space;
  ClaimedObject account;
  // The object with which the token ends: at most one of pod, secret, and, without a pod, node.
  // With a pod, `node` is the pod's.
  std::optional<ClaimedObject> pod = {};
  std::optional<ClaimedObject> secret = {};
  std::optional<ClaimedObject> node = {};
  std::vector<std::string> audiences;
  std::string id;  // "jti": differs in each token
  // Seconds since 1970. The token is good from `issued` to `expires`.
  std::int64_t issued = 0;
  std::int64_t expires = 0;

  friend bool operator==(const AccountClaims&, const AccountClaims&) = default;
};

// Returns a new private key as PEM: a point of P-256, from OpenSSL's randomness.
std::string NewAccountKey();

class AccountTokens {
 public:
  // kDataLoss when `pem` is not a private key of P-256.
  static absl::StatusOr<AccountTokens> Of(std::string_view pem);

  // Returns the token. It may be longer than kAccountTokenBytesMost when the audiences are; Read
  // refuses such a token.
  std::string Sign(const AccountClaims& claims) const;
  // Returns the claims of a token that Sign made with this key, whatever their times and objects.
  // kUnauthenticated for every other text: another key, another algorithm or none, one bit changed.
  absl::StatusOr<AccountClaims> Read(std::string_view token) const;

  // Returns the public key as a JSON Web Key Set (RFC 7517).
  Json PublicKeys() const;

 private:
  struct Key;
  explicit AccountTokens(std::shared_ptr<const Key> key);

  std::shared_ptr<const Key> key_;
  std::string head_;  // the first part of every token, with its dot
};

// kUnauthenticated, in kube-apiserver's words, for a token that has ended, or whose time lies
// ahead, by more than a minute: clocks differ.
absl::Status CheckTimes(const AccountClaims& claims, WallTime now);

}  // namespace tahoma::controller
