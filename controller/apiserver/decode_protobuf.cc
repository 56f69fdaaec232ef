// The few protobuf messages that kubectl sends without offering JSON, read field by field. Unknown
// fields are skipped, as protobuf demands; every length is checked against what is left.

#include <absl/strings/escaping.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "controller/apiserver/decode_body.h"
#include "controller/apiserver/status_error.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using json = Json;

constexpr std::string_view kMagic{"k8s\0", 4};

struct Field {
  std::uint64_t number = 0;
  std::uint64_t varint = 0;
  std::string_view bytes;
};

// Reads one message's fields in order; `ok()` is false after damage.
class Reader {
 public:
  explicit Reader(std::string_view message) : rest_(message) {}

  bool Next(Field& field) {
    if (rest_.empty() || !ok_) return false;
    const std::uint64_t tag = Varint();
    field = {.number = tag >> 3U, .varint = 0, .bytes = {}};
    switch (tag & 7U) {
      case 0:
        field.varint = Varint();
        break;
      case 1:
        field.bytes = Take(8);
        break;
      case 2:
        field.bytes = Take(Varint());
        break;
      case 5:
        field.bytes = Take(4);
        break;
      default:
        ok_ = false;
    }
    return ok_;
  }
  bool ok() const { return ok_; }

 private:
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    ok_ = false;
    return 0;
  }
  std::string_view Take(std::uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool ok_ = true;
};

enum class MapValue { kText, kBase64 };

bool ReadMapEntry(std::string_view message, MapValue form, json& map) {
  Reader reader(message);
  Field field;
  std::string key, value;
  while (reader.Next(field)) {
    if (field.number == 1) key = field.bytes;
    if (field.number == 2) value = field.bytes;
  }
  if (form == MapValue::kBase64) {
    value = absl::Base64Escape({value.data(), value.size()});
  }
  map[key] = value;
  return reader.ok();
}

bool ReadOwner(std::string_view message, json& owners) {
  Reader reader(message);
  Field field;
  json owner = json::object();
  while (reader.Next(field)) {
    if (field.number == 1) owner["kind"] = field.bytes;
    if (field.number == 3) owner["name"] = field.bytes;
    if (field.number == 4) owner["uid"] = field.bytes;
    if (field.number == 5) owner["apiVersion"] = field.bytes;
    if (field.number == 6) owner["controller"] = field.varint != 0;
    if (field.number == 7) owner["blockOwnerDeletion"] = field.varint != 0;
  }
  owners.push_back(std::move(owner));
  return reader.ok();
}

bool ReadMetadata(std::string_view message, json& metadata) {
  Reader reader(message);
  Field field;
  bool ok = true;
  const auto text = [&](const char* name) {
    if (!field.bytes.empty()) metadata[name] = field.bytes;
  };
  while (ok && reader.Next(field)) {
    switch (field.number) {
      case 1:
        text("name");
        break;
      case 2:
        text("generateName");
        break;
      case 3:
        text("namespace");
        break;
      case 5:
        text("uid");
        break;
      case 6:
        text("resourceVersion");
        break;
      case 11:
        ok = ReadMapEntry(field.bytes, MapValue::kText, metadata["labels"]);
        break;
      case 12:
        ok = ReadMapEntry(field.bytes, MapValue::kText, metadata["annotations"]);
        break;
      case 13:
        ok = ReadOwner(field.bytes, metadata["ownerReferences"]);
        break;
      case 14:
        metadata["finalizers"].push_back(field.bytes);
        break;
      default:
        break;
    }
  }
  return ok && reader.ok();
}

bool ReadNamespace(std::uint64_t number, const Field& field, json& object) {
  if (number != 2) return true;
  Reader spec(field.bytes);
  Field inner;
  object["spec"] = json::object();
  while (spec.Next(inner)) {
    if (inner.number == 1) object["spec"]["finalizers"].push_back(inner.bytes);
  }
  return spec.ok();
}

bool ReadConfigMap(std::uint64_t number, const Field& field, json& object) {
  if (number == 2) return ReadMapEntry(field.bytes, MapValue::kText, object["data"]);
  if (number == 3) return ReadMapEntry(field.bytes, MapValue::kBase64, object["binaryData"]);
  if (number == 4) object["immutable"] = field.varint != 0;
  return true;
}

