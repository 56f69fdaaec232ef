// A storage system that many nodes share, for checkpoints: the rate of each node, and when it is
// done.
//
//   StorageSystem lustre = StorageOf(/*tebibytes=*/100);         // 100 GB/s to its disks
//   const std::vector<StorageClient> clients = {{.bytes = 1 << 30, .nic_rate = nic}};
//   auto done = StorageTimes(lustre, StorageAccess::kWrite, clients);
//   done[0];                                                     // virtual time of node 0's end
//
// A node sends no faster than its network interface nor than one client of the file system may; all
// of them together no faster than the system. Rates are max-min fair and are worked out again when
// a node begins or ends: a slow node takes what it can, the others share the rest evenly. The first
// byte takes the latency; a node without bytes pays it, too. Times are exact, in whole picoseconds.
//
// Scope: one file system with one rate in each direction. Files, stripes, metadata, caches, credits
// for bursts and the effect on other traffic of the fabric are not modelled.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

// The rates of a storage system for all nodes together and for one node (`client_rate`), in bytes
// per second; at least 1 for each node.
struct StorageSystem {
  std::uint64_t read_rate = 0;
  std::uint64_t write_rate = 0;
  std::uint64_t client_rate = 0;
  VirtualDuration latency{};  // of the first byte
};

// FSx for Lustre, deployment type PERSISTENT-1000: disks of 1,000 MB/s for each TiB of capacity
// (FSx for Lustre user guide, "Performance characteristics of SSD and HDD storage classes"). The
// guide calls its latency "sub-ms"; half of one is the project's own. A client has up to 700 Gb/s
// with EFA (the same guide, "Throughput to individual client instances").
StorageSystem StorageOf(std::uint64_t tebibytes);

enum class StorageAccess : std::uint8_t { kRead, kWrite };

struct StorageClient {
  std::uint64_t bytes = 0;
  std::uint64_t nic_rate = 0;  // bytes per second of the node's interface, above 0
  VirtualTime start{};
};

// Returns when each client's last byte has arrived, in the order of the clients.
std::vector<VirtualTime> StorageTimes(const StorageSystem& system, StorageAccess access,
                                      std::span<const StorageClient> clients);

}  // namespace tahoma::sim
