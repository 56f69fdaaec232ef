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

// Returns the object's text under the requested version: versions of a resource differ in name
// only.
std::string WholeText(const Kind& kind, const Object& object) {
  if (object.body->value("apiVersion", "") == kind.api_version()) return object.bytes;
  json body = *object.body;
  body["apiVersion"] = kind.api_version();
  return kube::JsonText(body);
}

// Returns the end of the text that begins with the quote at `at`, in JSON written here.
std::size_t ClosingQuote(std::string_view text, std::size_t at) {
  for (;;) {
    at = text.find('"', at + 1);
    const std::size_t before = text.find_last_not_of('\\', at - 1);
    if ((at - before) % 2 == 1) return at;  // an even number of backslashes
  }
}

// Returns the comma or bracket behind the value that begins at `at`.
std::size_t EndOfValue(std::string_view text, std::size_t at) {
  for (int depth = 0;; ++at) {
    const char c = text[at];
    if (c == '"') at = ClosingQuote(text, at);
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth < 0) return at;
    if (c == ',' && depth == 0) return at;
  }
}

// Adds the object as an item of a list: items of built-in kinds carry no apiVersion and kind, as in
// lists of Go's types.
void AddItem(const Kind& kind, const ObjectPtr& object, bool first, Pieces& list) {
  if (!kind.built_in) {
    if (!first) list.Share(nullptr, ",");
    const bool stored = object->body->value("apiVersion", "") == kind.api_version();
    return stored ? list.Share(object, object->bytes) : list.Add(WholeText(kind, *object));
  }
  list.Share(nullptr, first ? "{" : ",{");
  // Members are sorted, and metadata comes behind both.
  const std::string_view text = object->bytes;
  std::size_t kept = 1;  // the beginning of the part not added yet
  for (std::size_t at = kept, left_out = 0; left_out < 2 && at < text.size();) {
    const std::size_t colon = ClosingQuote(text, at) + 1;
    const std::string_view name = text.substr(at, colon - at);
    const std::size_t next = EndOfValue(text, colon + 1) + 1;
    if (name == R"("apiVersion")" || name == R"("kind")") {
      list.Share(object, text.substr(kept, at - kept));
      kept = next;
      ++left_out;
    }
    at = next;
  }
  list.Share(object, text.substr(kept));
}

json MetadataOfList(const ListMetadata& metadata) {
  json out = {{"resourceVersion", std::to_string(metadata.version)}};
  if (!metadata.next.empty()) out["continue"] = metadata.next;
  if (metadata.remaining) out["remainingItemCount"] = *metadata.remaining;
  return out;
}

