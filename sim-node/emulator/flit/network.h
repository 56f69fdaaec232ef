// A torus of routers, cycle by cycle: every flit, buffer and credit.
//
// The model follows BookSim2's timing and measuring of its input-queued router
// (docs/reference/collectives.md#network-models-to-compare-with; Dally, Towles, "Principles and
// Practices of Interconnection Networks", 16-19):
// - Wormhole switching: a packet holds a virtual channel of each link from its head to its tail.
//   After the tail has left a channel, the next packet may take the channel although its buffer
//   still holds flits.
// - One credit per place in the next buffer; a credit returns after the link's delay.
// - Routing by dimension order (x, y, z), always minimal, and the dateline classes of FlitConfig.
// - Allocation of channels and of the switch by separable round robin in one pass: outputs grant,
//   inputs accept, and a pointer moves on only over an accepted grant (McKeown, "The iSLIP
//   scheduling algorithm for input-queued switches", 1999). Each input sends one flit a cycle and
//   each output takes one flit a cycle; before, each input chooses one of its channels for each
//   output.
// - The chip as source: an unbounded queue for each of its ports, whose messages alternate packet
//   by packet; one flit a cycle, in the next channel (round robin) with a free place; the packet
//   stays in it. As sink: one flit a cycle for each port, taken at once.
// Not modelled: speculation, more than one pass of the allocators, adaptive routes, links that are
// down or lose flits, and what the memories of the chips can take.
//
// Everything is integer arithmetic in a fixed order: the same calls give the same trace_hash() on
// every machine.
//
// Thread safety: belongs to one thread.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/flit/flit_config.h"
#include "sim-node/emulator/flit/round_robin.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// A virtual channel of a link, or of the injection port from a chip into its router.
struct FlitChannel {
  int chip = 0;  // the sending chip
  int port = 0;  // 0 to 5 as LinkId % 6, from 6 the chip's own ports
  int vc = 0;
  // "chip 5 x+ vc 1" or "chip 5 source 0 vc 1".
  std::string ToString() const;
  friend auto operator<=>(const FlitChannel&, const FlitChannel&) = default;
};

// A report of channels that can never move again.
struct Deadlock {
  // The flits at the end of `holder` cannot go on before `wanted` has a free place or, for a packet
  // with several possible channels, before a tail leaves some wanted channel.
  struct Wait {
    FlitChannel holder;
    FlitChannel wanted;
    friend auto operator<=>(const Wait&, const Wait&) = default;
  };
  std::uint64_t cycle = 0;
  std::vector<Wait> waits;        // all waits, in order of holder and wanted
  std::vector<FlitChannel> ring;  // each channel waits for the next, the last channel for the first
  // Returns the ring as a line of text.
  std::string ToString() const;
  // Sets `ring` from `waits`; every wanted channel there is also a holder.
  void FindRing();
};

class FlitNetwork {
 public:
  struct Message {
    torus::ChipIndex from;
    torus::ChipIndex to;
    std::uint64_t flits = 0;  // positive; cut into packets, the last may be shorter
    std::uint64_t tag = 0;    // the caller's
  };
  // A packet whose tail has reached its chip in the last cycle.
  struct Arrival {
    std::uint64_t tag = 0;
    int flits = 0;
    std::uint64_t sent = 0;      // cycle of the Send
    std::uint64_t injected = 0;  // the cycle in which the head left the source
    int hops = 0;
  };

  // At most 64 chips; `config` must be valid.
  FlitNetwork(const torus::Shape& torus, const FlitConfig& config, std::uint64_t seed);

  // Appends a message to its source's queue. The message can be injected from the next Step on.
  void Send(const Message& message);

  // Runs a cycle. Returns the packets that arrived in the cycle, valid until the next Step.
  std::span<const Arrival> Step();

  // Returns the number of cycles run: the number of the next cycle.
  std::uint64_t cycle() const { return cycle_; }
  const FlitConfig& config() const { return config_; }
  const torus::Shape& torus() const { return torus_; }

  // Whether flits are in the network or wait at a source.
  bool busy() const { return in_network_ != 0 || waiting_ != 0; }
  std::uint64_t flits_waiting() const { return waiting_; }  // at the sources
  std::uint64_t flits_injected() const { return injected_; }
  std::uint64_t flits_ejected() const { return ejected_; }
  std::uint64_t flits_in_network() const { return in_network_; }
  // The same, by looking into every buffer and link.
  std::uint64_t CountFlits() const;
  // Return the flits that the link has accepted, and that all links have accepted (flit hops).
  std::uint64_t flits_carried(LinkId link) const { return carried_[link]; }
  std::uint64_t flit_hops() const { return flit_hops_; }

  // Covers every move of a flit through a switch, in order.
  std::uint64_t trace_hash() const { return trace_hash_; }

  // The deadlock found by the watchdog. Every watchdog_cycles the watchdog looks for channels that
  // wait in a circle, whatever else moves. It also fires when flits are in the network but none has
  // moved for as long; without a circle (a mistake of the model) `waits` is then empty.
  const std::optional<Deadlock>& deadlock() const { return deadlock_; }

