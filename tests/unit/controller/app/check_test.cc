// A data folder that is whole, and each thing that can be wrong with one, which is said with the
// remedy; nothing in the folder is changed.

#include "controller/app/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/backup/backup.h"
#include "controller/store/mark.h"
#include "controller/store/store.h"
#include "lib/base/check.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TempDir;

const std::string kClaim = "o/resource.k8s.io/resourceclaims/default/train-0-chips-x49rk";
const std::string kOtherClaim = "o/resource.k8s.io/resourceclaims/default/train-1-chips-vrlsb";

class CheckTest : public ::testing::Test {
 protected:
  // A store with bound gangs and Capacity Blocks.
  CheckTest() {
    const auto backup = ReadFile("tests/golden/releases/0.2.0/backup.ndjson");
    TAHOMA_CHECK_OK(backup.status());
    TAHOMA_CHECK_OK(RestoreBackup(*backup, dir(), nullptr));
  }
  std::string dir() const { return temp_.path() + "/data"; }

  std::unique_ptr<Store> Open() {
    auto store = Store::Open({.dir = dir(), .single_threaded = true});
    TAHOMA_CHECK_OK(store.status());
    return *std::move(store);
  }
  void Put(Keyspace keyspace, const std::string& key, const std::string& value) {
    WriteBatch batch;
    batch.Put(keyspace, key, value);
    TAHOMA_CHECK_OK(Open()->Commit(std::move(batch)));
  }
  void Change(const std::string& key, const std::function<void(Json&)>& change) {
    Json object = ParseJson(*Open()->Get(Keyspace::kApi, key));
    change(object);
    Put(Keyspace::kApi, key, object.dump());
  }
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(dir())) {
      files[entry.path().filename()] = *ReadFile(entry.path(), 1U << 30U);
    }
    return files;
  }
  std::string FileEnding(const std::string& end) const {
    for (const auto& [name, bytes] : Files()) {
      if (name.ends_with(end) && !bytes.empty()) return dir() + "/" + name;
    }
    TAHOMA_CHECK(false);
    return "";
  }
  void Flip(const std::string& path, std::size_t at) {
    std::string bytes = *ReadFile(path, 1U << 30U);
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    TAHOMA_CHECK_OK(WriteAtomically(path, bytes, 0600));
  }
  // Returns the faults that the check finds; the folder must not change.
  std::vector<std::string> Wrong() {
    const auto before = Files();
    FolderReport report = CheckDataFolder(dir());
    EXPECT_EQ(Files(), before);
    found_ = report.found;
    return report.wrong;
  }

  TempDir temp_;
  std::string found_;
};

TEST_F(CheckTest, AFolderThatIsWholeIsSaidToBe) {
  EXPECT_THAT(Wrong(), IsEmpty());
  EXPECT_THAT(found_, AllOf(HasSubstr("is whole: "), HasSubstr(" 9 journal records, ")));
  Open();  // what was in the log goes to tables
  EXPECT_THAT(Wrong(), IsEmpty());
  EXPECT_THAT(found_, Not(HasSubstr(" 0 tables")));
}

TEST_F(CheckTest, AByteOfATableIsSaidToBeDamagedAndWhatToDo) {
  Open();
  Flip(FileEnding(".sst"), 100);
  EXPECT_THAT(Wrong().front(),
              AllOf(HasSubstr(".sst"), HasSubstr("restore a backup into another one")));
}

TEST_F(CheckTest, AByteOfTheManifestOrOfALogIsSaidToBeDamaged) {
  Put(Keyspace::kApi, "before", "x");
  const std::string log = FileEnding(".log");
  Flip(log, 3);
  EXPECT_THAT(Wrong(), ElementsAre(HasSubstr("acknowledged")));
  Flip(log, 3);
  EXPECT_THAT(Wrong(), IsEmpty());
  Flip(dir() + "/MANIFEST-" + fmt::format("{:06}", ManifestOf(dir())->manifest), 4);
  EXPECT_THAT(Wrong(), ElementsAre(HasSubstr("cannot be read from byte 0 on")));
}

