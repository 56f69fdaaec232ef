// Reads the fields of an object strictly: a value of another type is an error with the value's
// place and type.
//
//   Reading reading(pod);
//   const Field spec = reading.root().At("spec");
//   node = spec.At("nodeName").Text();
//   for (const Field gate : spec.At("schedulingGates").Items()) names.emplace_back(gate.Text());
//   TAHOMA_RETURN_IF_ERROR(reading.status());   // "spec.nodeName: is a number, must be a string"
//
// An absent or null field reads as empty, as in Kubernetes' API, and so does a wrong field: a
// reader goes through the object to the end and asks status() once. The first error is kept. The
// path of the error is searched only then, so a Field is only two pointers.
//
// Scope: types. A reader that must accept wrong values takes StringAt and ValueAt of object.h.
//
// Thread safety: one thread for each Reading. The object must outlive the Reading, and the Reading
// its Fields.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::kube {

class Reading;
class FieldItems;

class Field {
 public:
  // Whether the field is present and not null.
  bool has_value() const;
  // Null when absent.
  const Json& json() const { return *value_; }

  Field At(std::string_view name) const;
  // As At, but a field without a value is an error.
  Field Required(std::string_view name) const;

  // The view lives as long as the object.
  std::string_view Text() const;
  // A too large integer reads as the largest.
  std::int64_t Int(std::int64_t otherwise = 0) const;
  std::int32_t Int32(std::int32_t otherwise = 0) const;
  bool Bool(bool otherwise = false) const;
  std::vector<std::string> Texts(std::size_t most = SIZE_MAX) const;

  // The items of a list; a list of more than `most` items is an error, and reads as empty.
  FieldItems Items(std::size_t most = SIZE_MAX) const;
  // The members of an object, by the order of their names.
  void Entries(absl::FunctionRef<void(const std::string& name, Field value)> each) const;
  // The number of items or members.
  std::size_t size() const;

  // Notes "path: why", unless there is an error already.
  void Fail(std::string_view why) const;

 private:
  friend class Reading;
  friend class FieldItems;
  Field(const Json& value, Reading& reading) : value_(&value), reading_(&reading) {}

  const Json* value_;
  Reading* reading_;
};

class FieldItems {
 public:
  class Iterator {
   public:
    Iterator(const FieldItems& items, std::size_t at) : items_(items), at_(at) {}
    Field operator*() const { return items_[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const FieldItems& items_;
    std::size_t at_;
  };

  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size_}; }
  std::size_t size() const { return size_; }
  Field operator[](std::size_t at) const;

 private:
  friend class Field;
  FieldItems(Field list, std::size_t size) : list_(list), size_(size) {}

  Field list_;
  std::size_t size_;
};

class Reading {
 public:
  explicit Reading(const Json& object) : object_(object) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  Field root() { return {object_, *this}; }
  // kInvalidArgument when something was wrong.
  const absl::Status& status() const { return status_; }
  // The same as an error of the whole object: "pod worker-0: spec.nodeName: is …".
  absl::Status StatusOf(std::string_view kind) const;

 private:
  friend class Field;
  void Fail(const Json& at, std::string_view below, std::string_view why);

  const Json& object_;
  absl::Status status_;
};

}  // namespace tahoma::kube
