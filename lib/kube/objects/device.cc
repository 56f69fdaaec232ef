#include "lib/kube/objects/device.h"

#include <absl/hash/hash.h>
#include <fmt/format.h>

#include <optional>

#include "lib/base/json.h"
#include "lib/kube/json_writer.h"

namespace tahoma::kube {
namespace {

// nullopt for a value of a type that is not known.
std::optional<AttributeValue> ParseValue(Field field) {
  if (const Field text = field.At("string"); text.has_value()) return std::string(text.Text());
  if (const Field number = field.At("int"); number.has_value()) return number.Int();
  if (const Field version = field.At("version"); version.has_value()) {
    return Version{std::string(version.Text())};
  }
  if (const Field flag = field.At("bool"); flag.has_value()) return flag.Bool();
  return std::nullopt;
}

}  // namespace

QualifiedName ParseQualifiedName(std::string_view text, std::string_view default_domain) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {std::string(default_domain), std::string(text)};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::string ToString(const AttributeValue& value) {
  struct Printer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", v); }
    std::string operator()(const Version& v) const { return v.text; }
  };
  return std::visit(Printer{}, value);
}

std::size_t HashOf(const AttributeValue& value) {
  return absl::HashOf(value.index(),
                      std::visit([](const auto& v) { return absl::HashOf(v); }, value));
}

const AttributeValue* Device::Find(std::string_view domain, std::string_view id) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.name.id == id && attribute.name.domain == domain) return &attribute.value;
  }
  return nullptr;
}

Device ParseDevice(Field field, std::string_view driver) {
  Device device;
  device.name = field.Required("name").Text();
  const Field attributes = field.At("attributes");
  device.attributes.reserve(attributes.size());  // a fleet has millions of them
  attributes.Entries([&](const std::string& name, Field attribute) {
    std::optional<AttributeValue> value = ParseValue(attribute);
    if (value) device.attributes.push_back({ParseQualifiedName(name, driver), *std::move(value)});
  });
  field.At("capacity").Entries([&](const std::string& name, Field capacity) {
    const Json& value = capacity.At("value").json();
    device.capacities.push_back(
        {.name = ParseQualifiedName(name, driver),
         .quantity = value.is_string() ? value.get<std::string>() : JsonText(value)});
  });
  for (const Field taint : field.At("taints").Items()) device.taints.push_back(ParseTaint(taint));
  device.allow_multiple_allocations = field.At("allowMultipleAllocations").Bool();
  return device;
}

}  // namespace tahoma::kube
