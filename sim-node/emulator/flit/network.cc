#include "sim-node/emulator/flit/network.h"

#include <algorithm>
#include <bit>

#include "lib/base/check.h"
#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Coord;
using torus::Direction;

constexpr std::uint64_t BitOf(int index) {
  return std::uint64_t{1} << static_cast<unsigned>(index);
}

constexpr std::uint8_t AxisBit(Axis axis) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(axis));
}

// Calls `visit` with each bit of the word, in ascending order.
template <typename Visit>
void ForEachBit(std::uint64_t word, Visit visit) {
  for (; word != 0; word &= word - 1) visit(std::countr_zero(word));
}

std::size_t Index(int value) { return static_cast<std::size_t>(value); }

}  // namespace

FlitNetwork::FlitNetwork(const torus::Shape& torus, const FlitConfig& config, std::uint64_t seed)
    : torus_(torus), config_(config), rng_(seed) {
  TAHOMA_CHECK(torus.chip_count() <= 64);
  TAHOMA_CHECK_OK(config.Validate());
  const std::size_t chips = Index(torus.chip_count());
  const int ports = kLinkPorts + config.local_ports();
  routers_.resize(chips);
  for (Router& router : routers_) {
    for (Output& output : router.outputs) {
      output.free_vcs = static_cast<std::uint8_t>(BitOf(config.vcs) - 1);
      output.credits.fill(config.buffer_flits);
    }
  }
  flits_.resize(chips * Index(ports * config.vcs * config.buffer_flits));
  sources_.resize(chips * Index(config.local_ports()));
  for (Source& source : sources_) source.credits.fill(config.buffer_flits);
  const int period = *std::max_element(config.link_period.begin(), config.link_period.end());
  moments_.resize(Index(config.crossbar_cycles +
                        std::max(config.link_cycles + period, config.local_cycles + 1)));
  for (int chip = 0; chip < torus.chip_count(); ++chip) {
    coords_.push_back(torus.CoordOf(ChipIndex(chip)));
    neighbours_.emplace_back();
    for (const Axis axis : torus::kAxes) {
      for (const Direction direction : torus::kDirections) {
        const auto to = torus.Neighbour(coords_.back(), axis, direction);
        const int there = to ? torus.IndexOf(*to).value() : chip;
        neighbours_.back()[TorusLinks::IdOf(ChipIndex(0), axis, direction)] =
            static_cast<std::uint8_t>(there);
      }
    }
  }
  carried_.assign(chips * kLinkPorts, 0);
}

FlitNetwork::Flit& FlitNetwork::Slot(int chip, int input, std::uint32_t position) {
  const int ports = kLinkPorts + config_.local_ports();
  const std::size_t buffer = Index(chip * ports * config_.vcs + input);
  const auto size = static_cast<std::uint32_t>(config_.buffer_flits);
  return flits_[buffer * size + (position < size ? position : position - size)];
}

// The axes along which the packet goes in plus direction.
std::uint8_t FlitNetwork::Directions(Coord from, Coord to) {
  std::uint8_t plus = 0;
  for (const Axis axis : torus::kAxes) {
    const int size = torus_.extent(axis);
    const int ahead = (to.along(axis) - from.along(axis) + size) % size;
    bool forward = 2 * ahead < size;
    if (ahead != 0 && 2 * ahead == size) {
      forward = config_.ties == TieRule::kByChance ? rng_.Chance(1, 2) : from.along(axis) % 2 == 0;
    }
    if (forward) plus |= AxisBit(axis);
  }
  return plus;
}

// The chip's port, counted from 0, that a packet leaves by.
int FlitNetwork::SourcePort(Coord from, Coord to, std::uint8_t plus) const {
  if (!config_.local_port_per_link) return 0;
  for (const Axis axis : torus::kAxes) {
    if (from.along(axis) == to.along(axis)) continue;
    return 2 * static_cast<int>(axis) + ((plus & AxisBit(axis)) != 0 ? 1 : 0);
  }
  return 0;
}

