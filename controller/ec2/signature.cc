#include "controller/ec2/signature.h"

#include <algorithm>
#include <utility>

#include "controller/ec2/error.h"
#include "lib/base/ascii.h"
#include "lib/base/digest.h"
#include "lib/base/hex.h"
#include "lib/base/status.h"
#include "lib/kube/url.h"
#include "lib/rest/bearer.h"

namespace tahoma::controller::ec2 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kTerminator = "aws4_request";
constexpr std::string_view kContentDigest = "x-amz-content-sha256";
constexpr std::chrono::minutes kSkewMost{15};
constexpr std::size_t kSignedHeadersMost = 100;
constexpr std::size_t kScopePartBytesMost = 128;

absl::Status Incomplete(std::string_view what) {
  return Refuse(kIncompleteSignature,
                "{}; legal is Authorization: {} Credential=KEY/YYYYMMDD/REGION/SERVICE/{}, "
                "SignedHeaders=…;host;…, Signature=64 hexadecimal digits",
                what, kAlgorithm, kTerminator);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), AsciiLower);
  return lower;
}

bool IsHeaderName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

absl::Status ReadCredential(std::string_view text, std::string_view service, Signature& out) {
  const std::vector<std::string_view> parts = Split(text, '/');
  constexpr std::size_t kParts = 5;
  if (parts.size() != kParts || parts[4] != kTerminator ||
      std::ranges::any_of(parts, [](std::string_view part) {
        return part.empty() || part.size() > kScopePartBytesMost;
      })) {
    return Incomplete("Credential is not of the form");
  }
  if (parts[3] != service) {
    return Incomplete(
        fmt::format("Credential is for the service '{}', not '{}'", parts[3], service));
  }
  out.access_key_id = parts[0];
  out.day = parts[1];
  out.region = parts[2];
  out.service = parts[3];
  return absl::OkStatus();
}

absl::Status ReadSignedHeaders(std::string_view text, Signature& out) {
  const std::vector<std::string_view> names = Split(text, ';');
  out.headers.assign(names.begin(), names.end());
  if (out.headers.size() > kSignedHeadersMost || !std::ranges::all_of(out.headers, IsHeaderName)) {
    return Incomplete("SignedHeaders is not a list of names in small letters");
  }
  // Two lists of the same headers must not be two signatures of one request.
  if (std::ranges::adjacent_find(out.headers, std::ranges::greater_equal()) != out.headers.end()) {
    return Incomplete("SignedHeaders is not in order, or names a header twice");
  }
  if (!std::ranges::binary_search(out.headers, "host")) {
    return Incomplete("SignedHeaders lacks host");
  }
  return absl::OkStatus();
}

// The key=value parts after the algorithm.
absl::Status ReadParts(std::string_view text, std::string_view service, Signature& out) {
  bool credential = false;
  bool headers = false;
  for (const std::string_view part : Split(text, ',')) {
    const std::string_view field = Trimmed(part);
    const std::size_t equals = std::min(field.find('='), field.size());
    const std::string_view name = field.substr(0, equals);
    const std::string_view value = field.substr(std::min(equals + 1, field.size()));
    if (name == "Credential" && !std::exchange(credential, true)) {
      TAHOMA_RETURN_IF_ERROR(ReadCredential(value, service, out));
    } else if (name == "SignedHeaders" && !std::exchange(headers, true)) {
      TAHOMA_RETURN_IF_ERROR(ReadSignedHeaders(value, out));
    } else if (name == "Signature" && out.hex.empty()) {
      constexpr std::size_t kDigits = 64;
      if (value.size() != kDigits || !Unhex(value))
        return Incomplete("Signature is not of the form");
      out.hex = Lower(value);
    } else {
      return Incomplete("Authorization has another part, or one of them twice");
    }
  }
  if (!credential || !headers || out.hex.empty()) {
    return Incomplete("Authorization lacks Credential, SignedHeaders or Signature");
  }
  return absl::OkStatus();
}

// "20150830T123600Z" in header X-Amz-Date.
absl::Status ReadTime(const rest::Request& head, Signature& out) {
  const std::string_view text = head.header("X-Amz-Date");
  constexpr std::size_t kBytes = 16;
  if (text.size() != kBytes) {
    return Incomplete("the header X-Amz-Date must have a time such as 20150830T123600Z");
  }
  const auto time = ParseTime(fmt::format("{}-{}-{}T{}:{}:{}", text.substr(0, 4), text.substr(4, 2),
                                          text.substr(6, 2), text.substr(9, 2), text.substr(11, 2),
                                          text.substr(13, 3)));
  if (!time.ok() || text[8] != 'T') {
    return Incomplete("the header X-Amz-Date must have a time such as 20150830T123600Z");
  }
  if (text.substr(0, out.day.size()) != out.day) {
    return Incomplete("Credential is of another day than X-Amz-Date");
  }
  out.date_time = text;
  out.time = *time;
  return absl::OkStatus();
}

