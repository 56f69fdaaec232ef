#include "controller/apiserver/printers/table_path.h"

#include <charconv>
#include <optional>
#include <string>

#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

using Found = std::vector<const Json*>;

Found Fields(const Found& from, std::string_view name) {
  Found found;
  for (const Json* value : from) {
    if (const Json* member = FindMember(*value, name)) found.push_back(member);
  }
  return found;
}

Found Items(const Found& from) {
  Found found;
  for (const Json* value : from) {
    if (!value->is_array() && !value->is_object()) continue;
    for (const Json& item : *value) found.push_back(&item);
  }
  return found;
}

Found Index(const Found& from, std::int64_t index) {
  Found found;
  for (const Json* value : from) {
    if (!value->is_array()) continue;
    const auto size = static_cast<std::int64_t>(value->size());
    const std::int64_t at = index < 0 ? index + size : index;
    if (at >= 0 && at < size) found.push_back(&(*value)[static_cast<std::size_t>(at)]);
  }
  return found;
}

// `?(@.type=="Ready")`
Found Filter(const Found& from, std::string_view expression) {
  if (!expression.starts_with("?(@") || !expression.ends_with(')')) return {};
  expression.remove_prefix(3);
  expression.remove_suffix(1);
  const auto equals = expression.find("==");
  if (equals == std::string_view::npos) return {};
  std::string_view path = expression.substr(0, equals);
  while (path.ends_with(' ')) path.remove_suffix(1);
  std::string literal(expression.substr(equals + 2));
  while (literal.starts_with(' ')) literal.erase(0, 1);
  if (literal.size() >= 2 && literal.front() == '\'' && literal.back() == '\'') {
    literal.front() = literal.back() = '"';
  }
  const Json wanted = TryParseJson(literal);
  if (!wanted.is_primitive() || wanted.is_discarded()) return {};
  Found found;
  for (const Json* item : Items(from)) {
    const Found values = FindPath(*item, path);
    if (values.size() == 1 && *values[0] == wanted) found.push_back(item);
  }
  return found;
}

// The end of a bracket expression, quotes and nested brackets respected.
std::size_t CloseBracket(std::string_view path) {
  char quote = 0;
  int depth = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

Found Bracket(const Found& from, std::string_view inside) {
  if (inside == "*") return Items(from);
  if (inside.starts_with('?')) return Filter(from, inside);
  if (inside.size() >= 2 && (inside.front() == '\'' || inside.front() == '"')) {
    return Fields(from, inside.substr(1, inside.size() - 2));
  }
  std::int64_t index = 0;
  const auto parsed = std::from_chars(inside.data(), inside.data() + inside.size(), index);
  if (parsed.ec != std::errc() || parsed.ptr != inside.data() + inside.size()) return {};
  return Index(from, index);
}

}  // namespace

std::vector<const Json*> FindPath(const Json& object, std::string_view path) {
  Found found = {&object};
  while (!path.empty() && !found.empty()) {
    if (path.front() == '[') {
      const std::size_t end = CloseBracket(path);
      if (end == std::string_view::npos) return {};
      found = Bracket(found, path.substr(1, end - 1));
      path.remove_prefix(end + 1);
      continue;
    }
    if (path.front() != '.') return {};
    path.remove_prefix(1);
    // A backslash keeps a dot inside a name: ".metadata.annotations.example\.com/x".
    std::string name;
    while (!path.empty() && path.front() != '.' && path.front() != '[') {
      if (path.front() == '\\' && path.size() > 1) path.remove_prefix(1);
      name += path.front();
      path.remove_prefix(1);
    }
    if (!name.empty()) found = name == "*" ? Items(found) : Fields(found, name);
  }
  return found;
}

}  // namespace tahoma::controller::apiserver
