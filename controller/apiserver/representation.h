// The forms in which an object, a list or an event is sent: whole, as a Table, or metadata only.
//
//   TAHOMA_ASSIGN_OR_RETURN(Representation form, Representation::Negotiate(request));
//   form.One(*request.kind, object, now);              // the body of a GET
//   form.Line(*request.kind, event, …);                // one line of a watch
//
// Scope: JSON. Media types other than JSON are never chosen.
//
// Thread safety: a value.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/api_request.h"
#include "controller/apiserver/object.h"
#include "controller/apiserver/table.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// metadata of a list.
struct ListMetadata {
  std::int64_t version = 0;
  std::string next;  // the continue token; empty on the last page
  std::optional<std::int64_t> remaining;
};

class Representation {
 public:
  // From Accept and includeObject. 406 when nothing in Accept can be served.
  static absl::StatusOr<Representation> Negotiate(const ApiRequest& request);

  // Whether the object is shown as it is, not as a Table or its metadata.
  bool whole() const { return form_ == Form::kWhole; }
  // The object as a body; the whole form is the stored text itself where the version agrees.
  std::string One(const Kind& kind, const Object& object, WallTime now) const;
  std::string List(const Kind& kind, const std::vector<ObjectPtr>& objects,
                   const ListMetadata& metadata, WallTime now) const;

  // {"type":…,"object":…}\n. `type` may differ from the event's where a selector is crossed;
  // `object` is the event's object or, then, its previous state under the event's version. The
  // text is shared by all watches of the same form. `first`: a Table brings its columns.
  std::shared_ptr<const std::string> Line(const Kind& kind, const Event& event, Event::Type type,
                                          bool use_previous, bool first, WallTime now) const;
  // A synthetic ADDED of an existing object.
  std::string AddedLine(const Kind& kind, const Object& object, bool first, WallTime now) const;
  // A BOOKMARK; in a Table it is a row of its own, as a real server has it.
  std::string BookmarkLine(const Kind& kind, const Json& bookmark, bool first, WallTime now) const;

 private:
  enum class Form : std::uint8_t { kWhole, kTable, kMetadata };

  std::string Text(const Kind& kind, const Json& body, bool with_columns, WallTime now) const;

  Form form_ = Form::kWhole;
  IncludeObject include_ = IncludeObject::kMetadata;
};

std::string_view EventTypeName(Event::Type type);

}  // namespace tahoma::controller
