#include "controller/ec2/instance_types.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "controller/reserve/capacity.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/hw/catalogue.h"

namespace tahoma::controller::ec2 {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr int kThreadsPerCore = 2;  // of all of these types (EC2)

constexpr const char* Supported(bool supported) { return supported ? "supported" : "unsupported"; }

bool IsSold(std::string_view instance_type) {
  return std::ranges::any_of(
      Products(), [&](const Product& product) { return product.instance_type == instance_type; });
}

Tree UsageClasses(const hw::Ec2Type& type) {
  Tree classes = Tree::array();
  std::string_view rest = type.usage_classes;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (one != "capacity-block" || IsSold(type.name)) classes.push_back(one);
  }
  return classes;
}

Tree ProcessorTree(const hw::Ec2Processor& processor) {
  return {{"supportedArchitectures", Tree::array({"x86_64"})},
          {"sustainedClockSpeedInGhz", processor.clock_ghz},
          {"manufacturer", processor.manufacturer}};
}

Tree StorageTree(const hw::Ec2Type& type) {
  if (type.disks == 0) return nullptr;
  const Tree disk = {{"sizeInGB", type.disk_gb}, {"count", type.disks}, {"type", "ssd"}};
  return {{"totalSizeInGB", type.disks * type.disk_gb},
          {"disks", Tree::array({disk})},
          {"nvmeSupport", "required"},
          {"encryptionSupport", "required"}};
}

Tree EbsTree(const hw::Ec2Ebs& ebs) {
  constexpr double kBits = 8;
  return {{"ebsOptimizedSupport", "default"},
          {"encryptionSupport", "supported"},
          {"ebsOptimizedInfo",
           {{"baselineBandwidthInMbps", ebs.baseline_mbps},
            {"baselineThroughputInMBps", ebs.baseline_mbps / kBits},
            {"baselineIops", ebs.baseline_iops},
            {"maximumBandwidthInMbps", ebs.maximum_mbps},
            {"maximumThroughputInMBps", ebs.maximum_mbps / kBits},
            {"maximumIops", ebs.maximum_iops}}},
          {"nvmeSupport", "required"},
          {"maximumEbsAttachments", ebs.attachments},
          {"attachmentLimitType", ebs.own_limit ? "dedicated" : "shared"}};
}

