// AWS Signature Version 4 in the header Authorization: read, and verified.
//
// The client makes a canonical text of method, path, query, some headers and the body's digest, and
// signs it with a key that is made of the secret, the day, the region and the service. The method,
// query and body are so protected, and headers as far as it signs them: host must be among them,
// and each x-amz- header that is sent.
//
// Scope: the path "/", which needs no normalization; headers, not presigned URLs. Any region will
// do. Whose a key is, is decided elsewhere.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/rest/message.h"

namespace tahoma::controller::ec2 {

struct Signature {
  std::string access_key_id;
  std::string day;                   // "20150830"
  std::string region;                // "us-east-1"
  std::string service;               // "ec2"
  std::vector<std::string> headers;  // signed ones, as the client lists them
  std::string hex;                   // 64 digits
  std::string date_time;             // "20150830T123600Z"
  WallTime time;                     // the same
};

// Nothing when the request has no signature. IncompleteSignature for what is not of the form; the
// body is not looked at, so a request's head suffices.
absl::StatusOr<std::optional<Signature>> ReadSignature(const rest::Request& head,
                                                       std::string_view service);

// RequestExpired when the time of signing is more than 15 minutes from `now`.
absl::Status CheckTime(const Signature& signature, WallTime now);

// SignatureDoesNotMatch when another secret, or another request, was signed.
absl::Status VerifySignature(const rest::Request& request, const Signature& signature,
                             std::string_view secret);

// The text that is signed, but for its head: of interest to tests.
std::string CanonicalRequest(const rest::Request& request,
                             const std::vector<std::string>& signed_headers);

}  // namespace tahoma::controller::ec2
