#include "sim-node/workload/neuron_ls.h"

#include <algorithm>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/hw/catalogue.h"

namespace tahoma::sim {
namespace {

using json = Json;
using Row = std::vector<std::string>;

constexpr std::string_view kFormatEquals = "--output-format=";
constexpr int kGridSide = 4;  // devices of an instance stand in 4 rows and 4 columns

// Draws a table as neuron-ls does: titles of two lines, centred; cells to the left.
std::string Table(const Row& upper, const Row& lower, const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < upper.size(); ++i) {
    std::size_t width = std::max(upper[i].size(), lower[i].size());
    for (const Row& row : rows) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  std::string rule;
  for (const std::size_t width : widths) rule += "+" + std::string(width + 2, '-');
  rule += "+\n";
  std::string out = rule;
  for (const Row* titles : {&upper, &lower}) {
    if (std::all_of(titles->begin(), titles->end(), [](const auto& t) { return t.empty(); })) {
      continue;
    }
    for (std::size_t i = 0; i < widths.size(); ++i) {
      out += fmt::format("| {:^{}} ", (*titles)[i], widths[i]);
    }
    out += "|\n";
  }
  out += rule;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      out += fmt::format("| {:<{}} ", row[i], widths[i]);
    }
    out += "|\n";
  }
  return out + rule;
}

// Returns the numbers as ranges: "0-3", "0-1,3".
std::string Ranges(const std::vector<int>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    if (!out.empty()) out += ",";
    out +=
        end == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[end]);
    i = end + 1;
  }
  return out;
}

std::string Memory(const ListedDevice& device) {
  return fmt::format("{} GB", device.memory_bytes >> 30);
}

std::string Connected(const ListedDevice& device) {
  return fmt::format("{}", fmt::join(device.connected, ", "));
}

// Returns "cc:00.0" of "0000:cc:00.0": the PCI domain is always 0000 on these hosts.
std::string ShortBdf(const ListedDevice& device) {
  return device.bdf.starts_with("0000:") ? device.bdf.substr(5) : device.bdf;
}

std::string DefaultTable(const DeviceList& list) {
  std::vector<Row> rows;
  for (const ListedDevice& device : list.devices) {
    rows.push_back({std::to_string(device.index), std::to_string(device.core_ids.size()),
                    Ranges(device.core_ids), Memory(device), Connected(device), device.bdf,
                    device.cpu_affinity, std::to_string(device.numa_node)});
  }
  return Table({"NEURON", "NEURON", "NEURON", "NEURON", "CONNECTED", "PCI", "CPU", "NUMA"},
               {"DEVICE", "CORES", "CORE IDS", "MEMORY", "DEVICES", "BDF", "AFFINITY", "NODE"},
               rows);
}

// Cuts a command as neuron-ls does: "neuron-app01 infer --input-data-direc...".
std::string CutCommand(const std::string& command) {
  constexpr std::size_t kCommandBytes = 40;
  constexpr std::string_view kCut = "...";
  if (command.size() <= kCommandBytes) return command;
  return std::string(CutUtf8(command, kCommandBytes - kCut.size())) + std::string(kCut);
}

// A claim's processes may use each of its devices. A device has a row for each process, and no
// emulated process has a runtime.
std::string WideTable(const DeviceList& list) {
  std::vector<Row> rows;
  for (const ListedDevice& device : list.devices) {
    Row row = {std::to_string(device.index),
               std::to_string(device.core_ids.size()),
               Memory(device),
               Connected(device),
               ShortBdf(device),
               "",
               "",
               ""};
    if (list.processes.empty()) rows.push_back(row);
    for (const ListedProcess& process : list.processes) {
      row[5] = std::to_string(process.pid);
      row[6] = CutCommand(process.command);
      row[7] = "NA";
      rows.push_back(std::exchange(row, Row(row.size())));
    }
  }
  return Table({"NEURON", "NEURON", "NEURON", "CONNECTED", "PCI", "PID", "COMMAND", "RUNTIME"},
               {"DEVICE", "CORES", "MEMORY", "DEVICES", "BDF", "", "", "VERSION"}, rows);
}

// Draws the instance's grid with the devices of this claim; a star marks a link that wraps around.
std::string Grid(const DeviceList& list) {
  std::vector<bool> held(kGridSide * kGridSide, false);
  for (const ListedDevice& device : list.devices) {
    if (device.index < kGridSide * kGridSide) held[static_cast<std::size_t>(device.index)] = true;
  }
  const auto at = [&](int row, int column) {
    const int place = row * kGridSide + column;
    return static_cast<bool>(held[static_cast<std::size_t>(place)]);
  };
  std::string out = "\nNeuron Device Topology\n";
  const std::string stars = "      *        *        *        *\n";
  out += stars;
  for (int row = 0; row < kGridSide; ++row) {
    out += "  *";
    for (int column = 0; column < kGridSide; ++column) {
      const int index = row * kGridSide + column;
      out += at(row, column) ? fmt::format("[{:^4}]", index) : "[    ]";
      if (column + 1 == kGridSide) continue;
      out += at(row, column) && at(row, column + 1) ? "◄–►" : "   ";
    }
    out += "*\n";
    if (row + 1 == kGridSide) continue;
    std::string between = "   ";
    for (int column = 0; column < kGridSide; ++column) {
      between += at(row, column) && at(row + 1, column) ? "  ▲▼     " : "         ";
    }
    out += between.substr(0, between.find_last_not_of(' ') + 1) + "\n";
  }
  out += stars;
  out += "\nLegend: *  links to the opposite side of the grid\n";
  return out;
}

