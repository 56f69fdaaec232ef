#include "sim-node/workload/arguments.h"

namespace tahoma::sim {

absl::StatusOr<std::vector<std::string>> ReadOptions(
    std::string_view program, const std::vector<std::string>& arguments, const char* letters,
    const option* options,
    absl::FunctionRef<absl::Status(int choice, std::string_view value)> apply) {
  std::vector<std::string> words = {std::string(program)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  optind = 0;  // glibc: start anew
  opterr = 0;  // we write the message
  int choice = 0;
  while ((choice = getopt_long(argc, argv.data(), letters, options, nullptr)) != -1) {
    const std::string_view word = argv[static_cast<std::size_t>(optind - 1)];
    if (choice == '?') return InvalidArgument("unknown option {}; see --help", word);
    if (choice == ':') return InvalidArgument("{} needs a value", word);
    TAHOMA_RETURN_IF_ERROR(apply(choice, optarg != nullptr ? optarg : ""));
  }
  return std::vector<std::string>(argv.begin() + optind, argv.begin() + argc);
}

}  // namespace tahoma::sim
