// The OpenAPI 3.1 document of the admin API, made of its table of routes.
//
// Tools make clients from the document; no part of it is written by hand.
//
// Scope: the document.
//
// Thread safety: pure functions.

#pragma once

#include <string>

#include "controller/admin/route_table.h"

namespace tahoma::controller {

// Returns the document, as JSON.
std::string OpenApiOf(const RouteTable& routes);

// Returns the route that serves the document of all routes, including itself. `routes` must outlive
// it.
Route OpenApiRoute(const RouteTable& routes);

}  // namespace tahoma::controller
