#include "controller/replay/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "controller/replay/gunzip.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;

constexpr const char* kSwf =
    "; UnixStartTime: 749458803\n"
    "; MaxNodes: 128\n"
    "\n"
    "    1        0     -1   1451  128     -1    -1   -1     -1    -1 -1   1   1  -1 -1 -1 -1 -1\n"
    "    2       60     -1      0    1     -1    -1   48    600    -1  1   1   1  -1  1 -1 -1 "
    "-1\r\n"
    "    4       30     -1    900   16     -1    -1   16    600    -1  1   1   1  -1  1 -1 -1 -1\n"
    "    5       70     -1     -1   16     -1    -1   16    600    -1  5   1   1  -1  1 -1 -1 -1\n"
    "    6       71      3    200   -1   12.5    -1   -1    600    -1  5   1   1  -1  1 -1 -1 -1";

TEST(TraceTest, JobsOfAnSwfAreReadInTheOrderOfTheirSubmission) {
  const auto trace = ReadSwf(kSwf, "nasa.swf", {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(FormatTime(trace->start), "1993-10-01T07:00:03Z");
  ASSERT_EQ(trace->jobs.size(), 3U);
  EXPECT_EQ(trace->jobs[0].name, "1");
  EXPECT_EQ(trace->jobs[0].chips, 128);
  EXPECT_EQ(trace->jobs[0].run, seconds(1451));
  EXPECT_FALSE(trace->jobs[0].asked.has_value());
  // Ran longer than its user had asked for.
  EXPECT_EQ(trace->jobs[1].name, "4");
  EXPECT_EQ(trace->jobs[1].submit, seconds(30));
  EXPECT_EQ(trace->jobs[1].run, seconds(600));
  EXPECT_EQ(trace->cut_off, 1U);
  // The requested number counts, and chips form boxes.
  EXPECT_EQ(trace->jobs[2].name, "2");
  EXPECT_EQ(trace->jobs[2].chips, 64);
  EXPECT_EQ(trace->jobs[2].run, seconds(1));
  EXPECT_EQ(trace->jobs[2].asked, seconds(600));
  EXPECT_EQ(trace->rounded_up, 1U);
  EXPECT_EQ(trace->without_run_time, 1U);
  EXPECT_EQ(trace->without_size, 1U);
}

TEST(TraceTest, AProcessorMayStandForSeveralChipsOrForAPart) {
  EXPECT_EQ(ReadSwf(kSwf, "t", {.chips_per_processor = 0.5})->jobs[0].chips, 64);
  EXPECT_EQ(ReadSwf(kSwf, "t", {.chips_per_processor = 0.125})->jobs[1].chips, 2);
  EXPECT_EQ(ReadSwf(kSwf, "t", {.chips_per_processor = 3})->jobs[1].chips, 64);
  EXPECT_EQ(ReadSwf(kSwf, "t", {.chips_per_processor = 1.5})->jobs[0].chips, 192);
}

TEST(TraceTest, ALoadBringsJobsFaster) {
  const auto trace = ReadTrace(kSwf, "t", {.load = 2});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->jobs[1].submit, seconds(15));
  EXPECT_EQ(trace->jobs[1].run, seconds(600));
}

std::string SwfWith(const std::string& submit, const std::string& run, const std::string& chips,
                    const std::string& asked = "-1") {
  return "; a trace\n1 " + submit + " -1 " + run + " " + chips + " -1 -1 -1 " + asked +
         " -1 1 1 1 -1 -1 -1 -1 -1\n";
}

TEST(TraceTest, AWrongLineIsRefusedWithItsPlaceAndWhatWouldBeRight) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"1 2 3\n", "t.swf:1: 3 fields; a line of the Standard Workload Format has 18"},
           {SwfWith("0 0", "1", "1"), "t.swf:2: more than 18 fields"},
           {SwfWith("-5", "1", "1"), "t.swf:2: submit time -5: must be 0 to 1581120000 seconds"},
           {SwfWith("-1", "1", "1"), "t.swf:2: submit time -1: must be 0"},
           {SwfWith("0", "-7", "1"),
            "t.swf:2: run time -7: must be 0 to 31622400 seconds, or "
            "-1 when it is not known"},
           {SwfWith("0", "1", "1", "-2"), "t.swf:2: requested time -2"},
           {SwfWith("0", "1", "-3"), "t.swf:2: allocated processors -3: must be 0 to 1e+07, or -1"},
           {SwfWith("0", "ten", "1"), "t.swf:2: field 4 (run time) is \"ten\", no number; -1 says"},
           {SwfWith("nan", "1", "1"), "t.swf:2: field 2 (submit time) is \"nan\""},
           {SwfWith("1e99", "1", "1"), "t.swf:2: submit time 1e+99"},
           {"; UnixStartTime: soon\n", "t.swf:1: UnixStartTime: soon: must be seconds since 1970"},
           {"; nothing\n",
            "t.swf: no job that can be replayed (0 without a size, 0 without a run "
            "time)"}}) {
    const auto trace = ReadTrace(text, "t.swf", {});
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_THAT(std::string(Message(trace.status())), testing::StartsWith(message)) << text;
  }
}

constexpr const char* kYaml = R"(apiVersion: tahoma.dev/v1alpha1
kind: ReplayTrace
start: 2026-02-01T00:00:00Z
queues:
  - {name: research, weight: 3, guaranteed: {trn2u.48xlarge: 64}}
  - {name: serving}
jobs:
  - {name: train, submit: 90m, shape: 4x4x4, run: 10h, maxRuntime: 12h, queue: research}
  - {submit: 1h, count: 2, every: 10m, chips: 16, run: 30m, priority: 7, queue: serving,
     preemptible: true}
)";

