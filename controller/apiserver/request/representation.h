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
  // Chooses for an answer of another kind than the request's, such as a Scale.
  static absl::StatusOr<Representation> Negotiate(const ApiRequest& request, const Kind& kind);

  // Returns whether objects are shown whole, not as a Table or as metadata.
  bool whole() const { return form_ == Form::kWhole; }
  // Returns the object as a body; the whole form is the stored text itself where the version
  // matches. kInternal names a field whose value has the wrong type, and therefore no protobuf.
  absl::StatusOr<std::string> One(const Kind& kind, const Object& object, WallTime now) const;
  // Returns a stored object as a body that shares the stored text where it can.
  absl::StatusOr<Pieces> One(const Kind& kind, const ObjectPtr& object, WallTime now) const;
  absl::StatusOr<Pieces> List(const Kind& kind, const std::vector<ObjectPtr>& objects,
                              const ListMetadata& metadata, WallTime now) const;
  // Returns about how many bytes List takes: List shares whole objects, and makes all other forms.
  std::size_t CostOfList(const Kind& kind, const std::vector<ObjectPtr>& objects) const;
  // Answers with a body from One.
  rest::Response Answer(int status, std::string body) const;
  rest::Response Answer(const ApiRequest& request, int status, Pieces body,
                        ByteBudget::Hold hold = nullptr) const;

  // Watches send {"type":…,"object":…}\n, or a frame of protobuf; an event that cannot be written
  // in this form is an ERROR event.
  std::string_view stream_type() const;
  // `type` differs from the event's when the object enters or leaves the selection. `object` is the
  // event's object or, when it left, its previous state under the event's version. All watches of
  // the same form share the text. `first`: a Table brings its columns.
  std::shared_ptr<const std::string> Line(const Kind& kind, const Event& event, Event::Type type,
                                          bool use_previous, bool first, WallTime now) const;
  // A synthetic ADDED of an existing object.
  Pieces AddedLine(const Kind& kind, const ObjectPtr& object, bool first, WallTime now) const;
  // Returns a BOOKMARK; in a Table a row of its own, as from a real server.
  std::string BookmarkLine(const Kind& kind, const Json& bookmark, bool first, WallTime now) const;
  std::string ErrorLine(const Json& status) const;

 private:
  enum class Form : std::uint8_t { kWhole, kTable, kMetadata };

  // `object` is null where `body` is not a stored object's.
  absl::StatusOr<Pieces> Body(const Kind& kind, const Json& body, const ObjectPtr& object,
                              bool with_columns, WallTime now) const;
  absl::StatusOr<Pieces> ListProtobuf(const Kind& kind, const std::vector<ObjectPtr>& objects,
                                      const Json& metadata) const;
  Pieces ListJson(const Kind& kind, const std::vector<ObjectPtr>& objects, Json metadata) const;
  // Returns whether the object's own text is its whole JSON in this form.
  bool SendsStored(const Kind& kind, const Object& object) const;
  Pieces EventLine(std::string_view type, absl::StatusOr<Pieces> object) const;

  bool protobuf_ = false;
  Form form_ = Form::kWhole;
  IncludeObject include_ = IncludeObject::kMetadata;
};

std::string_view EventTypeName(Event::Type type);

// Returns `answer` with the body. For a caller outside this process, a large body is a source with
// a Content-Length, which keeps `hold` to its end.
rest::Response WithBody(rest::Response answer, Pieces body, bool from_outside,
                        ByteBudget::Hold hold = nullptr);

// Returns a small JSON answer (a Status, a review) as protobuf when the request's Accept prefers
// protobuf.
rest::Response AsAccepted(const rest::Request& request, rest::Response answer);

}  // namespace tahoma::controller::apiserver