Tree NetworkTree(const hw::Ec2Network& network) {
  Tree cards = Tree::array();
  Tree interface_types = Tree::array({"interface"});
  if (network.efa) {
    for (const char* type : {"efa", "efa-only"}) interface_types.push_back(type);
  }
  for (int i = 0; i < network.cards; ++i) {
    cards.push_back({{"networkCardIndex", i},
                     {"networkPerformance", network.card_performance},
                     {"maximumNetworkInterfaces", network.interfaces},
                     {"baselineBandwidthInGbps", network.baseline_gbps},
                     {"peakBandwidthInGbps", network.peak_gbps},
                     {"defaultEnaQueueCountPerInterface", network.queues_per_interface},
                     {"interfaceTypeSet", interface_types}});
  }
  Tree tree = {{"networkPerformance", network.performance},
               {"maximumNetworkInterfaces", network.cards * network.interfaces},
               {"maximumNetworkCards", network.cards},
               {"defaultNetworkCardIndex", 0},
               {"networkCards", std::move(cards)},
               {"ipv4AddressesPerInterface", network.addresses},
               {"ipv6AddressesPerInterface", network.addresses},
               {"ipv6Supported", true},
               {"enaSupport", "required"},
               {"efaSupported", network.efa},
               {"encryptionInTransitSupported", true},
               {"enaSrdSupported", false},
               {"flexibleEnaQueuesSupport", "unsupported"},
               {"secondaryNetworkSupported", false}};
  // As on an instance whose owner has set no time-outs of its own (EC2).
  tree["connectionTrackingConfiguration"] = {{"defaultTcpEstablishedTimeout", 432'000},
                                             {"defaultUdpTimeout", 30},
                                             {"defaultUdpStreamTimeout", 180}};
  if (network.efa) tree["efaInfo"] = {{"maximumEfaInterfaces", network.cards}};
  return tree;
}

// "Trainium2" of "trainium2".
std::string DeviceName(const hw::ChipModel& chip) {
  std::string name(chip.name);
  name.front() = static_cast<char>(name.front() - 'a' + 'A');
  return name;
}

Tree NeuronTree(const hw::InstanceType& hardware) {
  const hw::ChipModel& chip = *hardware.chip;
  const std::int64_t memory = chip.hbm_bytes / kMebibyte;
  const Tree device = {
      {"count", hardware.chip_count()},
      {"name", DeviceName(chip)},
      {"coreInfo", {{"count", chip.physical_cores}, {"version", chip.core_version.back() - '0'}}},
      {"memoryInfo", {{"sizeInMiB", memory}}}};
  return {{"neuronDevices", Tree::array({device})},
          {"totalNeuronDeviceMemoryInMiB", hardware.chip_count() * memory}};
}

// Chips for inference, which EC2 shows a second time.
Tree InferenceTree(const hw::InstanceType& hardware) {
  const hw::ChipModel& chip = *hardware.chip;
  if (!chip.name.starts_with("inferentia")) return nullptr;
  const std::int64_t memory = chip.hbm_bytes / kMebibyte;
  const Tree accelerator = {{"count", hardware.chip_count()},
                            {"name", DeviceName(chip)},
                            {"manufacturer", "AWS"},
                            {"memoryInfo", {{"sizeInMiB", memory}}}};
  return {{"accelerators", Tree::array({accelerator})},
          {"totalInferenceMemoryInMiB", hardware.chip_count() * memory}};
}

Tree BootModes(const hw::Ec2Processor& processor) {
  Tree modes = Tree::array({"legacy-bios"});
  if (processor.uefi) modes.push_back("uefi");
  return modes;
}

constexpr std::array kFilters = {
    TreeFilter{"auto-recovery-supported", "autoRecoverySupported"},
    TreeFilter{"bare-metal", "bareMetal"},
    TreeFilter{"burstable-performance-supported", "burstablePerformanceSupported"},
    TreeFilter{"current-generation", "currentGeneration"},
    TreeFilter{"dedicated-hosts-supported", "dedicatedHostsSupported"},
    TreeFilter{"ebs-info.attachment-limit-type", "ebsInfo/attachmentLimitType"},
    TreeFilter{"ebs-info.maximum-ebs-attachments", "ebsInfo/maximumEbsAttachments"},
    TreeFilter{"ebs-info.ebs-optimized-info.baseline-bandwidth-in-mbps",
               "ebsInfo/ebsOptimizedInfo/baselineBandwidthInMbps"},
    TreeFilter{"ebs-info.ebs-optimized-info.baseline-iops",
               "ebsInfo/ebsOptimizedInfo/baselineIops"},
    TreeFilter{"ebs-info.ebs-optimized-info.baseline-throughput-in-mbps",
               "ebsInfo/ebsOptimizedInfo/baselineThroughputInMBps"},
    TreeFilter{"ebs-info.ebs-optimized-info.maximum-bandwidth-in-mbps",
               "ebsInfo/ebsOptimizedInfo/maximumBandwidthInMbps"},
    TreeFilter{"ebs-info.ebs-optimized-info.maximum-iops", "ebsInfo/ebsOptimizedInfo/maximumIops"},
    TreeFilter{"ebs-info.ebs-optimized-info.maximum-throughput-in-mbps",
               "ebsInfo/ebsOptimizedInfo/maximumThroughputInMBps"},
    TreeFilter{"ebs-info.ebs-optimized-support", "ebsInfo/ebsOptimizedSupport"},
    TreeFilter{"ebs-info.encryption-support", "ebsInfo/encryptionSupport"},
    TreeFilter{"ebs-info.nvme-support", "ebsInfo/nvmeSupport"},
    TreeFilter{"free-tier-eligible", "freeTierEligible"},
    TreeFilter{"hibernation-supported", "hibernationSupported"},
    TreeFilter{"hypervisor", "hypervisor"},
    TreeFilter{"instance-storage-info.disk.count", "instanceStorageInfo/disks/count"},
    TreeFilter{"instance-storage-info.disk.size-in-gb", "instanceStorageInfo/disks/sizeInGB"},
    TreeFilter{"instance-storage-info.disk.type", "instanceStorageInfo/disks/type"},
    TreeFilter{"instance-storage-info.encryption-support", "instanceStorageInfo/encryptionSupport"},
    TreeFilter{"instance-storage-info.nvme-support", "instanceStorageInfo/nvmeSupport"},
    TreeFilter{"instance-storage-info.total-size-in-gb", "instanceStorageInfo/totalSizeInGB"},
    TreeFilter{"instance-storage-supported", "instanceStorageSupported"},
    TreeFilter{"instance-type", "instanceType"},
    TreeFilter{"memory-info.size-in-mib", "memoryInfo/sizeInMiB"},
    TreeFilter{"network-info.bandwidth-weightings", ""},
    TreeFilter{"network-info.efa-info.maximum-efa-interfaces",
               "networkInfo/efaInfo/maximumEfaInterfaces"},
    TreeFilter{"network-info.efa-supported", "networkInfo/efaSupported"},
    TreeFilter{"network-info.ena-support", "networkInfo/enaSupport"},
    TreeFilter{"network-info.encryption-in-transit-supported",
               "networkInfo/encryptionInTransitSupported"},
    TreeFilter{"network-info.flexible-ena-queues-support", "networkInfo/flexibleEnaQueuesSupport"},
    TreeFilter{"network-info.ipv4-addresses-per-interface",
               "networkInfo/ipv4AddressesPerInterface"},
    TreeFilter{"network-info.ipv6-addresses-per-interface",
               "networkInfo/ipv6AddressesPerInterface"},
    TreeFilter{"network-info.ipv6-supported", "networkInfo/ipv6Supported"},
    TreeFilter{"network-info.maximum-network-cards", "networkInfo/maximumNetworkCards"},
    TreeFilter{"network-info.maximum-network-interfaces", "networkInfo/maximumNetworkInterfaces"},
    TreeFilter{"network-info.network-performance", "networkInfo/networkPerformance"},
    TreeFilter{"nitro-enclaves-support", "nitroEnclavesSupport"},
    TreeFilter{"nitro-tpm-info.supported-versions", "nitroTpmInfo/supportedVersions"},
    TreeFilter{"nitro-tpm-support", "nitroTpmSupport"},
    TreeFilter{"processor-info.supported-architecture", "processorInfo/supportedArchitectures"},
    TreeFilter{"processor-info.supported-features", ""},
    TreeFilter{"processor-info.sustained-clock-speed-in-ghz",
               "processorInfo/sustainedClockSpeedInGhz"},
    TreeFilter{"reboot-migration-support", "rebootMigrationSupport"},
    TreeFilter{"supported-boot-mode", "supportedBootModes"},
    TreeFilter{"supported-root-device-type", "supportedRootDeviceTypes"},
    TreeFilter{"supported-usage-class", "supportedUsageClasses"},
    TreeFilter{"supported-virtualization-type", "supportedVirtualizationTypes"},
    TreeFilter{"vcpu-info.default-cores", "vCpuInfo/defaultCores"},
    TreeFilter{"vcpu-info.default-threads-per-core", "vCpuInfo/defaultThreadsPerCore"},
    TreeFilter{"vcpu-info.default-vcpus", "vCpuInfo/defaultVCpus"},
    TreeFilter{"vcpu-info.valid-cores", ""},
    TreeFilter{"vcpu-info.valid-threads-per-core", ""},
};

}  // namespace

