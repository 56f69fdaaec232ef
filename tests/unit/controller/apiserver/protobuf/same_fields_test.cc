// The tables of types (schema/types) and the .proto files say the same of Kubernetes' kinds: each
// field that one has, the other has too, of the same shape. So both are of one version of its API.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/apiserver/protobuf/message_form.h"
#include "controller/apiserver/schema/kind.h"
#include "controller/apiserver/schema/schema.h"

namespace tahoma::controller::apiserver {
namespace {

using Special = MessageForm::Special;

// Walks a type and a message together.
class Comparison {
 public:
  // `outside`: fields of the table that are beside the message, not in it.
  void Compare(const Schema& schema, const MessageForm& message,
               const std::set<std::string>& outside = {}) {
    if (message.special != Special::kNone) return;
    if (!seen_.emplace(schema.definition ? schema.definition.get() : &schema, &message).second) {
      return;
    }
    if (schema.type != Schema::Type::kObject || schema.preserve_unknown) return;
    std::set<std::string> named = outside;
    AddFields(schema, message, named);
    for (const auto& [name, property] : schema.properties) {
      if (!named.contains(name)) Say(message, name, "is in the table of types only");
    }
  }

  const std::set<std::string>& differences() const { return differences_; }
  std::size_t compared() const { return seen_.size(); }

 private:
  void AddFields(const Schema& schema, const MessageForm& message, std::set<std::string>& named) {
    for (const FieldForm& field : message.fields) {
      if (field.inlined) {
        AddFields(schema, *field.message, named);
        continue;
      }
      named.insert(field.name);
      if (const Schema* property = schema.Field(field.name)) {
        CompareField(*property, field, message);
      } else {
        Say(message, field.name, "is in the .proto file only");
      }
    }
  }

  void CompareField(const Schema& property, const FieldForm& field, const MessageForm& message) {
    if (property.type == Schema::Type::kAny) return;
    if (field.repeated != (property.type == Schema::Type::kArray) ||
        field.map != (property.additional != nullptr)) {
      return Say(message, field.name, "is a list or a map in one of the two");
    }
    const Schema* value = field.repeated ? property.items.get()
                          : field.map    ? property.additional.get()
                                         : &property;
    const MessageForm* below = field.map ? field.message->Find(2)->message : field.message;
    if (!SameType(*value, field.map ? *field.message->Find(2) : field)) {
      Say(message, field.name, "is of another type in the .proto file");
    }
    if (below != nullptr) Compare(*value, *below);
  }

  static bool SameType(const Schema& value, const FieldForm& field) {
    using Type = Schema::Type;
    switch (field.type) {
      case FieldForm::Type::kString:
      case FieldForm::Type::kBytes:
        return value.type == Type::kString;
      case FieldForm::Type::kBool:
        return value.type == Type::kBoolean;
      case FieldForm::Type::kInt32:
        return value.type == Type::kInteger && value.format == "int32";
      case FieldForm::Type::kInt64:
        return value.type == Type::kInteger && value.format == "int64";
      case FieldForm::Type::kDouble:
        return value.type == Type::kNumber;
      case FieldForm::Type::kMessage:
        break;
    }
    switch (field.message->special) {
      case Special::kTime:
      case Special::kMicroTime:
        return value.type == Type::kString && value.format == "date-time";
      case Special::kQuantity:
        return value.type == Type::kQuantity;
      case Special::kIntOrString:
        return value.type == Type::kIntOrString;
      case Special::kNone:
        return value.type == Type::kObject || value.type == Type::kAny;
      default:
        return true;
    }
  }

  void Say(const MessageForm& message, const std::string& field, const std::string& what) {
    differences_.insert(message.name + "." + field + " " + what);
  }

  std::set<std::pair<const Schema*, const MessageForm*>> seen_;
  std::set<std::string> differences_;
};

TEST(SameFieldsTest, TheTablesOfTypesAndTheProtoFilesHaveTheSameFields) {
  Comparison comparison;
  for (const auto& kind : BuiltInKinds()) {
    if (!kind->built_in) continue;  // in JSON alone: the group of metrics
    const MessageForm* message = FormOfKind(kind->api_version(), kind->kind);
    ASSERT_NE(message, nullptr) << kind->kind;
    comparison.Compare(*kind->schema, *message, {"apiVersion", "kind"});
  }
  EXPECT_GT(comparison.compared(), 150U);
  for (const std::string& difference : comparison.differences()) ADD_FAILURE() << difference;
}

}  // namespace
}  // namespace tahoma::controller::apiserver
