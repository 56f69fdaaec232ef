#include "dra-plugin/kubelet/socket_names.h"

#include <absl/strings/escaping.h>

#include <vector>

#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/wire/socket.h"

namespace tahoma::dra {
namespace {

// base64url without padding (RFC 4648, 5) of the first `bytes` bytes of the text's SHA-256.
std::string HashName(std::string_view text, std::size_t bytes) {
  const Sha256Digest digest = Sha256(text);
  const std::string start(digest.begin(), digest.begin() + static_cast<std::ptrdiff_t>(bytes));
  std::string out;
  absl::WebSafeBase64Escape({start.data(), start.size()}, &out);
  return out;
}

}  // namespace

absl::StatusOr<std::string> RegistrationSocket(std::string_view registry_dir,
                                               std::string_view driver, std::string_view pod_uid) {
  std::vector<std::string> names;
  if (pod_uid.empty()) {
    names = {fmt::format("{}-reg.sock", driver)};
  } else {
    std::string both(driver);
    both += '\0';
    both += pod_uid;
    names = {fmt::format("{}-{}-reg.sock", driver, pod_uid),
             fmt::format("{}-{}-reg.sock", driver, HashName(pod_uid, 8)),
             fmt::format("dra-{}-reg.sock", HashName(both, 16))};
  }
  for (const std::string& name : names) {
    std::string path = fmt::format("{}/{}", registry_dir, name);
    if (path.size() <= wire::kMaxUnixPathBytes) return path;
  }
  return InvalidArgument(
      "registryDir \"{}\" is too long: with {} it exceeds the {} bytes of a unix "
      "socket's path",
      registry_dir, names.back(), wire::kMaxUnixPathBytes);
}

absl::StatusOr<std::string> DriverSocket(std::string_view data_dir, std::string_view pod_uid) {
  std::string path = pod_uid.empty() ? fmt::format("{}/dra.sock", data_dir)
                                     : fmt::format("{}/dra-{}.sock", data_dir, pod_uid);
  if (path.size() <= wire::kMaxUnixPathBytes) return path;
  return InvalidArgument("pluginDir is too long: {} exceeds the {} bytes of a unix socket's path",
                         path, wire::kMaxUnixPathBytes);
}

}  // namespace tahoma::dra