 private:
  static constexpr int kLinkPorts = static_cast<int>(kPorts);
  static constexpr int kPortsMax = 12;
  static constexpr int kVcsMax = 8;

  struct Flit {
    std::uint32_t packet;
    std::uint32_t index;  // in the packet
  };
  struct Packet {
    Arrival arrival;
    torus::Coord from;
    torus::Coord to;
    std::uint8_t plus = 0;  // a bit for each axis with movement in plus direction
  };
  // The end of a virtual channel, in the receiving router.
  struct Input {
    enum class State : std::uint8_t { kIdle, kWantsChannel, kActive };
    State state = State::kIdle;
    std::uint8_t out_port = 0;
    std::uint8_t out_vc = 0;    // when active
    std::uint8_t allowed = 0;   // channels of out_port open to the packet
    std::uint64_t asks_at = 0;  // first cycle in which the packet asks for a channel
    std::uint32_t first = 0;    // of the input's flits, in its part of flits_
    std::uint32_t count = 0;
  };
  // The begin of a link, in the sending router.
  struct Output {
    std::uint8_t free_vcs = 0;  // held by no packet
    std::array<std::int32_t, kVcsMax> credits{};
    std::uint64_t accepts_at = 0;                 // first cycle in which the link takes a flit
    RoundRobin arbiter;                           // of the input ports
    std::array<RoundRobin, kVcsMax> vc_arbiters;  // of the inputs that want the channel
  };
  struct Router {
    std::array<Input, 64> inputs;  // by port * vcs + vc, also the input's bit in words
    std::uint64_t wanting = 0;     // inputs that want a channel
    std::uint64_t sending = 0;     // inputs with a channel and a flit
    std::array<Output, kPortsMax> outputs;
    std::array<RoundRobin, kPortsMax> vc_arbiters;      // of each input port's channels
    std::array<RoundRobin, kPortsMax> output_arbiters;  // of the outputs that grant an input port
    std::array<RoundRobin, 64> grant_arbiters;          // of the channels granted to an input
  };
  struct Waiting {
    Message message;
    std::uint64_t sent;
    std::uint8_t plus;
  };
  // A port of a chip, where flits leave the chip.
  struct Source {
    std::deque<Waiting> messages;
    std::optional<Flit> next;  // of the current packet
    std::uint32_t last = 0;    // index of the packet's tail
    int vc = 0;
    RoundRobin arbiter;
    std::array<std::int32_t, kVcsMax> credits{};
  };
  // The flits and credits that reach the end of a link in a cycle.
  struct FlitMove {
    std::uint8_t chip;
    std::uint8_t port;
    std::uint8_t vc;
    Flit flit;
  };
  struct CreditMove {
    std::uint8_t chip;
    std::uint8_t port;
    std::uint8_t vc;
  };
  struct Moment {
    std::vector<FlitMove> to_routers;
    std::vector<FlitMove> to_chips;
    std::vector<CreditMove> to_outputs;
    std::vector<CreditMove> to_sources;
  };
  struct Grant {
    int input;
    int vc;
  };

  int Bit(int port, int vc) const { return port * config_.vcs + vc; }
  Moment& After(int cycles) {
    return moments_[(cycle_ + static_cast<std::uint64_t>(cycles)) % moments_.size()];
  }
  Flit& Slot(int chip, int input, std::uint32_t position);
  std::uint8_t Directions(torus::Coord from, torus::Coord to);
  int SourcePort(torus::Coord from, torus::Coord to, std::uint8_t plus) const;
  void Deliver();
  void Receive(const FlitMove& move);
  void Eject(const FlitMove& move);
  void Inject(int chip, int port);
  bool BeginPacket(int chip, Source& source);
  void RouteFront(int chip, int input, std::uint64_t asks_at);
  std::uint8_t AllowedChannels(const Packet& packet, torus::Coord at, int port) const;
  void PickChannels(Router& router);
  void AssignChannels(Router& router);
  void AllocateSwitch(int chip);
  void Transmit(int chip, int input);
  void Watch();
  std::vector<int> WaitsFor(const Router& router, const Input& input) const;
  Deadlock FindDeadlock() const;

  torus::Shape torus_;
  FlitConfig config_;
  Rng rng_;
  std::uint64_t cycle_ = 0;
  std::vector<Router> routers_;
  std::vector<Flit> flits_;                                       // the buffers of all inputs
  std::vector<Source> sources_;                                   // by chip * local ports + port
  std::vector<Moment> moments_;                                   // the next cycles, around the end
  std::vector<std::array<std::uint8_t, kLinkPorts>> neighbours_;  // where the link leads
  std::vector<torus::Coord> coords_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_packets_;
  std::vector<Grant> channel_grants_;
  std::vector<Arrival> arrivals_;
  std::vector<std::uint64_t> carried_;
  std::uint64_t waiting_ = 0;
  std::uint64_t injected_ = 0;
  std::uint64_t ejected_ = 0;
  std::uint64_t in_network_ = 0;
  std::uint64_t flit_hops_ = 0;
  std::uint64_t trace_hash_ = 0;
  std::uint64_t moved_at_ = 0;  // last cycle in which a flit moved
  std::optional<Deadlock> deadlock_;
};

}  // namespace tahoma::sim
