#include "lib/base/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "lib/base/check.h"

namespace tahoma {

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  TAHOMA_CHECK(done == 1);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace tahoma