void FlitNetwork::Send(const Message& message) {
  TAHOMA_CHECK(message.flits > 0);
  const Coord from = coords_.at(Index(message.from.value()));
  const Coord to = coords_.at(Index(message.to.value()));
  const std::uint8_t plus = Directions(from, to);
  const int source = message.from.value() * config_.local_ports() + SourcePort(from, to, plus);
  sources_[Index(source)].messages.push_back({.message = message, .sent = cycle_, .plus = plus});
  waiting_ += message.flits;
}

std::span<const FlitNetwork::Arrival> FlitNetwork::Step() {
  arrivals_.clear();
  Deliver();
  for (int chip = 0; chip < torus_.chip_count(); ++chip) {
    for (int port = 0; port < config_.local_ports(); ++port) Inject(chip, port);
  }
  for (int chip = 0; chip < torus_.chip_count(); ++chip) {
    Router& router = routers_[Index(chip)];
    // Places that the switch frees, and channels that are granted, in this cycle count from the
    // next one on.
    PickChannels(router);
    if (router.sending != 0) AllocateSwitch(chip);
    AssignChannels(router);
  }
  Watch();
  ++cycle_;
  return arrivals_;
}

void FlitNetwork::Deliver() {
  Moment& now = After(0);
  for (const FlitMove& move : now.to_routers) Receive(move);
  for (const FlitMove& move : now.to_chips) Eject(move);
  for (const CreditMove& move : now.to_outputs) {
    const std::int32_t credits = ++routers_[move.chip].outputs.at(move.port).credits.at(move.vc);
    TAHOMA_CHECK(credits <= config_.buffer_flits);
  }
  for (const CreditMove& move : now.to_sources) {
    ++sources_[Index(move.chip * config_.local_ports() + move.port)].credits.at(move.vc);
  }
  now.to_routers.clear();
  now.to_chips.clear();
  now.to_outputs.clear();
  now.to_sources.clear();
}

void FlitNetwork::Receive(const FlitMove& move) {
  moved_at_ = cycle_;
  Router& router = routers_[move.chip];
  const int bit = Bit(move.port, move.vc);
  Input& input = router.inputs.at(Index(bit));
  TAHOMA_CHECK(input.count < static_cast<std::uint32_t>(config_.buffer_flits));
  Slot(move.chip, bit, input.first + input.count++) = move.flit;
  if (input.state == Input::State::kIdle) {
    RouteFront(move.chip, bit, cycle_ + static_cast<std::uint64_t>(config_.route_cycles));
  } else if (input.state == Input::State::kActive) {
    router.sending |= BitOf(bit);
  }
}

void FlitNetwork::Eject(const FlitMove& move) {
  moved_at_ = cycle_;
  ++ejected_;
  --in_network_;
  After(config_.local_cycles)
      .to_outputs.push_back({.chip = move.chip, .port = move.port, .vc = move.vc});
  const Packet& packet = packets_[move.flit.packet];
  if (move.flit.index + 1 < static_cast<std::uint32_t>(packet.arrival.flits)) return;
  arrivals_.push_back(packet.arrival);
  free_packets_.push_back(move.flit.packet);
}

// Cuts the next packet off the messages that wait, if a channel has a place for its head.
bool FlitNetwork::BeginPacket(int chip, Source& source) {
  std::uint64_t open = 0;
  for (int vc = 0; vc < config_.vcs; ++vc) {
    if (source.credits.at(Index(vc)) > 0) open |= BitOf(vc);
  }
  if (open == 0) return false;
  source.vc = source.arbiter.Pick(open);
  source.arbiter.MoveOver(source.vc);
  Waiting next = source.messages.front();
  source.messages.pop_front();
  const std::uint64_t size =
      std::min(next.message.flits, static_cast<std::uint64_t>(config_.packet_flits));
  if (free_packets_.empty()) {
    free_packets_.push_back(static_cast<std::uint32_t>(packets_.size()));
    packets_.emplace_back();
  }
  const std::uint32_t id = free_packets_.back();
  free_packets_.pop_back();
  const Coord from = coords_[Index(chip)];
  const Coord to = coords_[Index(next.message.to.value())];
  packets_[id] = {.arrival = {.tag = next.message.tag,
                              .flits = static_cast<int>(size),
                              .sent = next.sent,
                              .injected = cycle_,
                              .hops = torus_.HopDistance(from, to)},
                  .from = from,
                  .to = to,
                  .plus = next.plus};
  source.next = {.packet = id, .index = 0};
  source.last = static_cast<std::uint32_t>(size - 1);
  next.message.flits -= size;
  if (next.message.flits != 0) source.messages.push_back(next);
  return true;
}

