// Where a webhook's service is, by the objects that the API server stores.
//
// Nothing routes to services here: the first ready address of the service's Endpoints, or of its
// EndpointSlices, is taken.
//
// Thread safety: pure but for the objects, which may be read from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "controller/apiserver/storage/object_store.h"
#include "controller/apiserver/webhooks/webhook.h"

namespace tahoma::controller::apiserver {

// Returns "host:port". kNotFound when there is no such service, or no port of that number;
// kUnavailable when the service has no address.
absl::StatusOr<std::string> AddressOf(const ObjectStore& objects, const WebhookTarget& target);

}  // namespace tahoma::controller::apiserver