TEST(TraceTest, RandomBytesNeverCrashTheReaders) {
  Rng rng(9);
  for (int round = 0; round < 2000; ++round) {
    std::string text = round % 2 == 0 ? kSwf : kYaml;
    for (int i = 0; i < 5; ++i) text[rng.Below(text.size())] = static_cast<char>(rng.Below(256));
    (void)ReadTrace(text, "t", {});
    (void)Gunzip("\x1f\x8b" + text, 1000);
  }
}

TEST(TraceTest, AYamlTraceSaysEverything) {
  const auto trace = ReadTrace(kYaml, "jobs.yaml", {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(FormatTime(trace->start), "2026-02-01T00:00:00Z");
  ASSERT_EQ(trace->jobs.size(), 3U);
  EXPECT_EQ(trace->jobs[0].name, "2-1");
  EXPECT_EQ(trace->jobs[0].submit, std::chrono::minutes(60));
  EXPECT_EQ(trace->jobs[1].submit, std::chrono::minutes(70));
  EXPECT_EQ(trace->jobs[1].chips, 16);
  EXPECT_EQ(trace->jobs[1].priority, 7);
  EXPECT_TRUE(trace->jobs[1].preemptible);
  EXPECT_EQ(trace->jobs[2].name, "train");
  EXPECT_EQ(trace->jobs[2].shape, "4x4x4");
  EXPECT_EQ(trace->jobs[2].submit, std::chrono::minutes(90));
  EXPECT_EQ(trace->jobs[2].run, std::chrono::hours(10));
  EXPECT_EQ(trace->jobs[2].asked, std::chrono::hours(12));
  ASSERT_EQ(trace->queues.size(), 2U);
  EXPECT_EQ(trace->queues[0].weight, 3);
  EXPECT_EQ(trace->queues[0].guaranteed, (ChipCounts{{"trn2u.48xlarge", 64}}));
}

TEST(TraceTest, JobsWithoutAQueueWaitBesideTheQueues) {
  const std::string text = std::string(kYaml) + "  - {chips: 1, run: 1h}\n";
  const auto trace = ReadTrace(text, "jobs.yaml", {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->queues.size(), 3U);
  EXPECT_EQ(trace->queues[2].name, kDefaultQueue);
}

TEST(TraceTest, AWrongYamlTraceIsRefusedWithItsPlace) {
  const std::string head = "apiVersion: tahoma.dev/v1alpha1\nkind: ReplayTrace\n";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"jobs: [{chips: 16}]\n", "t.yaml: jobs[0]: run: must say how long the job runs"},
           {"jobs: [{run: 1h, chips: 16, count: 1000000, every: 1h}]\n",
            "t.yaml: jobs[0]: every: the last of 1000000 jobs would come after 50 years"},
           {"jobs: [{run: 1h}]\n", "t.yaml: jobs[0]: shape or chips must say"},
           {"jobs: [{run: 1h, chips: 48}]\n", "t.yaml: jobs[0]: chips 48: must be 1, 2, 4"},
           {"jobs: [{run: 1h, shape: 3x1x1}]\n", "t.yaml: jobs[0]: shape 3x1x1"},
           {"jobs: [{run: -1h, chips: 16}]\n", "t.yaml:3: jobs[0].run"},
           {"jobs: [{rum: 1h, chips: 16}]\n", "t.yaml:3: jobs[0].rum"},
           {"start: 1969-01-01T00:00:00Z\njobs: [{run: 1h, chips: 1}]\n",
            "t.yaml: start: must be from 1970 to 2100"},
           {"jobs: [{run: 1h, chips: 1, queue: b}]\nqueues: [{name: a}]\n",
            "t.yaml: jobs[0]: queue b: must be one of queues, or default"},
           {"jobs: [{run: 1h, chips: 1}]\nqueues: [{name: a, parent: b}]\n",
            "t.yaml: queue a: parent b must be one of queues"},
           {"jobs: [{run: 1h, chips: 1}]\nqueues: [{name: a}, {name: a}]\n",
            "t.yaml: queue a: is listed twice"},
           {"jobs: [{run: 1h, chips: 1}]\nqueues: [{name: a, parent: b}, {name: b, parent: a}]\n",
            "t.yaml: queue a: is above itself; break the circle"},
           {"jobs: [{run: 1h, chips: 1}]\nqueues: [{name: a, limit: {trn2.48xlarge: some}}]\n",
            "t.yaml: queues[0]: trn2.48xlarge: \"some\" must be a number of chips"}}) {
    const auto trace = ReadTrace(head + text, "t.yaml", {});
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_THAT(std::string(Message(trace.status())), testing::StartsWith(message)) << text;
  }
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string input = text;
  std::string packed(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

TEST(TraceTest, ACompressedTraceIsReadAsItsText) {
  const auto trace = ReadTrace(Gzip(kSwf), "t.swf.gz", {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->jobs.size(), 3U);
  EXPECT_EQ(*Gunzip(Gzip("ab") + Gzip("cd"), 100), "abcd");
  EXPECT_EQ(*Gunzip(Gzip(""), 100), "");
}

TEST(TraceTest, DamagedOrEndlessCompressionIsRefused) {
  const std::string packed = Gzip(kSwf);
  for (const std::size_t cut :
       {std::size_t{2}, std::size_t{10}, packed.size() / 2, packed.size() - 1}) {
    EXPECT_EQ(Message(ReadTrace(packed.substr(0, cut), "t.gz", {}).status()),
              "t.gz: the compressed file is damaged or cut off; compress it with gzip");
  }
  EXPECT_EQ(Message(Gunzip(Gzip(std::string(1'000'000, ' ')), 999'999).status()),
            "more than 999999 bytes when decompressed; cut the trace");
}

}  // namespace
}  // namespace tahoma::controller
