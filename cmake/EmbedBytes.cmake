# Writes a C++ source with the bytes of a file, whole:
#   cmake -D IN=set.pb -D OUT=set.cc -D HEADER=some/header.h -D NAMESPACE=a::b
#     -D FUNCTION=ProtobufDescriptors -P EmbedBytes.cmake
file(READ "${IN}" hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE "${OUT}" "#include \"${HEADER}\"

namespace ${NAMESPACE} {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}  // namespace

std::string_view ${FUNCTION}() {
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}

}  // namespace ${NAMESPACE}
")
