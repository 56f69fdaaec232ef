#include "lib/kube/transport.h"

#include "lib/base/ascii.h"
#include "lib/base/json.h"
#include "lib/kube/json_writer.h"

namespace tahoma::kube {

std::string Request::Text() const { return parsed ? JsonText(*parsed) : body; }

std::string_view Response::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (EqualsIgnoringCase(key, name)) return value;
  }
  return "";
}

std::shared_ptr<const tahoma::Json> Response::Json() const {
  if (parsed) return parsed;
  return std::make_shared<const tahoma::Json>(TryParseJson(body));
}

std::vector<absl::StatusOr<Response>> Transport::SendAll(const std::vector<Request>& requests) {
  std::vector<absl::StatusOr<Response>> answers;
  for (const Request& request : requests) answers.push_back(Send(request));
  return answers;
}

absl::StatusOr<Response> Transport::Watch(const Request& request, const EventSink& sink,
                                          std::chrono::milliseconds idle_timeout) {
  const auto on_line = [&](std::string_view line) {
    if (line.empty()) return true;
    const tahoma::Json event = TryParseJson(line);
    const auto is_event = [&] {
      return event.is_object() && event.contains("object") &&
             event.value("type", tahoma::Json()).is_string();
    };
    if (!is_event()) return sink("", nullptr);
    return sink(event["type"].get_ref<const std::string&>(), event["object"]);
  };
  return Stream(request, on_line, idle_timeout);
}

}  // namespace tahoma::kube
