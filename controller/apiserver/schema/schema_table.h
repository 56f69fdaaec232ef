// Reads the tables of types in controller/apiserver/schema/types, which describe built-in kinds:
//
//   package io.k8s.api.core.v1
//   type PodOS : The operating system of a pod.
//     name! string : linux or windows.
//   type PodSpec : What a pod runs.
//     containers! []Container listmap=name merge=name : Programs that run side by side.
//     nodeSelector map[string]string atomic : Labels that the node must have.
//     restartPolicy string enum=Always|OnFailure|Never default=Always : When to start again.
//
// A type is `string int32 int64 float bool quantity intstr time microtime bytes any`, `[]T`,
// `map[string]T`, or a type of the tables (`ObjectMeta` of this package, `meta.ObjectMeta` of
// another: the alias line `import meta io.k8s.…`). `!` after the name: required. Options:
// `listmap=a,b` `set` `atomic` `merge=key` `merge` `replace` (of an object) `retain`
// `enum=a|b` `default=JSON` (null: written where absent) `min=` `max=` `minlen=` `maxlen=`
// `maxitems=` `message` (of `any`: the type is that of the field in the protobuf message). Order of
// types does not matter; types may not be recursive.
//
// Thread safety: pure function.

#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/schema.h"

namespace tahoma::controller::apiserver {

// Returns the schemas by full name. kInvalidArgument names the line that is wrong.
absl::StatusOr<std::map<std::string, SchemaPtr, std::less<>>> ParseSchemaTables(
    const std::vector<std::string_view>& tables);

// The tables compiled into the program.
std::vector<std::string_view> BuiltInSchemaTables();

}  // namespace tahoma::controller::apiserver
