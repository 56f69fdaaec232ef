// Discovery documents: which groups, versions and resources there are.
//
//   GET /api, /apis                 AggregatedCore/AggregatedGroups, or ApiVersions/ApiGroupList
//   GET /apis/<group>               ApiGroup
//   GET /api/v1, /apis/<g>/<v>      ApiResourceList
//
// The aggregated form needs exactly kAggregatedContentType as its Content-Type; which form a client
// wants is read from its Accept header by WantsAggregated.
//
// Thread safety: pure functions of a KindTable.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "controller/apiserver/kind.h"

namespace tahoma::controller {

inline constexpr std::string_view kAggregatedContentType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// True when one element of the Accept header asks for apidiscovery.k8s.io v2; other parameters and
// their order do not matter.
bool WantsAggregated(std::string_view accept);

nlohmann::json AggregatedCore(const KindTable& kinds);    // /api
nlohmann::json AggregatedGroups(const KindTable& kinds);  // /apis

// `server_address` is "host:port" as the client reached us.
nlohmann::json ApiVersions(std::string_view server_address);  // /api
nlohmann::json ApiGroupList(const KindTable& kinds);          // /apis
// nullopt: no such group or version, 404.
std::optional<nlohmann::json> ApiGroup(const KindTable& kinds, std::string_view group);
std::optional<nlohmann::json> ApiResourceList(const KindTable& kinds, std::string_view group,
                                              std::string_view version);

}  // namespace tahoma::controller