bool ReadSecret(std::uint64_t number, const Field& field, json& object) {
  if (number == 2) return ReadMapEntry(field.bytes, MapValue::kBase64, object["data"]);
  if (number == 3 && !field.bytes.empty()) object["type"] = field.bytes;
  if (number == 4) return ReadMapEntry(field.bytes, MapValue::kText, object["stringData"]);
  if (number == 5) object["immutable"] = field.varint != 0;
  return true;
}

bool ReadServiceAccount(std::uint64_t number, const Field& field, json& object) {
  if (number == 4) object["automountServiceAccountToken"] = field.varint != 0;
  return true;
}

bool ReadDeleteOptions(std::string_view message, json& object) {
  Reader reader(message);
  Field field;
  while (reader.Next(field)) {
    if (field.number == 1) {
      object["gracePeriodSeconds"] = static_cast<std::int64_t>(field.varint);
    } else if (field.number == 2) {
      Reader inner_reader(field.bytes);
      Field inner;
      while (inner_reader.Next(inner)) {
        if (inner.number == 1) object["preconditions"]["uid"] = inner.bytes;
        if (inner.number == 2) object["preconditions"]["resourceVersion"] = inner.bytes;
      }
      if (!inner_reader.ok()) return false;
    } else if (field.number == 4) {
      object["propagationPolicy"] = field.bytes;
    } else if (field.number == 5) {
      object["dryRun"].push_back(field.bytes);
    }
  }
  return reader.ok();
}

using FieldReader = bool (*)(std::uint64_t number, const Field& field, json& object);

FieldReader ReaderOf(std::string_view api_version, std::string_view kind) {
  if (api_version != "v1") return nullptr;
  if (kind == "Namespace") return &ReadNamespace;
  if (kind == "ConfigMap") return &ReadConfigMap;
  if (kind == "Secret") return &ReadSecret;
  if (kind == "ServiceAccount") return &ReadServiceAccount;
  return nullptr;
}

bool ReadObject(std::string_view message, FieldReader read, json& object) {
  object["metadata"] = json::object();
  Reader reader(message);
  Field field;
  while (reader.Next(field)) {
    const bool ok = field.number == 1 ? ReadMetadata(field.bytes, object["metadata"])
                                      : read(field.number, field, object);
    if (!ok) return false;
  }
  return reader.ok();
}

}  // namespace

absl::StatusOr<json> DecodeProtobuf(std::string_view bytes) {
  const absl::Status damaged = BadRequestError("the protobuf body is damaged");
  if (!bytes.starts_with(kMagic)) return damaged;
  Reader envelope(bytes.substr(kMagic.size()));
  Field field;
  std::string api_version, kind;
  std::string_view raw;
  while (envelope.Next(field)) {
    if (field.number == 1) {
      Reader type(field.bytes);
      Field part;
      while (type.Next(part)) {
        if (part.number == 1) api_version = part.bytes;
        if (part.number == 2) kind = part.bytes;
      }
      if (!type.ok()) return damaged;
    }
    if (field.number == 2) raw = field.bytes;
  }
  if (!envelope.ok()) return damaged;
  json object = {{"apiVersion", api_version}, {"kind", kind}};
  bool ok = false;
  if (kind == "DeleteOptions") {
    ok = ReadDeleteOptions(raw, object);
  } else if (const FieldReader read = ReaderOf(api_version, kind)) {
    ok = ReadObject(raw, read, object);
  } else {
    return UnsupportedMediaTypeError("application/json, application/yaml");
  }
  if (!ok) return damaged;
  // Bytes of names and labels come from outside and may be no UTF-8.
  if (!json::accept(object.dump(-1, ' ', false, json::error_handler_t::ignore)) ||
      object.dump(-1, ' ', false, json::error_handler_t::ignore) !=
          object.dump(-1, ' ', false, json::error_handler_t::replace)) {
    return BadRequestError("the protobuf body holds text that is not UTF-8");
  }
  return object;
}

}  // namespace tahoma::controller
