// JSON to protobuf, with exactly the bytes of Go's types: fields by number, members of maps by
// their keys, plain values also when empty.

#include <absl/strings/escaping.h>
#include <absl/time/time.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <array>
#include <bit>
#include <utility>

#include "controller/apiserver/protobuf/message_form.h"
#include "controller/apiserver/protobuf/protobuf.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;
using Special = MessageForm::Special;
using Type = FieldForm::Type;

constexpr std::string_view kFirstBytes{"k8s\0", 4};
constexpr std::size_t kVarintMax = 10;

void PutVarint(std::uint64_t value, std::string& out) {
  std::array<std::uint8_t, kVarintMax> bytes{};
  const std::uint8_t* const end = CodedOutputStream::WriteVarint64ToArray(value, bytes.data());
  out.append(bytes.begin(), bytes.begin() + (end - bytes.data()));
}
void PutTag(std::uint32_t number, WireFormatLite::WireType wire, std::string& out) {
  PutVarint(WireFormatLite::MakeTag(static_cast<int>(number), wire), out);
}
void PutNumber(std::uint32_t number, std::int64_t value, std::string& out) {
  PutTag(number, WireFormatLite::WIRETYPE_VARINT, out);
  PutVarint(static_cast<std::uint64_t>(value), out);
}
// Puts the head of a field of `bytes` bytes.
void PutHead(std::uint32_t number, std::size_t bytes, std::string& out) {
  PutTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, out);
  PutVarint(bytes, out);
}
void PutBytes(std::uint32_t number, std::string_view bytes, std::string& out) {
  PutHead(number, bytes.size(), out);
  out += bytes;
}

// Puts a message of unknown size: `fill` appends the fields, then the size goes in front of them.
template <typename Fill>
absl::Status PutMessage(std::uint32_t number, std::string& out, const Fill& fill) {
  PutTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, out);
  const std::size_t begin = out.size();
  out += '\0';  // the size of most messages is one byte
  TAHOMA_RETURN_IF_ERROR(fill());
  const std::size_t size = out.size() - begin - 1;
  std::string prefix;
  PutVarint(size, prefix);
  out.replace(begin, 1, prefix);
  return absl::OkStatus();
}

absl::Status Mismatch(const Json& value, std::string_view wanted) {
  return InvalidArgument("it is a {}, not {}", value.type_name(), wanted);
}

absl::Status PutMembers(const MessageForm& form, const Json& object, std::string& out);

absl::StatusOr<std::string_view> TextOf(const Json& value) {
  if (!value.is_string()) return Mismatch(value, "a string");
  return std::string_view(value.get_ref<const std::string&>());
}

absl::Status PutTime(const MessageForm& form, const Json& value, std::string& out) {
  TAHOMA_ASSIGN_OR_RETURN(const std::string_view text, TextOf(value));
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, {text.data(), text.size()}, &time, &error)) {
    return InvalidArgument("'{}' is no time: {}", text, error);
  }
  const std::int64_t seconds = absl::ToUnixSeconds(time);
  const std::int64_t micros = (time - absl::FromUnixSeconds(seconds)) / absl::Microseconds(1);
  if (seconds < kFirstSecond || seconds > kLastSecond) {
    return InvalidArgument("'{}' is no time of the years 1 to 9999", text);
  }
  if (seconds == kFirstSecond && micros == 0) return absl::OkStatus();
  PutNumber(1, seconds, out);
  PutNumber(2, form.special == Special::kMicroTime ? micros * 1000 : 0, out);
  return absl::OkStatus();
}

absl::Status PutQuantity(const Json& value, std::string& out) {
  if (!value.is_null() && !value.is_string() && !value.is_number()) {
    return Mismatch(value, "a quantity");
  }
  const std::string text = value.is_null()     ? "0"
                           : value.is_string() ? value.get_ref<const std::string&>()
                                               : value.dump();
  PutBytes(1, text, out);
  return absl::OkStatus();
}

absl::Status PutIntOrString(const Json& value, std::string& out) {
  const bool is_text = value.is_string();
  if (!is_text && !value.is_null() && !value.is_number_integer()) {
    return Mismatch(value, "an integer or a string");
  }
  PutNumber(1, is_text ? 1 : 0, out);
  PutNumber(2, value.is_number() ? value.get<std::int64_t>() : 0, out);
  PutBytes(3, is_text ? std::string_view(value.get_ref<const std::string&>()) : "", out);
  return absl::OkStatus();
}

