// Details of a published device, which only an allocator of any driver's devices needs: lists,
// policies of consumable capacity, nodes, and conditions that binding waits for.
//
//   const DeviceDetails details = ParseDeviceDetails(field, "nic.example.com");
//   RenderDetails(details, "nic.example.com", device);     // into the device's JSON
//
// Thread safety: values and pure functions.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/device.h"
#include "lib/kube/objects/node_selector.h"
#include "lib/kube/quantity.h"

namespace tahoma::kube {

// An attribute with several values of one type. Without values: an attribute of no type that this
// build knows.
struct ListAttribute {
  QualifiedName name;
  std::vector<AttributeValue> values;

  friend bool operator==(const ListAttribute&, const ListAttribute&) = default;
};

struct CapacityRange {
  Quantity min;
  std::optional<Quantity> max;
  std::optional<Quantity> step;  // amounts are min plus a multiple of the step

  friend bool operator==(const CapacityRange&, const CapacityRange&) = default;
};

// The amounts of a capacity that one allocation of a shared device may consume.
struct RequestPolicy {
  QualifiedName capacity;
  std::optional<Quantity> otherwise;  // `default`: for a request that names no amount
  std::optional<CapacityRange> range;
  std::vector<Quantity> values;  // ascending; empty: any amount

  friend bool operator==(const RequestPolicy&, const RequestPolicy&) = default;
};

struct DeviceDetails {
  std::vector<ListAttribute> lists;
  std::vector<RequestPolicy> policies;
  // The nodes of the device, in a slice whose devices have nodes of their own.
  std::string node;
  bool all_nodes = false;
  NodeTerms node_terms;
  // The device is of several nodes until it is allocated.
  bool binds_to_node = false;
  std::vector<std::string> binding_conditions;
  std::vector<std::string> binding_failure_conditions;

  friend bool operator==(const DeviceDetails&, const DeviceDetails&) = default;
};

// An amount that is no quantity fails the reading.
DeviceDetails ParseDeviceDetails(Field device, std::string_view driver);
// Adds the details to a device's JSON, which has the capacities.
void RenderDetails(const DeviceDetails& details, std::string_view driver, Json& device);

// Reads a quantity, a text or a number; anything else fails the reading and is 0.
Quantity ParseQuantity(Field value);
// "id", or "domain/id" where the domain is not the driver's.
std::string RenderName(const QualifiedName& name, std::string_view driver);
Json RenderValue(const AttributeValue& value);

}  // namespace tahoma::kube
