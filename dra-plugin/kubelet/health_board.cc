#include "dra-plugin/kubelet/health_board.h"

#include <utility>

namespace tahoma::dra {

std::vector<DeviceHealth> HealthOf(const DevicePool& pool, const std::string& pool_name) {
  std::vector<DeviceHealth> out;
  for (const std::vector<Device>& group : pool.groups) {
    for (const Device& device : group) {
      const std::string_view reason = UnhealthyReason(device);
      out.push_back({.pool = pool_name,
                     .device = device.name,
                     .healthy = reason.empty(),
                     .message = std::string(reason)});
    }
  }
  return out;
}

void HealthBoard::Set(std::vector<DeviceHealth> devices) {
  {
    const MutexLock lock(mutex_);
    if (*current_.devices == devices) return;
    ++current_.version;
    current_.devices = std::make_shared<const std::vector<DeviceHealth>>(std::move(devices));
  }
  changed_.NotifyAll();
}

std::optional<HealthBoard::Snapshot> HealthBoard::Wait(std::uint64_t seen,
                                                       std::chrono::milliseconds timeout) {
  const auto deadline = CondVar::In(timeout);
  const MutexLock lock(mutex_);
  while (!closed_ && current_.version == seen && changed_.WaitUntil(mutex_, deadline)) {
  }
  if (closed_) return std::nullopt;
  return current_;
}

void HealthBoard::Close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.NotifyAll();
}

}  // namespace tahoma::dra
