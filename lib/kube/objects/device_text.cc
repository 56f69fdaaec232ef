#include "lib/kube/objects/device_text.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

#include "lib/base/json_cursor.h"

namespace tahoma::kube {
namespace {

// Reads the text of devices; each function returns false where ParseDevice must read.
class DeviceReader {
 public:
  DeviceReader(std::string_view text, std::string_view driver) : cursor_(text), driver_(driver) {}

  bool Read(std::vector<Device>& devices) {
    const bool good = cursor_.Array([&] { return One(devices.emplace_back()); });
    return good && cursor_.AtEnd();
  }

 private:
  // Notes a member; false for a member that comes twice, of which ParseDevice sees the last.
  static bool First(unsigned bit, unsigned& seen) {
    const bool is_first = (seen & bit) == 0;
    seen |= bit;
    return is_first;
  }

  bool One(Device& device) {
    unsigned seen = 0;
    const bool good = cursor_.Object([&](std::string_view member) {
      if (member == "name") return First(1, seen) && Text(device.name);
      if (member == "attributes") return First(2, seen) && Attributes(device);
      if (member == "capacity") return First(4, seen) && Capacities(device);
      if (member == "taints") return First(8, seen) && Taints(device);
      if (member == "allowMultipleAllocations") {
        return First(16, seen) && Flag(device.allow_multiple_allocations);
      }
      return cursor_.Skip();
    });
    return good && !device.name.empty();
  }

  // Calls one(name) for each member, whose names must ascend as ParseDevice sees the members.
  template <typename One>
  bool Named(const One& one) {
    std::string_view last;
    return cursor_.Object([&](std::string_view name) {
      const bool ascends = last < name;
      last = name;
      return ascends && one(ParseQualifiedName(name, driver_));
    });
  }

  bool Attributes(Device& device) {
    device.attributes.reserve(24);  // a chip of ours has about as many
    return Named([&](QualifiedName name) {
      Attribute& attribute = device.attributes.emplace_back();
      attribute.name = std::move(name);
      int values = 0;
      return cursor_.Object([&](std::string_view type) {
        return ++values == 1 && Value(type, attribute.value);
      }) && values == 1;
    });
  }

  bool Value(std::string_view type, AttributeValue& value) {
    if (type == "string") return Text(value.emplace<std::string>());
    if (type == "int") return Number(value.emplace<std::int64_t>());
    if (type == "version") return Text(value.emplace<Version>().text);
    return type == "bool" && Flag(value.emplace<bool>());
  }

  bool Capacities(Device& device) {
    return Named([&](QualifiedName name) {
      Capacity& capacity = device.capacities.emplace_back();
      capacity.name = std::move(name);
      int values = 0;
      return cursor_.Object([&](std::string_view member) {
        return member == "value" && ++values == 1 && Text(capacity.quantity);
      }) && values == 1;
    });
  }

  bool Taints(Device& device) {
    return cursor_.Array([&] {
      Taint& taint = device.taints.emplace_back();
      unsigned seen = 0;
      return cursor_.Object([&](std::string_view member) {
        if (member == "key") return First(1, seen) && Text(taint.key);
        if (member == "value") return First(2, seen) && Text(taint.value);
        if (member != "effect") return cursor_.Skip();
        std::string_view effect;
        if (!First(4, seen) || !cursor_.PlainText(effect)) return false;
        taint.effect = effect == "NoExecute" ? TaintEffect::kNoExecute : TaintEffect::kNoSchedule;
        return effect == "NoExecute" || effect == "NoSchedule";
      });
    });
  }

  bool Text(std::string& text) {
    std::string_view plain;
    if (!cursor_.PlainText(plain)) return false;
    text = plain;
    return true;
  }
  bool Number(std::int64_t& number) {
    std::string_view word;
    if (!cursor_.Word(word)) return false;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return false;
    return word == std::to_string(number);  // JSON has no leading zeros
  }
  bool Flag(bool& flag) {
    std::string_view word;
    if (!cursor_.Word(word)) return false;
    flag = word == "true";
    return flag || word == "false";
  }

  JsonCursor cursor_;
  const std::string_view driver_;
};

}  // namespace

std::optional<std::vector<Device>> ReadDevices(std::string_view text, std::string_view driver) {
  std::vector<Device> devices;
  if (!DeviceReader(text, driver).Read(devices)) return std::nullopt;
  return devices;
}

}  // namespace tahoma::kube