// A message in protobuf; `owner` keeps the bytes alive.
struct Encoded {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

Encoded Made(std::string bytes) {
  const auto own = std::make_shared<const std::string>(std::move(bytes));
  return {own, *own};
}

// Returns the object's message under the requested version. The stored version's is made once.
absl::StatusOr<Encoded> MessageOf(const Kind& kind, const ObjectPtr& object) {
  const bool stored = TextAt(*object->body, "apiVersion") == kind.api_version();
  if (const std::string* kept = object->message.Find(); stored && kept != nullptr) {
    return Encoded{object, *kept};
  }
  absl::StatusOr<std::string> message = EncodeMessage(kind.api_version(), kind.kind, *object->body);
  if (!message.ok()) {
    // An earlier version of this program accepted the object; now every write needs a protobuf
    // form.
    return GenericError(406, "NotAcceptable",
                        fmt::format("the {} {} has no protobuf form: {}; ask for JSON, or mend it",
                                    kind.kind, object->key, Message(message.status())));
  }
  if (stored) return Encoded{object, object->message.Keep(*std::move(message))};
  return Made(*std::move(message));
}

constexpr std::string_view kMetaVersion = "meta.k8s.io/v1";
constexpr std::string_view kPartial = "PartialObjectMetadata";

constexpr std::string_view kPartialList = "PartialObjectMetadataList";
// A text up to this size is copied into its answer. A longer text is sent from its pieces,
// kBytesAtATime at a time, or twice as much with the last piece.
constexpr std::size_t kCopiedBytesMost = 64UL << 10U;
constexpr std::size_t kBytesAtATime = 32UL << 10U;

// Returns the body around a message.
Pieces Framed(std::string_view api_version, std::string_view kind, const Encoded& message) {
  ProtobufFrame frame = FrameOf(api_version, kind, message.bytes.size());
  Pieces body;
  body.Add(std::move(frame.before));
  body.Share(message.owner, message.bytes);
  body.Share(nullptr, frame.behind);
  return body;
}

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

rest::Response Representation::Answer(const ApiRequest& request, int status, Pieces body,
                                      ByteBudget::Hold hold) const {
  return WithBody(Answer(status, ""), std::move(body), request.answers != nullptr, std::move(hold));
}

rest::Response WithBody(rest::Response answer, Pieces body, bool from_outside,
                        ByteBudget::Hold hold) {
  if (!from_outside || body.size() <= kCopiedBytesMost) {
    answer.body = std::move(body).Text();
    return answer;
  }
  answer.headers.emplace_back("Content-Length", std::to_string(body.size()));
  const auto left = std::make_shared<Pieces>(std::move(body));
  answer.source = [left, hold = std::move(hold)](std::string& out, std::chrono::milliseconds) {
    left->DrainInto(out, kBytesAtATime);
    return !left->empty();
  };
  return answer;
}

std::string_view Representation::stream_type() const {
  return protobuf_ ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json";
}

bool Representation::SendsStored(const Kind& kind, const Object& object) const {
  return whole() && !protobuf_ && object.body->value("apiVersion", "") == kind.api_version();
}

absl::StatusOr<Pieces> Representation::Body(const Kind& kind, const json& body,
                                            const ObjectPtr& object, bool with_columns,
                                            WallTime now) const {
  Pieces text;
  switch (form_) {
    case Form::kWhole: {
      if (protobuf_) {
        if (object == nullptr) {
          TAHOMA_ASSIGN_OR_RETURN(std::string made,
                                  EncodeMessage(kind.api_version(), kind.kind, body));
          return Framed(kind.api_version(), kind.kind, Made(std::move(made)));
        }
        TAHOMA_ASSIGN_OR_RETURN(const Encoded message, MessageOf(kind, object));
        return Framed(kind.api_version(), kind.kind, message);
      }
      if (object != nullptr && SendsStored(kind, *object)) {
        text.Share(object, object->bytes);
      } else {
        text.Add(object != nullptr ? WholeText(kind, *object) : kube::JsonText(body));
      }
      return text;
    }
    case Form::kMetadata: {
      if (protobuf_) {
        TAHOMA_ASSIGN_OR_RETURN(std::string message, PartialMessage(body));
        return Framed(kMetaVersion, kPartial, Made(std::move(message)));
      }
      text.Add(kube::JsonText(PartialObjectMetadata(body)));
      return text;
    }
    case Form::kTable:
      break;
  }
  const json metadata = {{"resourceVersion", body.at("metadata").value("resourceVersion", "")}};
  text.Add(kube::JsonText(MakeTable(kind, {&body}, metadata, include_, now, with_columns)));
  return text;
}

absl::StatusOr<Pieces> Representation::One(const Kind& kind, const ObjectPtr& object,
                                           WallTime now) const {
  return Body(kind, *object->body, object, true, now);
}

absl::StatusOr<std::string> Representation::One(const Kind& kind, const Object& object,
                                                WallTime now) const {
  // Not kept beyond this call.
  TAHOMA_ASSIGN_OR_RETURN(Pieces text, One(kind, ObjectPtr(ObjectPtr(), &object), now));
  return std::move(text).Text();
}

absl::StatusOr<Pieces> Representation::ListProtobuf(const Kind& kind,
                                                    const std::vector<ObjectPtr>& objects,
                                                    const json& metadata) const {
  constexpr std::size_t kHeadMost = 11;  // a tag and a length
  const auto heads = std::make_shared<std::string>();
  heads->reserve(kHeadMost * objects.size());  // no reallocation: pieces point into the text
  TAHOMA_ASSIGN_OR_RETURN(std::string list_meta, ListMetaMessage(metadata));
  Pieces message;
  message.Add(std::move(list_meta));
  for (const ObjectPtr& object : objects) {
    ProcessorBudget::SpendBytes(object->bytes.size());
    Encoded item;
    if (whole()) {
      TAHOMA_ASSIGN_OR_RETURN(item, MessageOf(kind, object));
    } else {
      TAHOMA_ASSIGN_OR_RETURN(std::string partial, PartialMessage(*object->body));
      item = Made(std::move(partial));
    }
    const std::size_t begin = heads->size();
    *heads += ItemHead(item.bytes.size());
    message.Share(heads, std::string_view(*heads).substr(begin));
    message.Share(std::move(item.owner), item.bytes);
  }
  ProtobufFrame frame = whole() ? FrameOf(kind.api_version(), kind.list_kind, message.size())
                                : FrameOf(kMetaVersion, kPartialList, message.size());
  Pieces body;
  body.Add(std::move(frame.before));
  body.Append(std::move(message));
  body.Share(nullptr, frame.behind);
  return body;
}

Pieces Representation::ListJson(const Kind& kind, const std::vector<ObjectPtr>& objects,
                                json metadata) const {
  // As from Go's Unstructured.
  if (whole() && !kind.built_in) metadata.emplace("continue", "");
  Pieces list;
  list.Add(fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{},"items":[)",
                       whole() ? kind.list_kind : kPartialList,
                       whole() ? kind.api_version() : kMetaVersion, metadata.dump()));
  bool first = true;
  for (const ObjectPtr& object : objects) {
    ProcessorBudget::SpendBytes(object->bytes.size());
    if (whole()) {
      AddItem(kind, object, first, list);
    } else {
      if (!first) list.Share(nullptr, ",");
      list.Add(kube::JsonText(PartialObjectMetadata(*object->body)));
    }
    first = false;
  }
  list.Share(nullptr, "]}\n");
  return list;
}