Tree InstanceTypeTree(const hw::Ec2Type& type, bool supported) {
  const hw::InstanceType* hardware = hw::FindInstanceType(type.name);
  TAHOMA_CHECK(hardware != nullptr);
  return {
      {"instanceType", type.name},
      {"currentGeneration", true},
      {"freeTierEligible", false},
      {"supportedUsageClasses", UsageClasses(type)},
      {"supportedRootDeviceTypes", Tree::array({"ebs"})},
      {"supportedVirtualizationTypes", Tree::array({"hvm"})},
      {"bareMetal", false},
      {"hypervisor", "nitro"},
      {"processorInfo", ProcessorTree(*type.processor)},
      {"vCpuInfo",
       {{"defaultVCpus", hardware->vcpus},
        {"defaultCores", hardware->vcpus / kThreadsPerCore},
        {"defaultThreadsPerCore", kThreadsPerCore}}},
      {"memoryInfo", {{"sizeInMiB", hardware->memory_bytes / kMebibyte}}},
      {"instanceStorageSupported", type.disks > 0},
      {"instanceStorageInfo", StorageTree(type)},
      {"ebsInfo", EbsTree(type.ebs)},
      {"networkInfo", NetworkTree(type.network)},
      {"placementGroupInfo",
       {{"supportedStrategies", Tree::array({"cluster", "partition", "spread"})}}},
      {"inferenceAcceleratorInfo", InferenceTree(*hardware)},
      {"hibernationSupported", false},
      {"burstablePerformanceSupported", false},
      {"dedicatedHostsSupported", type.dedicated_hosts},
      {"autoRecoverySupported", false},
      {"supportedBootModes", BootModes(*type.processor)},
      {"nitroEnclavesSupport", Supported(type.enclaves)},
      {"nitroTpmSupport", Supported(type.tpm)},
      {"nitroTpmInfo",
       type.tpm ? Tree{{"supportedVersions", Tree::array({"2.0"})}} : Tree(nullptr)},
      {"neuronInfo", NeuronTree(*hardware)},
      {"phcSupport", "unsupported"},
      {"rebootMigrationSupport", Supported(type.reboot_migration)},
      {"supportedInRegion", supported},
  };
}

std::span<const TreeFilter> InstanceTypeFilters() { return kFilters; }

}  // namespace tahoma::controller::ec2
