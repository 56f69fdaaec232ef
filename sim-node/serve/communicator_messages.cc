#include "sim-node/serve/communicator_messages.h"

#include <limits>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/torus/box.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

using wire::Fields;

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxIdBytes = kMaxFullCommIdBytes;
// A group's key is the communicator's id and a digest.
constexpr std::size_t kMaxKeyBytes = 4096;
constexpr std::size_t kMaxNameBytes = 253;
constexpr std::size_t kMaxReasonBytes = 4096;
constexpr int kMaxRanksPerChip = 8;
// Of a layer, or of a packet.
constexpr VirtualDuration kMaxEfaLatency = std::chrono::seconds(1);
constexpr int kMaxOversubscriptionPermille = 1'000'000;
// Of one unit, and of all units of a gang.
constexpr std::size_t kNodes = hw::kUltraServerNodes;
constexpr std::int64_t kMaxGangNodes = std::int64_t{kNodes} * kMaxWorldSize;

wire::Request Encoded(std::string_view method, const Json& params) {
  // A reason or an id may quote what a user sent, which need not be UTF-8.
  return {.method = std::string(method),
          .params = params.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

VirtualTime TimeOf(std::int64_t picoseconds) { return VirtualTime(VirtualDuration(picoseconds)); }
std::int64_t PicosecondsOf(VirtualTime time) { return time.time_since_epoch().count(); }

Json LinksJson(const NodeLinks& view) {
  Json links = Json::array();
  for (const LinkState& state : view.unhealthy) {
    Json link = {{"link", state.link}, {"permille", state.permille}};
    if (state.loss_ppm != 0) link["lossPpm"] = state.loss_ppm;
    if (state.flapping != Flapping{}) {
      link["flapPeriodPs"] = state.flapping.period.count();
      link["flapDownPs"] = state.flapping.down.count();
    }
    links.push_back(std::move(link));
  }
  Json json = {{"node", view.node}, {"epoch", view.epoch}, {"links", std::move(links)}};
  for (const torus::ChipIndex chip : view.dead) json["dead"].push_back(chip.value());
  for (const torus::ChipIndex chip : view.efa_down) json["efaDown"].push_back(chip.value());
  return json;
}

// Chips of a torus with so many links.
std::vector<torus::ChipIndex> ReadChips(Fields& fields, std::string_view key, LinkId links) {
  const std::int64_t chips = static_cast<std::int64_t>(links / kPorts);
  std::vector<torus::ChipIndex> read;
  for (const Json& item : fields.Array(key, static_cast<std::size_t>(chips))) {
    if (!item.is_number_integer() || item < 0 || item >= chips) {
      fields.Fail(InvalidArgument("{} must hold chips from 0 to {}", fields.Path(key), chips - 1));
      return {};
    }
    read.emplace_back(item.get<int>());
  }
  return read;
}

NodeLinks ReadLinks(Fields& fields, LinkId links) {
  NodeLinks view;
  view.node = static_cast<int>(fields.Int("node", 0, kMaxGangNodes - 1));
  view.epoch = static_cast<std::uint64_t>(fields.Int("epoch", 0, kMaxInt));
  for (const Json& item : fields.Array("links", links)) {
    Fields link(item, fields.Path("links"));
    view.unhealthy.push_back(
        {.link = static_cast<LinkId>(link.Int("link", 0, static_cast<std::int64_t>(links) - 1)),
         .permille = static_cast<std::uint16_t>(link.Int("permille", 0, 1000)),
         .loss_ppm = static_cast<std::uint32_t>(link.IntOr("lossPpm", 0, kMaxLossPpm, 0)),
         .flapping = {
             .period = VirtualDuration(link.IntOr("flapPeriodPs", 0, kMaxFlapPeriod.count(), 0)),
             .down = VirtualDuration(link.IntOr("flapDownPs", 0, kMaxFlapPeriod.count(), 0))}});
    fields.Fail(CheckFlapping(view.unhealthy.back().flapping));
    fields.Fail(link.status());
  }
  view.dead = ReadChips(fields, "dead", links);
  view.efa_down = ReadChips(fields, "efaDown", links);
  return view;
}

Json EfaJson(const EfaTiming& efa) {
  return {{"packetPs", efa.packet.count()},
          {"layerPs", efa.layer.count()},
          {"oversubscriptionPermille", efa.oversubscription_permille}};
}

EfaTiming ReadEfa(const Json& json, Fields& place) {
  Fields fields(json, place.Path("efa"));
  EfaTiming efa;
  efa.packet = VirtualDuration(fields.Int("packetPs", 0, kMaxEfaLatency.count()));
  efa.layer = VirtualDuration(fields.Int("layerPs", 0, kMaxEfaLatency.count()));
  const Json& layers = fields.Array("oversubscriptionPermille", kNetworkLayers);
  for (std::size_t i = 0; i < kNetworkLayers; ++i) {
    const bool right = i < layers.size() && layers[i].is_number_integer() && layers[i] >= 1 &&
                       layers[i] <= kMaxOversubscriptionPermille;
    if (!right) {
      fields.Fail(InvalidArgument("{} must hold {} whole numbers from 1 to {}",
                                  fields.Path("oversubscriptionPermille"), kNetworkLayers,
                                  kMaxOversubscriptionPermille));
      break;
    }
    efa.oversubscription_permille.at(i) = layers[i].get<std::uint32_t>();
  }
  place.Fail(fields.status());
  return efa;
}

NodePlace ReadPlace(const Json& json, Fields& message) {
  Fields fields(json, message.Path("place"));
  NodePlace place;
  place.name = fields.String("nodeName", 0, kMaxNameBytes);
  place.ultra_server = fields.String("ultraServer", 0, kMaxNameBytes);
  place.node_id = static_cast<int>(fields.Int("nodeId", 0, kNodes - 1));
  place.instance_type = fields.String("instanceType", 0, kMaxNameBytes);
  for (const Json& layer : fields.Array("networkLayers", kNetworkLayers)) {
    if (!layer.is_string() || layer.get_ref<const std::string&>().size() > kMaxNameBytes) {
      fields.Fail(InvalidArgument("{} must hold names of at most {} bytes",
                                  fields.Path("networkLayers"), kMaxNameBytes));
      break;
    }
    place.network_layers.push_back(layer.get<std::string>());
  }
  // Of a node that does not know of it, the defaults: it cannot have others.
  if (const Json* efa = fields.Object("efa")) place.efa = ReadEfa(*efa, fields);
  message.Fail(fields.status());
  return place;
}

Json ParamsOf(const Opening& opening) {
  Json views = Json::array();
  for (const NodeLinks& view : opening.views) views.push_back(LinksJson(view));
  return {{"kind", "opening"},
          {"operation", opening.operation},
          {"spec", opening.spec},
          {"readyPs", PicosecondsOf(opening.ready)},
          {"views", std::move(views)}};
}
Json ParamsOf(const Chunk& chunk) {
  return {{"kind", "chunk"},
          {"operation", chunk.operation},
          {"step", chunk.step},
          {"departurePs", PicosecondsOf(chunk.departure)},
          {"arrivalPs", PicosecondsOf(chunk.arrival)}};
}
Json ParamsOf(const Closing& closing) {
  return {{"kind", "closing"},
          {"operation", closing.operation},
          {"wrongElements", closing.wrong_elements}};
}

Opening ReadOpening(Fields& fields, LinkId links) {
  Opening opening;
  opening.spec = fields.String("spec", 0, kMaxReasonBytes);
  opening.ready = TimeOf(fields.Int("readyPs", 0, PicosecondsOf(kLastTime)));
  for (const Json& item : fields.Array("views", kNodes)) {
    Fields view(item, fields.Path("views"));
    opening.views.push_back(ReadLinks(view, links));
    fields.Fail(view.status());
  }
  return opening;
}

PeerMessage ReadMessage(Fields& fields, std::string payload, LinkId links) {
  const std::string kind = fields.String("kind", 1, 16);
  const auto operation = static_cast<std::uint64_t>(fields.Int("operation", 0, kMaxInt));
  if (kind == "opening") {
    Opening opening = ReadOpening(fields, links);
    opening.operation = operation;
    return opening;
  }
  if (kind == "chunk") {
    return Chunk{.operation = operation,
                 .step = static_cast<std::uint32_t>(
                     fields.Int("step", 0, std::numeric_limits<std::uint32_t>::max())),
                 .departure = TimeOf(fields.Int("departurePs", 0, kMaxInt)),
                 .arrival = TimeOf(fields.Int("arrivalPs", 0, kMaxInt)),
                 .payload = std::move(payload)};
  }
  if (kind != "closing") fields.Fail(InvalidArgument("unknown kind of data \"{}\"", kind));
  return Closing{
      .operation = operation,
      .wrong_elements = static_cast<std::uint64_t>(fields.IntOr("wrongElements", 0, kMaxInt, 0))};
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
  Json chips = Json::array();
  for (const Member& member : joiner.members) {
    chips.push_back({{"chip", member.chip.value()}, {"ranks", member.ranks}});
  }
  const NodePlace& place = joiner.place;
  return Encoded(kJoinMethod, {{"commId", comm_id},
                               {"rank", rank},
                               {"number", joiner.number},
                               {"worldSize", joiner.world_size},
                               {"chips", std::move(chips)},
                               {"place",
                                {{"nodeName", place.name},
                                 {"ultraServer", place.ultra_server},
                                 {"nodeId", place.node_id},
                                 {"instanceType", place.instance_type},
                                 {"networkLayers", place.network_layers},
                                 {"efa", EfaJson(place.efa)}}}});
}

absl::StatusOr<JoinMessage> DecodeJoin(const wire::Request& message) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ParseJson(message.params, kJoinMethod));
  Fields fields(json, std::string(kJoinMethod));
  JoinMessage join;
  join.comm_id = fields.String("commId", 1, kMaxIdBytes);
  join.rank = static_cast<int>(fields.Int("rank", 0, kMaxWorldSize - 1));
  join.joiner.number = static_cast<std::uint64_t>(fields.Int("number", 1, kMaxInt));
  join.joiner.world_size = static_cast<int>(fields.Int("worldSize", 1, kMaxWorldSize));
  for (const Json& item : fields.Array("chips", Fabric::kChipsPerUnit)) {
    Fields chip(item, fields.Path("chips"));
    const auto index = static_cast<int>(chip.Int("chip", 0, Fabric::kChipsPerUnit - 1));
    const auto ranks = static_cast<int>(chip.Int("ranks", 1, kMaxRanksPerChip));
    join.joiner.members.push_back({.chip = torus::ChipIndex(index), .ranks = ranks});
    fields.Fail(chip.status());
  }
  if (const Json* place = fields.Object("place")) {
    join.joiner.place = ReadPlace(*place, fields);
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return join;
}

wire::Request EncodeLeave(const LeaveMessage& leave) {
  Json params = {{"commId", leave.comm_id},
                 {"rank", leave.rank},
                 {"number", leave.number},
                 {"reason", leave.reason.substr(0, kMaxReasonBytes / 4)}};
  if (leave.refused) params["refused"] = true;
  return Encoded(kLeaveMethod, params);
}

absl::StatusOr<LeaveMessage> DecodeLeave(const wire::Request& message) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ParseJson(message.params, kLeaveMethod));
  Fields fields(json, std::string(kLeaveMethod));
  LeaveMessage leave;
  leave.comm_id = fields.String("commId", 1, kMaxIdBytes);
  leave.rank = static_cast<int>(fields.Int("rank", 0, kMaxWorldSize - 1));
  leave.number = static_cast<std::uint64_t>(fields.Int("number", 1, kMaxInt));
  leave.reason = fields.StringOr("reason", kMaxReasonBytes, "");
  leave.refused = fields.BoolOr("refused", false);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return leave;
}

