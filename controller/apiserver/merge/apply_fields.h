// Sets of fields: FieldsV1, and what server-side apply computes with them.
//
// A set is a tree. An edge is "f:<field>", "k:{<keys>}" (item of a keyed list) or "v:<value>" (item
// of a set); a node is a member ("." in JSON, or a leaf) or only leads to members.
// Source: structured-merge-diff (fieldpath, typed).
//
// Thread safety: values and pure functions.

#pragma once

#include <string>
#include <vector>

#include "controller/apiserver/schema/schema.h"
#include "lib/base/json_fwd.h"
#include "lib/base/shared_map.h"

namespace tahoma::controller::apiserver {

struct FieldSet {
  bool member = false;
  SharedMap<std::string, FieldSet> children;

  static FieldSet FromJson(const Json& fields);

  bool empty() const { return !member && children.empty(); }
  void Add(const FieldSet& other);
  void Remove(const FieldSet& other);
  FieldSet Union(const FieldSet& other) const;
  FieldSet Difference(const FieldSet& other) const;
  FieldSet Intersection(const FieldSet& other) const;
  // Returns the same set with every named field above a member added as a member.
  FieldSet WithNamedParents() const;
  // ".spec.containers[name=\"a\"].image" of every member.
  std::vector<std::string> Paths() const;

  friend bool operator==(const FieldSet&, const FieldSet&) = default;
};

// Returns the set below the field of this name; null when it is empty, or `set` is null.
const FieldSet* ChildOf(const FieldSet* set, const std::string& name);

// Whether a value's fields are its members, its items, or (neither) the value as one field.
bool MergesAsMap(const Schema& schema, const Json& value);
bool MergesAsList(const Schema& schema, const Json& value);
// The schema of a member or of items; one that says nothing for what is not in the schema.
const Schema& FieldOf(const Schema& schema, const std::string& name);
const Schema& ItemOf(const Schema& list);

// The edge to an item of a keyed list or set; absent keys take the schema's default.
std::string ItemEdge(const Schema& list, const Json& item);

// The fields that a configuration sets.
FieldSet FieldsOf(const Schema& schema, const Json& value);

struct Comparison {
  FieldSet added;
  FieldSet modified;
  FieldSet removed;
};
// Compares two objects, except for members of `ignored` and the fields below them.
Comparison Compare(const Schema& schema, const Json& before, const Json& after,
                   const FieldSet& ignored = {});

// `live` with the fields of `config` on top; items of lists that merge are matched by their edges.
Json MergeFields(const Schema& schema, const Json& live, const Json& config);

// `value` without the members of `fields` and all that is below them.
Json WithoutFields(const Schema& schema, const Json& value, const FieldSet& fields);

}  // namespace tahoma::controller::apiserver
