// The tables that `kubectl get` prints, computed by the server.
//
//   Json columns = TableColumns(kind);                        // columnDefinitions
//   Json row = TableRow(kind, object, IncludeObject::kMetadata, now);
//   Json table = MakeTable(kind, objects, list_metadata, IncludeObject::kMetadata, now);
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

enum class IncludeObject : std::uint8_t { kNone, kMetadata, kObject };

Json TableColumns(const Kind& kind);

// {"cells": […], "object": …}. Ages are measured at `now`.
Json TableRow(const Kind& kind, const Json& object, IncludeObject include, WallTime now);

// A whole meta.k8s.io/v1 Table. `list_metadata` is the list's or the single object's metadata
// (resourceVersion, continue, remainingItemCount). In a watch each event is a Table of one row and
// only the first has columns: pass `with_columns` false for the others.
Json MakeTable(const Kind& kind, const std::vector<const Json*>& objects, const Json& list_metadata,
               IncludeObject include, WallTime now, bool with_columns = true);

// {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": …}
Json PartialObjectMetadata(const Json& object);

// "5m30s", "2d3h", "<invalid>" as kubectl's users know it.
std::string HumanAge(std::chrono::nanoseconds age);

}  // namespace tahoma::controller::apiserver
