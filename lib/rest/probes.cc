#include "lib/rest/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tahoma::rest {
namespace {

constexpr std::array<std::string_view, 3> kPaths = {"/livez", "/readyz", "/healthz"};

struct Asked {
  std::string_view probe;  // "readyz"
  std::string_view check;  // "" for all
};

std::optional<Asked> Parse(std::string_view path) {
  for (const std::string_view probe : kPaths) {
    if (path == probe) return Asked{probe.substr(1), ""};
    if (path.starts_with(probe) && path[probe.size()] == '/') {
      return Asked{probe.substr(1), path.substr(probe.size() + 1)};
    }
  }
  return std::nullopt;
}

// The values of "exclude", which may be given more than once.
std::vector<std::string> Excluded(std::string_view query) {
  std::vector<std::string> names;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    if (!part.starts_with("exclude=")) continue;
    if (auto name = PercentDecode(part.substr(8), true)) names.push_back(*std::move(name));
  }
  return names;
}

}  // namespace

void Probes::Add(Kind kind, std::string name, Check check) {
  const MutexLock lock(mutex_);
  auto& checks = kind == Kind::kLivez ? livez_ : readyz_;
  checks.emplace_back(std::move(name), std::move(check));
}

void Probes::SetReady(const std::string& reason_if_not) {
  const MutexLock lock(mutex_);
  not_ready_ = reason_if_not;
}

std::vector<std::pair<std::string, Probes::Check>> Probes::Checks(Kind kind) const {
  const MutexLock lock(mutex_);
  return kind == Kind::kLivez ? livez_ : readyz_;
}

bool Probes::IsProbe(std::string_view path) { return Parse(path).has_value(); }

std::optional<Response> Probes::Answer(const Request& request) const {
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  const std::optional<Asked> asked = Parse(request.path);
  if (!asked) return std::nullopt;
  std::vector<std::pair<std::string, Check>> checks = {{"ping", [] { return std::string(); }}};
  {
    const MutexLock lock(mutex_);
    const bool ready = asked->probe == "readyz";
    if (ready) checks.emplace_back("start", [why = not_ready_] { return why; });
    const auto& own = ready ? readyz_ : livez_;
    checks.insert(checks.end(), own.begin(), own.end());
  }
  const std::vector<std::string> excluded = Excluded(request.query);
  std::string lines;
  bool failed = false;
  bool any = false;
  for (const auto& [name, check] : checks) {
    if (!asked->check.empty() && asked->check != name) continue;
    any = true;
    if (std::find(excluded.begin(), excluded.end(), name) != excluded.end()) {
      lines += fmt::format("[+]{} excluded: ok\n", name);
    } else if (const std::string why = check(); why.empty()) {
      lines += fmt::format("[+]{} ok\n", name);
    } else {
      lines += fmt::format("[-]{} failed: {}\n", name, why);
      failed = true;
    }
  }
  if (!any)
    return Response::Text(404, fmt::format("{} has no check {}\n", asked->probe, asked->check));
  if (failed) {
    return Response::Text(503, fmt::format("{}{} check failed\n", lines, asked->probe));
  }
  if (request.query_value("verbose")) {
    return Response::Text(200, fmt::format("{}{} check passed\n", lines, asked->probe));
  }
  return Response::Text(200, "ok");
}

}  // namespace tahoma::rest
