#include "controller/apiserver/request/representation.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "controller/apiserver/protobuf/protobuf.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/ascii.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// One element of Accept, "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9".
struct MediaRange {
  std::string type;
  std::string as, group, version;
  double quality = 1;

  bool is_json() const {
    return type == "application/json" || type == "application/*" || type == "*/*";
  }
  bool is_protobuf() const { return type == kProtobufType; }
};

MediaRange ParseRange(std::string_view element) {
  MediaRange range;
  bool first = true;
  while (!element.empty() || first) {
    const std::size_t end = element.find(';');
    const std::string_view part = Trimmed(element.substr(0, end));
    element = end == std::string_view::npos ? std::string_view() : element.substr(end + 1);
    if (first) {
      range.type = part;
      std::ranges::transform(range.type, range.type.begin(), AsciiLower);
      first = false;
    } else if (part.starts_with("as=")) {
      range.as = part.substr(3);
    } else if (part.starts_with("g=")) {
      range.group = part.substr(2);
    } else if (part.starts_with("v=")) {
      range.version = part.substr(2);
    } else if (part.starts_with("q=")) {
      std::from_chars(part.data() + 2, part.data() + part.size(), range.quality);
    }
  }
  return range;
}

// Returns the media types that the client accepts, the preferred first. Without the header, JSON.
std::vector<MediaRange> ParseAccept(std::string_view accept) {
  if (Trimmed(accept).empty()) accept = "application/json";
  std::vector<MediaRange> ranges;
  while (!accept.empty()) {
    const std::size_t end = accept.find(',');
    MediaRange range = ParseRange(accept.substr(0, end));
    accept = end == std::string_view::npos ? std::string_view() : accept.substr(end + 1);
    if (range.quality > 0) ranges.push_back(std::move(range));
  }
  std::ranges::stable_sort(ranges, std::greater<>(), &MediaRange::quality);
  return ranges;
}

// The object's text under the requested version: versions of one resource differ in name only.
std::string WholeText(const Kind& kind, const Object& object) {
  if (object.body->value("apiVersion", "") == kind.api_version()) return object.bytes;
  json body = *object.body;
  body["apiVersion"] = kind.api_version();
  return kube::JsonText(body);
}

// Returns the object as an item of a list: items of built-in kinds carry no apiVersion and kind, as
// in lists of Go's types.
std::string ItemText(const Kind& kind, const Object& object) {
  if (!kind.built_in) return WholeText(kind, object);
  // Keys are sorted, so nearly every kind's text begins so; the others have fields before "kind".
  const std::string head =
      fmt::format(R"({{"apiVersion":"{}","kind":"{}",)", kind.api_version(), kind.kind);
  if (object.bytes.starts_with(head)) return "{" + object.bytes.substr(head.size());
  json body = *object.body;
  body.erase("apiVersion");
  body.erase("kind");
  return kube::JsonText(body);
}

json MetadataOfList(const ListMetadata& metadata) {
  json out = {{"resourceVersion", std::to_string(metadata.version)}};
  if (!metadata.next.empty()) out["continue"] = metadata.next;
  if (metadata.remaining) out["remainingItemCount"] = *metadata.remaining;
  return out;
}

// The object's message under the requested version, made once for the stored one.
absl::StatusOr<std::string_view> MessageOf(const Kind& kind, const Object& object,
                                           std::string& made) {
  const bool stored = TextAt(*object.body, "apiVersion") == kind.api_version();
  if (const std::string* kept = object.message.Find(); stored && kept != nullptr) return *kept;
  absl::StatusOr<std::string> message = EncodeMessage(kind.api_version(), kind.kind, *object.body);
  if (!message.ok()) {
    // An earlier version of this program took it; now what has none is refused when it is written.
    return GenericError(406, "NotAcceptable",
                        fmt::format("the {} {} has no protobuf form: {}; ask for JSON, or mend it",
                                    kind.kind, object.key, Message(message.status())));
  }
  if (stored) return object.message.Keep(*std::move(message));
  made = *std::move(message);
  return made;
}

constexpr std::string_view kMetaVersion = "meta.k8s.io/v1";
constexpr std::string_view kPartial = "PartialObjectMetadata";

