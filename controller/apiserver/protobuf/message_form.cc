#include "controller/apiserver/protobuf/message_form.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include "lib/base/check.h"

namespace tahoma::controller::apiserver {
namespace {

namespace pb = google::protobuf;
using Special = MessageForm::Special;
using Type = FieldForm::Type;

constexpr std::string_view kMeta = "k8s.io.apimachinery.pkg.apis.meta.v1";
constexpr std::string_view kExtensions = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1";

Special SpecialOf(std::string_view name) {
  struct Entry {
    std::string_view name;
    Special special;
  };
  constexpr Entry kEntries[] = {
      {"k8s.io.apimachinery.pkg.apis.meta.v1.Time", Special::kTime},
      {"k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime", Special::kMicroTime},
      {"k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1", Special::kRaw},
      {"k8s.io.apimachinery.pkg.api.resource.Quantity", Special::kQuantity},
      {"k8s.io.apimachinery.pkg.util.intstr.IntOrString", Special::kIntOrString},
      {"k8s.io.apimachinery.pkg.runtime.RawExtension", Special::kRaw},
      {"k8s.io.api.authentication.v1.ExtraValue", Special::kList},
      {"k8s.io.api.authorization.v1.ExtraValue", Special::kList},
  };
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.special;
  }
  if (!name.starts_with(kExtensions)) return Special::kNone;
  name.remove_prefix(kExtensions.size());
  if (name == ".JSON") return Special::kRaw;
  if (name == ".JSONSchemaPropsOrBool") return Special::kSchemaOrBool;
  if (name == ".JSONSchemaPropsOrArray") return Special::kSchemaOrSchemas;
  if (name == ".JSONSchemaPropsOrStringArray") return Special::kSchemaOrTexts;
  return Special::kNone;
}

Type TypeOf(const pb::FieldDescriptor& field) {
  switch (field.type()) {
    case pb::FieldDescriptor::TYPE_STRING:
      return Type::kString;
    case pb::FieldDescriptor::TYPE_BYTES:
      return Type::kBytes;
    case pb::FieldDescriptor::TYPE_BOOL:
      return Type::kBool;
    case pb::FieldDescriptor::TYPE_INT32:
      return Type::kInt32;
    case pb::FieldDescriptor::TYPE_INT64:
      return Type::kInt64;
    case pb::FieldDescriptor::TYPE_DOUBLE:
      return Type::kDouble;
    case pb::FieldDescriptor::TYPE_MESSAGE:
      return Type::kMessage;
    default:
      break;
  }
  TAHOMA_CHECK(false);  // the files use no other type
  return Type::kString;
}

// The descriptors are several times as large as the forms, and are not kept.
class Forms {
 public:
  Forms() {
    pb::DescriptorPool pool;
    pb::FileDescriptorSet set;
    const std::string_view bytes = ProtobufDescriptors();
    TAHOMA_CHECK(set.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    std::vector<const pb::FileDescriptor*> files;
    for (const pb::FileDescriptorProto& file : set.file()) {
      files.push_back(pool.BuildFile(file));
      TAHOMA_CHECK(files.back() != nullptr);
    }
    always_ = pool.FindExtensionByName("tahoma.always")->number();
    kept_ = pool.FindExtensionByName("tahoma.kept")->number();
    inline_ = pool.FindExtensionByName("tahoma.inline")->number();
    for (const pb::FileDescriptor* file : files) {
      if (!file->package().starts_with("k8s.io.")) continue;  // protobuf's own, and our options
      for (int i = 0; i < file->message_type_count(); ++i) FormOf(*file->message_type(i));
    }
  }

  const MessageForm* Find(std::string_view name) const {
    const auto found = forms_.find(name);
    return found == forms_.end() ? nullptr : found->second.get();
  }

 private:
  // The program has no class of our options, so it finds them among the unknown ones.
  static bool Has(const pb::FieldDescriptor& field, int option) {
    const pb::UnknownFieldSet& options = field.options().unknown_fields();
    for (int i = 0; i < options.field_count(); ++i) {
      if (options.field(i).number() == option) return options.field(i).varint() != 0;
    }
    return false;
  }

  FieldForm FieldOf(const pb::FieldDescriptor& field) {
    FieldForm form;
    form.number = static_cast<std::uint32_t>(field.number());
    form.type = TypeOf(field);
    form.map = field.is_map();
    form.repeated = field.is_repeated() && !form.map;
    form.optional = field.has_optional_keyword();
    form.always = Has(field, always_);
    form.kept = Has(field, kept_);
    form.inlined = Has(field, inline_);
    form.name = field.json_name();
    if (form.type == Type::kMessage) form.message = FormOf(*field.message_type());
    return form;
  }

  const MessageForm* FormOf(const pb::Descriptor& message) {
    std::unique_ptr<MessageForm>& form = forms_[message.full_name()];
    if (form) return form.get();
    form = std::make_unique<MessageForm>();
    MessageForm& made = *form;
    made.name = message.full_name();
    made.special = SpecialOf(made.name);
    for (int i = 0; i < message.field_count(); ++i) {
      made.fields.push_back(FieldOf(*message.field(i)));
    }
    std::ranges::sort(made.fields, {}, &FieldForm::number);
    made.by_name.resize(made.fields.size());
    std::iota(made.by_name.begin(), made.by_name.end(), std::size_t{0});
    std::ranges::sort(made.by_name, {},
                      [&](std::size_t i) -> const std::string& { return made.fields[i].name; });
    return &made;
  }

  int always_ = 0;  // the numbers of our options of fields
  int kept_ = 0;
  int inline_ = 0;
  std::map<std::string, std::unique_ptr<MessageForm>, std::less<>> forms_;
};

const Forms& AllForms() {
  static const auto* const forms = new Forms;
  return *forms;
}

std::string PackageOf(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return "k8s.io.api.core." + std::string(api_version);
  const std::string_view group = api_version.substr(0, slash);
  const std::string version(api_version.substr(slash + 1));
  if (group == "apiextensions.k8s.io") {
    return "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions." + version;
  }
  if (group == "meta.k8s.io") return "k8s.io.apimachinery.pkg.apis.meta." + version;
  const std::size_t dot = group.find('.');
  if (dot != std::string_view::npos && group.substr(dot) != ".k8s.io" &&
      !group.ends_with(".authorization.k8s.io")) {
    return "";
  }
  return "k8s.io.api." + std::string(group.substr(0, dot)) + "." + version;
}

// Kinds have metadata; parts of kinds, such as a Container, have no message of their own.
bool IsKind(const MessageForm* form) {
  return form != nullptr && !form->fields.empty() && form->fields[0].name == "metadata";
}

}  // namespace

const FieldForm* MessageForm::Find(std::uint32_t number) const {
  const auto found = std::ranges::lower_bound(fields, number, {}, &FieldForm::number);
  return found == fields.end() || found->number != number ? nullptr : &*found;
}

const MessageForm* FormOfKind(std::string_view api_version, std::string_view kind) {
  if (kind == "DeleteOptions" || (kind == "Status" && api_version == "v1")) {
    return AllForms().Find(std::string(kMeta) + "." + std::string(kind));
  }
  const MessageForm* form = AllForms().Find(PackageOf(api_version) + "." + std::string(kind));
  return IsKind(form) ? form : nullptr;
}

const MessageForm& FormNamed(std::string_view name) {
  const MessageForm* form = AllForms().Find(name);
  TAHOMA_CHECK(form != nullptr);
  return *form;
}

}  // namespace tahoma::controller::apiserver
