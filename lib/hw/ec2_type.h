// What EC2 says of an instance type beside its chips: processors, disks, EBS and network cards.
//
//   const Ec2Type* type = FindEc2Type("trn2.48xlarge");   // nullptr: no name of EC2's
//   type->network.cards;                                  // 16
//
// The numbers are those that EC2 answered to DescribeInstanceTypes, as getmoto/moto recorded them
// (docs/reference/README.md). Chips, vCPUs and memory are the catalogue's. EC2 says 512 GiB for the
// memory of a Trainium2, which has 96 GiB; the catalogue is right.
//
// Scope: facts that never change while a program runs.
//
// Thread safety: immutable.

#pragma once

#include <span>
#include <string_view>

namespace tahoma::hw {

struct Ec2Processor {
  std::string_view manufacturer;
  double clock_ghz;
  bool uefi;  // beside the legacy BIOS
};

struct Ec2Ebs {
  int baseline_mbps;
  int maximum_mbps;
  int baseline_iops;
  int maximum_iops;
  int attachments;
  bool own_limit;  // of volumes alone; else network interfaces and disks count, too
};

// Network cards, which are all alike.
struct Ec2Network {
  std::string_view performance;       // of the instance
  std::string_view card_performance;  // of one card
  int cards;
  double baseline_gbps;
  double peak_gbps;
  int interfaces;            // of one card
  int addresses;             // of one interface, IPv4 and IPv6 alike
  int queues_per_interface;  // of ENA
  bool efa;
};

struct Ec2Type {
  std::string_view name;
  std::string_view usage_classes;  // "on-demand,spot"
  const Ec2Processor* processor;
  int disks;
  int disk_gb;  // of one
  Ec2Ebs ebs;
  Ec2Network network;
  bool dedicated_hosts;
  bool enclaves;
  bool tpm;               // version 2.0
  bool reboot_migration;  // a reboot may move it
};

std::span<const Ec2Type> Ec2Types();

// nullptr when EC2 has no such type, or the catalogue does not have it.
const Ec2Type* FindEc2Type(std::string_view name);

// Returns the number of EFA interfaces of an instance: a network card with EFA has an interface.
int EfaInterfaces(std::string_view name);

}  // namespace tahoma::hw
