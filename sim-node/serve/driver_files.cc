#include "sim-node/serve/driver_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "lib/hw/catalogue.h"
#include "sim-node/node/election.h"
#include "sim-node/serve/node_election.h"

namespace tahoma::sim {
namespace {

namespace fs = std::filesystem;

// The names of the driver 2.24, in its order (neuron_sysfs_metrics.c).
constexpr std::array<std::string_view, 24> kStatuses = {"success",
                                                        "failure",
                                                        "timeout",
                                                        "exec_bad_input",
                                                        "hw_error",
                                                        "execute_completed_with_error",
                                                        "execute_completed_with_num_error",
                                                        "generic_error",
                                                        "resource_error",
                                                        "resource_nc_error",
                                                        "execute_failed_to_queue",
                                                        "invalid_error",
                                                        "unsupported_neff_version",
                                                        "oob_error",
                                                        "hw_collectives_error",
                                                        "hw_hbm_ue_error",
                                                        "hw_nc_ue_error",
                                                        "hw_dma_abort_error",
                                                        "execute_sw_nq_overflow",
                                                        "execute_sw_semaphore_error",
                                                        "execute_sw_event_error",
                                                        "execute_sw_psum_collision",
                                                        "execute_sw_sequencer_fatal",
                                                        "hw_repairable_hbm_ue_error"};

bool IsTrainium2(const Instance& instance) {
  return instance.type().chip->name == hw::kTrainium2.name;
}

// The counter that a program's end by a fault of its chip raises.
std::string_view StatusOf(const std::optional<ChipFault>& fault) {
  if (!fault) return "hw_error";
  switch (*fault) {
    case ChipFault::kSramUncorrectable:
    case ChipFault::kNcUncorrectable:
      return "hw_nc_ue_error";
    case ChipFault::kHbmUncorrectable:
      return "hw_hbm_ue_error";
    case ChipFault::kDma:
      return "hw_dma_abort_error";
    case ChipFault::kDead:
      break;
  }
  return "timeout";
}

bool WasUsed(const CoreCounts& counts) {
  return std::ranges::any_of(counts.ended, [](std::uint64_t ended) { return ended > 0; });
}

}  // namespace

DriverFiles CoreFilesOf(const CoreCounts& counts, const std::optional<ChipFault>& fault) {
  DriverFiles files = {{"info/architecture/arch_type", "NCv3\n"}};
  const auto ended = [&](ProgramEnd end) { return counts.ended.at(static_cast<std::size_t>(end)); };
  std::map<std::string_view, std::uint64_t> statuses;
  statuses["success"] = ended(ProgramEnd::kCompleted);
  statuses["generic_error"] = ended(ProgramEnd::kProgramError);
  statuses[StatusOf(fault)] = ended(ProgramEnd::kHardwareError);
  for (const std::string_view name : kStatuses) {
    const std::uint64_t total = statuses[name];
    files[fmt::format("stats/status/{}/total", name)] = fmt::format("{}\n", total);
    // The last change; an end counts as one.
    files[fmt::format("stats/status/{}/present", name)] = total > 0 ? "1\n" : "0\n";
  }
  const auto in_use = std::chrono::duration_cast<std::chrono::microseconds>(counts.in_use);
  const std::string other = "stats/other_info/";
  files[other + "flop_count"] = fmt::format("{}\n", counts.flops);
  files[other + "inference_count"] = fmt::format("{}\n", ended(ProgramEnd::kCompleted));
  files[other + "nc_time_in_use"] = fmt::format("{}\n", in_use.count());
  for (const std::string_view none : {"model_load_count", "reset_req_count", "reset_fail_count"}) {
    files[other + std::string(none)] = "0\n";
  }
  return files;
}

namespace {

DriverFiles ClassFilesFor(const Instance& instance) {
  if (!instance.type().ultra_server) return {};
  const ClassFiles files = instance.election() ? ClassFilesOf(*instance.election()) : ClassFiles{};
  return {{"ultraserver_mode", files.ultraserver_mode + "\n"},
          {"node_id_2", files.node_id_2 + "\n"},
          {"node_id_4", files.node_id_4 + "\n"},
          {"server_id_2", files.server_id_2 + "\n"},
          {"server_id_4", files.server_id_4 + "\n"}};
}

// Makes the folder, and missing folders above, for any user to enter: containers have users of
// their own, and the umask may shut them out.
void MakeOpenFolder(const fs::path& folder, std::error_code& error) {
  if (fs::exists(folder, error)) return;
  MakeOpenFolder(folder.parent_path(), error);
  if (!fs::create_directory(folder, error)) return;
  fs::permissions(folder, static_cast<fs::perms>(0755), error);
}

}  // namespace

std::string ConnectedDevicesInSysfs(const Instance& instance, int chip) {
  constexpr int kSide = 4;
  if (instance.chip_count() != kSide * kSide) return "\n";
  // Where the serial engines S0 to S3 lead (K v3/neuron_dhal_v3.c, the neighbours by engine), by
  // whether row and column are odd.
  constexpr std::array<std::string_view, 4> kDirections = {"NEWS", "WNSE", "SEWN", "WSNE"};
  const int row = chip / kSide;
  const int column = chip % kSide;
  const auto at = [](int r, int c) { return (r + kSide) % kSide * kSide + (c + kSide) % kSide; };
  std::string text;
  for (const char direction : kDirections.at(static_cast<std::size_t>(row % 2 * 2 + column % 2))) {
    const int step = direction == 'S' || direction == 'E' ? 1 : -1;
    const bool along_row = direction == 'E' || direction == 'W';
    const int neighbour = along_row ? at(row, column + step) : at(row + step, column);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", neighbour);
  }
  return text + "\n";
}

DriverFiles ChipFilesOf(const Instance& instance, int chip) {
  const std::optional<ChipFault>& fault = instance.chip(chip).fault;
  const auto one_if = [&](ChipFault kind) { return fault == kind ? "1\n" : "0\n"; };
  return {
      {"connected_devices", ConnectedDevicesInSysfs(instance, chip)},
      {"core_count", std::to_string(instance.type().chip->physical_cores)},
      {"reset", fault == ChipFault::kDead ? "2\n" : "1\n"},
      {"info/notify_delay", "-1\n"},
      {"info/serial_number", fmt::format("{:016x}\n", SerialNumber(instance.options().name, chip))},
      {"info/architecture/arch_type", "NDv3\n"},
      {"info/architecture/instance_type", "Trn2\n"},
      {"info/architecture/device_name", "Trainium2\n"},
      {"stats/hardware/sram_ecc_uncorrected", one_if(ChipFault::kSramUncorrectable)},
      {"stats/hardware/mem_ecc_uncorrected", one_if(ChipFault::kHbmUncorrectable)},
      {"stats/hardware/mem_ecc_repairable_uncorrected", "0\n"},
      {"stats/power/utilization", "POWER_STATUS_NO_DATA,0,0.00,0.00,0.00\n"}};
}

void DriverFolder::ShowAll() {
  const auto [chips, class_files] = live_.Read([](const Instance& instance) {
    return std::pair(IsTrainium2(instance) ? instance.chip_count() : 0, ClassFilesFor(instance));
  });
  if (chips == 0) return;
  {
    const MutexLock lock(mutex_);
    Write("class/", class_files);
    Write("devices/.idle_core/", CoreFilesOf({}, std::nullopt));
    for (int chip = 0; chip < chips; ++chip) {
      Link(fmt::format("class/neuron{}", chip),
           fmt::format("../../devices/virtual/neuron_device/neuron{}", chip));
    }
  }
  for (int chip = 0; chip < chips; ++chip) ShowChip(chip);
}

void DriverFolder::ShowChip(int chip) {
  const MutexLock lock(mutex_);
  const auto [files, fault, cores] = live_.Read([&](const Instance& instance) {
    return std::tuple(ChipFilesOf(instance, chip), instance.chip(chip).fault,
                      IsTrainium2(instance) ? instance.type().chip->physical_cores : 0);
  });
  if (cores == 0) return;
  Write(fmt::format("devices/neuron{}/", chip), files);
  for (int core = 0; core < cores; ++core) {
    const CoreCounts counts = counters_.Of({.chip = torus::ChipIndex(chip), .core = core});
    std::string shows = ".idle_core";
    if (WasUsed(counts)) {
      shows = fmt::format(".neuron{}_core{}", chip, core);
      Write(fmt::format("devices/{}/", shows), CoreFilesOf(counts, fault));
    }
    Link(fmt::format("devices/neuron{}/neuron_core{}", chip, core), "../" + shows);
  }
}

void DriverFolder::Write(const std::string& base, const DriverFiles& files) {
  for (const auto& file : files) {
    const std::string& text = file.second;
    Show(base + file.first, text, [&](const fs::path& next) {
      std::ofstream(next) << text;
      std::error_code error;  // a failed rename is told
      fs::permissions(next, static_cast<fs::perms>(0644), error);
    });
  }
}

void DriverFolder::Link(const std::string& path, const std::string& target) {
  Show(path, target, [&](const fs::path& next) {
    std::error_code error;
    fs::create_symlink(target, next, error);
  });
}

// Readers see the old file or the new. Nothing is synced: a start derives all files again.
void DriverFolder::Show(const std::string& path, const std::string& what,
                        const std::function<void(const fs::path& next)>& make) {
  std::string& shown = shown_[path];
  if (shown == what) return;
  const fs::path file = fs::path(folder_) / path;
  const fs::path next = file.string() + ".tmp";
  std::error_code error;
  fs::create_directories(fs::path(folder_).parent_path(), error);  // may be closed
  MakeOpenFolder(file.parent_path(), error);
  make(next);
  fs::rename(next, file, error);
  if (error) {
    warn_(fmt::format("{}: {}", file.string(), error.message()));
  } else {
    shown = what;
  }
}

}  // namespace tahoma::sim
