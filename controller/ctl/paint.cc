#include "controller/ctl/paint.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace tahoma::controller {
namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kEnd = "\x1b[0m";

// Phases of gangs and pods, states of Capacity Blocks, and the cell of a broken chip.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kWords = {{
    {"Running", kGreen},
    {"Finished", kGreen},
    {"Succeeded", kGreen},
    {"active", kGreen},
    {"Pending", kYellow},
    {"Placed", kYellow},
    {"Degraded", kYellow},
    {"scheduled", kYellow},
    {"payment-pending", kYellow},
    {"electing", kYellow},
    {"Failed", kRed},
    {"Invalid", kRed},
    {"NeverFits", kRed},
    {"Unschedulable", kRed},
    {"payment-failed", kRed},
    {"unsupported", kRed},
    {"!", kRed},
}};

std::string_view ColourOf(std::string_view word) {
  const auto* const found =
      std::ranges::find(kWords, word, &std::pair<std::string_view, std::string_view>::first);
  return found == kWords.end() ? std::string_view() : found->second;
}

// A header begins with a word in capitals and has no small letter; a row of chips begins otherwise.
bool IsHeader(std::string_view line) {
  const auto upper = [](unsigned char c) { return std::isupper(c) != 0; };
  const auto lower = [](unsigned char c) { return std::islower(c) != 0; };
  return line.size() > 1 && std::ranges::all_of(line.substr(0, 2), upper) &&
         std::ranges::none_of(line, lower);
}

bool IsPunctuation(char c) { return c == ',' || c == ':' || c == '(' || c == ')'; }

void PaintLine(std::string_view line, std::string& text) {
  if (IsHeader(line)) {
    text.append(kBold).append(line).append(kEnd);
    return;
  }
  while (!line.empty()) {
    const std::size_t word = std::min(line.find_first_not_of(" \t,:()"), line.size());
    text.append(line.substr(0, word));
    line.remove_prefix(word);
    const std::size_t end = static_cast<std::size_t>(
        std::ranges::find_if(line,
                             [](char c) { return c == ' ' || c == '\t' || IsPunctuation(c); }) -
        line.begin());
    const std::string_view found = line.substr(0, end);
    const std::string_view colour = ColourOf(found);
    text.append(colour).append(found).append(colour.empty() ? "" : kEnd);
    line.remove_prefix(end);
  }
}

}  // namespace

std::string Painted(std::string_view text) {
  std::string painted;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    PaintLine(text.substr(0, end), painted);
    if (end < text.size()) painted += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return painted;
}

}  // namespace tahoma::controller
