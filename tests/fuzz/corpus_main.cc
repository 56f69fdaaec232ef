// Drives a fuzz target without a fuzzing engine: every file of its corpus, then mutations from a
// printed seed that differs from run to run.
//
//   api_fuzz                        the corpus, then mutations for some seconds from a fresh seed
//   api_fuzz --seed 17 --runs 1     one of these mutations again
//   api_fuzz FILE…                  these inputs only
//
// The program's name is the target's name with "_fuzz"; tests/fuzz/corpus has the folder of that
// name. When the target fails, the program keeps the input in a file and prints the command to
// repeat it.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/processor_time.h"

// A sanitizer ends the program without a signal, and calls this function before. Null without
// sanitizers.
extern "C" void __sanitizer_set_death_callback(void (*callback)())  // NOLINT: its name
    __attribute__((weak));

namespace {

// The budget of a test for mutations.
constexpr std::uint64_t kRuns = 20'000;
constexpr std::clock_t kProcessorTime = 2 * CLOCKS_PER_SEC;

// A signal handler has no arguments: the target's name, the current input, and its file.
std::string name;
const std::string* input_now = nullptr;
std::string kept_in;

void KeepInput() {
  if (input_now == nullptr) return;
  const int file = open(kept_in.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file >= 0 && write(file, input_now->data(), input_now->size()) >= 0) {
    std::fprintf(stderr, "the input is kept; repeat with: %s_fuzz %s\n", name.c_str(),
                 kept_in.c_str());
  }
  input_now = nullptr;
}

void OnSignal(int signal) {
  KeepInput();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Uses a stack of its own: the input may have used up the program's stack.
void KeepInputOnSignals() {
  static std::array<char, 65'536> bytes;
  const stack_t stack = {.ss_sp = bytes.data(), .ss_flags = 0, .ss_size = bytes.size()};
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    sigaction(signal, &action, nullptr);
  }
}

void Run(const std::string& input) {
  input_now = &input;
  tahoma::fuzz::FuzzWithinTime(input);
  input_now = nullptr;
}

void RunFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "%s cannot be read\n", path.c_str());
    std::exit(1);
  }
  Run({std::istreambuf_iterator<char>(in), {}});
}

void RunMutations(std::uint64_t seed, std::uint64_t runs, bool with_corpus) {
  const tahoma::fuzz::Mutator mutator(
      tahoma::fuzz::ReadCorpus(name),
      tahoma::fuzz::ReadDictionary("tests/fuzz/dictionaries/" + name + ".dict"));
  std::printf("%s: %zu inputs of the corpus, then mutations from seed %llu\n", name.c_str(),
              mutator.texts().size(), static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  if (with_corpus) {
    for (const std::string& text : mutator.texts()) Run(text);
  }
  const std::clock_t end = std::clock() + kProcessorTime;
  std::uint64_t made = 0;
  for (; made < runs && (!with_corpus || std::clock() < end); ++made) {
    // Each mutation has its own seed, and can be repeated alone.
    tahoma::Rng rng(seed + made);
    std::string text = mutator.Pick(rng);
    mutator.Mutate(rng, text);
    Run(text);
  }
  std::printf("%s: %llu mutations\n", name.c_str(), static_cast<unsigned long long>(made));
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = tahoma::SeedFromMachine();
  std::uint64_t runs = kRuns;
  std::vector<std::string> files;
  bool with_corpus = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if ((word == "--seed" || word == "--runs") && i + 1 < argc) {
      (word == "--seed" ? seed : runs) = std::strtoull(argv[++i], nullptr, 10);
      with_corpus = false;
    } else {
      files.push_back(word);
    }
  }
  name = std::filesystem::path(argv[0]).filename();
  name = name.substr(0, name.rfind("_fuzz"));
  kept_in = std::filesystem::temp_directory_path() / (name + "-failing-input");
  KeepInputOnSignals();
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(KeepInput);
  for (const std::string& file : files) RunFile(file);
  if (files.empty()) RunMutations(seed, runs, with_corpus);
  return 0;
}
