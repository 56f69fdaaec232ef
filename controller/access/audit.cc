#include "controller/access/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lib/base/host_port.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kNodeLeases = "kube-node-lease";
constexpr std::size_t kTargetBytesMost = 1024;
constexpr std::size_t kAgentBytesMost = 256;
constexpr std::size_t kNameBytesWritten = 256;
constexpr std::size_t kGroupsWritten = 16;

// A JSON string in visible ASCII of at most `most` characters before escaping.
void AppendText(std::string& line, std::string_view text, std::size_t most) {
  line += '"';
  for (const char c : text.substr(0, most)) {
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (c >= ' ' && c < '\x7f') {
      line += c;
    } else {  // a byte, as if it were a character of Latin-1: no reader can be misled by it
      fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > most) line += "...";
  line += '"';
}

void AppendField(std::string& line, std::string_view key, std::string_view text,
                 std::size_t most = kNameBytesWritten) {
  line += ",\"";
  line += key;
  line += "\":";
  AppendText(line, text, most);
}

void AppendUser(std::string& line, std::string_view key, const rest::Identity& user) {
  line += ",\"";
  line += key;
  line += "\":{\"username\":";
  AppendText(line, user.name, kNameBytesWritten);
  line += ",\"groups\":[";
  for (std::size_t i = 0; i < std::min(user.groups.size(), kGroupsWritten); ++i) {
    if (i > 0) line += ',';
    AppendText(line, user.groups[i], kNameBytesWritten);
  }
  line += "]}";
}

void AppendUsers(std::string& line, const rest::Request& request) {
  const rest::Identity user = request.identity ? *request.identity : rest::Identity{.name = ""};
  AppendUser(line, "user", user.behind ? *user.behind : user);
  if (user.behind) AppendUser(line, "impersonatedUser", user);
}

void AppendObject(std::string& line, const AuditEvent& event) {
  const Attributes& what = *event.attributes;
  if (!what.is_resource()) return;
  line += ",\"objectRef\":{\"resource\":";
  AppendText(line, what.resource, kNameBytesWritten);
  const auto add = [&](std::string_view key, std::string_view text) {
    if (!text.empty()) AppendField(line, key, text);
  };
  add("namespace", what.name_space);
  add("name", what.name.empty() ? event.object_name : what.name);
  add("apiGroup", what.group);
  add("apiVersion", what.version);
  add("subresource", what.subresource);
  line += '}';
}

// "127.0.0.1" of "127.0.0.1:4711" and "::1" of "[::1]:4711".
std::string HostOf(const std::string& peer) {
  const auto split = SplitHostPort(peer);
  return split.ok() ? split->host : peer;
}

}  // namespace

std::string AuditLine(const AuditEvent& event) {
  const rest::Request& request = *event.request;
  std::string line =
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":)";
  line.reserve(1024);
  AppendText(line, event.id, kNameBytesWritten);
  line += R"(,"stage":"ResponseComplete")";
  AppendField(line, "requestURI", request.target, kTargetBytesMost);
  AppendField(line, "verb", event.attributes->verb);
  AppendUsers(line, request);
  line += ",\"sourceIPs\":[";
  AppendText(line, HostOf(request.peer), kNameBytesWritten);
  line += ']';
  AppendField(line, "userAgent", request.header("User-Agent"), kAgentBytesMost);
  AppendObject(line, event);
  fmt::format_to(std::back_inserter(line), R"(,"responseStatus":{{"metadata":{{}},"code":{}}})",
                 event.code);
  AppendField(line, "requestReceivedTimestamp", FormatMicroTime(event.received));
  AppendField(line, "stageTimestamp", FormatMicroTime(event.answered));
  line += R"(,"annotations":{"authorization.k8s.io/decision":)";
  AppendText(line, event.decision, kNameBytesWritten);
  AppendField(line, "authorization.k8s.io/reason", event.reason);
  line += "}}";
  return line;
}

bool IsAudited(const Attributes& attributes) {
  if (attributes.reads()) return false;
  if (attributes.resource == "leases" && attributes.name_space == kNodeLeases) {
    return attributes.verb != "patch" && attributes.verb != "update";
  }
  const bool is_question =
      attributes.verb == "create" &&
      (attributes.group == "authorization.k8s.io" || attributes.group == "authentication.k8s.io");
  return !is_question;
}

std::string Auditor::Record(const rest::Request& request, const Attributes& attributes,
                            const AccessDecision& decision, const rest::Response& answer,
                            WallTime received) {
  if (!sink_.append) return "";
  AuditEvent event{.id = {},
                   .request = &request,
                   .attributes = &attributes,
                   .code = answer.status,
                   .object_name = answer.object_name,
                   .decision = decision.allowed ? "allow" : "forbid",
                   .reason = decision.reason,
                   .received = received,
                   .answered = clock_.WallNow()};
  {
    const MutexLock lock(mutex_);
    event.id = NewUuid(rng_);
  }
  sink_.append(AuditLine(event));
  return event.id;
}

}  // namespace tahoma::controller
