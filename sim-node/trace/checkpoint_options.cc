#include "sim-node/trace/checkpoint_options.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "lib/base/status.h"
#include "lib/hw/catalogue.h"

namespace tahoma::sim {
namespace {

// Virtual time holds 106 days.
constexpr int kDaysMost = 100;

double Seconds(VirtualDuration time) { return Nanoseconds(time) / 1e9; }
double Gigabytes(std::uint64_t rate) { return static_cast<double>(rate) / 1e9; }

std::string Limit(const StorageSystem& system, std::uint64_t total, std::uint64_t nodes,
                  std::uint64_t nic) {
  const std::uint64_t share = total / nodes;
  if (share <= std::min(nic, system.client_rate)) return "the storage system";
  return nic <= system.client_rate ? "each node's network" : "what one client may use";
}

}  // namespace

config::Spec DeclareCheckpointOptions(CheckpointOptions& options) {
  config::Spec spec({.program = "trn-checkpoint",
                     .kind = "CheckpointConfig",
                     .summary = "Tells how long nodes take to write or read a checkpoint on a "
                                "storage system that they share."});
  spec.String("access", &options.access, "write or read");
  spec.Int("nodes", &options.nodes, {.min = 1, .max = 65'536}, "that write or read at once");
  spec.String("instanceType", &options.instance_type, "of the nodes, of the catalogue");
  spec.Int("bytesPerChip", &options.bytes_per_chip, {.min = 1, .max = std::int64_t{1} << 40},
           "of the checkpoint, on each chip of each node");
  spec.Int("tebibytes", &options.tebibytes, {.min = 1, .max = 100'000},
           "capacity of the file system (FSx for Lustre, 1,000 MB/s for each)");
  spec.Duration("stagger", &options.stagger, {.max = std::chrono::hours(1)},
                "how much later than the one before it each node begins");
  return spec;
}

absl::StatusOr<CheckpointCost> CostOf(const CheckpointOptions& options) {
  const hw::InstanceType* type = hw::FindInstanceType(options.instance_type);
  if (type == nullptr) {
    return InvalidArgument("instanceType \"{}\" is unknown; known are {}", options.instance_type,
                           hw::InstanceTypeNames());
  }
  if (options.access != "write" && options.access != "read") {
    return InvalidArgument("access is \"{}\"; expected write or read", options.access);
  }
  const auto chips = static_cast<std::uint64_t>(type->chip_count());
  const auto nic = static_cast<std::uint64_t>(type->chip->links.efa) * chips;
  if (nic == 0) {
    return InvalidArgument("instanceType {} has no EFA, over which the storage is reached here",
                           type->name);
  }
  const bool write = options.access == "write";
  const StorageSystem system = StorageOf(static_cast<std::uint64_t>(options.tebibytes));
  const std::uint64_t total = write ? system.write_rate : system.read_rate;
  const auto nodes = static_cast<std::uint64_t>(options.nodes);
  const std::uint64_t bytes = chips * static_cast<std::uint64_t>(options.bytes_per_chip);
  const double days =
      (static_cast<double>(bytes) * static_cast<double>(nodes) /
           static_cast<double>(std::min(total, nic)) +
       std::chrono::duration<double>(options.stagger).count() * static_cast<double>(nodes)) /
      (24 * 3600);
  if (days > kDaysMost) {
    return InvalidArgument(
        "{} nodes take up to {:.0f} days; expected at most {}: fewer nodes or bytesPerChip, less "
        "stagger, or more tebibytes",
        nodes, days, kDaysMost);
  }
  std::vector<StorageClient> clients(nodes, {.bytes = bytes, .nic_rate = nic});
  for (std::size_t i = 0; i < clients.size(); ++i) {
    clients[i].start += options.stagger * static_cast<std::int64_t>(i);
  }
  const auto done =
      StorageTimes(system, write ? StorageAccess::kWrite : StorageAccess::kRead, clients);
  CheckpointCost cost;
  cost.first = done[0] - clients[0].start;
  cost.all = *std::max_element(done.begin(), done.end()) - VirtualTime{};
  cost.bound = std::max(TransferTime(bytes * nodes, total),
                        TransferTime(bytes, std::min(nic, system.client_rate)));
  cost.text = fmt::format(
      "{} node{} ({}) {} {} bytes each: {:.3f} TB\n"
      "the storage carries {:.1f} GB/s, one client {:.1f} GB/s, a node's network {:.1f} GB/s\n"
      "the first node is done after {:.3f} s, all after {:.3f} s: {:.1f} GB/s together\n"
      "at best it takes {:.3f} s; the limit is {}\n",
      nodes, nodes == 1 ? "" : "s", type->name, options.access, bytes,
      static_cast<double>(bytes * nodes) / 1e12, Gigabytes(total), Gigabytes(system.client_rate),
      Gigabytes(nic), Seconds(cost.first), Seconds(cost.all),
      static_cast<double>(bytes * nodes) / 1e9 / Seconds(cost.all), Seconds(cost.bound),
      Limit(system, total, nodes, nic));
  return cost;
}

}  // namespace tahoma::sim
