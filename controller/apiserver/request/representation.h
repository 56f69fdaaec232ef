// The forms in which an object, a list or an event is sent: whole, as a Table, or metadata only.
//
//   TAHOMA_ASSIGN_OR_RETURN(Representation form, Representation::Negotiate(request));
//   form.AddedLine(*request.kind, object, /*first=*/true, now);   // one line, or frame, of a watch
//   TAHOMA_ASSIGN_OR_RETURN(std::string body, form.One(*request.kind, *object, now));
//   return form.Answer(200, std::move(body));
//
// Scope: JSON and, except for Tables and whole objects of custom kinds, Kubernetes' protobuf.
// Other media types are never chosen.
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

#include "controller/apiserver/printers/table.h"
#include "controller/apiserver/request/api_request.h"
#include "controller/apiserver/request/pieces.h"
#include "controller/apiserver/storage/object.h"
#include "lib/base/byte_budget.h"
#include "lib/base/clock.h"
#include "lib/rest/message.h"

namespace tahoma::controller::apiserver {

// metadata of a list.
struct ListMetadata {
  std::int64_t version = 0;
  std::string next;  // the continue token; empty on the last page
  std::optional<std::int64_t> remaining;
};

class Representation {
 public:
  // Chooses the representation from Accept and includeObject. 406 when nothing in Accept can be
  // served.
  static absl::StatusOr<Representation> Negotiate(const ApiRequest& request) {
    return Negotiate(request, *request.kind);
  }
  // The same for an answer of another kind than the request's, such as a Scale.
  static absl::StatusOr<Representation> Negotiate(const ApiRequest& request, const Kind& kind);

  // Whether the object is shown as it is, not as a Table or its metadata.
  bool whole() const { return form_ == Form::kWhole; }
  // The object as a body; the whole form is the stored text itself where the version agrees.
  // kInternal names a field of the object that is not of its type, and so has no protobuf.
  absl::StatusOr<std::string> One(const Kind& kind, const Object& object, WallTime now) const;
  // The same of an object that is stored, whose text is shared where it is the answer.
  absl::StatusOr<Pieces> One(const Kind& kind, const ObjectPtr& object, WallTime now) const;
  absl::StatusOr<Pieces> List(const Kind& kind, const std::vector<ObjectPtr>& objects,
                              const ListMetadata& metadata, WallTime now) const;
  // The bytes that List takes, about: it shares whole objects, and makes all other forms.
  std::size_t CostOfList(const Kind& kind, const std::vector<ObjectPtr>& objects) const;
  // Answers with such a body.
  rest::Response Answer(int status, std::string body) const;
  rest::Response Answer(const ApiRequest& request, int status, Pieces body,
                        ByteBudget::Hold hold = nullptr) const;

  // Watches: {"type":…,"object":…}\n, or a frame of protobuf; an event that cannot be written in
  // this form is an ERROR event.
  std::string_view stream_type() const;
  // `type` may differ from the event's where a selector is crossed;
  // `object` is the event's object or, then, its previous state under the event's version. The
  // text is shared by all watches of the same form. `first`: a Table brings its columns.
  std::shared_ptr<const std::string> Line(const Kind& kind, const Event& event, Event::Type type,
                                          bool use_previous, bool first, WallTime now) const;
  // A synthetic ADDED of an existing object.
  Pieces AddedLine(const Kind& kind, const ObjectPtr& object, bool first, WallTime now) const;
  // A BOOKMARK; in a Table it is a row of its own, as a real server has it.
  std::string BookmarkLine(const Kind& kind, const Json& bookmark, bool first, WallTime now) const;
  std::string ErrorLine(const Json& status) const;

 private:
  enum class Form : std::uint8_t { kWhole, kTable, kMetadata };

  // `object` is null where `body` is not that of a stored object.
  absl::StatusOr<Pieces> Body(const Kind& kind, const Json& body, const ObjectPtr& object,
                              bool with_columns, WallTime now) const;
  absl::StatusOr<Pieces> ListProtobuf(const Kind& kind, const std::vector<ObjectPtr>& objects,
                                      const Json& metadata) const;
  Pieces ListJson(const Kind& kind, const std::vector<ObjectPtr>& objects, Json metadata) const;
  // Whether the object's own text is its whole JSON in this form.
  bool SendsStored(const Kind& kind, const Object& object) const;
  Pieces EventLine(std::string_view type, absl::StatusOr<Pieces> object) const;

  bool protobuf_ = false;
  Form form_ = Form::kWhole;
  IncludeObject include_ = IncludeObject::kMetadata;
};

std::string_view EventTypeName(Event::Type type);

// `answer` with that body. A large one, for a caller outside this process, is a source with a
// Content-Length, which holds `hold` to its end.
rest::Response WithBody(rest::Response answer, Pieces body, bool from_outside,
                        ByteBudget::Hold hold = nullptr);

// A small answer in JSON (a Status, a review), as protobuf when the request's Accept prefers that.
rest::Response AsAccepted(const rest::Request& request, rest::Response answer);

}  // namespace tahoma::controller::apiserver
