// Explains in words why a gang waits.
//
// Looks at every domain once and at the boxes of at most kDomainsCompared: milliseconds for a
// million chips.
//
// Thread safety: one thread.

#pragma once

#include "controller/plan/decision.h"
#include "controller/plan/member_fit.h"
#include "controller/plan/request.h"
#include "controller/plan/search.h"

namespace tahoma::controller {

// Explains why `search`, which has just failed, did not place the gang in `state`.
Blocked Explain(const CompiledGang& gang, Search& search, MemberFitter& fitter,
                const ClusterState& state);

// Explains a gang whose request is wrong in itself.
Blocked ExplainInvalid(const absl::Status& status);

}  // namespace tahoma::controller
