// The keys of a configuration that describe the costs of the EFA network's layers between topology
// domains.
//
//   EfaLayers layers;
//   spec.Section("efa", "…", [&](config::Fields& f) { DeclareEfaLayers(f, layers); });
//   TAHOMA_ASSIGN_OR_RETURN(const EfaTiming timing, EfaTimingOf(layers));
//
// AWS publishes no sizes of layers, no oversubscription and one latency for all distances; so the
// defaults are a network that only NICs can limit (docs/design/0006-efa.md).
//
// Scope: shared by sim-node and trn-trace, so that both have the same keys.
//
// Thread safety: values.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>

#include "lib/config/spec.h"
#include "sim-node/emulator/link/efa_network.h"

namespace tahoma::sim {

struct EfaLayers {
  // Rates of the NICs below a node of the layer over the rate of its uplink.
  double layer1_oversubscription = 1;
  double layer2_oversubscription = 1;
  double layer3_oversubscription = 1;
  std::chrono::nanoseconds layer_latency{0};
  std::chrono::nanoseconds packet_latency =
      std::chrono::duration_cast<std::chrono::nanoseconds>(hw::kMessageCosts.efa);
};

void DeclareEfaLayers(config::Fields& fields, EfaLayers& layers);

// kInvalidArgument for an oversubscription that is no whole number of thousandths.
absl::StatusOr<EfaTiming> EfaTimingOf(const EfaLayers& layers);

}  // namespace tahoma::sim
