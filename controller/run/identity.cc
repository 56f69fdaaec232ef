#include "controller/run/identity.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

std::string LeaseIdentity(const std::string& data_dir) {
  const std::string boot = BootId();
  struct stat lock {};
  if (boot.empty() || ::stat((data_dir + "/LOCK").c_str(), &lock) != 0) {
    Rng rng(SeedFromMachine());
    return fmt::format("{}_{}", HostName(), NewUuid(rng));
  }
  return fmt::format("{}_{}_{:x}-{:x}", HostName(), boot, lock.st_dev, lock.st_ino);
}

}  // namespace tahoma::controller
