#include "sim-node/serve/communicator_messages.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include "lib/base/status.h"
#include "lib/hw/catalogue.h"
#include "lib/torus/box.h"
#include "lib/wire/field_list.h"

namespace tahoma::sim {
namespace {

using wire::Fields;

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxIdBytes = kMaxFullCommIdBytes;
// A group's key is the communicator's id followed by its joins or their digest.
constexpr std::size_t kMaxKeyBytes = 4096;
constexpr std::size_t kMaxNameBytes = 253;
constexpr std::size_t kMaxReasonBytes = 4096;
constexpr int kMaxRanksPerChip = 8;
// The longest latency of a network layer or of a packet.
constexpr VirtualDuration kMaxEfaLatency = std::chrono::seconds(1);
constexpr int kMaxOversubscriptionPermille = 1'000'000;
// The most nodes of one domain, and of all domains of a gang.
constexpr std::size_t kNodes = hw::kUltraServerNodes;
constexpr std::int64_t kMaxGangNodes = std::int64_t{kNodes} * kMaxWorldSize;

template <typename Message, typename List>
wire::Request Encoded(std::string_view method, const Message& message, const List& fields_of) {
  return {.method = std::string(method), .params = wire::WriteMessage(message, fields_of)};
}

constexpr auto kLinkFields = [](auto& list, auto& state) {
  list.Int("permille", state.permille, 0, 1000);
  list.Int("lossPpm", state.loss_ppm, 0, kMaxLossPpm, wire::kOptional);
  list.Int("flapPeriodPs", state.flapping.period, 0, kMaxFlapPeriod.count(), wire::kOptional);
  list.Int("flapDownPs", state.flapping.down, 0, kMaxFlapPeriod.count(), wire::kOptional);
  list.Check([&](Fields& fields) { fields.Fail(CheckFlapping(state.flapping)); });
};

// Returns the fields of a node's view of a fabric with `links` directed links.
auto NodeLinksFields(LinkId links) {
  return [links](auto& list, auto& view) {
    const auto last_link = static_cast<std::int64_t>(links) - 1;
    const std::size_t chips = links / kPorts;
    const auto last_chip = static_cast<std::int64_t>(chips) - 1;
    list.Int("node", view.node, 0, kMaxGangNodes - 1);
    list.Int("epoch", view.epoch, 0, kMaxInt);
    list.Objects("links", view.unhealthy, links, [last_link](auto& link, auto& state) {
      link.Int("link", state.link, 0, last_link);
      kLinkFields(link, state);
    });
    list.Ints("dead", view.dead, chips, 0, last_chip);
    list.Ints("efaDown", view.efa_down, chips, 0, last_chip);
  };
}

constexpr auto kEfaFields = [](auto& list, auto& efa) {
  list.Int("packetPs", efa.packet, 0, kMaxEfaLatency.count());
  list.Int("layerPs", efa.layer, 0, kMaxEfaLatency.count());
  list.Ints("oversubscriptionPermille", efa.oversubscription_permille, kNetworkLayers, 1,
            kMaxOversubscriptionPermille);
};

constexpr auto kPlaceFields = [](auto& list, auto& place) {
  list.String("nodeName", place.name, 0, kMaxNameBytes);
  list.String("ultraServer", place.ultra_server, 0, kMaxNameBytes);
  list.Int("nodeId", place.node_id, 0, kNodes - 1);
  list.String("instanceType", place.instance_type, 0, kMaxNameBytes);
  list.Strings("networkLayers", place.network_layers, kNetworkLayers, kMaxNameBytes);
  // An older node does not send this; it has the defaults, since it cannot be configured otherwise.
  list.Object("efa", place.efa, kEfaFields);
};

constexpr auto kMemberFields = [](auto& list, auto& member) {
  list.Int("chip", member.chip, 0, Fabric::kChipsPerDomain - 1);
  list.Int("ranks", member.ranks, 1, kMaxRanksPerChip);
  // An older node does not send this.
  list.Int("banks", member.banks, 1, hw::kHbmBanksMax, wire::kOptional);
};

constexpr auto kRankFields = [](auto& list, auto& of) {
  list.String("commId", of.comm_id, 1, kMaxIdBytes);
  list.Int("rank", of.rank, 0, kMaxWorldSize - 1);
};

constexpr auto kJoinFields = [](auto& list, auto& join) {
  kRankFields(list, join);
  list.Int("number", join.joiner.number, 1, kMaxInt);
  list.Int("worldSize", join.joiner.world_size, 1, kMaxWorldSize);
  list.Objects("chips", join.joiner.members, Fabric::kChipsPerDomain, kMemberFields,
               Member{.chip = torus::ChipIndex(0)});
  list.Object("place", join.joiner.place, kPlaceFields);
};

constexpr auto kLeaveFields = [](auto& list, auto& leave) {
  kRankFields(list, leave);
  list.Int("number", leave.number, 1, kMaxInt);
  list.String("reason", leave.reason, 0, kMaxReasonBytes, wire::kOptional);
  list.Bool("refused", leave.refused, wire::kOptional);
};

// The kinds of data, in the order of PeerMessage's alternatives, and the fields of each, which
// follow "kind". A chunk's bytes are the payload.
constexpr std::array<std::string_view, 3> kKinds = {"opening", "chunk", "closing"};
constexpr auto kOpeningFields = [](auto& list, auto& opening, LinkId links) {
  list.Int("operation", opening.operation, 0, kMaxInt);
  list.String("spec", opening.spec, 0, kMaxReasonBytes);
  list.Int("readyPs", opening.ready, 0, wire::ToInt(kLastTime));
  list.Objects("views", opening.views, kNodes, NodeLinksFields(links));
};
constexpr auto kChunkFields = [](auto& list, auto& chunk) {
  list.Int("operation", chunk.operation, 0, kMaxInt);
  list.Int("step", chunk.step, 0, std::numeric_limits<std::uint32_t>::max());
  list.Int("departurePs", chunk.departure, 0, kMaxInt);
  list.Int("arrivalPs", chunk.arrival, 0, kMaxInt);
};
constexpr auto kClosingFields = [](auto& list, auto& closing) {
  list.Int("operation", closing.operation, 0, kMaxInt);
  list.Int("wrongElements", closing.wrong_elements, 0, kMaxInt, wire::kOptional);
};

// Returns the fields of a data message. `links` is one more than the highest link id.
auto DataFields(LinkId links) {
  return [links](auto& list, auto& data) {
    list.String("group", data.group, 1, kMaxKeyBytes);
    list.Int("from", data.from, 0, kMaxWorldSize - 1);
    list.Int("to", data.to, 0, kMaxWorldSize - 1);
    std::size_t kind = data.message.index();
    list.Name("kind", kind, kKinds);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(data)>>) {
      if (kind == 0) data.message.template emplace<Opening>();
      if (kind == 1) data.message.template emplace<Chunk>();
      if (kind == 2) data.message.template emplace<Closing>();
    }
    if (auto* opening = std::get_if<Opening>(&data.message)) kOpeningFields(list, *opening, links);
    if (auto* chunk = std::get_if<Chunk>(&data.message)) kChunkFields(list, *chunk);
    if (auto* closing = std::get_if<Closing>(&data.message)) kClosingFields(list, *closing);
  };
}

}  // namespace

