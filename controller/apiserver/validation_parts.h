// The checks that ValidateCreate and ValidateUpdate are made of, one file per group of kinds.
//
// Each appends to a list of causes. Scope: internal to validation*.cc.
//
// Thread safety: pure functions.

#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/validation.h"

namespace tahoma::controller {

using Causes = std::vector<Cause>;

// resource/v1 types.go: ResourceClaimReservedForMaxSize.
inline constexpr std::size_t kReservedForMax = 256;

// The value at a path of field names; null when something on the way is missing.
const nlohmann::json& ValueAt(const nlohmann::json& object,
                              std::initializer_list<std::string_view> path);
std::string TextAt(const nlohmann::json& object, std::initializer_list<std::string_view> path);
std::size_t SizeAt(const nlohmann::json& object, std::initializer_list<std::string_view> path);

// Adds `Invalid value: "x": why` unless `why` is empty.
void AddInvalid(std::string field, std::string_view value, const std::string& why, Causes& causes);
// Adds when the two values differ.
void CheckImmutable(std::string field, const nlohmann::json& old_value,
                    const nlohmann::json& new_value, Causes& causes);

void CheckMetadata(const Kind& kind, const nlohmann::json& object, Causes& causes);
void CheckMetadataUpdate(const nlohmann::json& old_object, const nlohmann::json& new_object,
                         Causes& causes);

void CheckPod(const nlohmann::json& pod, Causes& causes);
void CheckPodUpdate(const nlohmann::json& old_pod, const nlohmann::json& new_pod, Causes& causes);
void CheckPodStatusUpdate(const nlohmann::json& old_pod, const nlohmann::json& new_pod,
                          Causes& causes);
// Also of a Secret.
void CheckConfigMap(const nlohmann::json& map, Causes& causes);
void CheckNode(const nlohmann::json& node, Causes& causes);

// `path` is "spec" of a claim and "spec.spec" of a template.
void CheckClaimSpec(const nlohmann::json& spec, const std::string& path, Causes& causes);
void CheckClaimStatusUpdate(const nlohmann::json& old_claim, const nlohmann::json& new_claim,
                            Causes& causes);
void CheckSliceSpec(const nlohmann::json& spec, Causes& causes);
void CheckSliceUpdate(const nlohmann::json& old_spec, const nlohmann::json& new_spec,
                      Causes& causes);
void CheckClassSpec(const nlohmann::json& spec, Causes& causes);

// Our own kind: shape and slices (tahoma.dev Gang).
void CheckGang(const nlohmann::json& gang, Causes& causes);

}  // namespace tahoma::controller
