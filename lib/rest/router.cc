#include "lib/rest/router.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tahoma::rest {
namespace {

std::vector<std::string> Split(std::string_view path) {
  std::vector<std::string> segments;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    segments.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return segments;
}

bool IsName(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

bool TakesRest(std::string_view segment) { return IsName(segment) && segment.ends_with("...}"); }

bool Fits(const std::vector<std::string>& pattern, const std::vector<std::string>& path,
          std::vector<std::pair<std::string, std::string>>& params) {
  params.clear();
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (TakesRest(pattern[i])) {
      std::string rest;
      for (std::size_t j = i; j < path.size(); ++j) rest += (j > i ? "/" : "") + path[j];
      params.emplace_back(pattern[i].substr(1, pattern[i].size() - 5), std::move(rest));
      return i < path.size();
    }
    if (i >= path.size()) return false;
    if (IsName(pattern[i])) {
      if (path[i].empty()) return false;
      params.emplace_back(pattern[i].substr(1, pattern[i].size() - 2), path[i]);
    } else if (pattern[i] != path[i]) {
      return false;
    }
  }
  return pattern.size() == path.size();
}

}  // namespace

void Router::Add(std::string method, std::string pattern, Handler handler) {
  TAHOMA_CHECK(pattern.starts_with('/'));
  std::vector<std::string> segments = Split(pattern);
  entries_.push_back(
      {std::move(method), std::move(pattern), std::move(segments), std::move(handler)});
}

Router::Match Router::Find(std::string_view method, std::string_view path) const {
  Match match;
  std::vector<std::string> segments = Split(path);
  for (std::string& segment : segments) {
    const std::optional<std::string> decoded = PercentDecode(segment);
    // An encoded slash would let one segment pass for two.
    if (!decoded || decoded->find('/') != std::string::npos) {
      match.malformed = true;
      return match;
    }
    segment = *decoded;
  }
  std::vector<std::pair<std::string, std::string>> params;
  for (const Entry& entry : entries_) {
    if (!Fits(entry.segments, segments, params)) continue;
    if (entry.method == method || (entry.method == "GET" && method == "HEAD")) {
      match.handler = &entry.handler;
      match.pattern = &entry.pattern;
      match.params = std::move(params);
      return match;
    }
    match.allow += (match.allow.empty() ? "" : ", ") + entry.method;
  }
  return match;
}

}  // namespace tahoma::rest
