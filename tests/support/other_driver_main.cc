// A DRA driver whose devices need nothing: other-driver DRIVER REGISTRY_DIR DATA_DIR. It registers
// with a node's kubelet and says of each claim that the claim is prepared. It ends when its data
// folder is removed.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "dra-plugin/kubelet/kubelet_server.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"

namespace tahoma::dra {
namespace {

class NothingToDo final : public DriverCalls {
 public:
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimRef&) override {
    return std::vector<PreparedDevice>();
  }
  absl::Status Unprepare(const ClaimRef&) override { return absl::OkStatus(); }
};

int Run(const std::string& driver, const std::string& registry, const std::string& data) {
  NothingToDo calls;
  CallLock lock(data + "/lock");
  HealthBoard board;
  const SystemClock clock;
  KubeletOptions options;
  options.driver = driver;
  options.registry_dir = registry;
  options.data_dir = data;
  const auto server = KubeletServer::Start(std::move(options), calls, lock, board, clock);
  if (!server.ok()) {
    fmt::print(stderr, "other-driver: {}\n", Message(server.status()));
    return 1;
  }
  while (std::filesystem::exists(data)) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  (*server)->Stop();
  return 0;
}

}  // namespace
}  // namespace tahoma::dra

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: other-driver DRIVER REGISTRY_DIR DATA_DIR\n", stderr);
    return 2;
  }
  return tahoma::dra::Run(argv[1], argv[2], argv[3]);
}