absl::Status CheckMembers(const std::vector<Member>& members, const torus::Shape& torus) {
  if (members.empty()) return InvalidArgument("a rank needs at least one chip");
  torus::ChipMask seen = 0;
  for (const Member& member : members) {
    if (member.chip.value() >= torus.chip_count() || (seen & MaskOf(member.chip)) != 0) {
      return InvalidArgument("chip {} comes twice or is not in a torus of {}", member.chip.value(),
                             torus.ToString());
    }
    if (member.ranks < 1 || member.ranks > kMaxRanksPerChip) {
      return InvalidArgument("chip {} has {} ranks; expected 1 to {}", member.chip.value(),
                             member.ranks, kMaxRanksPerChip);
    }
    seen |= MaskOf(member.chip);
  }
  return absl::OkStatus();
}

wire::Request EncodeJoin(const std::string& comm_id, int rank, const Joiner& joiner) {
  return Encoded(kJoinMethod, JoinMessage{.comm_id = comm_id, .rank = rank, .joiner = joiner},
                 kJoinFields);
}
absl::StatusOr<JoinMessage> DecodeJoin(const wire::Request& message) {
  return wire::ReadMessage<JoinMessage>(message.params, kJoinMethod, kJoinFields);
}

wire::Request EncodeLeave(const LeaveMessage& leave) {
  LeaveMessage bounded = leave;
  bounded.reason.resize(std::min(bounded.reason.size(), kMaxReasonBytes / 4));
  return Encoded(kLeaveMethod, bounded, kLeaveFields);
}
absl::StatusOr<LeaveMessage> DecodeLeave(const wire::Request& message) {
  return wire::ReadMessage<LeaveMessage>(message.params, kLeaveMethod, kLeaveFields);
}

wire::Request EncodeLinks(const NodeLinks& view) {
  return Encoded(kLinksMethod, view, NodeLinksFields(kMaxGangLinks));
}
absl::StatusOr<NodeLinks> DecodeLinks(const wire::Request& message, LinkId links) {
  return wire::ReadMessage<NodeLinks>(message.params, kLinksMethod, NodeLinksFields(links));
}

wire::Request EncodeData(const std::string& group, int from, int to, PeerMessage message) {
  DataMessage data{.group = group, .from = from, .to = to, .message = std::move(message)};
  wire::Request request = Encoded(kDataMethod, data, DataFields(kMaxGangLinks));
  if (auto* chunk = std::get_if<Chunk>(&data.message)) request.payload = std::move(chunk->payload);
  return request;
}
absl::StatusOr<DataMessage> DecodeData(wire::Request message, LinkId links) {
  TAHOMA_ASSIGN_OR_RETURN(DataMessage data, wire::ReadMessage<DataMessage>(
                                                message.params, kDataMethod, DataFields(links)));
  if (auto* chunk = std::get_if<Chunk>(&data.message)) chunk->payload = std::move(message.payload);
  return data;
}

}  // namespace tahoma::sim
