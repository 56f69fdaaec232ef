#include "controller/ec2/page.h"

#include <optional>

#include "lib/base/hex.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

constexpr char kVersion = '1';
constexpr std::size_t kCheckBytes = 16;
// The longest key is a tag's, with four bytes for each of its 128 characters.
constexpr std::size_t kTokenBytesMost = 2048;

// Ties a key to the request: neither can be exchanged.
std::string CheckOf(std::string_view key, const Sha256Digest& binding) {
  const Sha256Digest digest =
      Sha256(std::string(binding.begin(), binding.end()) + std::string(key));
  return std::string(digest.begin(), digest.begin() + kCheckBytes);
}

}  // namespace

std::string MakeToken(std::string_view last_key, const Sha256Digest& binding) {
  return Hex(kVersion + CheckOf(last_key, binding) + std::string(last_key));
}

absl::StatusOr<std::string> KeyOfToken(std::string_view token, const Sha256Digest& binding) {
  const std::optional<std::string> bytes =
      token.size() <= kTokenBytesMost ? Unhex(token) : std::nullopt;
  if (bytes && bytes->size() > 1 + kCheckBytes && bytes->front() == kVersion) {
    std::string key = bytes->substr(1 + kCheckBytes);
    if (bytes->substr(1, kCheckBytes) == CheckOf(key, binding)) return key;
  }
  return Refuse(kInvalidPaginationToken,
                "NextToken does not belong to this request; legal is the nextToken of the last "
                "answer to a request with the same parameters");
}

PageRequest ReadPage(Reader& reader, const Sha256Digest& binding, std::size_t usual,
                     std::size_t most, std::size_t least) {
  PageRequest page{.rows_most = usual, .binding = binding};
  const auto rows = reader.Number("MaxResults", static_cast<std::int64_t>(least),
                                  static_cast<std::int64_t>(most));
  if (rows) page.rows_most = static_cast<std::size_t>(*rows);
  if (const std::optional<std::string> token = reader.Text("NextToken")) {
    absl::StatusOr<std::string> key = KeyOfToken(*token, binding);
    if (key.ok()) {
      page.after = *std::move(key);
    } else {
      reader.Fail(key.status());
    }
  }
  return page;
}

}  // namespace tahoma::controller::ec2
