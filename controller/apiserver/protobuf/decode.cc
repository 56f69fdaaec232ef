// Protobuf to JSON. A message's fields are first sorted by number, then become members in the order
// of their names. When a field comes twice, protobuf merges messages and takes the last of all
// other values. Members in order cost nothing to insert.

#include <absl/strings/escaping.h>
#include <absl/time/time.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "controller/apiserver/protobuf/message_form.h"
#include "controller/apiserver/protobuf/protobuf.h"
#include "controller/apiserver/schema/json_text.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::controller::apiserver {
namespace {

namespace io = google::protobuf::io;
using google::protobuf::internal::WireFormatLite;
using Special = MessageForm::Special;
using Type = FieldForm::Type;

constexpr std::string_view kMagic{"k8s\0", 4};

// An occurrence of a field: `bytes` for types with a length, else `number`.
struct Piece {
  std::uint64_t number = 0;
  std::string_view bytes;
};
using Pieces = std::vector<Piece>;

std::uint8_t const* Bytes(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

absl::Status Damaged() { return InvalidArgument("the bytes are no protobuf message"); }

WireFormatLite::WireType WireTypeOf(Type type) {
  switch (type) {
    case Type::kBool:
    case Type::kInt32:
    case Type::kInt64:
      return WireFormatLite::WIRETYPE_VARINT;
    case Type::kDouble:
      return WireFormatLite::WIRETYPE_FIXED64;
    case Type::kString:
    case Type::kBytes:
    case Type::kMessage:
      break;
  }
  return WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
}

// A tag has at most 32 bits in five bytes. CodedInputStream's own functions for tags and lengths
// cut higher bits off, and would read another message than the sender's.
bool ReadTag(io::CodedInputStream& in, std::uint32_t& tag) {
  constexpr int kBytesMax = 5;
  const int begin = in.CurrentPosition();
  std::uint64_t wide = 0;
  if (!in.ReadVarint64(&wide) || wide > std::numeric_limits<std::uint32_t>::max()) return false;
  tag = static_cast<std::uint32_t>(wide);
  return in.CurrentPosition() - begin <= kBytesMax;
}

// Reads a value of the wire type; false at the end of the bytes, and for groups, which proto3 does
// not have.
bool ReadPiece(io::CodedInputStream& in, std::string_view all, WireFormatLite::WireType wire,
               Piece& piece) {
  switch (wire) {
    case WireFormatLite::WIRETYPE_VARINT:
      return in.ReadVarint64(&piece.number);
    case WireFormatLite::WIRETYPE_FIXED64:
      return in.ReadLittleEndian64(&piece.number);
    case WireFormatLite::WIRETYPE_FIXED32: {
      std::uint32_t number = 0;
      return in.ReadLittleEndian32(&number);
    }
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
      int size = 0;
      if (!in.ReadVarintSizeAsInt(&size)) return false;
      const auto at = static_cast<std::size_t>(in.CurrentPosition());
      if (static_cast<std::size_t>(size) > all.size() - at) return false;
      piece.bytes = all.substr(at, static_cast<std::size_t>(size));
      return in.Skip(size);
    }
    default:
      return false;
  }
}

// A list of numbers may be a single field with all numbers.
absl::Status Unpack(const FieldForm& field, std::string_view bytes, Pieces& pieces) {
  io::CodedInputStream in(Bytes(bytes), static_cast<int>(bytes.size()));
  while (in.CurrentPosition() < static_cast<int>(bytes.size())) {
    if (!ReadPiece(in, bytes, WireTypeOf(field.type), pieces.emplace_back())) return Damaged();
  }
  return absl::OkStatus();
}

absl::Status SplitOne(const MessageForm& form, std::string_view bytes,
                      std::vector<Pieces>& by_field) {
  io::CodedInputStream in(Bytes(bytes), static_cast<int>(bytes.size()));
  while (in.CurrentPosition() < static_cast<int>(bytes.size())) {
    std::uint32_t tag = 0;
    if (!ReadTag(in, tag)) return Damaged();
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    if (number == 0) return Damaged();
    const FieldForm* field = form.Find(static_cast<std::uint32_t>(number));
    const WireFormatLite::WireType wire = WireFormatLite::GetTagWireType(tag);
    Piece piece;
    if (field == nullptr) {
      if (!ReadPiece(in, bytes, wire, piece)) return Damaged();
      continue;
    }
    Pieces& pieces = by_field[static_cast<std::size_t>(field - form.fields.data())];
    if (wire == WireTypeOf(field->type)) {
      if (!ReadPiece(in, bytes, wire, piece)) return Damaged();
      pieces.push_back(piece);
    } else if (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED && field->repeated) {
      if (!ReadPiece(in, bytes, wire, piece)) return Damaged();
      TAHOMA_RETURN_IF_ERROR(Unpack(*field, piece.bytes, pieces));
    } else {
      return InvalidArgument("field {} ({}) has the wire type {}", number, field->name,
                             static_cast<int>(wire));
    }
  }
  return absl::OkStatus();
}

// Returns the pieces of each field of `form`, by the fields' indexes. The message may come in
// several pieces itself: protobuf merges them, and each piece must be a message alone.
absl::StatusOr<std::vector<Pieces>> Split(const MessageForm& form, std::span<const Piece> message) {
  std::vector<Pieces> by_field(form.fields.size());
  for (const Piece& piece : message) {
    TAHOMA_RETURN_IF_ERROR(SplitOne(form, piece.bytes, by_field));
  }
  return by_field;
}

int DepthOf(const Json& value) {
  int below = 0;
  if (value.is_array()) {
    for (const Json& item : value) below = std::max(below, DepthOf(item));
  } else if (value.is_object()) {
    for (const auto& [name, member] : MembersOf(value)) below = std::max(below, DepthOf(member));
  } else {
    return 0;
  }
  return below + 1;
}

// Writes a whole number without a fraction, as Go does.
Json NumberOf(double value) {
  constexpr double kWholeMax = 9007199254740992.0;  // 2^53
  if (std::trunc(value) == value && std::abs(value) <= kWholeMax) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

class Decoder {
 public:
  absl::StatusOr<Json> ReadMessage(const MessageForm& form, std::span<const Piece> message,
                                   int depth) {
    if (depth > kProtobufNestingMax) {
      return InvalidArgument("it is nested deeper than {}", kProtobufNestingMax);
    }
    TAHOMA_RETURN_IF_ERROR(Count());
    TAHOMA_ASSIGN_OR_RETURN(const std::vector<Pieces> pieces, Split(form, message));
    switch (form.special) {
      case Special::kNone:
        return Members(form, pieces, depth);
      case Special::kTime:
      case Special::kMicroTime:
        return TimeOf(form, pieces, message);
      case Special::kQuantity: {
        TAHOMA_ASSIGN_OR_RETURN(Json text, Text(Last(pieces[0]).bytes));
        return text == "" ? Json("0") : text;
      }
      case Special::kIntOrString:
        if (Last(pieces[0]).number == 0) return static_cast<std::int32_t>(Last(pieces[1]).number);
        return Text(Last(pieces[2]).bytes);
      case Special::kRaw:
        return JsonIn(Last(pieces[0]).bytes, depth);
      case Special::kSchemaOrBool:
        if (pieces[1].empty()) return Last(pieces[0]).number != 0;
        return ReadMessage(*form.fields[1].message, pieces[1], depth);
      case Special::kSchemaOrSchemas:
      case Special::kSchemaOrTexts:
        if (!pieces[1].empty()) return List(form.fields[1], pieces[1], depth);
        if (pieces[0].empty()) return Json();
        return ReadMessage(*form.fields[0].message, pieces[0], depth);
      case Special::kList:
        return List(form.fields[0], pieces[0], depth);
    }
    return Json();
  }

 private:
  static Piece Last(const Pieces& pieces) { return pieces.empty() ? Piece() : pieces.back(); }

  absl::Status Count() {
    if (--values_left_ >= 0) return absl::OkStatus();
    return InvalidArgument("it has more than {} values", kProtobufValuesMax);
  }

  absl::StatusOr<Json> Text(std::string_view bytes) {
    TAHOMA_RETURN_IF_ERROR(Count());
    if (!IsUtf8(bytes)) return InvalidArgument("the text is not UTF-8");
    return Json(bytes);
  }

  absl::StatusOr<Json> Members(const MessageForm& form, const std::vector<Pieces>& pieces,
                               int depth) {
    Json object = Json::object();
    auto& members = object.get_ref<Json::object_t&>();
    for (const std::size_t index : form.by_name) {
      const FieldForm& field = form.fields[index];
      absl::StatusOr<std::optional<Json>> value = Field(field, pieces[index], depth + 1);
      if (!value.ok()) {
        return field.inlined ? value.status() : Annotate(value.status(), field.name);
      }
      if (!*value) continue;
      if (!field.inlined) {
        members.emplace(field.name, **std::move(value));
        continue;
      }
      for (auto& [name, member] : (*value)->get_ref<Json::object_t&>()) {
        members.emplace(name, std::move(member));
      }
    }
    return object;
  }

  // Nothing: JSON does not have the field.
  absl::StatusOr<std::optional<Json>> Field(const FieldForm& field, const Pieces& pieces,
                                            int depth) {
    if (field.map || field.repeated) {
      if (pieces.empty()) return field.kept ? std::optional<Json>(nullptr) : std::nullopt;
      return field.map ? Map(*field.message, pieces, depth) : List(field, pieces, depth);
    }
    if (field.type == Type::kMessage) {
      const bool is_value = field.always || field.inlined;
      if (pieces.empty() && !is_value) {
        return field.kept ? std::optional<Json>(nullptr) : std::nullopt;
      }
      TAHOMA_ASSIGN_OR_RETURN(Json value, ReadMessage(*field.message, pieces, depth));
      // A Go pointer to nothing, such as a FieldsV1 without bytes, reads back from JSON as none.
      const bool is_nothing = is_value ? !field.inlined && value.empty() : value.is_null();
      if (is_nothing && !field.kept) return std::nullopt;
      return value;
    }
    const Piece last = Last(pieces);
    const bool empty = last.number == 0 && last.bytes.empty();
    if (field.optional && (pieces.empty() || (field.type == Type::kBytes && empty))) {
      return field.kept ? std::optional<Json>(nullptr) : std::nullopt;
    }
    if (empty && !field.optional && !field.kept) return std::nullopt;
    return Scalar(field.type, last);
  }

  absl::StatusOr<Json> Scalar(Type type, const Piece& piece) {
    if (type == Type::kString) return Text(piece.bytes);
    TAHOMA_RETURN_IF_ERROR(Count());
    switch (type) {
      case Type::kBytes:
        return absl::Base64Escape({piece.bytes.data(), piece.bytes.size()});
      case Type::kBool:
        return piece.number != 0;
      case Type::kInt32:
        return static_cast<std::int32_t>(piece.number);
      case Type::kInt64:
        return static_cast<std::int64_t>(piece.number);
      case Type::kDouble: {
        const auto value = std::bit_cast<double>(piece.number);
        if (!std::isfinite(value)) return InvalidArgument("{} is no number in JSON", value);
        return NumberOf(value);
      }
      case Type::kString:
      case Type::kMessage:
        break;
    }
    return Json();
  }

  absl::StatusOr<Json> List(const FieldForm& field, const Pieces& pieces, int depth) {
    if (pieces.size() > kItemsMax) {
      return InvalidArgument("it is wider than {} items of one list", kItemsMax);
    }
    Json list = Json::array();
    for (const Piece& piece : pieces) {
      absl::StatusOr<Json> item = field.type == Type::kMessage
                                      ? ReadMessage(*field.message, {&piece, 1}, depth + 1)
                                      : Scalar(field.type, piece);
      if (!item.ok()) return Annotate(item.status(), fmt::format("[{}]", list.size()));
      list.push_back(*std::move(item));
    }
    return list;
  }

  absl::StatusOr<Json> Map(const MessageForm& entry, const Pieces& pieces, int depth) {
    struct Member {
      std::string_view key;
      Piece value;
    };
    if (pieces.size() > kMembersMax) {
      return InvalidArgument("it is wider than {} members of one object", kMembersMax);
    }
    const FieldForm& value_field = entry.fields[1];
    std::vector<Member> members;
    for (const Piece& piece : pieces) {
      TAHOMA_ASSIGN_OR_RETURN(const std::vector<Pieces> parts, Split(entry, {&piece, 1}));
      members.push_back({Last(parts[0]).bytes, Last(parts[1])});
    }
    // The last of equal keys counts. Reversed, the last comes first, and emplace keeps the first.
    std::ranges::reverse(members);
    std::ranges::stable_sort(members, {}, &Member::key);
    Json object = Json::object();
    for (const Member& member : members) {
      TAHOMA_ASSIGN_OR_RETURN(const Json key, Text(member.key));
      absl::StatusOr<Json> value =
          value_field.type == Type::kMessage
              ? ReadMessage(*value_field.message, {&member.value, 1}, depth + 1)
              : Scalar(value_field.type, member.value);
      if (!value.ok()) return Annotate(value.status(), fmt::format("[{}]", member.key));
      object.get_ref<Json::object_t&>().emplace(key.get<std::string>(), *std::move(value));
    }
    return object;
  }

  // Go's zero time is null in JSON and no bytes in protobuf.
  static absl::StatusOr<Json> TimeOf(const MessageForm& form, const std::vector<Pieces>& pieces,
                                     std::span<const Piece> message) {
    if (std::ranges::all_of(message, &std::string_view::empty, &Piece::bytes)) return Json();
    const auto seconds = static_cast<std::int64_t>(Last(pieces[0]).number);
    const auto nanos = static_cast<std::int32_t>(Last(pieces[1]).number);
    if (seconds < kFirstSecond || seconds > kLastSecond || nanos < 0 || nanos > 999'999'999) {
      return InvalidArgument("{} s {} ns is no time of the years 1 to 9999", seconds, nanos);
    }
    if (seconds == kFirstSecond && nanos == 0) return Json();
    const std::string text = absl::FormatTime("%E4Y-%m-%dT%H:%M:%S", absl::FromUnixSeconds(seconds),
                                              absl::UTCTimeZone());
    if (form.special == Special::kTime) return text + "Z";
    return fmt::format("{}.{:06}Z", text, nanos / 1000);
  }

  absl::StatusOr<Json> JsonIn(std::string_view bytes, int depth) {
    if (bytes.empty()) return Json();
    absl::StatusOr<JsonRead> read = ReadJson(bytes);
    if (!read.ok()) return InvalidArgument("the bytes are no JSON: {}", Message(read.status()));
    if (DepthOf(*read->value) + depth > kProtobufNestingMax) {
      return InvalidArgument("it is nested deeper than {}", kProtobufNestingMax);
    }
    return std::move(*read->value);
  }

  int values_left_ = kProtobufValuesMax;
};

}  // namespace

absl::StatusOr<Json> DecodeProtobuf(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) {
    return InvalidArgument("it does not begin with \"k8s\" and a zero byte");
  }
  const MessageForm& unknown = FormNamed("k8s.io.apimachinery.pkg.runtime.Unknown");
  const MessageForm& type_meta = FormNamed("k8s.io.apimachinery.pkg.runtime.TypeMeta");
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<Pieces> parts,
                          Split(unknown, std::vector{Piece{.bytes = bytes.substr(kMagic.size())}}));
  TAHOMA_ASSIGN_OR_RETURN(const Json names, Decoder().ReadMessage(type_meta, parts[0], 0));
  const std::string api_version = names.value("apiVersion", "");
  const std::string kind = names.value("kind", "");
  if (kind.empty()) return InvalidArgument("Object 'Kind' is missing in its envelope");
  const MessageForm* form = FormOfKind(api_version, kind);
  if (form == nullptr) {
    return Unimplemented("no kind \"{}\" of version \"{}\" has a protobuf form", kind, api_version);
  }
  TAHOMA_ASSIGN_OR_RETURN(
      Json object,
      Decoder().ReadMessage(*form, std::span(parts[1]).last(parts[1].empty() ? 0 : 1), 0));
  object["apiVersion"] = api_version;
  object["kind"] = kind;
  return object;
}

}  // namespace tahoma::controller::apiserver
