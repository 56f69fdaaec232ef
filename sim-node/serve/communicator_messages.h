// The messages between sim-nodes about communicators, as requests of lib/wire.
//
// Scope: bytes and bounds; docs/formats/wire.md describes every field, communicator.h gives them
// their meaning. Decoders take untrusted text and refuse it with kInvalidArgument.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/torus/shape.h"
#include "lib/wire/call.h"
#include "sim-node/participants/participant.h"
#include "sim-node/serve/communicator.h"

namespace tahoma::sim {

inline constexpr std::string_view kJoinMethod = "peerJoin";
inline constexpr std::string_view kLeaveMethod = "peerLeave";
inline constexpr std::string_view kLinksMethod = "peerLinks";
inline constexpr std::string_view kDataMethod = "peerData";

struct JoinMessage {
  std::string comm_id;
  int rank = 0;
  Joiner joiner;  // `node` is not sent (the receiver knows the sender); `place` may be absent
};
wire::Request EncodeJoin(const std::string& comm_id, int rank, const Joiner& joiner);
absl::StatusOr<JoinMessage> DecodeJoin(const wire::Request& message);

struct LeaveMessage {
  std::string comm_id;
  int rank = 0;
  std::uint64_t number = 0;
  std::string reason;
  bool refused = false;  // the ranks that have joined can never form a group
};
wire::Request EncodeLeave(const LeaveMessage& leave);
absl::StatusOr<LeaveMessage> DecodeLeave(const wire::Request& message);

wire::Request EncodeLinks(const NodeLinks& view);
// `links` is one more than the highest link id that is allowed.
absl::StatusOr<NodeLinks> DecodeLinks(const wire::Request& message, LinkId links);

// The number of link ids in the largest fabric of a gang, which has a domain for each pod.
inline constexpr LinkId kMaxGangLinks = kMaxWorldSize * 1024;

struct DataMessage {
  std::string group;
  int from = 0;
  int to = 0;
  PeerMessage message;
};
wire::Request EncodeData(const std::string& group, int from, int to, PeerMessage message);
absl::StatusOr<DataMessage> DecodeData(wire::Request message, LinkId links);

// Checks a pod's members. kInvalidArgument unless there is at least one chip, all are of this
// torus, none comes twice and each has 1 to 8 ranks.
absl::Status CheckMembers(const std::vector<Member>& members, const torus::Shape& torus);

}  // namespace tahoma::sim
