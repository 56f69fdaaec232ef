#include "lib/wire/call.h"

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::wire {
namespace {

using json = Json;

constexpr std::size_t kMaxMethodBytes = 64;
constexpr std::size_t kMaxMessageBytes = 16384;

std::string CodeName(absl::StatusCode code) { return absl::StatusCodeToString(code); }

absl::StatusCode CodeFromName(std::string_view name) {
  for (int code = 1; code <= 16; ++code) {
    if (name == CodeName(static_cast<absl::StatusCode>(code))) {
      return static_cast<absl::StatusCode>(code);
    }
  }
  return absl::StatusCode::kUnknown;
}

absl::Status CheckObject(const json* value, std::string_view where) {
  if (value != nullptr && value->is_object()) return absl::OkStatus();
  return InvalidArgument("{} must be a JSON object", where);
}

// Replaces bytes other than UTF-8 (in a file name, say), so every message can be sent.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<Frame> EncodeRequest(std::uint64_t id, const Request& request) {
  TAHOMA_ASSIGN_OR_RETURN(json params, ReadJson(request.params, "params"));
  TAHOMA_RETURN_IF_ERROR(CheckObject(&params, "params"));
  const json header = {{"id", id}, {"method", request.method}, {"params", std::move(params)}};
  return Frame{.header = Dump(header), .payload = request.payload};
}

absl::StatusOr<NumberedRequest> DecodeRequest(Frame frame) {
  TAHOMA_ASSIGN_OR_RETURN(const json header, ReadJson(frame.header, "the request's header"));
  Fields fields(header, "request");
  NumberedRequest out;
  out.id = static_cast<std::uint64_t>(fields.Int("id", 0, INT64_MAX));
  out.request.method = fields.String("method", 1, kMaxMethodBytes);
  if (const json* params = fields.Object("params"); params != nullptr) {
    out.request.params = Dump(*params);
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  out.request.payload = std::move(frame.payload);
  return out;
}

absl::StatusOr<Frame> EncodeReply(std::uint64_t id, absl::StatusOr<Reply> reply) {
  json header = {{"id", id}};
  if (!reply.ok()) {
    header["error"] = {{"code", CodeName(reply.status().code())},
                       {"message", Message(reply.status()).substr(0, kMaxMessageBytes)}};
    return Frame{.header = Dump(header), .payload = ""};
  }
  TAHOMA_ASSIGN_OR_RETURN(json result, ReadJson(reply->result, "result"));
  TAHOMA_RETURN_IF_ERROR(CheckObject(&result, "result"));
  header["result"] = std::move(result);
  return Frame{.header = Dump(header), .payload = std::move(reply->payload)};
}

absl::StatusOr<Reply> DecodeReply(std::uint64_t id, Frame frame) {
  TAHOMA_ASSIGN_OR_RETURN(const json header, ReadJson(frame.header, "the reply's header"));
  Fields fields(header, "reply");
  const auto answered = static_cast<std::uint64_t>(fields.Int("id", 0, INT64_MAX));
  const json* error = fields.Object("error");
  const json* result = fields.Object("result");
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (answered != id) {
    return Internal("the reply answers call {}; expected call {}", answered, id);
  }
  if (error != nullptr) {
    Fields error_fields(*error, "reply.error");
    const std::string code = error_fields.String("code", 1, 64);
    // The bound is in characters of JSON text after replacement, hence the slack.
    const std::string message = error_fields.String("message", 0, 4 * kMaxMessageBytes);
    TAHOMA_RETURN_IF_ERROR(error_fields.status());
    return absl::Status(CodeFromName(code), message);
  }
  if (result == nullptr) return InvalidArgument("reply has neither result nor error");
  return Reply{.result = Dump(*result), .payload = std::move(frame.payload)};
}

absl::StatusOr<Reply> Call(Connection& connection, std::uint64_t id, const Request& request,
                           std::chrono::milliseconds timeout) {
  TAHOMA_ASSIGN_OR_RETURN(const Frame frame, EncodeRequest(id, request));
  TAHOMA_RETURN_IF_ERROR(connection.Send(frame, timeout));
  absl::StatusOr<Frame> reply = connection.Receive(timeout);
  if (!reply.ok()) {
    connection.Shutdown();
    return reply.status();
  }
  absl::StatusOr<Reply> decoded = DecodeReply(id, *std::move(reply));
  if (absl::IsInternal(decoded.status())) connection.Shutdown();
  return decoded;
}

absl::StatusOr<std::shared_ptr<Connection>> Client::Connected(std::chrono::milliseconds timeout) {
  {
    const MutexLock lock(mutex_);
    if (closed_) return Unavailable("{}: this client is closed", address_);
    if (connection_ != nullptr && connection_->usable()) return connection_;
  }
  TAHOMA_ASSIGN_OR_RETURN(std::shared_ptr<Connection> dialled, Connection::Dial(address_, timeout));
  const MutexLock lock(mutex_);
  if (closed_) return Unavailable("{}: this client is closed", address_);
  connection_ = dialled;
  return dialled;
}

absl::StatusOr<Reply> Client::Call(const Request& request, std::chrono::milliseconds timeout) {
  const MutexLock one_at_a_time(call_mutex_);
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection, Connected(timeout));
  return wire::Call(*connection, ++last_id_, request, timeout);
}

void Client::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  if (connection_ != nullptr) connection_->Shutdown();
}

}  // namespace tahoma::wire
