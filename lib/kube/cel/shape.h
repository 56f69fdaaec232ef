// The types that a schema declares for the values of an object: the static types of CEL expressions
// over the object.
//
// Thread safety: values.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/cel/value.h"

namespace tahoma::kube {

struct CelShape;
using CelShapePtr = std::shared_ptr<const CelShape>;

struct CelShape {
  // Whether the order of a list counts when lists are compared (x-kubernetes-list-type).
  enum class ListType : std::uint8_t { kAtomic, kSet, kMap };
  struct Field {
    std::string name;  // in the object
    CelShapePtr shape;
  };

  // kBool, kInt, kDouble, kString, kList, kMap, kObject; kDyn: any of them.
  CelType type = CelType::kDyn;
  std::map<std::string, Field, std::less<>> fields = {};  // of kObject, by their names in CEL
  CelShapePtr element = nullptr;                          // of kList; the values of kMap
  ListType list_type = ListType::kAtomic;
  std::vector<std::string> keys = {};  // of ListType::kMap: the fields that tell entries apart
  // The format of strings that are no strings in CEL: no expression may use such a value.
  std::string unsupported = {};
};

// Returns a value of the object for an expression: a scalar is copied, a list, map or object is a
// CelValue::ObjectPart.
CelValue ToCelValue(const Json& value, const CelShape& shape);

// Returns all of it as lists, maps and scalars.
CelValue WholeValue(const Json& value, const CelShape& shape);

// Returns whether two values of one schema are equal, and adds the steps that the comparison took.
// Fields of objects that the schema does not declare are not compared.
bool SameInCel(const Json& a, const Json& b, const CelShape& shape, std::uint64_t& steps);

// Returns the field of a kObject by its name in CEL; a word of CEL's own ("namespace") may stand
// without its underscores after a dot, as in Kubernetes. nullptr: there is none.
const CelShape::Field* FindCelField(const CelShape& shape, std::string_view name);

// Returns the name that a field has in CEL, where words and some characters mean something else:
// "kebab-case" is "kebab__dash__case". Empty when it cannot be written there.
// Source: k8s.io/apiserver pkg/cel/escaping.go.
std::string CelFieldName(std::string_view field);

}  // namespace tahoma::kube
