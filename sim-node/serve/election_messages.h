// The messages between sim-nodes about UltraServer elections, as requests of lib/wire.
//
// Scope: bytes and bounds; docs/formats/wire.md describes every field, node/election.h gives them
// their meaning. The decoder takes untrusted text and refuses it with kInvalidArgument.

#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "lib/wire/call.h"
#include "sim-node/node/election.h"

namespace tahoma::sim {

inline constexpr std::string_view kElectionMethod = "peerElection";

wire::Request EncodeNotice(const Notice& notice);
absl::StatusOr<Notice> DecodeNotice(const wire::Request& message);

}  // namespace tahoma::sim