void FlitNetwork::Inject(int chip, int port) {
  Source& source = sources_[Index(chip * config_.local_ports() + port)];
  if (!source.next) {
    if (source.messages.empty() || !BeginPacket(chip, source)) return;
  }
  std::int32_t& credits = source.credits.at(Index(source.vc));
  if (credits == 0) return;
  --credits;
  After(config_.local_cycles)
      .to_routers.push_back({.chip = static_cast<std::uint8_t>(chip),
                             .port = static_cast<std::uint8_t>(kLinkPorts + port),
                             .vc = static_cast<std::uint8_t>(source.vc),
                             .flit = *source.next});
  ++injected_;
  ++in_network_;
  --waiting_;
  moved_at_ = cycle_;
  if (source.next->index == source.last) {
    source.next.reset();
  } else {
    ++source.next->index;
  }
}

// The packet in front of the input asks for a channel of its route from `asks_at` on.
void FlitNetwork::RouteFront(int chip, int bit, std::uint64_t asks_at) {
  Router& router = routers_[Index(chip)];
  Input& input = router.inputs.at(Index(bit));
  const Packet& packet = packets_[Slot(chip, bit, input.first).packet];
  const Coord at = coords_[Index(chip)];
  const int in_port = bit / config_.vcs;
  int port =
      config_.local_port_per_link && in_port < kLinkPorts ? kLinkPorts + in_port : kLinkPorts;
  for (const Axis axis : torus::kAxes) {
    if (at.along(axis) == packet.to.along(axis)) continue;
    port = 2 * static_cast<int>(axis) + ((packet.plus & AxisBit(axis)) != 0 ? 1 : 0);
    break;
  }
  input.state = Input::State::kWantsChannel;
  input.out_port = static_cast<std::uint8_t>(port);
  input.allowed = AllowedChannels(packet, at, port);
  input.asks_at = asks_at;
  router.wanting |= BitOf(bit);
  router.sending &= ~BitOf(bit);
}

std::uint8_t FlitNetwork::AllowedChannels(const Packet& packet, Coord at, int port) const {
  const std::uint64_t all = BitOf(config_.vcs) - 1;
  if (config_.dateline == Dateline::kOff || port >= kLinkPorts)
    return static_cast<std::uint8_t>(all);
  const auto axis = static_cast<Axis>(port / 2);
  const int here = at.along(axis);
  // Routing by dimension order enters the ring where the packet came from.
  const int entered = packet.from.along(axis);
  const int left = packet.to.along(axis);
  const bool plus = port % 2 == 1;
  bool second = plus ? entered > left : entered < left;  // crosses the dateline in this ring
  if (config_.dateline == Dateline::kChangeClass) {
    second = plus ? here < entered || here == torus_.extent(axis) - 1 : here > entered || here == 0;
  }
  const std::uint64_t first_class = BitOf(config_.vcs / 2) - 1;
  return static_cast<std::uint8_t>(second ? all & ~first_class : first_class);
}

