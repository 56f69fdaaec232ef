#include "controller/model/zone.h"

#include <fmt/format.h>

#include <cstddef>

#include "lib/base/ascii.h"

namespace tahoma::controller {
namespace {

// Returns the length of a zone's name up to the region's number: 9 of "us-east-2a"; 0 without one.
std::size_t RegionLength(std::string_view zone) {
  for (std::size_t i = 1; i < zone.size(); ++i) {
    if (zone[i - 1] != '-' || !IsDigit(zone[i])) continue;
    std::size_t end = i;
    while (end < zone.size() && IsDigit(zone[end])) ++end;
    return end;
  }
  return 0;
}

// Returns "se" of "southeast": one letter for each point of the compass, and for any other word.
std::string Initials(std::string_view word) {
  std::string initials(word.substr(0, 1));
  for (const std::string_view first : {"north", "south"}) {
    if (word.starts_with(first) && word.size() > first.size()) initials += word[first.size()];
  }
  return initials;
}

// Returns "use2" of "us-east-2": EC2 keeps the first word and shortens those that follow.
std::string AbbreviationOf(std::string_view region) {
  std::size_t dash = region.find('-');
  std::string text(region.substr(0, dash));
  while (dash != std::string_view::npos) {
    const std::size_t start = dash + 1;
    dash = region.find('-', start);
    const std::string_view word = region.substr(start, dash - start);
    text += !word.empty() && IsDigit(word.front()) ? std::string(word) : Initials(word);
  }
  return text;
}

}  // namespace

std::string ZoneOf(const Node& node) {
  const std::string_view zone = node.label(kZoneLabel);
  return zone.empty() ? kDefaultZone : std::string(zone);
}

std::string RegionOf(std::string_view zone) {
  const std::size_t length = RegionLength(zone);
  return std::string(length == 0 ? zone : zone.substr(0, length));
}

std::string FormZoneId(std::string_view zone) {
  const std::size_t length = RegionLength(zone);
  const std::string_view rest = zone.substr(length);
  if (length == 0 || rest.size() != 1 || rest.front() < 'a' || rest.front() > 'z') {
    return std::string(zone);
  }
  return fmt::format("{}-az{}", AbbreviationOf(zone.substr(0, length)), rest.front() - 'a' + 1);
}

}  // namespace tahoma::controller
