#include "lib/base/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "lib/base/check.h"
#include "lib/base/hex.h"

namespace tahoma {

Sha256Digest Sha256(std::string_view bytes) {
  Sha256Digest digest = {};
  unsigned size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  TAHOMA_CHECK(done == 1 && size == digest.size());
  return digest;
}

std::string Sha256Hex(std::string_view bytes) {
  const Sha256Digest digest = Sha256(bytes);
  return Hex(std::string(digest.begin(), digest.end()));
}

std::string HmacSha256(std::string_view key, std::string_view message) {
  Sha256Digest digest = {};
  unsigned size = 0;
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(message.data()),
                                   message.size(), digest.data(), &size);
  TAHOMA_CHECK(made != nullptr && size == digest.size());
  return std::string(digest.begin(), digest.end());
}

}  // namespace tahoma
