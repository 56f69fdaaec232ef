// JSON merge patches and JSON patches, against slow oracles that read as RFC 7386 and RFC 6902 do.
// The input is a document and a patch, with "%%" alone on a line between them.

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/patch.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using tahoma::Json;

// RFC 7386, section 2, word by word.
Json MergeOracle(Json target, const Json& patch) {
  if (!patch.is_object()) return patch;
  if (!target.is_object()) target = Json::object();
  for (const auto& [name, value] : patch.items()) {
    if (value.is_null()) {
      target.erase(name);
    } else {
      target[name] = MergeOracle(target.contains(name) ? target.at(name) : Json(), value);
    }
  }
  return target;
}

bool HasNull(const Json& value) {
  if (value.is_null()) return true;
  if (!value.is_object()) return false;
  for (const auto& [name, member] : value.items()) {
    if (HasNull(member)) return true;
  }
  return false;
}

// The tokens of a pointer; nothing when it is none (RFC 6901).
std::optional<std::vector<std::string>> Tokens(const std::string& pointer) {
  std::vector<std::string> tokens;
  if (pointer.empty()) return tokens;
  if (pointer[0] != '/') return std::nullopt;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      tokens.emplace_back();
    } else if (pointer[i] != '~') {
      tokens.back() += pointer[i];
    } else if (++i < pointer.size() && (pointer[i] == '0' || pointer[i] == '1')) {
      tokens.back() += pointer[i] == '0' ? '~' : '/';
    } else {
      return std::nullopt;
    }
  }
  return tokens;
}

std::optional<std::size_t> Index(const std::string& token) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  const bool whole = error == std::errc() && end == token.data() + token.size();
  if (!whole || (token.size() > 1 && token[0] == '0')) return std::nullopt;
  return index;
}

Json* Member(Json* value, const std::string& token) {
  if (value->is_object()) return value->contains(token) ? &(*value)[token] : nullptr;
  const auto index = Index(token);
  return value->is_array() && index && *index < value->size() ? &(*value)[*index] : nullptr;
}

// The value at the tokens, or nullptr.
Json* Find(Json& document, const std::vector<std::string>& tokens) {
  Json* at = &document;
  for (const std::string& token : tokens) {
    at = Member(at, token);
    if (at == nullptr) return nullptr;
  }
  return at;
}

bool Remove(Json& document, std::vector<std::string> tokens) {
  if (tokens.empty() || Find(document, tokens) == nullptr) return false;
  const std::string last = tokens.back();
  tokens.pop_back();
  Json& parent = *Find(document, tokens);
  if (parent.is_object()) {
    parent.erase(last);
  } else {
    parent.erase(*Index(last));
  }
  return true;
}

bool Add(Json& document, std::vector<std::string> tokens, const Json& value) {
  if (tokens.empty()) {
    document = value;
    return true;
  }
  const std::string last = tokens.back();
  tokens.pop_back();
  Json* parent = Find(document, tokens);
  if (parent == nullptr) return false;
  if (parent->is_object()) {
    (*parent)[last] = value;
    return true;
  }
  if (!parent->is_array()) return false;
  const auto index = last == "-" ? std::optional(parent->size()) : Index(last);
  if (!index || *index > parent->size()) return false;
  parent->insert(parent->begin() + static_cast<std::ptrdiff_t>(*index), value);
  return true;
}

// As kube-apiserver reads "replace" and "test" of a member that an object lacks (lib/kube/patch.h).
bool LacksMember(Json& document, std::vector<std::string> tokens) {
  if (tokens.empty() || Find(document, tokens) != nullptr) return false;
  tokens.pop_back();
  const Json* parent = Find(document, tokens);
  return parent != nullptr && parent->is_object();
}

bool Operate(Json& document, const Json& operation) {
  const std::string op = operation["op"];
  const auto path = Tokens(operation["path"]);
  if (!path) return false;
  if (op == "remove") return Remove(document, *path);
  if (op == "add") return Add(document, *path, operation["value"]);
  const bool lacks = LacksMember(document, *path);
  if (op == "test") {
    const Json* found = Find(document, *path);
    if (lacks && operation["value"].is_null()) return true;
    return found != nullptr && *found == operation["value"];
  }
  if (op == "replace") {
    if (lacks) return Add(document, *path, operation["value"]);
    Json* found = Find(document, *path);
    if (found == nullptr) return false;
    *found = Json(operation["value"]);
    return true;
  }
  const auto from = Tokens(operation["from"]);
  if (!from) return false;
  const Json* found = Find(document, *from);
  if (found == nullptr) return false;
  const Json value = *found;
  if (op == "move" && !Remove(document, *from)) return false;
  return Add(document, *path, value);
}

void CheckJsonPatch(const Json& document, const Json& operations) {
  const auto patched = tahoma::kube::JsonPatch(document, operations);
  if (!operations.is_array()) {
    TAHOMA_CHECK(!patched.ok());
    return;
  }
  Json expected = tahoma::Unshared(document);
  for (const Json& operation : operations) {
    // The forms of operations are patch.cc's to refuse; bounds on copies have a test of their own.
    if (absl::IsInvalidArgument(patched.status())) return;
    if (!Operate(expected, operation)) {
      TAHOMA_CHECK(!patched.ok());
      return;
    }
  }
  if (patched.ok()) {
    TAHOMA_CHECK(*patched == expected);
  } else {
    TAHOMA_CHECK(operations.dump().find("\"copy\"") != std::string::npos);
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  constexpr std::string_view kBetween = "\n%%\n";
  const std::size_t between = input.find(kBetween);
  if (between == std::string_view::npos) return;
  Json document = tahoma::TryParseJson(input.substr(0, between));
  const Json patch = tahoma::TryParseJson(input.substr(between + kBetween.size()));
  if (document.is_discarded() || patch.is_discarded()) return;
  const std::string before = document.dump();
  tahoma::ShareJson(document);  // as an object in the store

  TAHOMA_CHECK(tahoma::kube::MergePatch(document, patch) ==
               MergeOracle(tahoma::Unshared(document), patch));
  if (!HasNull(patch)) {
    TAHOMA_CHECK(tahoma::kube::MergePatch(document, tahoma::kube::MergeDiff(document, patch)) ==
                 patch);
  }
  CheckJsonPatch(document, patch);
  TAHOMA_CHECK(document.dump() == before);
}
