// The messages of controller/apiserver/protobuf/*.proto, as encoding and decoding walk them.
//
// Scope: names, numbers and types; read once from the descriptors that protoc made of the files.
//
// Thread safety: immutable after the first use.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tahoma::controller::apiserver {

struct MessageForm;

struct FieldForm {
  enum class Type : std::uint8_t { kString, kBytes, kBool, kInt32, kInt64, kDouble, kMessage };

  std::uint32_t number = 0;
  Type type = Type::kString;
  bool repeated = false;
  bool map = false;       // `message` is the entry: field 1 is the key, field 2 the value
  bool optional = false;  // a Go pointer: absent is not the same as empty
  bool always = false;    // of a message: on the wire also when it is empty
  bool kept = false;      // in JSON also when it is empty
  bool inlined = false;   // its fields are members of the object around it
  const MessageForm* message = nullptr;
  std::string name;  // in JSON
};

struct MessageForm {
  // Types whose JSON is not an object of their fields.
  enum class Special : std::uint8_t {
    kNone,
    kTime,
    kMicroTime,
    kQuantity,
    kIntOrString,
    kRaw,              // bytes that hold JSON: RawExtension, FieldsV1, JSON
    kSchemaOrBool,     // JSONSchemaProps, or whether anything is allowed
    kSchemaOrSchemas,  // one for all items, or one for each
    kSchemaOrTexts,
    kList,  // a list of texts as the value of a map: ExtraValue
  };

  std::string name;  // "k8s.io.api.core.v1.Pod"
  Special special = Special::kNone;
  std::vector<FieldForm> fields;     // by number
  std::vector<std::size_t> by_name;  // indexes of fields by their names in JSON

  // Null when there is none.
  const FieldForm* Find(std::uint32_t number) const;
};

// The bounds of times, in seconds since 1970: Go's zero time 0001-01-01T00:00:00Z, which is no
// bytes and null in JSON, and 9999-12-31T23:59:59Z.
inline constexpr std::int64_t kFirstSecond = -62135596800;
inline constexpr std::int64_t kLastSecond = 253402300799;

// The message of a kind; of any group's DeleteOptions that of meta/v1. Null when there is none.
const MessageForm* FormOfKind(std::string_view api_version, std::string_view kind);
// Returns a message's form by its full name; aborts when there is none, as only our own names are
// asked for.
const MessageForm& FormNamed(std::string_view name);

// The compiled descriptors (a FileDescriptorSet), which the build makes.
std::string_view ProtobufDescriptors();

}  // namespace tahoma::controller::apiserver