// Puts a schema, a value in the place of a schema, or a list of either.
absl::Status PutAlternative(const MessageForm& form, const Json& value, std::string& out) {
  const FieldForm& first = form.fields[0];
  const FieldForm& second = form.fields[1];
  const auto schema = [&](const FieldForm& field, const Json& one) {
    return PutMessage(field.number, out, [&] { return PutMembers(*field.message, one, out); });
  };
  if (form.special == Special::kSchemaOrBool) {
    if (!value.is_boolean() && !value.is_object()) return Mismatch(value, "a schema or boolean");
    PutNumber(first.number, value.is_object() || value.get<bool>() ? 1 : 0, out);
    return value.is_object() ? schema(second, value) : absl::OkStatus();
  }
  if (value.is_object()) return schema(first, value);
  if (!value.is_array()) return Mismatch(value, "a schema or a list");
  for (const Json& item : value) {
    if (second.type == Type::kMessage) {
      TAHOMA_RETURN_IF_ERROR(schema(second, item));
    } else {
      TAHOMA_ASSIGN_OR_RETURN(const std::string_view text, TextOf(item));
      PutBytes(second.number, text, out);
    }
  }
  return absl::OkStatus();
}

// The fields of a message; null is the empty value.
absl::Status PutValue(const MessageForm& form, const Json& value, std::string& out) {
  switch (form.special) {
    case Special::kNone:
      return PutMembers(form, value, out);
    case Special::kQuantity:
      return PutQuantity(value, out);
    case Special::kIntOrString:
      return PutIntOrString(value, out);
    default:
      break;
  }
  if (value.is_null()) return absl::OkStatus();
  switch (form.special) {
    case Special::kTime:
    case Special::kMicroTime:
      return PutTime(form, value, out);
    case Special::kRaw:
      PutBytes(1, kube::JsonText(value), out);
      return absl::OkStatus();
    case Special::kList:
      if (!value.is_array()) return Mismatch(value, "a list");
      for (const Json& item : value) {
        TAHOMA_ASSIGN_OR_RETURN(const std::string_view text, TextOf(item));
        PutBytes(1, text, out);
      }
      return absl::OkStatus();
    default:
      return PutAlternative(form, value, out);
  }
}

absl::StatusOr<std::int64_t> WholeOf(const Json& value) {
  if (!value.is_number_integer()) return Mismatch(value, "an integer");
  return value.get<std::int64_t>();
}

