#include "sim-node/trace/efa_layers.h"

#include <array>
#include <cmath>
#include <cstdint>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr double kMaxOversubscription = 1000;

}  // namespace

void DeclareEfaLayers(config::Fields& fields, EfaLayers& layers) {
  constexpr config::NumberRange kRange{.min = 1, .max = kMaxOversubscription};
  constexpr config::DurationRange kLatency{.max = std::chrono::seconds(1)};
  fields.Number("layer1Oversubscription", &layers.layer1_oversubscription, kRange,
                "rates of the NICs below a node of layer 1, the top, over its uplink's");
  fields.Number("layer2Oversubscription", &layers.layer2_oversubscription, kRange,
                "the same of layer 2");
  fields.Number("layer3Oversubscription", &layers.layer3_oversubscription, kRange,
                "the same of layer 3, the nearest to the instances");
  fields.Duration("layerLatency", &layers.layer_latency, kLatency,
                  "more for each layer that a message climbs above the nearest");
  fields.Duration("packetLatency", &layers.packet_latency, kLatency,
                  "from HBM to HBM of an empty packet, software included");
}

absl::StatusOr<EfaTiming> EfaTimingOf(const EfaLayers& layers) {
  EfaTiming timing;
  timing.packet = std::chrono::duration_cast<VirtualDuration>(layers.packet_latency);
  timing.layer = std::chrono::duration_cast<VirtualDuration>(layers.layer_latency);
  const std::array<double, kNetworkLayers> given = {layers.layer1_oversubscription,
                                                    layers.layer2_oversubscription,
                                                    layers.layer3_oversubscription};
  for (std::size_t i = 0; i < kNetworkLayers; ++i) {
    const double permille = std::round(given.at(i) * 1000);
    if (std::abs(given.at(i) * 1000 - permille) > 1e-6) {
      return InvalidArgument("layer{}Oversubscription is {}; expected at most three decimals",
                             i + 1, given.at(i));
    }
    timing.oversubscription_permille.at(i) = static_cast<std::uint32_t>(permille);
  }
  return timing;
}

}  // namespace tahoma::sim
