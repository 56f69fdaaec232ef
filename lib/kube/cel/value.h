// Values of CEL expressions over devices and over objects of the API.
//
// Thread safety: values; lists and maps are shared and immutable.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/cel/semver.h"
#include "lib/kube/quantity.h"

namespace tahoma::kube {

// Static and dynamic types. kDyn is static only: the type is not known before evaluation.
enum class CelType : std::uint8_t {
  kDyn,
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kList,
  kMap,
  kOptional,
  kQuantity,
  kSemver,
  kDevice,      // `device`
  kDomains,     // device.attributes: map of domains
  kIds,         // device.attributes["domain"]
  kCapDomains,  // device.capacity
  kCapIds,      // device.capacity["domain"]
  kObject,      // an object with the fields that its schema declares
};

std::string_view ToString(CelType type);

// The view of a device that an expression has. Names are complete: an id published without a domain
// belongs to the driver's.
class CelValue;
class DeviceView {
 public:
  virtual ~DeviceView() = default;
  virtual std::string_view Driver() const = 0;
  virtual bool AllowsMultipleAllocations() const = 0;
  // Returns nullopt when the device does not have it.
  virtual std::optional<CelValue> Attribute(std::string_view domain, std::string_view id) const = 0;
  virtual std::optional<CelValue> Capacity(std::string_view domain, std::string_view id) const = 0;
  // Returns all of them, as {domain, id}.
  using Names = std::vector<std::pair<std::string, std::string>>;
  virtual Names AttributeNames() const = 0;
  virtual Names CapacityNames() const = 0;
};

struct CelShape;

class CelValue {
 public:
  using List = std::vector<CelValue>;
  using Map = std::vector<std::pair<CelValue, CelValue>>;  // in order of insertion, keys distinct
  struct Bytes {
    std::string bytes;
  };
  // An optional: nullptr is none.
  struct Optional {
    std::shared_ptr<const CelValue> value;
  };
  // A part of the device that is looked up, not copied.
  struct DevicePart {
    CelType type;
    std::string domain;  // of kIds and kCapIds
  };
  // A list, map or object inside of the object that an expression is about: looked up, not copied.
  struct ObjectPart {
    const Json* value;
    const CelShape* shape;
  };

  CelValue() = default;  // null
  explicit CelValue(bool value) : value_(value) {}
  explicit CelValue(std::int64_t value) : value_(value) {}
  explicit CelValue(std::uint64_t value) : value_(value) {}
  explicit CelValue(double value) : value_(value) {}
  explicit CelValue(std::string value) : value_(std::move(value)) {}
  explicit CelValue(Bytes value) : value_(std::move(value)) {}
  explicit CelValue(List value) : value_(std::make_shared<const List>(std::move(value))) {}
  explicit CelValue(Map value) : value_(std::make_shared<const Map>(std::move(value))) {}
  explicit CelValue(Optional value) : value_(std::move(value)) {}
  explicit CelValue(Quantity value) : value_(value) {}
  explicit CelValue(Semver value) : value_(std::make_shared<const Semver>(std::move(value))) {}
  explicit CelValue(DevicePart value) : value_(std::move(value)) {}
  explicit CelValue(ObjectPart value) : value_(value) {}

  CelType type() const;

  // Returns nullptr when the value is of another type.
  template <typename T>
  const T* As() const {
    return std::get_if<T>(&value_);
  }
  const List* AsList() const { return Shared<List>(); }
  const Map* AsMap() const { return Shared<Map>(); }
  const Semver* AsSemver() const { return Shared<Semver>(); }
  bool IsNumber() const;

 private:
  template <typename T>
  const T* Shared() const {
    const auto* pointer = std::get_if<std::shared_ptr<const T>>(&value_);
    return pointer == nullptr ? nullptr : pointer->get();
  }

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Bytes,
               std::shared_ptr<const List>, std::shared_ptr<const Map>, Optional, Quantity,
               std::shared_ptr<const Semver>, DevicePart, ObjectPart>
      value_;
};

// Is CEL's ==: false for values of different types, but numbers compare across types. Parts of a
// device or an object must have been made into lists and maps before.
bool Equal(const CelValue& a, const CelValue& b);

// Is CEL's order: negative, zero or positive; nullopt where < has no meaning (different types,
// NaN).
std::optional<int> Order(const CelValue& a, const CelValue& b);

// Returns the entry of a map; nullptr when absent.
const CelValue* FindKey(const CelValue::Map& map, const CelValue& key);

// Returns the number of code points of a UTF-8 text.
std::size_t CodePoints(std::string_view text);

}  // namespace tahoma::kube
