// The CEL rules of a CustomResourceDefinition (x-kubernetes-validations): compiled once with its
// schema, and asked of each object that is written.
//
//   ReadRules(open_api, place, schema, faults);             // crd.cc, for each part of a schema
//   CheckRules(*kind.schema, &old_object, object, causes);  // nullptr: the object is new
//
// A rule with oldSelf is asked where there is an old value. The answer of any other rule does not
// count for a value that has not changed (KEP-4008): an object from before the rule can still be
// labelled. The steps of one rule, and of all rules of an object, are bounded.
//
// Scope: the language CEL is lib/kube/cel. Unlike kube-apiserver the server estimates no costs when
// a definition is created.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <vector>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/schema.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// Where a part of an openAPIV3Schema stands.
struct RulePlace {
  std::string path;
  bool is_resource = false;  // the part is a whole object, with apiVersion, kind and metadata
  // The path of the first list above whose items have no keys, so that nothing tells which item was
  // which before a change. Empty: there is no such list.
  std::string uncorrelatable = {};
};

// Reads the rules of one part, whose fields `schema` has already. A rule that cannot be used adds
// to `faults`; as long as the definition has such a rule, its objects are refused.
void ReadRules(const Json& open_api, const RulePlace& place, Schema& schema, Causes& faults);

// Adds a cause for each rule that does not hold. `old_object` is null when the object is created.
// Values may be of other types than the schema says.
void CheckRules(const Schema& schema, const Json* old_object, const Json& object, Causes& causes);

}  // namespace tahoma::controller::apiserver
