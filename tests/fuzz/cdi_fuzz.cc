// CDI files that a start of the plugin finds in its folder: whatever they hold, a file is this
// node's only if its text names the node. The input is the node's name, a line end, and the text.

#include <string>
#include <string_view>

#include "dra-plugin/claims/cdi.h"
#include "lib/base/check.h"
#include "tests/fuzz/fuzz_target.h"

void FuzzOne(std::string_view input) {
  using namespace tahoma::dra;
  const std::size_t end = input.find('\n');
  if (end == std::string_view::npos) return;
  const std::string_view node = input.substr(0, end);
  const std::string_view text = input.substr(end + 1);
  const bool ours = IsCdiSpecOfNode(text, node);
  const bool others = IsCdiSpecOfNode(text, std::string(node) + "x");
  TAHOMA_CHECK(!(ours && others) ||
               text.find("TAHOMA_NODE_NAME") != text.rfind("TAHOMA_NODE_NAME"));
  const std::string_view uid = ClaimUidOfCdiFile(node);
  TAHOMA_CHECK(uid.empty() || CdiFileName(uid) == node);
}
