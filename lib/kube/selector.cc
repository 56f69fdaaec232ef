#include "lib/kube/selector.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "lib/base/status.h"
#include "lib/kube/name.h"

namespace tahoma::kube {
namespace {

constexpr std::string_view kSpecial = "=!(),<>";

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool IsSpecial(char c) { return kSpecial.find(c) != std::string_view::npos; }

absl::StatusOr<std::int64_t> ParseNumber(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument("for 'Gt', 'Lt' operators, the value must be an integer");
  }
  return value;
}

}  // namespace

// A recursive-descent parser over tokens: words, and the operators of kSpecial.
class LabelParser {
 public:
  explicit LabelParser(std::string_view text) : rest_(text) {}

  absl::StatusOr<LabelSelector> Parse() {
    LabelSelector selector;
    if (Peek().empty()) return selector;
    while (true) {
      auto term = ParseTerm();
      if (!term.ok()) return Annotate(term.status(), "unable to parse requirement");
      selector.terms_.push_back(*std::move(term));
      const std::string_view next = Next();
      if (next.empty()) return selector;
      if (next != ",") {
        return InvalidArgument("found '{}', expected: ',' or 'end of string'", next);
      }
      const std::string_view ahead = Peek();
      if (ahead != "!" && !IsWord(ahead)) {
        return InvalidArgument("found '{}', expected: identifier after ','", ahead);
      }
    }
  }

 private:
  using Operator = LabelSelector::Operator;
  using Term = LabelSelector::Term;

  static bool IsWord(std::string_view token) { return !token.empty() && !IsSpecial(token.front()); }

  // Returns the next token without taking it; empty at the end.
  std::string_view Peek() const {
    std::string_view text = rest_;
    while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
    if (text.empty()) return text;
    std::size_t length = 0;
    if (IsSpecial(text.front())) {
      const bool pair = text.starts_with("==") || text.starts_with("!=");
      length = pair ? 2 : 1;
    } else {
      while (length < text.size() && !IsSpecial(text[length]) && !IsSpace(text[length])) ++length;
    }
    return text.substr(0, length);
  }

  std::string_view Next() {
    const std::string_view token = Peek();
    rest_.remove_prefix(token.empty() ? rest_.size()
                                      : static_cast<std::size_t>(token.end() - rest_.begin()));
    return token;
  }

  absl::StatusOr<Term> ParseTerm() {
    Term term{.key = {}, .op = Operator::kExists, .values = {}, .number = 0};
    if (Peek() == "!") {
      Next();
      term.op = Operator::kNotExists;
    }
    const std::string_view key = Next();
    if (!IsWord(key)) return InvalidArgument("found '{}', expected: identifier", key);
    if (const auto wrong = WrongQualifiedName(key)) {
      return InvalidArgument("key: Invalid value: \"{}\": {}", key, *wrong);
    }
    term.key = key;
    if (term.op == Operator::kNotExists || Peek().empty() || Peek() == ",") return term;
    TAHOMA_RETURN_IF_ERROR(ParseOperator(term));
    std::sort(term.values.begin(), term.values.end());
    return term;
  }

  absl::Status ParseOperator(Term& term) {
    const std::string_view op = Next();
    if (op == "in" || op == "notin") {
      term.op = op == "in" ? Operator::kIn : Operator::kNotIn;
      return ParseSet(term);
    }
    if (op == "=" || op == "==" || op == "!=") {
      term.op = op == "!=" ? Operator::kNotIn : Operator::kIn;
      return ParseValue(term);
    }
    if (op == ">" || op == "<") {
      term.op = op == ">" ? Operator::kGreater : Operator::kLess;
      TAHOMA_RETURN_IF_ERROR(ParseValue(term));
      TAHOMA_ASSIGN_OR_RETURN(term.number, ParseNumber(term.values.front()));
      return absl::OkStatus();
    }
    return InvalidArgument("found '{}', expected: in, notin, =, ==, !=, gt, lt", op);
  }

  // Parses one value, which may be missing: "a=" means the empty value.
  absl::Status ParseValue(Term& term) {
    std::string_view value;
    if (!Peek().empty() && Peek() != ",") {
      value = Next();
      if (!IsWord(value)) return InvalidArgument("found '{}', expected: identifier", value);
    }
    return AddValue(term, value);
  }

  absl::Status ParseSet(Term& term) {
    if (const auto open = Next(); open != "(") {
      return InvalidArgument("found '{}' expected: '('", open);
    }
    while (true) {
      std::string_view value;
      if (IsWord(Peek())) value = Next();
      TAHOMA_RETURN_IF_ERROR(AddValue(term, value));
      const std::string_view after = Next();
      if (after == ")") return absl::OkStatus();
      if (after != ",") return InvalidArgument("found '{}', expected: ',' or ')'", after);
    }
  }

