// The hardware catalogue: what each instance type consists of, as data.
//
//   const InstanceType* type = FindInstanceType("trn2u.48xlarge");   // nullptr when unknown
//   type->torus;                      // 4x4x1
//   type->chips[3].efa_bdf;           // "0000:ca:00.0"
//   kTrainium2.hbm_bytes;             // 96 GiB
//
// Every constant names its source: D = aws-neuron-sdk documentation, K = aws-neuron-driver, F =
// docs/reference/trainium2.md, M = aws-neuron connected-device-maps-over-efa v1.1.0
// (docs/reference/README.md has their addresses), C = computed from the others, A = assumed,
// because nothing published says it.
//
// Scope: facts that never change while a program runs. Which chip is broken or free is not here.
//
// Thread safety: immutable.

#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <ratio>
#include <span>
#include <string>
#include <string_view>

#include "lib/torus/shape.h"

namespace tahoma::hw {

// The network that joins the chips of an instance.
enum class FabricKind : std::uint8_t {
  kNone,    // one chip
  kRing,    // each chip with two others
  kTorus,   // 4x4, and with an UltraServer 4x4x4
  kSwitch,  // each chip with switches, all chips equally far
};
std::string_view FabricName(FabricKind kind);  // "none", "ring", "torus", "switch"

// Rates of one link in one direction, in bytes per second. For a switched chip, of all its links
// into the switches together, inside the instance (X and Y) and between instances (Z).
struct LinkRates {
  std::int64_t intra_instance;  // X and Y
  std::int64_t inter_instance;  // Z
  std::int64_t efa;             // per chip
};

using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;

// The DMA engines of a chip. They move packets: each costs its engine a fixed time and its bytes.
struct DmaModel {
  Picoseconds start;   // from the semaphore to the first byte
  Picoseconds packet;  // of an engine, beside the packet's bytes
  std::int64_t packet_bytes;
  std::int64_t bytes_per_second;  // of one engine, inside a packet
  int engines_of_core;
};

// D nki-dma-overview.rst and nki-dma-bandwidth-guide.rst: 16 engines a core, 27.2 GB/s each,
// packets of 4 KiB, 1.3 us to start; 26 ns a packet fit all published points (C, F#dma).
inline constexpr DmaModel kDma = {.start = std::chrono::nanoseconds(1300),
                                  .packet = std::chrono::nanoseconds(26),
                                  .packet_bytes = 4096,
                                  .bytes_per_second = 27'200'000'000,
                                  .engines_of_core = 16};

// The costs of a message beside its bytes.
struct MessageCosts {
  Picoseconds step;     // software, from one step of a collective to the next
  Picoseconds hop;      // each NeuronLink of the route
  Picoseconds command;  // from one command of a CC-core to its next
  Picoseconds efa;      // an empty packet over EFA, from HBM to HBM
};

// D collectives.rst: 1 to 2 us for each hop of a ring, software included, of which 1.0 us is
// software (A); 15 us over EFA. No time of a CC-core's command is published: a hardware descriptor
// generator needs 0.6 us for an instruction (D nki-dge.rst), and with it mesh and rdh break even at
// 1.5 MB where AWS says about 1 MB (A).
inline constexpr MessageCosts kMessageCosts = {.step = std::chrono::nanoseconds(1000),
                                               .hop = std::chrono::nanoseconds(500),
                                               .command = std::chrono::nanoseconds(600),
                                               .efa = std::chrono::microseconds(15)};

struct ChipModel {
  std::string_view name;          // as neuron-monitor prints it (D neuron-monitor-user-guide.rst)
  std::string_view core_version;  // "v3"
  int physical_cores;             // NeuronCores
  int hbm_banks;                  // one serves two physical cores (D logical-neuroncore-config.rst)
  std::int64_t hbm_bytes;
  std::int64_t hbm_bytes_per_second;  // of all banks together, reads and writes
  // The same of one bank, a stack of HBM; 0: not published, and one bank is as fast as all.
  std::int64_t hbm_bank_bytes_per_second;
  int cc_cores;     // that collectives may use: two for each physical core (D)
  int lnc_default;  // physical cores of a logical core unless configured
  int lnc_max;      // 1 where logical cores cannot be configured
  LinkRates links;
  // Published for Trainium2 only; the other models are assumed to have the same.
  DmaModel dma = kDma;
  MessageCosts costs = kMessageCosts;
};

// D trn2-arch.rst: 8 NeuronCore-v3, 4 x 24 GiB HBM; 1,024 and 256 GB/s per chip are the sums of
// 4 X/Y and 2 Z links over both directions, so 128 and 64 GB/s per link and direction (C).
// D trainium2.rst: 2.9 TB/s of HBM; a bank has 1,024 bits at 5.6 Gb/s, 716 GB/s, by which AWS's
// profiler divides (F#memory). K v3/address_map.h: 16 CC-cores that software can use. D
// collectives.rst: EFA 200 Gb/s per chip.
inline constexpr ChipModel kTrainium2 = {
    .name = "trainium2",
    .core_version = "v3",
    .physical_cores = 8,
    .hbm_banks = 4,
    .hbm_bytes = std::int64_t{96} << 30,
    .hbm_bytes_per_second = 2'900'000'000'000,
    .hbm_bank_bytes_per_second = 716'000'000'000,
    .cc_cores = 16,
    .lnc_default = 2,
    .lnc_max = 2,
    .links = {.intra_instance = 128'000'000'000,
              .inter_instance = 64'000'000'000,
              .efa = 25'000'000'000},
};

// D trn1-arch.rst, trainium.rst: 2 NeuronCore-v2, 32 GiB at 820 GB/s; four NeuronLink-v2 of which
// both directions add up to 384 GB/s, so 48 GB/s in each direction (C). Two HBM banks (A). EFA 800
// Gb/s for 16 chips. LNC does not exist (D logical-neuroncore-config.rst).
inline constexpr ChipModel kTrainium1 = {
    .name = "trainium",
    .core_version = "v2",
    .physical_cores = 2,
    .hbm_banks = 2,
    .hbm_bytes = std::int64_t{32} << 30,
    .hbm_bytes_per_second = 820'000'000'000,
    .hbm_bank_bytes_per_second = 0,
    .cc_cores = 4,
    .lnc_default = 1,
    .lnc_max = 1,
    .links = {.intra_instance = 48'000'000'000, .inter_instance = 0, .efa = 6'250'000'000},
};

// A model that shares all but its name and links.
constexpr ChipModel Variant(ChipModel model, std::string_view name, const LinkRates& links) {
  model.name = name;
  model.links = links;
  return model;
}

// The same chip in a trn1n: 768 GB/s and EFA 1,600 Gb/s (D trn1-arch.rst).
inline constexpr ChipModel kTrainium1N =
    Variant(kTrainium1, "trainium",
            {.intra_instance = 96'000'000'000, .inter_instance = 0, .efa = 12'500'000'000});

// D inf2-arch.rst, inferentia2.rst: the cores and memory of a Trainium; two NeuronLink-v2 of which
// both directions add up to 192 GB/s, so 48 GB/s in each direction (C). No EFA.
inline constexpr ChipModel kInferentia2 = Variant(
    kTrainium1, "inferentia2", {.intra_instance = 48'000'000'000, .inter_instance = 0, .efa = 0});

// D trn3-arch.rst, trainium3.rst: 8 NeuronCore-v4, 144 GiB at 4.9 TB/s, 11 links into switches: 4
// inside a sled (256 GB/s), 5 inside a rack (320), 2 between racks (128). AWS's sum over both
// directions is 2,560 GB/s a chip in one place and 2,048 GiB/s in another; neither is that of the
// classes (docs/reference/trainium2.md#other-generations), which stand here. EFA 12,800 Gb/s for 64
// chips.
inline constexpr ChipModel kTrainium3 = {
    .name = "trainium3",
    .core_version = "v4",
    .physical_cores = 8,
    .hbm_banks = 4,
    .hbm_bytes = std::int64_t{144} << 30,
    .hbm_bytes_per_second = 4'900'000'000'000,
    .hbm_bank_bytes_per_second = 0,
    .cc_cores = 16,
    .lnc_default = 2,
    .lnc_max = 2,
    .links = {.intra_instance = 256'000'000'000,
              .inter_instance = 448'000'000'000,
              .efa = 25'000'000'000},
};

// Legal sizes of a logical NeuronCore, in physical cores (D logical-neuroncore-config.rst).
inline constexpr std::array kLncSizes = {1, 2};

// One chip's place in its instance.
struct ChipSite {
  std::string_view bdf;           // PCI address of the chip (D neuron-ls.rst)
  std::string_view efa_bdf;       // PCI address of the EFA device beside it (M); empty without EFA
  int numa_node;                  // D neuron-ls.rst
  std::string_view cpu_affinity;  // D neuron-ls.rst
};

struct InstanceType {
  std::string_view name;
  const ChipModel* chip;
  FabricKind fabric;
  // The torus of one instance: the Neuron device number is its ChipIndex. A ring is Nx1x1. Chips
  // behind a switch have no neighbours; there Nx1x1 gives only their number.
  torus::Shape torus;
  std::span<const ChipSite> chips;  // by device number
  bool ultra_server;                // four of them form an UltraServer (K: trn2u is a "pod" type)
  bool device_groups;               // AWS's driver publishes devicegroup ids (M lookup.go)
  int vcpus;
  std::int64_t memory_bytes;

  int chip_count() const { return torus.chip_count(); }
};

// Members of an UltraServer of trn2u instances, which is a torus (D trn2-arch.rst). Those of a Trn3
// are rows of UltraServers().
inline constexpr int kUltraServerNodes = 4;

// An UltraServer: instances that NeuronLink joins and that are sold as one.
struct UltraServerModel {
  std::string_view name;
  std::string_view instance_type;
  int nodes;
  FabricKind fabric;
};
std::span<const UltraServerModel> UltraServers();

// Instances beyond NeuronLink: EFA through the layers that DescribeInstanceTopology names, top
// first, in UltraClusters of this size (A).
struct NetworkModel {
  int layers;
  int cluster_chips;
};
inline constexpr NetworkModel kNetwork = {.layers = 3, .cluster_chips = 2048};

// Cables between the chips of such a torus or ring; 0 without any. Two chips on an axis share one.
int CableCount(const torus::Shape& torus, torus::Axis axis);

std::span<const InstanceType> InstanceTypes();

// nullptr when the type is not in the catalogue.
const InstanceType* FindInstanceType(std::string_view name);

// "inf2.xlarge, inf2.8xlarge, …", for messages.
std::string InstanceTypeNames();

// Whether a chip's cores may be joined so: one of kLncSizes, and not above the chip's lnc_max.
bool HasLnc(const ChipModel& chip, int lnc);

// Returns how many logical cores a chip has; lnc must be one that it has.
int LogicalCores(const ChipModel& chip, int lnc);

// The HBM bank of a logical core (D: two physical cores share a bank).
int HbmBank(const ChipModel& chip, int lnc, int logical_core);

// No chip has more.
inline constexpr int kHbmBanksMax = 4;

// Returns the rate of so many of a chip's HBM banks together, at least 1. All banks, or more, have
// the chip's rate.
std::int64_t HbmRate(const ChipModel& chip, int banks);

// The device numbers that neuron-ls prints as CONNECTED DEVICES: north, west, south, east (D
// neuron-ls.rst). Empty for an instance of one chip, and behind a switch.
std::string ConnectedDevices(const InstanceType& type, int device);

}  // namespace tahoma::hw