absl::StatusOr<Pieces> Representation::List(const Kind& kind, const std::vector<ObjectPtr>& objects,
                                            const ListMetadata& metadata, WallTime now) const {
  if (form_ == Form::kTable) {
    std::vector<const json*> bodies;
    for (const ObjectPtr& object : objects) bodies.push_back(object->body.get());
    Pieces table;
    table.Add(kube::JsonText(MakeTable(kind, bodies, MetadataOfList(metadata), include_, now)));
    return table;
  }
  if (protobuf_) return ListProtobuf(kind, objects, MetadataOfList(metadata));
  return ListJson(kind, objects, MetadataOfList(metadata));
}

std::size_t Representation::CostOfList(const Kind& kind,
                                       const std::vector<ObjectPtr>& objects) const {
  constexpr std::size_t kPiecesOfItem = 100;  // bytes of memory
  std::size_t bytes = kPiecesOfItem * objects.size();
  const bool shares = whole() && (protobuf_ || kind.built_in);
  if (objects.empty() || shares || SendsStored(kind, *objects.front())) {
    return bytes;
  }
  for (const ObjectPtr& object : objects) bytes += object->bytes.size();
  return bytes;
}

Pieces Representation::EventLine(std::string_view type, absl::StatusOr<Pieces> object) const {
  Pieces line;
  if (!object.ok()) {
    line.Add(ErrorLine(StatusObject(object.status())));
  } else if (protobuf_) {
    line.Add(WatchHead(type, object->size()));
    line.Append(*std::move(object));
  } else {
    line.Add(fmt::format(R"({{"type":"{}","object":)", type));
    line.Append(*std::move(object));
    line.Share(nullptr, "}\n");
  }
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
      return EventLine(name, Body(kind, *event.object->body, event.object, first, now)).Text();
    }
    json body = *event.previous->body;
    body["apiVersion"] = kind.api_version();
    body["metadata"]["resourceVersion"] = std::to_string(event.version());
    return EventLine(name, Body(kind, body, nullptr, first, now)).Text();
  });
}

Pieces Representation::AddedLine(const Kind& kind, const ObjectPtr& object, bool first,
                                 WallTime now) const {
  return EventLine("ADDED", Body(kind, *object->body, object, first, now));
}

std::string Representation::BookmarkLine(const Kind& kind, const json& bookmark, bool first,
                                         WallTime now) const {
  return EventLine("BOOKMARK", Body(kind, bookmark, nullptr, first, now)).Text();
}

std::string Representation::ErrorLine(const json& status) const {
  // A Status of ours always has a protobuf form.
  Pieces object;
  object.Add(protobuf_ ? EncodeProtobuf(status).value_or("") : kube::JsonText(status));
  return EventLine("ERROR", std::move(object)).Text();
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