  static absl::Status AddValue(Term& term, std::string_view value) {
    if (const auto wrong = WrongLabelValue(value)) {
      return InvalidArgument("values[{}][{}]: Invalid value: \"{}\": {}", term.values.size(),
                             term.key, value, *wrong);
    }
    term.values.emplace_back(value);
    return absl::OkStatus();
  }

  std::string_view rest_;
};

absl::StatusOr<LabelSelector> LabelSelector::Parse(std::string_view text) {
  if (text.size() > kBytesMax) {
    return InvalidArgument("the label selector has {} bytes; at most {} are read", text.size(),
                           kBytesMax);
  }
  return LabelParser(text).Parse();
}

absl::Status LabelSelector::Require(std::string_view key, std::string_view op,
                                    std::vector<std::string> values) {
  Term term{.key = std::string(key), .op = Operator::kIn, .values = {}, .number = 0};
  if (op == "NotIn") {
    term.op = Operator::kNotIn;
  } else if (op == "Exists") {
    term.op = Operator::kExists;
  } else if (op == "DoesNotExist") {
    term.op = Operator::kNotExists;
  } else if (op != "In") {
    return InvalidArgument(
        "operator: Invalid value: \"{}\": must be In, NotIn, Exists or DoesNotExist", op);
  }
  if (const auto wrong = WrongQualifiedName(key)) {
    return InvalidArgument("key: Invalid value: \"{}\": {}", key, *wrong);
  }
  const bool set = term.op == Operator::kIn || term.op == Operator::kNotIn;
  if (set == values.empty()) {
    return InvalidArgument("values: {} be given with the operator {}", set ? "must" : "must not",
                           op);
  }
  for (const std::string& value : values) {
    if (const auto wrong = WrongLabelValue(value)) {
      return InvalidArgument("values: Invalid value: \"{}\": {}", value, *wrong);
    }
  }
  std::sort(values.begin(), values.end());
  term.values = std::move(values);
  terms_.push_back(std::move(term));
  return absl::OkStatus();
}

bool LabelSelector::Matches(const LabelLookup& labels) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    const std::optional<std::string_view> value = labels(term.key);
    const auto listed = [&] {
      return std::binary_search(term.values.begin(), term.values.end(), *value);
    };
    const auto number = [&]() -> std::optional<std::int64_t> {
      if (!value) return std::nullopt;
      const auto parsed = ParseNumber(*value);
      return parsed.ok() ? std::optional(*parsed) : std::nullopt;
    };
    switch (term.op) {
      case Operator::kIn:
        return value && listed();
      case Operator::kNotIn:
        return !value || !listed();
      case Operator::kExists:
        return value.has_value();
      case Operator::kNotExists:
        return !value.has_value();
      case Operator::kGreater:
        return number() && *number() > term.number;
      case Operator::kLess:
        return number() && *number() < term.number;
    }
    return false;
  });
}

namespace {

// Splits at unescaped commas; empty parts are skipped, as in Kubernetes.
std::vector<std::string_view> SplitTerms(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool escaped = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && !escaped)) {
      if (i > begin) parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
    escaped = i < text.size() && text[i] == '\\' && !escaped;
  }
  return parts;
}

absl::StatusOr<std::string> Unescape(std::string_view value) {
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\') {
      const bool known = i + 1 < value.size() &&
                         std::string_view("\\,=").find(value[i + 1]) != std::string_view::npos;
      if (!known) {
        return InvalidArgument("invalid field selector: invalid escape sequence: {}",
                               value.substr(i, 2));
      }
      ++i;
    } else if (value[i] == '=') {
      return InvalidArgument(
          "invalid field selector: unescaped character in value: '='; write \\= for it");
    }
    out += value[i];
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<FieldTerm>> ParseFieldSelector(std::string_view text) {
  if (text.size() > LabelSelector::kBytesMax) {
    return InvalidArgument("the field selector has {} bytes; at most {} are read", text.size(),
                           LabelSelector::kBytesMax);
  }
  std::vector<FieldTerm> terms;
  for (const std::string_view part : SplitTerms(text)) {
    // A '!' counts only before a '='.
    std::size_t at = part.find('=');
    if (at != std::string_view::npos && at > 0 && part[at - 1] == '!') --at;
    const std::string_view rest = at == std::string_view::npos ? "" : part.substr(at);
    std::size_t length = 0;
    for (const std::string_view op : {"!=", "==", "="}) {
      if (length == 0 && rest.starts_with(op)) length = op.size();
    }
    if (length == 0) {
      return InvalidArgument("invalid selector: '{}'; can't understand '{}'", text, part);
    }
    TAHOMA_ASSIGN_OR_RETURN(std::string value, Unescape(rest.substr(length)));
    terms.push_back({std::string(part.substr(0, at)), std::move(value), !rest.starts_with('!')});
  }
  return terms;
}

}  // namespace tahoma::kube
