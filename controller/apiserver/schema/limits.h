// Limits of Kubernetes that both its validation and its controllers keep.
//
//   if (users.size() > kReservedForMax) …
//
// Thread safety: constants.

#pragma once

#include <cstddef>

namespace tahoma::controller::apiserver {

// How many pods may share a claim. resource/v1 types.go: ResourceClaimReservedForMaxSize.
inline constexpr std::size_t kReservedForMax = 256;

}  // namespace tahoma::controller::apiserver