std::string TopologyTable(const DeviceList& list) {
  std::vector<Row> rows;
  bool linked = false;
  for (const ListedDevice& device : list.devices) {
    linked = linked || !device.connected.empty();
    rows.push_back({std::to_string(device.index), std::to_string(device.core_ids.size()),
                    Memory(device), Connected(device), ShortBdf(device)});
  }
  const std::string table = Table({"NEURON", "NEURON", "NEURON", "CONNECTED", "PCI"},
                                  {"DEVICE", "CORES", "MEMORY", "DEVICES", "BDF"}, rows);
  return linked ? table + Grid(list) : table;
}

std::string Json(const DeviceList& list) {
  json processes = json::array();
  for (const ListedProcess& process : list.processes) {
    processes.push_back(
        {{"pid", process.pid}, {"command", process.command}, {"neuron_runtime_version", "NA"}});
  }
  json devices = json::array();
  for (const ListedDevice& device : list.devices) {
    devices.push_back({{"neuron_device", device.index},
                       {"bdf", ShortBdf(device)},
                       {"cpu_affinity", device.cpu_affinity},
                       {"numa_node", std::to_string(device.numa_node)},
                       {"connected_to", device.connected},
                       {"nc_count", device.core_ids.size()},
                       {"logical_neuroncore_config", list.lnc},
                       {"memory_size", device.memory_bytes},
                       {"neuroncore_ids", device.core_ids},
                       {"neuron_processes", processes}});
  }
  // a command may hold any bytes
  return devices.dump(4, ' ', false, json::error_handler_t::replace) + "\n";
}

ListedDevice ParseDevice(const json& object) {
  return {.index = object.at("index").get<int>(),
          .bdf = object.at("bdf").get<std::string>(),
          .cpu_affinity = object.at("cpuAffinity").get<std::string>(),
          .numa_node = object.at("numaNode").get<int>(),
          .connected = object.at("connectedTo").get<std::vector<int>>(),
          .core_ids = object.at("coreIds").get<std::vector<int>>(),
          .memory_bytes = object.at("memoryBytes").get<std::int64_t>(),
          .reason = object.value("reason", "")};
}

}  // namespace

absl::StatusOr<DeviceList> ParseDevices(std::string_view text) {
  try {
    const json reply = ParseJson(text);
    DeviceList list{.instance_type = reply.at("instanceType").get<std::string>(),
                    .node_name = reply.at("nodeName").get<std::string>(),
                    .lnc = reply.at("lnc").get<int>()};
    for (const json& device : reply.at("devices")) list.devices.push_back(ParseDevice(device));
    return list;
  } catch (const json::exception& error) {
    return InvalidArgument("sim-node's answer is not a list of devices: {}", error.what());
  }
}

absl::StatusOr<NeuronLsOptions> ParseNeuronLsArguments(const std::vector<std::string>& arguments) {
  NeuronLsOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--output-format" || argument.starts_with(kFormatEquals)) {
      const bool joined = argument.starts_with(kFormatEquals);
      if (!joined && ++i == arguments.size())
        return InvalidArgument("--output-format needs a word");
      const std::string format = joined ? argument.substr(kFormatEquals.size()) : arguments[i];
      if (format != "json") {
        return InvalidArgument("--output-format is \"{}\"; expected json", format);
      }
      options.view = NeuronLsView::kJson;
    } else if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (argument == "--json-output" || argument == "-j") {
      options.view = NeuronLsView::kJson;
    } else if (argument == "--topology" || argument == "-t") {
      options.view = NeuronLsView::kTopology;
    } else if (argument == "--wide" || argument == "-w") {
      options.view = NeuronLsView::kWide;
    } else if (argument == "--show-all-procs" || argument == "-a") {
      options.view = NeuronLsView::kWide;
      options.all_processes = true;
    } else {
      return InvalidArgument("option \"{}\" is unknown; try --help", argument);
    }
  }
  return options;
}

std::string NeuronLsHelp() {
  return "neuron-ls: lists the Neuron devices of this pod\n"
         "  -w, --wide            short addresses, and the processes that use the devices\n"
         "  -a, --show-all-procs  as --wide, with neuron-ls itself\n"
         "  -t, --topology        the grid of devices and links\n"
         "  -j, --json-output, --output-format json   JSON\n"
         "  --version             the version\n"
         "  -h, --help            this text\n";
}

std::string PrintDevices(const DeviceList& list, NeuronLsView view) {
  if (view == NeuronLsView::kJson) return Json(list);
  std::string out =
      fmt::format("instance-type: {}\ninstance-id: {}\n", list.instance_type, list.node_name);
  const hw::InstanceType* type = hw::FindInstanceType(list.instance_type);
  if (type == nullptr || type->chip->lnc_max > 1) {
    out += fmt::format("logical-neuroncore-config: {}\n", list.lnc);
  }
  switch (view) {
    case NeuronLsView::kWide:
      return out + WideTable(list);
    case NeuronLsView::kTopology:
      return out + TopologyTable(list);
    case NeuronLsView::kDefault:
    case NeuronLsView::kJson:
      break;
  }
  return out + DefaultTable(list);
}

}  // namespace tahoma::sim
