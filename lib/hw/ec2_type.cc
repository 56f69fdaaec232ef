#include "lib/hw/ec2_type.h"

#include <algorithm>
#include <array>

namespace tahoma::hw {
namespace {

constexpr std::string_view kOnDemand = "on-demand,spot";
constexpr std::string_view kBlocks = "capacity-block,on-demand,spot";

constexpr Ec2Processor kAmd{.manufacturer = "AMD", .clock_ghz = 3.6, .uefi = true};
constexpr Ec2Processor kIntel{.manufacturer = "Intel", .clock_ghz = 3.5, .uefi = false};
constexpr Ec2Processor kIntelUefi{.manufacturer = "Intel", .clock_ghz = 3.5, .uefi = true};

// EBS whose rate is always the same.
constexpr Ec2Ebs Steady(int mbps, int iops, int attachments, bool own_limit) {
  return {.baseline_mbps = mbps,
          .maximum_mbps = mbps,
          .baseline_iops = iops,
          .maximum_iops = iops,
          .attachments = attachments,
          .own_limit = own_limit};
}

// One card, without EFA, whose rate is at least `baseline`.
constexpr Ec2Network OneCard(std::string_view performance, double baseline, double peak,
                             int interfaces, int addresses, int queues) {
  return {.performance = performance,
          .card_performance = performance,
          .cards = 1,
          .baseline_gbps = baseline,
          .peak_gbps = peak,
          .interfaces = interfaces,
          .addresses = addresses,
          .queues_per_interface = queues,
          .efa = false};
}

constexpr Ec2Network EfaCards(std::string_view performance, std::string_view card, int cards,
                              double gbps, int interfaces) {
  return {.performance = performance,
          .card_performance = card,
          .cards = cards,
          .baseline_gbps = gbps,
          .peak_gbps = gbps,
          .interfaces = interfaces,
          .addresses = 50,
          .queues_per_interface = 32,
          .efa = true};
}

constexpr Ec2Type Inf2(std::string_view name, const Ec2Ebs& ebs, const Ec2Network& network,
                       bool dedicated_hosts) {
  return {.name = name,
          .usage_classes = kOnDemand,
          .processor = &kAmd,
          .disks = 0,
          .disk_gb = 0,
          .ebs = ebs,
          .network = network,
          .dedicated_hosts = dedicated_hosts,
          .enclaves = true,
          .tpm = true,
          .reboot_migration = true};
}

constexpr Ec2Type Trn1Large(std::string_view name, std::string_view usage_classes,
                            const Ec2Network& network, bool dedicated_hosts) {
  return {.name = name,
          .usage_classes = usage_classes,
          .processor = &kIntel,
          .disks = 4,
          .disk_gb = 1900,
          .ebs = Steady(80'000, 260'000, 28, false),
          .network = network,
          .dedicated_hosts = dedicated_hosts,
          .enclaves = false,
          .tpm = false,
          .reboot_migration = false};
}

constexpr Ec2Type Trn2Large(std::string_view name, std::string_view usage_classes) {
  return {.name = name,
          .usage_classes = usage_classes,
          .processor = &kIntelUefi,
          .disks = 4,
          .disk_gb = 1900,
          .ebs = Steady(80'000, 260'000, 64, true),
          .network = EfaCards("16x 200 Gigabit", "200 Gigabit", 16, 200, 2),
          .dedicated_hosts = false,
          .enclaves = true,
          .tpm = true,
          .reboot_migration = false};
}

constexpr Ec2Type kTrn1Small = {.name = "trn1.2xlarge",
                                .usage_classes = kOnDemand,
                                .processor = &kIntel,
                                .disks = 1,
                                .disk_gb = 474,
                                .ebs = {.baseline_mbps = 5'000,
                                        .maximum_mbps = 20'000,
                                        .baseline_iops = 16'250,
                                        .maximum_iops = 65'000,
                                        .attachments = 25,
                                        .own_limit = false},
                                .network = OneCard("Up to 12.5 Gigabit", 3.125, 12.5, 4, 15, 8),
                                .dedicated_hosts = true,
                                .enclaves = false,
                                .tpm = false,
                                .reboot_migration = false};

constexpr Ec2Type kTrn2Small = {.name = "trn2.3xlarge",
                                .usage_classes = kBlocks,
                                .processor = &kIntelUefi,
                                .disks = 1,
                                .disk_gb = 470,
                                .ebs = Steady(5'000, 16'250, 32, true),
                                .network = {.performance = "200 Gigabit",
                                            .card_performance = "50 Gigabit",
                                            .cards = 1,
                                            .baseline_gbps = 50,
                                            .peak_gbps = 50,
                                            .interfaces = 2,
                                            .addresses = 15,
                                            .queues_per_interface = 16,
                                            .efa = true},
                                .dedicated_hosts = false,
                                .enclaves = true,
                                .tpm = false,
                                .reboot_migration = false};

constexpr std::array kEc2Types = {
    Inf2("inf2.xlarge",
         {.baseline_mbps = 1'250,
          .maximum_mbps = 10'000,
          .baseline_iops = 6'000,
          .maximum_iops = 40'000,
          .attachments = 26,
          .own_limit = false},
         OneCard("Up to 15 Gigabit", 2.083, 15, 4, 15, 4), false),
    Inf2("inf2.8xlarge", Steady(10'000, 40'000, 26, false),
         OneCard("Up to 25 Gigabit", 16.667, 25, 8, 30, 8), false),
    Inf2("inf2.24xlarge", Steady(30'000, 120'000, 28, false),
         OneCard("50 Gigabit", 50, 50, 15, 50, 16), true),
    Inf2("inf2.48xlarge", Steady(60'000, 240'000, 28, false),
         OneCard("100 Gigabit", 100, 100, 15, 50, 16), true),
    kTrn1Small,
    Trn1Large("trn1.32xlarge", kBlocks, EfaCards("8x 100 Gigabit", "100 Gigabit", 8, 100, 5), true),
    Trn1Large("trn1n.32xlarge", kOnDemand, EfaCards("16x 100 Gigabit", "100 Gigabit", 16, 100, 5),
              false),
    kTrn2Small,
    Trn2Large("trn2.48xlarge", kBlocks),
    Trn2Large("trn2u.48xlarge", "capacity-block,on-demand"),
};

}  // namespace

std::span<const Ec2Type> Ec2Types() { return kEc2Types; }

const Ec2Type* FindEc2Type(std::string_view name) {
  const auto* found = std::ranges::find(kEc2Types, name, &Ec2Type::name);
  return found == kEc2Types.end() ? nullptr : found;
}

int EfaInterfaces(std::string_view name) {
  const Ec2Type* type = FindEc2Type(name);
  return type != nullptr && type->network.efa ? type->network.cards : 0;
}

}  // namespace tahoma::hw
