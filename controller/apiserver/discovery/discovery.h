// Discovery documents, which name the groups, versions and resources that are served:
//
//   GET /api, /apis                 AggregatedCore/AggregatedGroups, or ApiVersions/ApiGroupList
//   GET /apis/<group>               ApiGroup
//   GET /api/v1, /apis/<g>/<v>      ApiResourceList
//
// The aggregated form needs exactly kAggregatedContentType as its Content-Type; which form a client
// wants is read from its Accept header by WantsAggregated.
//
// Besides the kinds of the table they have the reviews, which are answered and never stored.
//
// Thread safety: pure functions of a KindTable.

#pragma once

#include <optional>
#include <string_view>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

inline constexpr std::string_view kAggregatedContentType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// True when one element of the Accept header asks for apidiscovery.k8s.io v2; other parameters and
// their order do not matter.
bool WantsAggregated(std::string_view accept);

Json AggregatedCore(const KindTable& kinds);    // /api
Json AggregatedGroups(const KindTable& kinds);  // /apis

// `server_address` is "host:port" as the client reached us.
Json ApiVersions(std::string_view server_address);  // /api
Json ApiGroupList(const KindTable& kinds);          // /apis
// nullopt: no such group or version, 404.
std::optional<Json> ApiGroup(const KindTable& kinds, std::string_view group);
std::optional<Json> ApiResourceList(const KindTable& kinds, std::string_view group,
                                    std::string_view version);

}  // namespace tahoma::controller::apiserver