wire::Request EncodeLinks(const NodeLinks& view) { return Encoded(kLinksMethod, LinksJson(view)); }

absl::StatusOr<NodeLinks> DecodeLinks(const wire::Request& message, LinkId links) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ParseJson(message.params, kLinksMethod));
  Fields fields(json, std::string(kLinksMethod));
  NodeLinks view = ReadLinks(fields, links);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return view;
}

wire::Request EncodeData(const std::string& group, int from, int to, PeerMessage message) {
  Json params = std::visit([](const auto& content) { return ParamsOf(content); }, message);
  params["group"] = group;
  params["from"] = from;
  params["to"] = to;
  wire::Request request = Encoded(kDataMethod, params);
  if (auto* chunk = std::get_if<Chunk>(&message)) request.payload = std::move(chunk->payload);
  return request;
}

absl::StatusOr<DataMessage> DecodeData(wire::Request message, LinkId links) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ParseJson(message.params, kDataMethod));
  Fields fields(json, std::string(kDataMethod));
  DataMessage data;
  data.group = fields.String("group", 1, kMaxKeyBytes);
  data.from = static_cast<int>(fields.Int("from", 0, kMaxWorldSize - 1));
  data.to = static_cast<int>(fields.Int("to", 0, kMaxWorldSize - 1));
  data.message = ReadMessage(fields, std::move(message.payload), links);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return data;
}

}  // namespace tahoma::sim