TEST_F(CheckTest, AFolderThatIsMissingEmptyOrInUseIsNotLookedAt) {
  EXPECT_THAT(CheckDataFolder(temp_.path() + "/none").wrong,
              ElementsAre(HasSubstr("there is no such folder")));
  EXPECT_THAT(CheckDataFolder(temp_.path()).wrong, ElementsAre(HasSubstr("it holds no store")));
  const auto open = Open();
  EXPECT_THAT(CheckDataFolder(dir()).wrong, ElementsAre(HasSubstr("is already open")));
}

TEST_F(CheckTest, ARecordOfTheJournalThatCannotBeReadOrCannotFollowIsSaid) {
  Put(Keyspace::kLedger, "j/0000000000000002", "xxxxTJ");
  EXPECT_THAT(Wrong(), ElementsAre(HasSubstr("the checksum of journal record 2 does not fit"),
                                   HasSubstr("journal entry 3 cannot follow the entries before")));
}

TEST_F(CheckTest, AnObjectThatCannotBeReadOrIsNotWhereItBelongsIsSaid) {
  Put(Keyspace::kApi, "o/core/configmaps/default/a", "{");
  Put(Keyspace::kApi, "o/core/configmaps/default/b",
      R"({"metadata": {"name": "c", "namespace": "default", "resourceVersion": "1"}})");
  EXPECT_THAT(Wrong(), ElementsAre(HasSubstr("'o/core/configmaps/default/a': not an object"),
                                   HasSubstr("configmaps default/b calls itself default/c")));
}

TEST_F(CheckTest, ADeviceOfTwoClaimsAndAClaimWithOthersThanTheJournalSaysAreSaid) {
  Json allocation;
  Change(kOtherClaim, [&](Json& claim) { allocation = claim["status"]["allocation"]; });
  Change(kClaim, [&](Json& claim) { claim["status"]["allocation"] = allocation; });
  const std::vector<std::string> wrong = Wrong();
  ASSERT_FALSE(wrong.empty());
  EXPECT_THAT(wrong.front(), AllOf(HasSubstr("the device neuron.aws.com/node-b/neuron-device-"),
                                   HasSubstr("train-0-chips-x49rk and default/train-1-chips-vrlsb"),
                                   HasSubstr("delete the pods and claims that are named")));
  EXPECT_THAT(wrong.back(),
              AllOf(HasSubstr("the claim default/train-0-chips-x49rk has the devices"),
                    HasSubstr("but journal record 1 says")));
}

TEST_F(CheckTest, APodOnAnotherNodeThanTheJournalSaysIsSaid) {
  Change("o/core/pods/default/train-0", [](Json& pod) { pod["spec"]["nodeName"] = "node-d"; });
  EXPECT_THAT(Wrong(), ElementsAre(HasSubstr("the pod default/train-0 is bound to node-d, but "
                                             "journal record 1 says node-a")));
}

// Ended claims and pods leave the API before the journal.
TEST_F(CheckTest, AClaimWithoutAllocationAndAPodThatIsGoneAreNotWrong) {
  Change(kClaim, [](Json& claim) { claim["status"].erase("allocation"); });
  WriteBatch batch;
  batch.Delete(Keyspace::kApi, "o/core/pods/default/train-0");
  TAHOMA_CHECK_OK(Open()->Commit(std::move(batch)));
  EXPECT_THAT(Wrong(), IsEmpty());
}

TEST_F(CheckTest, TheCommandEndsWithZeroOneOrTwo) {
  const auto run = [](auto... words) {
    const std::array<const char*, sizeof...(words) + 1> line = {"controller", words...};
    return RunCheckCommand(static_cast<int>(line.size()), line.data());
  };
  EXPECT_EQ(run("--check", dir().c_str()), 0);
  EXPECT_EQ(run("--check", temp_.path().c_str()), 1);
  EXPECT_EQ(run("--check"), 2);
  EXPECT_EQ(run("--standalone"), std::nullopt);
}

}  // namespace
}  // namespace tahoma::controller