// Every x-amz- header that is sent is signed: a proxy or an attacker must not add one.
absl::Status CheckAmzHeaders(const rest::Request& head, const Signature& signature) {
  for (const auto& [name, value] : head.headers) {
    const std::string lower = Lower(name);
    if (!lower.starts_with("x-amz-")) continue;
    if (std::ranges::binary_search(signature.headers, lower)) continue;
    return Incomplete(fmt::format("the header {} is sent and not signed", lower));
  }
  return absl::OkStatus();
}

std::string CanonicalValue(std::string_view value) {
  std::string out;
  for (const char c : Trimmed(value)) {
    const bool space = c == ' ' || c == '\t';
    if (!space) {
      out += c;
    } else if (!out.ends_with(' ')) {
      out += ' ';
    }
  }
  return out;
}

std::string CanonicalQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string_view pair : Split(query, '&')) {
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const auto encoded = [](std::string_view text) {
      // A broken escape stays as it is; the request is refused when its parameters are read.
      return kube::PercentEncode(rest::PercentDecode(text).value_or(std::string(text)));
    };
    pairs.emplace_back(encoded(pair.substr(0, equals)),
                       encoded(pair.substr(std::min(equals + 1, pair.size()))));
  }
  std::ranges::sort(pairs);
  std::string out;
  for (const auto& [name, value] : pairs) {
    out += fmt::format("{}{}={}", out.empty() ? "" : "&", name, value);
  }
  return out;
}

std::string SignatureHex(const rest::Request& request, const Signature& signature,
                         std::string_view secret) {
  std::string key = "AWS4" + std::string(secret);
  for (const std::string_view part :
       {std::string_view(signature.day), std::string_view(signature.region),
        std::string_view(signature.service), kTerminator}) {
    key = HmacSha256(key, part);
  }
  const std::string text = fmt::format(
      "{}\n{}\n{}/{}/{}/{}\n{}", kAlgorithm, signature.date_time, signature.day, signature.region,
      signature.service, kTerminator, Sha256Hex(CanonicalRequest(request, signature.headers)));
  return Hex(HmacSha256(key, text));
}

}  // namespace

absl::StatusOr<std::optional<Signature>> ReadSignature(const rest::Request& head,
                                                       std::string_view service) {
  const std::string_view authorization = Trimmed(head.header("Authorization"));
  const std::string_view scheme = authorization.substr(0, authorization.find(' '));
  // Another scheme is for the server's gate.
  if (!EqualsIgnoringCase(scheme.substr(0, 4), "AWS4")) return std::nullopt;
  if (scheme != kAlgorithm) return Incomplete(fmt::format("the scheme is '{}'", scheme));
  Signature signature;
  TAHOMA_RETURN_IF_ERROR(ReadParts(authorization.substr(scheme.size()), service, signature));
  TAHOMA_RETURN_IF_ERROR(ReadTime(head, signature));
  TAHOMA_RETURN_IF_ERROR(CheckAmzHeaders(head, signature));
  return signature;
}

absl::Status CheckTime(const Signature& signature, WallTime now) {
  const auto skew = now - signature.time;
  if (-kSkewMost <= skew && skew <= kSkewMost) return absl::OkStatus();
  return Refuse(kRequestExpired,
                "the request was signed at {}, and it is {} here; {} minutes apart are legal",
                FormatTime(signature.time), FormatTime(now), kSkewMost.count());
}

absl::Status VerifySignature(const rest::Request& request, const Signature& signature,
                             std::string_view secret) {
  const std::string_view digest = request.header(kContentDigest);
  const bool same_body = digest.empty() || digest == Sha256Hex(request.body);
  if (same_body && rest::EqualSecrets(signature.hex, SignatureHex(request, signature, secret))) {
    return absl::OkStatus();
  }
  return Refuse(kSignatureDoesNotMatch,
                "the signature is not that of this request with the secret of access key {}",
                signature.access_key_id);
}

std::string CanonicalRequest(const rest::Request& request,
                             const std::vector<std::string>& signed_headers) {
  std::string out =
      fmt::format("{}\n{}\n{}\n", request.method, request.path, CanonicalQuery(request.query));
  for (const std::string& name : signed_headers) {
    std::string values;
    bool first = true;
    for (const auto& [sent, value] : request.headers) {
      if (!EqualsIgnoringCase(sent, name)) continue;
      if (!std::exchange(first, false)) values += ',';
      values += CanonicalValue(value);
    }
    out += fmt::format("{}:{}\n", name, values);
  }
  out += fmt::format("\n{}\n{}", fmt::join(signed_headers, ";"), Sha256Hex(request.body));
  return out;
}

}  // namespace tahoma::controller::ec2