void FlitNetwork::PickChannels(Router& router) {
  channel_grants_.clear();
  std::array<std::array<std::uint64_t, kVcsMax>, kPortsMax> requests;
  std::uint64_t ports = 0;
  ForEachBit(router.wanting, [&](int bit) {
    const Input& input = router.inputs.at(Index(bit));
    if (input.asks_at > cycle_) return;
    auto& of_port = requests.at(input.out_port);
    if ((ports & BitOf(input.out_port)) == 0) of_port.fill(0);
    ports |= BitOf(input.out_port);
    ForEachBit(input.allowed & router.outputs.at(input.out_port).free_vcs,
               [&](int vc) { of_port.at(Index(vc)) |= BitOf(bit); });
  });
  if (ports == 0) return;
  std::array<std::uint8_t, 64> granted{};
  std::uint64_t inputs = 0;
  ForEachBit(ports, [&](int port) {
    for (int vc = 0; vc < config_.vcs; ++vc) {
      const std::uint64_t asking = requests.at(Index(port)).at(Index(vc));
      if (asking == 0) continue;
      const int bit = router.outputs.at(Index(port)).vc_arbiters.at(Index(vc)).Pick(asking);
      granted.at(Index(bit)) |= static_cast<std::uint8_t>(BitOf(vc));
      inputs |= BitOf(bit);
    }
  });
  ForEachBit(inputs, [&](int bit) {
    RoundRobin& arbiter = router.grant_arbiters.at(Index(bit));
    const int vc = arbiter.Pick(granted.at(Index(bit)));
    arbiter.MoveOver(vc);
    const int port = router.inputs.at(Index(bit)).out_port;
    router.outputs.at(Index(port)).vc_arbiters.at(Index(vc)).MoveOver(bit);
    channel_grants_.push_back({.input = bit, .vc = vc});
  });
}

void FlitNetwork::AssignChannels(Router& router) {
  for (const Grant& grant : channel_grants_) {
    Input& input = router.inputs.at(Index(grant.input));
    router.outputs.at(input.out_port).free_vcs &= static_cast<std::uint8_t>(~BitOf(grant.vc));
    input.state = Input::State::kActive;
    input.out_vc = static_cast<std::uint8_t>(grant.vc);
    router.wanting &= ~BitOf(grant.input);
    router.sending |= BitOf(grant.input);
  }
}

void FlitNetwork::AllocateSwitch(int chip) {
  Router& router = routers_[Index(chip)];
  const int ports = kLinkPorts + config_.local_ports();
  const std::uint64_t vcs_of_port = BitOf(config_.vcs) - 1;
  std::array<std::array<std::uint8_t, kPortsMax>, kPortsMax> chosen;  // by output, input port
  std::array<std::uint64_t, kPortsMax> requests{};                    // by output: input ports
  std::array<std::uint8_t, kPortsMax> by_output;
  for (int port = 0; port < ports; ++port) {
    std::uint64_t outputs = 0;
    ForEachBit((router.sending >> static_cast<unsigned>(Bit(port, 0))) & vcs_of_port, [&](int vc) {
      const Input& input = router.inputs.at(Index(Bit(port, vc)));
      const Output& output = router.outputs.at(input.out_port);
      if (output.credits.at(input.out_vc) == 0 || output.accepts_at > cycle_) return;
      if ((outputs & BitOf(input.out_port)) == 0) by_output.at(input.out_port) = 0;
      outputs |= BitOf(input.out_port);
      by_output.at(input.out_port) |= static_cast<std::uint8_t>(BitOf(vc));
    });
    ForEachBit(outputs, [&](int output) {
      const int vc = router.vc_arbiters.at(Index(port)).Pick(by_output.at(Index(output)));
      chosen.at(Index(output)).at(Index(port)) = static_cast<std::uint8_t>(vc);
      requests.at(Index(output)) |= BitOf(port);
    });
  }
  std::array<std::uint64_t, kPortsMax> granted{};  // by input port: outputs
  for (int output = 0; output < ports; ++output) {
    if (requests.at(Index(output)) == 0) continue;
    const int port = router.outputs.at(Index(output)).arbiter.Pick(requests.at(Index(output)));
    granted.at(Index(port)) |= BitOf(output);
  }
  for (int port = 0; port < ports; ++port) {
    if (granted.at(Index(port)) == 0) continue;
    const int output = router.output_arbiters.at(Index(port)).Pick(granted.at(Index(port)));
    const int vc = chosen.at(Index(output)).at(Index(port));
    router.output_arbiters.at(Index(port)).MoveOver(output);
    router.outputs.at(Index(output)).arbiter.MoveOver(port);
    router.vc_arbiters.at(Index(port)).MoveOver(vc);
    Transmit(chip, Bit(port, vc));
  }
}

