// The files that AWS's driver shows of a node's chips in /sys, as text, and a folder that keeps
// them up to date for containers.
//
//   DriverFolder folder(pods_dir + "/sysfs", live, counters, warn);
//   folder.ShowAll();                  // devices/neuron0/core_count: "8", ...
//   folder.ShowChip(3);                // after a program ended on the chip
//
// Beneath the folder, devices/ is what a container sees as /sys/devices/virtual/neuron_device, and
// class/ what it sees as /sys/class/neuron_device. The paths and formats are those of the driver
// (aws-neuron-sdk tools/neuron-sys-tools/neuron-sysfs-user-guide.rst, aws-neuron-driver
// neuron_sysfs_metrics.c and neuron_cdev.c). Of its counters the folder has those that the emulator
// counts: how programs ended, their time and operations, and uncorrectable errors. Memory and power
// are not shown: power/utilization says NO_DATA.
//
// A core without a program so far is a link to one folder of zeros for all of them.
//
// Scope: Trainium2; of other chips the folder stays empty. A write does not clear a counter.
//
// Thread safety: the functions are pure. The members of DriverFolder may be called from any thread.

#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/files.h"
#include "lib/base/mutex.h"
#include "lib/torus/shape.h"
#include "sim-node/node/instance.h"
#include "sim-node/serve/core_counters.h"
#include "sim-node/serve/live_instance.h"

namespace tahoma::sim {

using DriverFiles = std::map<std::string, std::string>;  // contents by path

// Returns the files of a chip, by path beneath devices/neuronN, without those of its cores.
DriverFiles ChipFilesOf(const Instance& instance, int chip);
// Returns the files of a physical core, by path beneath neuron_coreK. Programs that the hardware
// ended count under the status of the chip's fault, or under hw_error when the chip has none now.
DriverFiles CoreFilesOf(const CoreCounts& counts, const std::optional<ChipFault>& fault);
// Returns the neighbours as the driver lists them, "12, 1, 3, 4\n": in the order of the chip's four
// serial engines, which is another one than that of neuron-ls. "\n" for fewer than 16 chips.
std::string ConnectedDevicesInSysfs(const Instance& instance, int chip);

class DriverFolder {
 public:
  // The references must outlive the object. `warn` is told of each file that cannot be written.
  DriverFolder(std::string folder, const LiveInstance& live, const CoreCounters& counters,
               Warn warn)
      : folder_(std::move(folder)), live_(live), counters_(counters), warn_(std::move(warn)) {}

  void ShowAll();
  void ShowChip(int chip);

 private:
  void Write(const std::string& base, const DriverFiles& files)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Link(const std::string& path, const std::string& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Show(const std::string& path, const std::string& what,
            const std::function<void(const std::filesystem::path& next)>& make)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const LiveInstance& live_;
  const CoreCounters& counters_;
  const Warn warn_;
  Mutex mutex_;
  DriverFiles shown_ ABSL_GUARDED_BY(mutex_);  // by path beneath the folder
};

}  // namespace tahoma::sim
