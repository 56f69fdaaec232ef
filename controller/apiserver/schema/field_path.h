// The path of a field within its object, for checks: a chain on the stack, from the field up to the
// object.
//
// Most checks find nothing: text is made only where something is wrong.
//
// Thread safety: values; a path must not outlive its parent and its name.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/utf8.h"

namespace tahoma::controller::apiserver {

class FieldPath {
 public:
  // The object itself, or a place in a larger one: "spec.spec".
  explicit FieldPath(std::string_view start = "") : name_(start) {}
  FieldPath(const FieldPath& parent, std::string_view name) : parent_(&parent), name_(name) {}
  FieldPath(const FieldPath& parent, std::size_t index)
      : parent_(&parent), index_(index), is_index_(true) {}

  // The value of a map: "spec.labels[app]".
  static FieldPath Key(const FieldPath& parent, std::string_view key) {
    FieldPath path(parent, key);
    path.is_key_ = true;
    return path;
  }

  std::string Text() const {
    std::string text = parent_ == nullptr ? std::string() : parent_->Text();
    if (is_index_) return text + "[" + std::to_string(index_) + "]";
    if (is_key_) return text + "[" + CutName(name_) + "]";
    if (!text.empty()) text += '.';
    return text.append(CutName(name_));
  }

 private:
  const FieldPath* parent_ = nullptr;
  std::string_view name_;
  std::size_t index_ = 0;
  bool is_index_ = false;
  bool is_key_ = false;
};

}  // namespace tahoma::controller::apiserver