// Puts a value; null is the empty value.
absl::Status PutOne(const FieldForm& field, const Json& value, std::string& out) {
  switch (field.type) {
    case Type::kMessage:
      return PutMessage(field.number, out, [&] { return PutValue(*field.message, value, out); });
    case Type::kString: {
      if (value.is_null()) return PutBytes(field.number, "", out), absl::OkStatus();
      TAHOMA_ASSIGN_OR_RETURN(const std::string_view text, TextOf(value));
      PutBytes(field.number, text, out);
      return absl::OkStatus();
    }
    case Type::kBytes: {
      std::string bytes;
      if (!value.is_null()) {
        TAHOMA_ASSIGN_OR_RETURN(const std::string_view text, TextOf(value));
        if (!absl::Base64Unescape({text.data(), text.size()}, &bytes)) {
          return InvalidArgument("it is not base64");
        }
      }
      PutBytes(field.number, bytes, out);
      return absl::OkStatus();
    }
    case Type::kBool:
      if (!value.is_null() && !value.is_boolean()) return Mismatch(value, "a boolean");
      PutNumber(field.number, value.is_boolean() && value.get<bool>() ? 1 : 0, out);
      return absl::OkStatus();
    case Type::kDouble: {
      if (!value.is_null() && !value.is_number()) return Mismatch(value, "a number");
      const auto bits = std::bit_cast<std::uint64_t>(value.is_null() ? 0.0 : value.get<double>());
      PutTag(field.number, WireFormatLite::WIRETYPE_FIXED64, out);
      for (unsigned shift = 0; shift < 64; shift += 8) out += static_cast<char>(bits >> shift);
      return absl::OkStatus();
    }
    case Type::kInt32:
    case Type::kInt64: {
      TAHOMA_ASSIGN_OR_RETURN(const std::int64_t number,
                              value.is_null() ? absl::StatusOr<std::int64_t>(0) : WholeOf(value));
      PutNumber(field.number, number, out);
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status PutMap(const FieldForm& field, const Json& value, std::string& out) {
  if (!value.is_object()) return Mismatch(value, "an object");
  const FieldForm& entry_value = field.message->fields[1];
  for (const auto& entry : MembersOf(value)) {
    const std::string& key = entry.first;
    const Json& member = entry.second;
    const absl::Status put = PutMessage(field.number, out, [&] {
      PutBytes(1, key, out);
      return PutOne(entry_value, member, out);
    });
    if (!put.ok()) return Annotate(put, fmt::format("[{}]", key));
  }
  return absl::OkStatus();
}

// `value`: null when JSON does not have the field.
absl::Status PutField(const FieldForm& field, const Json* value, std::string& out) {
  static const Json* const kNull = new Json;
  const bool is_null = value == nullptr || value->is_null();
  if (field.map) return is_null ? absl::OkStatus() : PutMap(field, *value, out);
  if (field.repeated) {
    if (is_null) return absl::OkStatus();
    if (!value->is_array()) return Mismatch(*value, "a list");
    for (std::size_t i = 0; i < value->size(); ++i) {
      const absl::Status put = PutOne(field, (*value)[i], out);
      if (!put.ok()) return Annotate(put, fmt::format("[{}]", i));
    }
    return absl::OkStatus();
  }
  const bool written = field.type == Type::kMessage ? field.always : !field.optional;
  if (is_null && !written) return absl::OkStatus();
  return PutOne(field, is_null ? *kNull : *value, out);
}

absl::Status PutMembers(const MessageForm& form, const Json& object, std::string& out) {
  if (!object.is_null() && !object.is_object()) return Mismatch(object, "an object");
  for (const FieldForm& field : form.fields) {
    const absl::Status put =
        field.inlined
            ? PutMessage(field.number, out, [&] { return PutMembers(*field.message, object, out); })
            : PutField(field, FindMember(object, field.name), out);
    if (!put.ok()) return field.inlined ? put : Annotate(put, field.name);
  }
  return absl::OkStatus();
}

}  // namespace

bool HasProtobuf(std::string_view api_version, std::string_view kind) {
  return FormOfKind(api_version, kind) != nullptr;
}

absl::StatusOr<std::string> EncodeMessage(std::string_view api_version, std::string_view kind,
                                          const Json& object) {
  const MessageForm* form = FormOfKind(api_version, kind);
  if (form == nullptr) {
    return Unimplemented("no kind \"{}\" of version \"{}\" has a protobuf form", kind, api_version);
  }
  std::string message;
  TAHOMA_RETURN_IF_ERROR(PutMembers(*form, object, message));
  return message;
}

ProtobufFrame FrameOf(std::string_view api_version, std::string_view kind, std::size_t bytes) {
  // The end of a runtime.Unknown, without content: contentEncoding and contentType.
  constexpr std::string_view kBehind{"\x1a\0\x22\0", 4};
  std::string type_meta;
  PutBytes(1, api_version, type_meta);
  PutBytes(2, kind, type_meta);
  ProtobufFrame frame{.before = std::string(kFirstBytes), .behind = kBehind};
  PutBytes(1, type_meta, frame.before);
  PutHead(2, bytes, frame.before);
  return frame;
}

std::string ProtobufBody(std::string_view api_version, std::string_view kind,
                         std::string_view message) {
  ProtobufFrame frame = FrameOf(api_version, kind, message.size());
  std::string body = std::move(frame.before);
  body.reserve(body.size() + message.size() + frame.behind.size());
  body += message;
  return body += frame.behind;
}

absl::StatusOr<std::string> EncodeProtobuf(const Json& object) {
  const std::string api_version = TextAt(object, "apiVersion");
  const std::string kind = TextAt(object, "kind");
  TAHOMA_ASSIGN_OR_RETURN(const std::string message, EncodeMessage(api_version, kind, object));
  return ProtobufBody(api_version, kind, message);
}

absl::StatusOr<std::string> ListMetaMessage(const Json& metadata) {
  std::string message;
  const MessageForm& list_meta = FormNamed("k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta");
  TAHOMA_RETURN_IF_ERROR(
      PutMessage(1, message, [&] { return PutMembers(list_meta, metadata, message); }));
  return message;
}

std::string ItemHead(std::size_t bytes) {
  std::string head;
  PutHead(2, bytes, head);
  return head;
}

std::string WatchHead(std::string_view type, std::size_t bytes) {
  std::string raw, event;
  PutHead(1, bytes, raw);
  PutBytes(1, type, event);
  PutHead(2, raw.size() + bytes, event);
  event += raw;
  const auto size = static_cast<std::uint32_t>(event.size() + bytes);
  std::string head;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) head += static_cast<char>(size >> shift);
  return head + event;
}

}  // namespace tahoma::controller::apiserver
