// The hardware catalogue: what each instance type consists of, as data.
//
//   const InstanceType* type = FindInstanceType("trn2u.48xlarge");   // nullptr when unknown
//   type->torus;                      // 4x4x1
//   type->chips[3].efa_bdf;           // "0000:ca:00.0"
//   kTrainium2.hbm_bytes;             // 96 GiB
//
// Every constant names its source: D = aws-neuron-sdk documentation, K = aws-neuron-driver,
// M = aws-neuron connected-device-maps-over-efa v1.1.0, C = computed from the others.
//
// Scope: facts that never change while a program runs. Which chip is broken or free is not here.
//
// Thread safety: immutable.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/torus/shape.h"

namespace tahoma::hw {

// Rates of one link in one direction, in bytes per second.
struct LinkRates {
  std::int64_t intra_instance;  // X and Y
  std::int64_t inter_instance;  // Z
  std::int64_t efa;             // per chip
};

struct ChipModel {
  std::string_view name;          // as neuron-monitor prints it (D neuron-monitor-user-guide.rst)
  std::string_view core_version;  // "v3"
  int physical_cores;             // NeuronCores
  int hbm_banks;                  // one serves two physical cores (D logical-neuroncore-config.rst)
  std::int64_t hbm_bytes;
  int lnc_default;  // physical cores of a logical core unless configured
  LinkRates links;
};

// D trn2-arch.rst: 8 NeuronCore-v3, 4 x 24 GiB HBM; 1,024 and 256 GB/s per chip are the sums of
// 4 X/Y and 2 Z links over both directions, so 128 and 64 GB/s per link and direction (C).
// D collectives.rst: EFA 200 Gb/s per chip.
inline constexpr ChipModel kTrainium2 = {
    .name = "trainium2",
    .core_version = "v3",
    .physical_cores = 8,
    .hbm_banks = 4,
    .hbm_bytes = std::int64_t{96} << 30,
    .lnc_default = 2,
    .links = {.intra_instance = 128'000'000'000,
              .inter_instance = 64'000'000'000,
              .efa = 25'000'000'000},
};

// Legal sizes of a logical NeuronCore, in physical cores (D logical-neuroncore-config.rst).
inline constexpr std::array kLncSizes = {1, 2};

// One chip's place in its instance.
struct ChipSite {
  std::string_view bdf;           // PCI address of the chip (D neuron-ls.rst)
  std::string_view efa_bdf;       // PCI address of the EFA device beside it (M)
  int numa_node;                  // D neuron-ls.rst
  std::string_view cpu_affinity;  // D neuron-ls.rst
};

struct InstanceType {
  std::string_view name;
  const ChipModel* chip;
  torus::Shape torus;               // of one instance: the Neuron device number is its ChipIndex
  std::span<const ChipSite> chips;  // by device number
  bool ultra_server;                // four of them form an UltraServer (K: trn2u is a "pod" type)
  bool device_groups;               // AWS's driver publishes devicegroup ids (M lookup.go)
  int vcpus;
  std::int64_t memory_bytes;

  int chip_count() const { return torus.chip_count(); }
};

// Members of an UltraServer (D trn2-arch.rst).
inline constexpr int kUltraServerNodes = 4;

std::span<const InstanceType> InstanceTypes();

// nullptr when the type is not in the catalogue.
const InstanceType* FindInstanceType(std::string_view name);

// "trn2.3xlarge, trn2.48xlarge, trn2u.48xlarge", for messages.
std::string InstanceTypeNames();

// How many logical cores a chip has; lnc must be one of kLncSizes.
int LogicalCores(const ChipModel& chip, int lnc);

// The HBM bank of a logical core (D: two physical cores share a bank).
int HbmBank(const ChipModel& chip, int lnc, int logical_core);

// The device numbers that neuron-ls prints as CONNECTED DEVICES: north, west, south, east (D
// neuron-ls.rst). Empty for an instance of one chip.
std::string ConnectedDevices(const InstanceType& type, int device);

}  // namespace tahoma::hw
