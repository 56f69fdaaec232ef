#include "lib/kube/url.h"

#include <algorithm>

#include "lib/base/hex.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::kube {
namespace {

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// Calls f with each part between separators.
template <typename F>
absl::Status ForEachPart(std::string_view text, char separator, const F& f) {
  while (true) {
    const std::size_t end = text.find(separator);
    TAHOMA_RETURN_IF_ERROR(f(text.substr(0, end)));
    if (end == std::string_view::npos) return absl::OkStatus();
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<std::string_view> Find(const Query& query, std::string_view key) {
  const auto found =
      std::find_if(query.begin(), query.end(), [&](const auto& pair) { return pair.first == key; });
  return found == query.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

std::string PercentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsUnreserved(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

absl::StatusOr<std::string> PercentDecode(std::string_view text) {
  std::string out(text.substr(0, text.find('%')));
  for (std::size_t i = out.size(); i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return InvalidArgument("invalid URL escape \"{}\"", text.substr(i, 3));
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string EncodeQuery(const Query& query) {
  std::string out;
  for (const auto& [key, value] : query) {
    if (!out.empty()) out += '&';
    out += PercentEncode(key) + "=" + PercentEncode(value);
  }
  return out;
}

absl::StatusOr<Target> ParseTarget(std::string_view target) {
  if (!target.starts_with('/')) {
    return InvalidArgument("a request's path begins with '/', not '{}'", CutUtf8(target, 32));
  }
  const std::size_t mark = target.find('?');
  Target out{.path = std::string(target.substr(0, mark)), .query = {}};
  if (mark == std::string_view::npos) return out;
  const auto decode = [](std::string_view text) {
    std::string spaced(text);
    std::replace(spaced.begin(), spaced.end(), '+', ' ');
    return PercentDecode(spaced);
  };
  TAHOMA_RETURN_IF_ERROR(ForEachPart(target.substr(mark + 1), '&', [&](std::string_view part) {
    if (part.empty()) return absl::OkStatus();
    const std::size_t equal = part.find('=');
    TAHOMA_ASSIGN_OR_RETURN(std::string key, decode(part.substr(0, equal)));
    const bool valued = equal != std::string_view::npos;
    TAHOMA_ASSIGN_OR_RETURN(std::string value, decode(valued ? part.substr(equal + 1) : ""));
    out.query.emplace_back(std::move(key), std::move(value));
    return absl::OkStatus();
  }));
  return out;
}

absl::StatusOr<std::vector<std::string>> SplitPath(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);
  std::vector<std::string> segments;
  if (path.empty()) return segments;
  TAHOMA_RETURN_IF_ERROR(ForEachPart(path, '/', [&](std::string_view part) -> absl::Status {
    TAHOMA_ASSIGN_OR_RETURN(std::string segment, PercentDecode(part));
    const bool hidden = std::any_of(segment.begin(), segment.end(), [](char c) {
      return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (segment.empty() || segment == "." || segment == ".." || hidden) {
      return InvalidArgument("the path has an unusable segment '{}'", part);
    }
    segments.push_back(std::move(segment));
    return absl::OkStatus();
  }));
  return segments;
}

}  // namespace tahoma::kube
