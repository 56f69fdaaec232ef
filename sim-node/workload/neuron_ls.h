// Prints what neuron-ls prints: the Neuron devices of this pod's claim, in AWS's columns and JSON.
//
//   absl::StatusOr<DeviceList> devices = ParseDevices(reply.result);
//   std::cout << PrintDevices(*devices, NeuronLsView::kDefault);
//
// Formats follow AWS's tool (docs/reference/trainium2.md#neuron-ls). A pod sees the devices of its
// claim and no others.
//
// Scope: text. The call to sim-node is app/neuron_ls_main.cc.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tahoma::sim {

struct ListedDevice {
  int index = 0;
  std::string bdf{};  // "0000:cc:00.0"
  std::string cpu_affinity{};
  int numa_node = 0;
  std::vector<int> connected{};  // north, west, south, east
  std::vector<int> core_ids{};   // logical cores of the node
  std::int64_t memory_bytes = 0;
  std::string reason{};  // of the chip's fault; empty: none
};

// A process of the pod that uses the devices.
struct ListedProcess {
  int pid = 0;
  std::string command{};  // with its arguments
};

struct DeviceList {
  std::string instance_type{};
  std::string node_name{};
  int lnc = 2;
  std::vector<ListedDevice> devices{};
  std::vector<ListedProcess> processes{};  // sim-node does not know them
};

enum class NeuronLsView { kDefault, kWide, kTopology, kJson };

struct NeuronLsOptions {
  NeuronLsView view = NeuronLsView::kDefault;
  bool all_processes = false;  // neuron-ls itself, too
  bool help = false;
};

// Reads sim-node's answer to `devices`; kInvalidArgument when it is none.
absl::StatusOr<DeviceList> ParseDevices(std::string_view json);

// kInvalidArgument names the option that is not known.
absl::StatusOr<NeuronLsOptions> ParseNeuronLsArguments(const std::vector<std::string>& arguments);
std::string NeuronLsHelp();

std::string PrintDevices(const DeviceList& list, NeuronLsView view);

}  // namespace tahoma::sim
