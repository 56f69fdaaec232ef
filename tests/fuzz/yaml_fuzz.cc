// Manifests: whatever the text, an answer; what is read is read again from its JSON.

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/yaml.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> FuzzSeeds() {
  return {"kind: Gang\nspec:\n  members: 4\n  list: [a, 1, ~]\n", "a: &x {b: 1}\nc: {<<: *x}\n",
          "--- |\n text\n--- 'q'\n", R"({"a":[1,2.5,"x",null,true]})"};
}

void FuzzOne(std::string_view input) {
  const auto json = tahoma::kube::YamlToJson(input);
  if (!json.ok()) return;
  // Bytes that are no UTF-8 cannot be dumped strictly; JSON text of the rest is YAML again.
  const std::string text = json->dump(-1, ' ', true, tahoma::Json::error_handler_t::replace);
  (void)tahoma::kube::YamlToJson(text);
}
