#include "controller/apiserver/representation.h"

#include <algorithm>
#include <utility>

#include "controller/apiserver/status_error.h"
#include "lib/base/ascii.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller {
namespace {

using json = Json;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// One element of Accept, "application/json;as=Table;v=v1;g=meta.k8s.io".
struct MediaRange {
  std::string type;
  std::string as, group, version;
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
    }
  }
  return range;
}

bool IsJson(const MediaRange& range) {
  return range.type == "application/json" || range.type == "application/*" || range.type == "*/*";
}

// The object's text under the requested version: versions of one resource differ in name only.
std::string WholeText(const Kind& kind, const Object& object) {
  if (object.body->value("apiVersion", "") == kind.api_version()) return object.bytes;
  json body = *object.body;
  body["apiVersion"] = kind.api_version();
  return kube::JsonText(body);
}

// As an item of a list: those of built-in kinds carry no type of their own, as from Go's types.
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

json MetadataOf(const ListMetadata& metadata) {
  json out = {{"resourceVersion", std::to_string(metadata.version)}};
  if (!metadata.next.empty()) out["continue"] = metadata.next;
  if (metadata.remaining) out["remainingItemCount"] = *metadata.remaining;
  return out;
}

std::string EventLine(std::string_view type, std::string_view object) {
  std::string line;
  line.reserve(object.size() + 40);
  line += R"({"type":")";
  line += type;
  line += R"(","object":)";
  line += object;
  line += "}\n";
  return line;
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

absl::StatusOr<Representation> Representation::Negotiate(const ApiRequest& request) {
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
  std::string_view accept = request.http->header("Accept");
  if (Trimmed(accept).empty()) return chosen;
  while (!accept.empty()) {
    const std::size_t end = accept.find(',');
    const MediaRange range = ParseRange(accept.substr(0, end));
    accept = end == std::string_view::npos ? std::string_view() : accept.substr(end + 1);
    if (!IsJson(range)) continue;
    const bool meta_v1 = range.group == "meta.k8s.io" && range.version == "v1";
    if (range.as == "Table" && meta_v1) {
      chosen.form_ = Form::kTable;
    } else if (range.as.starts_with("PartialObjectMetadata") && meta_v1) {
      chosen.form_ = Form::kMetadata;
    } else if (!range.as.empty()) {
      continue;
    }
    return chosen;
  }
  return NotAcceptableError("application/json");
}

std::string Representation::Text(const Kind& kind, const json& body, bool with_columns,
                                 WallTime now) const {
  if (form_ == Form::kMetadata) return kube::JsonText(PartialObjectMetadata(body));
  const json metadata = {{"resourceVersion", body.at("metadata").value("resourceVersion", "")}};
  return kube::JsonText(MakeTable(kind, {&body}, metadata, include_, now, with_columns));
}

std::string Representation::One(const Kind& kind, const Object& object, WallTime now) const {
  return form_ == Form::kWhole ? WholeText(kind, object) : Text(kind, *object.body, true, now);
}

std::string Representation::List(const Kind& kind, const std::vector<ObjectPtr>& objects,
                                 const ListMetadata& metadata, WallTime now) const {
  if (form_ == Form::kTable) {
    std::vector<const json*> bodies;
    for (const ObjectPtr& object : objects) bodies.push_back(object->body.get());
    return kube::JsonText(MakeTable(kind, bodies, MetadataOf(metadata), include_, now));
  }
  const bool whole = form_ == Form::kWhole;
  json list_metadata = MetadataOf(metadata);
  if (whole && !kind.built_in) list_metadata.emplace("continue", "");  // as from Go's Unstructured
  std::string text =
      fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{},"items":[)",
                  whole ? kind.list_kind : "PartialObjectMetadataList",
                  whole ? kind.api_version() : "meta.k8s.io/v1", list_metadata.dump());
  bool first = true;
  for (const ObjectPtr& object : objects) {
    if (!first) text += ',';
    first = false;
    text += whole ? ItemText(kind, *object) : kube::JsonText(PartialObjectMetadata(*object->body));
  }
  text += "]}\n";
  return text;
}

std::shared_ptr<const std::string> Representation::Line(const Kind& kind, const Event& event,
                                                        Event::Type type, bool use_previous,
                                                        bool first, WallTime now) const {
  const std::string form =
      fmt::format("{}/{}/{}/{}/{}/{}", static_cast<int>(form_), static_cast<int>(include_),
                  kind.version, static_cast<int>(type), use_previous, first);
  return event.Line(form, [&] {
    const std::string_view name = EventTypeName(type);
    if (!use_previous) {
      return EventLine(name, form_ == Form::kWhole ? WholeText(kind, *event.object)
                                                   : Text(kind, *event.object->body, first, now));
    }
    json body = *event.previous->body;
    body["apiVersion"] = kind.api_version();
    body["metadata"]["resourceVersion"] = std::to_string(event.version());
    return EventLine(name,
                     form_ == Form::kWhole ? kube::JsonText(body) : Text(kind, body, first, now));
  });
}

std::string Representation::AddedLine(const Kind& kind, const Object& object, bool first,
                                      WallTime now) const {
  return EventLine("ADDED", form_ == Form::kWhole ? WholeText(kind, object)
                                                  : Text(kind, *object.body, first, now));
}

std::string Representation::BookmarkLine(const Kind& kind, const json& bookmark, bool first,
                                         WallTime now) const {
  return EventLine("BOOKMARK", form_ == Form::kWhole ? kube::JsonText(bookmark)
                                                     : Text(kind, bookmark, first, now));
}

}  // namespace tahoma::controller
