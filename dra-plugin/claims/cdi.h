// The CDI file by which a claim reaches its containers; docs/formats/cdi.md.
//
//   files.Write(CdiFileName(uid), CdiSpec(prepared));
//   CdiDeviceId(kDriverName, uid, "neuron-device-3");   // "neuron.aws.com/device=<uid>-neuron-…"
//
// One file per claim, with the claim's uid in every device name, because runtimes cache by name.
// The version is the lowest that has what is used (docs/reference/kubernetes-dra.md#cdi).
//
// Scope: text. Emulated chips have no device node: the environment and a mount of sim-node's socket
// folder are all a container needs. For programs that look for /dev/neuron<N>, the socket is there
// too, once for each chip of the claim.

#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "dra-plugin/claims/checkpoint.h"
#include "lib/driver/efa_nic.h"

namespace tahoma::dra {

std::string CdiFileName(std::string_view claim_uid);
// The uid in a name that CdiFileName made; empty for any other name.
std::string_view ClaimUidOfCdiFile(std::string_view file_name);
std::string CdiDeviceId(std::string_view driver, std::string_view claim_uid,
                        std::string_view device);

// "NAME=value" for every variable of docs/design/0001-seams.md, in a fixed order.
std::vector<std::string> ClaimEnvironment(const PreparedClaim& claim);

std::string CdiSpec(const PreparedClaim& claim);

// The CDI file of a claim's NICs, of the driver hw::kEfaDriver: TAHOMA_EFA_DEVICES has the names of
// the claim's RDMA devices, and sim-node's socket stands for each /dev/infiniband/uverbs<N>.
std::string EfaCdiFileName(std::string_view claim_uid);
std::string EfaCdiSpec(std::string_view claim_uid, const std::vector<hw::EfaNic>& nics,
                       std::string_view workload_socket);

// Whether containers may get the folder of that socket: kFailedPrecondition when there is none, or
// when the plugin's own socket, on which claims are given away, could be reached from it.
absl::Status CheckWorkloadSocket(std::string_view workload_socket, std::string_view node_socket);

// Whether a CDI file's text was written for that node, so that no other plugin's file is removed
// where several share the folder.
bool IsCdiSpecOfNode(std::string_view text, std::string_view node_name);

// "0-3,8-11": ascending numbers as ranges.
std::string Ranges(const std::vector<int>& ascending);

}  // namespace tahoma::dra