absl::StatusOr<std::string> PartialMessage(const json& body) {
  json partial = {{"metadata", MetadataOf(body)}};
  return EncodeMessage(kMetaVersion, kPartial, partial);
}

}  // namespace

std::string_view EventTypeName(Event::Type type) {
  switch (type) {
    case Event::Type::kAdded:
      return "ADDED";
    case Event::Type::kModified:
      return "MODIFIED";
    case Event::Type::kDeleted:
      return "DELETED";
  }
  return "";
}

absl::StatusOr<Representation> Representation::Negotiate(const ApiRequest& request,
                                                         const Kind& kind) {
  Representation chosen;
  if (const std::string_view include = request.parameter("includeObject"); include == "None") {
    chosen.include_ = IncludeObject::kNone;
  } else if (include == "Object") {
    chosen.include_ = IncludeObject::kObject;
  } else if (!include.empty() && include != "Metadata") {
    return BadRequestError(fmt::format(
        "Unable to convert to Table as requested: includeObject: Invalid value: \"{}\": "
        "must be 'Metadata', 'Object', 'None', or empty",
        include));
  }
  const bool has_message = HasProtobuf(kind.api_version(), kind.kind);
  for (const MediaRange& range : ParseAccept(request.http->header("Accept"))) {
    chosen.protobuf_ = range.is_protobuf();
    if (!range.is_json() && !range.is_protobuf()) continue;
    const bool meta_v1 = range.group == "meta.k8s.io" && range.version == "v1";
    if (range.as.empty()) {
      if (chosen.protobuf_ && !has_message) continue;
      chosen.form_ = Form::kWhole;
    } else if (range.as == "Table" && meta_v1 && !chosen.protobuf_) {
      chosen.form_ = Form::kTable;
    } else if (range.as.starts_with(kPartial) && meta_v1) {
      chosen.form_ = Form::kMetadata;
    } else {
      continue;
    }
    return chosen;
  }
  return NotAcceptableError(has_message ? fmt::format("application/json, {}", kProtobufType)
                                        : "application/json");
}

rest::Response Representation::Answer(int status, std::string body) const {
  rest::Response answer = rest::Response::Json(status, std::move(body));
  if (protobuf_) answer.content_type = kProtobufType;
  return answer;
}

std::string_view Representation::stream_type() const {
  return protobuf_ ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json";
}

absl::StatusOr<std::string> Representation::Body(const Kind& kind, const json& body,
                                                 const Object* object, bool with_columns,
                                                 WallTime now) const {
  switch (form_) {
    case Form::kWhole: {
      if (!protobuf_) return object != nullptr ? WholeText(kind, *object) : kube::JsonText(body);
      std::string made;
      if (object != nullptr) {
        TAHOMA_ASSIGN_OR_RETURN(const std::string_view message, MessageOf(kind, *object, made));
        return ProtobufBody(kind.api_version(), kind.kind, message);
      }
      TAHOMA_ASSIGN_OR_RETURN(made, EncodeMessage(kind.api_version(), kind.kind, body));
      return ProtobufBody(kind.api_version(), kind.kind, made);
    }
    case Form::kMetadata: {
      if (!protobuf_) return kube::JsonText(PartialObjectMetadata(body));
      TAHOMA_ASSIGN_OR_RETURN(const std::string message, PartialMessage(body));
      return ProtobufBody(kMetaVersion, kPartial, message);
    }
    case Form::kTable:
      break;
  }
  const json metadata = {{"resourceVersion", body.at("metadata").value("resourceVersion", "")}};
  return kube::JsonText(MakeTable(kind, {&body}, metadata, include_, now, with_columns));
}

absl::StatusOr<std::string> Representation::One(const Kind& kind, const Object& object,
                                                WallTime now) const {
  return Body(kind, *object.body, &object, true, now);
}

absl::StatusOr<std::string> Representation::ListProtobuf(const Kind& kind,
                                                         const std::vector<ObjectPtr>& objects,
                                                         const json& metadata) const {
  std::vector<std::string> made(objects.size());  // of those that keep none
  std::vector<std::string_view> messages(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    ProcessorBudget::SpendBytes(objects[i]->bytes.size());
    if (form_ == Form::kWhole) {
      TAHOMA_ASSIGN_OR_RETURN(messages[i], MessageOf(kind, *objects[i], made[i]));
    } else {
      TAHOMA_ASSIGN_OR_RETURN(made[i], PartialMessage(*objects[i]->body));
      messages[i] = made[i];
    }
  }
  TAHOMA_ASSIGN_OR_RETURN(const std::string list, ListMessage(metadata, messages));
  return form_ == Form::kWhole ? ProtobufBody(kind.api_version(), kind.list_kind, list)
                               : ProtobufBody(kMetaVersion, "PartialObjectMetadataList", list);
}

