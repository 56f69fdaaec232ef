#include "tests/fuzz/conversation.h"

#include <utility>

namespace tahoma::fuzz {
namespace {

std::string_view TakeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// One request, without what HTTP would never let through to the API.
rest::Request ReadRequest(std::string_view text) {
  const std::string_view first = TakeLine(text);
  const std::size_t space = first.find(' ');
  std::string target(space == std::string_view::npos ? "/" : first.substr(space + 1));
  if (!target.starts_with('/')) target.insert(0, "/");
  rest::Request request = RequestOf(std::string(first.substr(0, space)), std::move(target));
  for (std::string_view line = TakeLine(text); !line.empty(); line = TakeLine(text)) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    request.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  while (text.ends_with('\n')) text.remove_suffix(1);
  request.body = text;
  return request;
}

}  // namespace

rest::Request RequestOf(std::string method, std::string target) {
  rest::Request request;
  request.method = std::move(method);
  request.path = target.substr(0, target.find('?'));
  if (request.path.size() < target.size()) request.query = target.substr(request.path.size() + 1);
  request.target = std::move(target);
  return request;
}

std::vector<rest::Request> ReadConversation(std::string_view text) {
  constexpr std::string_view kEnd = "\n%%\n";
  std::vector<rest::Request> requests;
  while (!text.empty() && requests.size() < kRequestsMax) {
    const std::size_t end = text.find(kEnd);
    requests.push_back(ReadRequest(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + kEnd.size());
  }
  return requests;
}

}  // namespace tahoma::fuzz
