// FieldsV1 as text: how the bodies of stored objects hold who owns which fields.
//
//   nlohmann::json fields = FieldText(set);   // a binary value: {"f:spec":{"f:members":{}}}
//   FieldSet same = FieldsIn(fields);
//   HasAnyOf(fields, written);                // without making a set of it
//
// Most of an object's values are the names in metadata.managedFields, which nobody but the writers
// of the list looks at, and which every write copies, compares, prints and frees. So an entry's
// fieldsV1 is one value there: its text, of the JSON type that no JSON text has (binary).
// AppendJson puts it out as it is, so clients never see the difference.
//
// Thread safety: pure functions.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "controller/apiserver/apply_fields.h"

namespace tahoma::controller {

// The set as text.
nlohmann::json FieldText(const FieldSet& set);

// The set of a fieldsV1, be it text or, from a client, an object.
FieldSet FieldsIn(const nlohmann::json& fields);

// True when `fields`, a text, has a member of `set`.
bool HasAnyOf(const nlohmann::json& fields, const FieldSet& set);

// Makes text of every fieldsV1 in the object's metadata.managedFields, or objects of the texts.
void CompactFields(nlohmann::json& object);
void ExpandFields(nlohmann::json& object);

}  // namespace tahoma::controller