absl::StatusOr<std::string> Representation::List(const Kind& kind,
                                                 const std::vector<ObjectPtr>& objects,
                                                 const ListMetadata& metadata, WallTime now) const {
  if (form_ == Form::kTable) {
    std::vector<const json*> bodies;
    for (const ObjectPtr& object : objects) bodies.push_back(object->body.get());
    return kube::JsonText(MakeTable(kind, bodies, MetadataOfList(metadata), include_, now));
  }
  json list_metadata = MetadataOfList(metadata);
  if (protobuf_) return ListProtobuf(kind, objects, list_metadata);
  const bool whole = form_ == Form::kWhole;
  if (whole && !kind.built_in) list_metadata.emplace("continue", "");  // as from Go's Unstructured
  std::string text = fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{},"items":[)",
                                 whole ? kind.list_kind : "PartialObjectMetadataList",
                                 whole ? kind.api_version() : kMetaVersion, list_metadata.dump());
  bool first = true;
  for (const ObjectPtr& object : objects) {
    ProcessorBudget::SpendBytes(object->bytes.size());
    if (!first) text += ',';
    first = false;
    text += whole ? ItemText(kind, *object) : kube::JsonText(PartialObjectMetadata(*object->body));
  }
  text += "]}\n";
  return text;
}

std::string Representation::EventLine(std::string_view type,
                                      const absl::StatusOr<std::string>& object) const {
  if (!object.ok()) return ErrorLine(StatusObject(object.status()));
  if (protobuf_) return WatchFrame(type, *object);
  std::string line;
  line.reserve(object->size() + 40);
  line += R"({"type":")";
  line += type;
  line += R"(","object":)";
  line += *object;
  line += "}\n";
  return line;
}

std::shared_ptr<const std::string> Representation::Line(const Kind& kind, const Event& event,
                                                        Event::Type type, bool use_previous,
                                                        bool first, WallTime now) const {
  const std::string form =
      fmt::format("{}/{}/{}/{}/{}/{}/{}", static_cast<int>(form_), static_cast<int>(include_),
                  kind.version, static_cast<int>(type), use_previous, first, protobuf_);
  return event.Line(form, [&] {
    const std::string_view name = EventTypeName(type);
    if (!use_previous) {
      return EventLine(name, Body(kind, *event.object->body, event.object.get(), first, now));
    }
    json body = *event.previous->body;
    body["apiVersion"] = kind.api_version();
    body["metadata"]["resourceVersion"] = std::to_string(event.version());
    return EventLine(name, Body(kind, body, nullptr, first, now));
  });
}

std::string Representation::AddedLine(const Kind& kind, const Object& object, bool first,
                                      WallTime now) const {
  return EventLine("ADDED", Body(kind, *object.body, &object, first, now));
}

std::string Representation::BookmarkLine(const Kind& kind, const json& bookmark, bool first,
                                         WallTime now) const {
  return EventLine("BOOKMARK", Body(kind, bookmark, nullptr, first, now));
}

std::string Representation::ErrorLine(const json& status) const {
  // A Status of ours always has a protobuf form.
  return EventLine("ERROR",
                   protobuf_ ? EncodeProtobuf(status).value_or("") : kube::JsonText(status));
}

rest::Response AsAccepted(const rest::Request& request, rest::Response answer) {
  if (answer.content_type != "application/json" || answer.source) return answer;
  for (const MediaRange& range : ParseAccept(request.header("Accept"))) {
    if (!range.as.empty()) continue;
    if (range.is_json()) break;
    if (!range.is_protobuf()) continue;
    const absl::StatusOr<std::string> body = EncodeProtobuf(TryParseJson(answer.body));
    if (!body.ok()) break;
    answer.body = *body;
    answer.content_type = kProtobufType;
    break;
  }
  return answer;
}

}  // namespace tahoma::controller::apiserver
