// Kubernetes' protobuf. The input is a body as sent by clients, or a JSON object to encode.
// libprotobuf must also read an input that decodes; the object stays the same when written and read
// again. Some objects are repeated many times: messages in several pieces are merged, and the work
// must not grow with the square of their number.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/coded_stream.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "controller/apiserver/protobuf/message_form.h"
#include "controller/apiserver/protobuf/protobuf.h"
#include "controller/apiserver/schema/json_text.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

namespace pb = google::protobuf;
using namespace tahoma::controller::apiserver;
using tahoma::Json;

constexpr std::string_view kMagic{"k8s\0", 4};
// The approximate size of a repeated object; one object in kLargeOneIn is repeated.
constexpr std::size_t kLargeBytes = std::size_t{512} << 10U;
constexpr std::size_t kLargeOneIn = 64;

// libprotobuf's own reading of the same descriptors. Texts are bytes for libprotobuf: an overridden
// text need not be UTF-8.
class Oracle {
 public:
  Oracle() {
    pb::FileDescriptorSet set;
    TAHOMA_CHECK(set.ParseFromArray(ProtobufDescriptors().data(),
                                    static_cast<int>(ProtobufDescriptors().size())));
    for (pb::FileDescriptorProto& file : *set.mutable_file()) {
      if (file.package().starts_with("k8s.io.")) {
        for (pb::DescriptorProto& message : *file.mutable_message_type()) TextsAsBytes(message);
      }
      TAHOMA_CHECK(pool_.BuildFile(file) != nullptr);
    }
  }

  // Returns the message of type `name` in the bytes; null when the bytes hold none.
  std::unique_ptr<pb::Message> Read(const std::string& name, std::string_view bytes) {
    std::unique_ptr<pb::Message> message(
        factory_.GetPrototype(pool_.FindMessageTypeByName(name))->New());
    pb::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                static_cast<int>(bytes.size()));
    in.SetRecursionLimit(10 * kProtobufNestingMax);
    const bool read = message->MergePartialFromCodedStream(&in) && in.ConsumedEntireMessage();
    return read ? std::move(message) : nullptr;
  }

 private:
  static void TextsAsBytes(pb::DescriptorProto& message) {
    message.mutable_options()->clear_map_entry();  // a map's keys cannot be bytes
    for (pb::FieldDescriptorProto& field : *message.mutable_field()) {
      if (field.type() == pb::FieldDescriptorProto::TYPE_STRING) {
        field.set_type(pb::FieldDescriptorProto::TYPE_BYTES);
      }
    }
    for (pb::DescriptorProto& nested : *message.mutable_nested_type()) TextsAsBytes(nested);
  }

  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_{&pool_};
};

std::string FieldOf(const pb::Message& message, const char* name) {
  const pb::FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  TAHOMA_CHECK(field != nullptr);
  return message.GetReflection()->GetString(message, field);
}

// Returns the kind's message in a body that was decoded to an object of the kind.
std::string CheckWithLibprotobuf(std::string_view body, const Json& object) {
  static auto* const oracle = new Oracle;
  const auto unknown =
      oracle->Read("k8s.io.apimachinery.pkg.runtime.Unknown", body.substr(kMagic.size()));
  TAHOMA_CHECK(unknown != nullptr);
  std::string message = FieldOf(*unknown, "raw");
  const MessageForm* form = FormOfKind(object.value("apiVersion", ""), object.value("kind", ""));
  TAHOMA_CHECK(form != nullptr);
  TAHOMA_CHECK(oracle->Read(form->name, message) != nullptr);
  return message;
}

void CheckObject(const Json& object) {
  const auto bytes = EncodeProtobuf(object);
  TAHOMA_CHECK_OK(bytes.status());
  const auto again = DecodeProtobuf(*bytes);
  TAHOMA_CHECK_OK(again.status());
  if (*again == object) return;
  std::fprintf(stderr, "first: %s\nagain: %s\n", object.dump().c_str(), again->dump().c_str());
  TAHOMA_CHECK(*again == object);
}

void CheckBody(std::string_view body) {
  const auto object = DecodeProtobuf(body);
  if (!object.ok()) {
    TAHOMA_CHECK(absl::IsInvalidArgument(object.status()) ||
                 absl::IsUnimplemented(object.status()));
    return;
  }
  const std::string message = CheckWithLibprotobuf(body, *object);
  CheckObject(*object);
  if (message.empty() || body.size() % kLargeOneIn != 0) return;
  std::string large;
  while (large.size() < kLargeBytes) large += message;
  (void)DecodeProtobuf(
      ProtobufBody(object->value("apiVersion", ""), object->value("kind", ""), large));
}

// Values of the wrong type are named in the error; every encoded value can be decoded.
void CheckText(std::string_view text) {
  const auto object = ReadJson(text);
  if (!object.ok()) return;
  const auto bytes = EncodeProtobuf(*object->value);
  if (!bytes.ok()) {
    TAHOMA_CHECK(absl::IsInvalidArgument(bytes.status()) || absl::IsUnimplemented(bytes.status()));
    return;
  }
  CheckBody(*bytes);
  const auto read = DecodeProtobuf(*bytes);
  // JSON may be nested a little deeper than protobuf.
  const bool deep = read.status().message().find("nested deeper") != std::string_view::npos;
  if (!deep) TAHOMA_CHECK_OK(read.status());
}

}  // namespace

void FuzzOne(std::string_view input) {
  if (input.starts_with(kMagic)) {
    CheckBody(input);
  } else {
    CheckText(input);
  }
}