// Sends the front flit of the input on, and a credit for its place back to where it came from.
void FlitNetwork::Transmit(int chip, int bit) {
  Router& router = routers_[Index(chip)];
  Input& input = router.inputs.at(Index(bit));
  Output& output = router.outputs.at(input.out_port);
  const Flit flit = Slot(chip, bit, input.first);
  const auto size = static_cast<std::uint32_t>(config_.buffer_flits);
  input.first = input.first + 1 < size ? input.first + 1 : 0;
  --input.count;
  --output.credits.at(input.out_vc);
  moved_at_ = cycle_;
  constexpr std::uint64_t kOddMultiplier = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t what =
      (((std::uint64_t{flit.packet} << 16U) + flit.index) << 20U) +
      static_cast<std::uint64_t>(((chip * 64 + bit) * 16 + input.out_port) * 8 + input.out_vc);
  trace_hash_ = (std::rotl(trace_hash_, 23) ^ what ^ (cycle_ << 8U)) * kOddMultiplier;

  FlitMove move{.chip = static_cast<std::uint8_t>(chip),
                .port = input.out_port,
                .vc = input.out_vc,
                .flit = flit};
  if (input.out_port < kLinkPorts) {
    const int period = config_.link_period.at(input.out_port / 2);
    output.accepts_at = cycle_ + static_cast<std::uint64_t>(period);
    move.chip = neighbours_[Index(chip)].at(input.out_port);
    After(config_.crossbar_cycles + config_.link_cycles + period - 1).to_routers.push_back(move);
    ++flit_hops_;
    ++carried_[Index(chip * kLinkPorts + input.out_port)];
  } else {
    After(config_.crossbar_cycles + config_.local_cycles).to_chips.push_back(move);
  }
  const int in_port = bit / config_.vcs;
  const auto vc = static_cast<std::uint8_t>(bit % config_.vcs);
  if (in_port < kLinkPorts) {
    // The link that ends here in plus direction begins at the neighbour in minus direction.
    const std::uint8_t sender = neighbours_[Index(chip)].at(Index(in_port ^ 1));
    After(config_.link_cycles)
        .to_outputs.push_back(
            {.chip = sender, .port = static_cast<std::uint8_t>(in_port), .vc = vc});
  } else {
    After(config_.local_cycles)
        .to_sources.push_back({.chip = static_cast<std::uint8_t>(chip),
                               .port = static_cast<std::uint8_t>(in_port - kLinkPorts),
                               .vc = vc});
  }
  const bool tail =
      flit.index + 1 == static_cast<std::uint32_t>(packets_[flit.packet].arrival.flits);
  if (input.count == 0 || tail) router.sending &= ~BitOf(bit);
  if (!tail) return;
  output.free_vcs |= static_cast<std::uint8_t>(BitOf(input.out_vc));
  input.state = Input::State::kIdle;
  if (input.count == 0) return;
  RouteFront(chip, bit, cycle_ + 1 + static_cast<std::uint64_t>(config_.route_cycles));
}

std::uint64_t FlitNetwork::CountFlits() const {
  std::uint64_t count = 0;
  for (const Router& router : routers_) {
    for (const Input& input : router.inputs) count += input.count;
  }
  for (const Moment& moment : moments_) {
    count += moment.to_routers.size() + moment.to_chips.size();
  }
  return count;
}

}  // namespace tahoma::sim
