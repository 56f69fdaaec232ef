// FieldsV1 as text: the form in which stored objects keep the owners of their fields.
//
//   Json fields = FieldText(set);   // a binary value: {"f:spec":{"f:members":{}}}
//   FieldSet same = FieldsIn(fields);
//   HasAnyOf(fields, written);                // without making a set of the text
//
// Most of an object's values are the names in metadata.managedFields. Only writers of the list read
// the names, but every write copies, compares, prints and frees them. A stored entry's fieldsV1 is
// therefore a single value: its text, of the only JSON type that no JSON text has (binary).
// AppendJson prints the text unchanged: clients never see the difference.
//
// Thread safety: pure functions.

#pragma once

#include <string>

#include "controller/apiserver/merge/apply_fields.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// Returns the set as text.
Json FieldText(const FieldSet& set);

// Returns, as fieldsV1 text, the fields that the writer of a new object owns: every leaf of
// `object` that is not in `empty` (which holds empty objects and lists only), except the subtrees
// in `unowned`. Metadata is never excluded. The result equals FieldText(Compare(schema, empty,
// object).added without `unowned`), without building the set. Null when there are no such fields,
// discarded (nlohmann's) when a list has two items of the same keys, which make one edge together.
Json AddedText(const Schema& schema, const Json& empty, const Json& object,
               const FieldSet& unowned);

// Returns the set of a fieldsV1: of a text or, from a client, of an object.
FieldSet FieldsIn(const Json& fields);

// Returns whether `fields`, a text, has a member of `set`.
bool HasAnyOf(const Json& fields, const FieldSet& set);

// Makes text of every fieldsV1 in the object's metadata.managedFields, or objects of the texts.
void CompactFields(Json& object);
void ExpandFields(Json& object);

}  // namespace tahoma::controller::apiserver
