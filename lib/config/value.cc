#include "lib/config/value.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <sstream>

#include "lib/base/status.h"

namespace tahoma::config {
namespace {

// Builds values from yaml-cpp's events. Its own node builder cannot be used on foreign text: on
// stray brackets it yields empty documents without end.
class Builder final : public YAML::EventHandler {
 public:
  // Thrown through yaml-cpp and caught below.
  struct Stop {
    absl::Status why;
  };

  void OnDocumentStart(const YAML::Mark&) override {
    if (++documents_ > 1) throw Stop{InvalidArgument("text after the end of the document")};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Begin(mark, Value::Kind::kNull, anchor);
    End();
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) Fail(mark, "an alias cannot stand inside its own anchor");
    CountValues(mark, known->second.size);
    Value copy = known->second.value;
    copy.line = mark.line + 1;
    Add(mark, std::move(copy));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Begin(mark, Value::Kind::kScalar, anchor);
    open_.back().value.scalar = text;
    open_.back().value.quoted = tag == "!";
    End();
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Begin(mark, Value::Kind::kList, anchor);
  }
  void OnSequenceEnd() override { End(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Begin(mark, Value::Kind::kMap, anchor);
  }
  void OnMapEnd() override { End(); }

  Value Finish() { return std::move(root_); }

 private:
  struct Open {
    Value value;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    int first;  // what was counted before it
    bool has_key = false;
    std::string key;
    int key_line = 0;
  };
  struct Anchored {
    Value value;
    int size;
  };

  [[noreturn]] static void Fail(const YAML::Mark& mark, std::string_view what) {
    throw Stop{InvalidArgument("line {}: {}", mark.line + 1, what)};
  }
  void CountValues(const YAML::Mark& mark, int more) {
    count_ += more;
    if (count_ > kMaxValues) Fail(mark, fmt::format("more than {} values", kMaxValues));
  }
  void Begin(const YAML::Mark& mark, Value::Kind kind, YAML::anchor_t anchor) {
    if (open_.size() >= kMaxDepth) Fail(mark, fmt::format("nested deeper than {}", kMaxDepth));
    Open& open = open_.emplace_back();
    open.mark = mark;
    open.anchor = anchor;
    open.first = count_;
    CountValues(mark, 1);
    open.value.kind = kind;
    open.value.line = mark.line + 1;
  }
  void End() {
    Open open = std::move(open_.back());
    open_.pop_back();
    if (open.anchor != 0) anchors_[open.anchor] = {open.value, count_ - open.first};
    Add(open.mark, std::move(open.value));
  }
  void Add(const YAML::Mark& mark, Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.value.kind == Value::Kind::kList) {
      parent.value.items.push_back(std::move(value));
    } else if (!parent.has_key) {
      if (value.kind != Value::Kind::kScalar) Fail(mark, "a key must be a word");
      for (const auto& [known, unused] : parent.value.entries) {
        if (known == value.scalar) {
          Fail(mark, fmt::format("the key \"{}\" is given twice", value.scalar));
        }
      }
      parent.key = std::move(value.scalar);
      parent.key_line = value.line;
      parent.has_key = true;
    } else {
      value.line = parent.key_line;
      parent.value.entries.push_back({std::move(parent.key), std::move(value)});
      parent.has_key = false;
    }
  }

  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Value root_;
  int count_ = 0;
  int documents_ = 0;
};

}  // namespace

absl::StatusOr<Value> ParseYaml(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return InvalidArgument("{} bytes of YAML; at most {} are read", text.size(), kMaxTextBytes);
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.Finish();
  } catch (const Builder::Stop& stop) {
    return stop.why;
  } catch (const YAML::Exception& error) {
    return InvalidArgument("line {}: not YAML: {}", error.mark.line + 1, error.msg);
  }
}

}  // namespace tahoma::config
