// The health of every published device, for the kubelet's streams.
//
//   board.Set(HealthOf(pool, "node-a"));
//   std::optional<HealthBoard::Snapshot> now = board.Wait(seen, 10s);   // nullopt after Close
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dra-plugin/inventory/pool.h"
#include "lib/base/mutex.h"

namespace tahoma::dra {

struct DeviceHealth {
  std::string pool;
  std::string device;
  bool healthy = true;
  std::string message = {};  // why it is not

  bool operator==(const DeviceHealth&) const = default;
};

// A device is unhealthy when it carries the taint for it.
std::vector<DeviceHealth> HealthOf(const DevicePool& pool, const std::string& pool_name);

class HealthBoard {
 public:
  struct Snapshot {
    std::uint64_t version = 0;
    std::shared_ptr<const std::vector<DeviceHealth>> devices;
  };

  void Set(std::vector<DeviceHealth> devices);

  // Waits until the version differs from `seen` or the time is over; nullopt once closed.
  std::optional<Snapshot> Wait(std::uint64_t seen, std::chrono::milliseconds timeout);

  // Ends every Wait, now and later.
  void Close();

 private:
  Mutex mutex_;
  CondVar changed_;
  Snapshot current_ ABSL_GUARDED_BY(mutex_){0, std::make_shared<const std::vector<DeviceHealth>>()};
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma::dra
