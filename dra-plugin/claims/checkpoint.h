// The plugin's durable memory of prepared claims; docs/formats/checkpoint.md.
//
//   Checkpoint checkpoint = *DecodeCheckpoint(bytes);
//   checkpoint.claims.emplace(uid, prepared);
//   files.Write(kCheckpointFile, EncodeCheckpoint(checkpoint));
//
// Scope: the text. claims.h reads and writes the file.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/wire/messages.h"

namespace tahoma::dra {

inline constexpr std::string_view kCheckpointFile = "claims.json";
inline constexpr int kCheckpointVersion = 1;

// A device as told to the kubelet.
struct PreparedDevice {
  std::string request = {};  // without subrequest
  std::string pool = {};
  std::string device = {};

  bool operator==(const PreparedDevice&) const = default;
};

struct PreparedClaim {
  wire::ClaimGrant grant = {};
  std::string token = {};
  int cores_per_chip = wire::kCoresPerChip;  // physical, of the node's chips
  std::string workload_socket = {};          // address of sim-node for the claim's containers
  std::string ultra_server_id = {};          // with grant.ultra_server_mode
  int ultra_server_node_id = 0;
  // Time when the Capacity Block takes the hardware back, in milliseconds since 1970; 0: no block.
  std::int64_t reclaim_timestamp = 0;
  std::vector<PreparedDevice> devices = {};
  // The machine's boot at the prepare; containers of another boot run no more.
  std::string boot_id = {};

  bool operator==(const PreparedClaim&) const = default;
};

struct Checkpoint {
  std::map<std::string, PreparedClaim> claims = {};  // by uid

  bool operator==(const Checkpoint&) const = default;
};

std::string EncodeCheckpoint(const Checkpoint& checkpoint);

// kDataLoss names the damage: cut short, changed (checksum), or of another version.
absl::StatusOr<Checkpoint> DecodeCheckpoint(std::string_view bytes);

}  // namespace tahoma::dra
