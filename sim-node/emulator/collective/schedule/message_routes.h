// The links that a plan's messages cross.
//
//   MessageRoutes routes(fabric);
//   TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkId>* links, routes.Of(send, through));
//
// Links are those of the fabric as it is, each message's found once.
//
// Thread safety: one thread.

#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <tuple>
#include <vector>

#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

class MessageRoutes {
 public:
  // It must outlive this.
  explicit MessageRoutes(const Fabric& fabric) : fabric_(fabric) {}

  // Returns the links of a send by their ids in the fabric: NeuronLinks inside a topology domain,
  // NICs and then uplinks between domains. The result lives as long as this. Errors as of
  // TorusLinks::FindRoute and EfaNetwork::FindRoute.
  absl::StatusOr<const std::vector<LinkId>*> Of(const Send& send, torus::ChipMask through);

 private:
  absl::StatusOr<std::vector<LinkId>> Inside(const Send& send, torus::ChipMask through) const;
  absl::StatusOr<std::vector<LinkId>> Between(torus::ChipIndex from, torus::ChipIndex to) const;

  const Fabric& fabric_;
  std::map<std::tuple<torus::ChipIndex, torus::ChipIndex, torus::ChipMask>, std::vector<LinkId>>
      routes_;
};

}  // namespace tahoma::sim
