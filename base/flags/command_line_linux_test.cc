#include "base/flags/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"

ABSL_FLAG(std::string, tested_text, "", "");
ABSL_FLAG(int64_t, tested_number, 0, "");
ABSL_FLAG(bool, tested_switch, false, "");

namespace rnicd {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string AdviceFor(const std::string& flag) { return flag == "tested_old" ? "set --tested_text" : ""; }

class ReadFlagsTest : public ::testing::Test {
 protected:
  ReadFlagsTest() {
    char name[] = "/tmp/rnicd-test-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~ReadFlagsTest() override { std::filesystem::remove_all(folder_); }

  static std::vector<std::string> Read(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "program");
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    return ReadFlags(static_cast<int>(argv.size()), argv.data(),
                     {.purpose = "", .version = "", .folder = "base/", .advice = AdviceFor});
  }

  // A file of flags with this content; its path.
  std::string File(const std::string& content) const {
    const std::string path = folder_ + "/flags";
    std::ofstream(path, std::ios::binary) << content;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return path;
  }
  std::vector<std::string> ReadFile(const std::string& content) const { return Read({"--flagfile=" + File(content)}); }

  const absl::FlagSaver saver_;
  std::string folder_;
};

TEST_F(ReadFlagsTest, EveryFormOfAnArgumentArrives) {
  EXPECT_THAT(Read({"--tested_text=a=b", "-tested_number=7", "--tested_switch"}), IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_text), "a=b");
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_number), 7);
  EXPECT_TRUE(absl::GetFlag(FLAGS_tested_switch));
  EXPECT_THAT(Read({"--tested_text", "-x", "--tested_number", "-8", "--notested_switch"}), IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_text), "-x");
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_number), -8);
  EXPECT_FALSE(absl::GetFlag(FLAGS_tested_switch));
  EXPECT_THAT(Read({"--tested_text=", "--tested_switch=true"}), IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_text), "");
}

TEST_F(ReadFlagsTest, ADashInANameIsAnUnderscore) {
  EXPECT_THAT(Read({"--tested-text=a-b_c", "--tested-number", "-8", "--notested-switch"}), IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_text), "a-b_c");
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_number), -8);
  EXPECT_THAT(ReadFile("--tested-switch\n--tested-number=7\n"), IsEmpty());
  EXPECT_TRUE(absl::GetFlag(FLAGS_tested_switch));
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_number), 7);
  EXPECT_THAT(Read({"--tested-number=many", "--tested-txet=1"}),
              ElementsAre(StartsWith("--tested_number: must be"), "--tested-txet: there is no such flag"));
}

TEST_F(ReadFlagsTest, EveryMistakeIsALine) {
  EXPECT_THAT(
      Read({"--tested_txet=1", "--tested_number=many", "--tested_switch=perhaps", "--notested_number", "word", "--",
            "-", "", "--tested_number=99999999999999999999", "--tested_text"}),
      ElementsAre("--tested_txet: there is no such flag", "--tested_number: must be a whole number, not \"many\"",
                  "--tested_switch: must be true or false, not \"perhaps\"", "--notested_number: there is no such flag",
                  "unexpected argument: \"word\"", "unexpected argument: \"--\"", "unexpected argument: \"-\"",
                  "unexpected argument: \"\"", StartsWith("--tested_number: must be a whole number"),
                  "--tested_text: must have a value"));
}

TEST_F(ReadFlagsTest, TheProgramAdvisesWhatToUseInPlaceOfAFlagThatDoesNotExist) {
  EXPECT_THAT(Read({"--tested-old=1"}), ElementsAre("--tested-old: there is no such flag; set --tested_text"));
}

// They would set flags without validation, or hide mistakes.
TEST_F(ReadFlagsTest, FlagsOfTheLibraryThatLeadPastTheChecksDoNotExist) {
  for (const char* const flag : {"--undefok=x", "--fromenv=tested_number", "--tryfromenv=tested_number"}) {
    EXPECT_THAT(Read({flag}), ElementsAre(EndsWith("there is no such flag"))) << flag;
  }
}

TEST_F(ReadFlagsTest, BlanksCommentsAndLineEndsBelongToNoValue) {
  EXPECT_THAT(ReadFile("\xEF\xBB\xBF# first\r\n\r\n  --tested_text=/run/a b # of containers\t\r\n"
                       "--tested_number=5\t# five\n#--tested_number=6\n--tested_switch"),
              IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_text), "/run/a b");
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_number), 5);
  EXPECT_TRUE(absl::GetFlag(FLAGS_tested_switch));
  EXPECT_THAT(ReadFile("--tested_text=a#b\n--tested_number=1 \n"), IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_text), "a#b") << "a comment stands behind a blank";
  EXPECT_THAT(ReadFile("--tested_text= # nothing\r\n"), IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_text), "");
}

TEST_F(ReadFlagsTest, AMistakeInAFileIsNamedByItsLine) {
  const std::string path = folder_ + "/flags:";
  EXPECT_THAT(
      ReadFile("--tested_number=1\n\n--tested_txet=1\n--tested_number = 2\ntested_number=3\n--tested_number 4\n--"),
      ElementsAre(path + "3: --tested_txet: there is no such flag", path + "4: --tested_number : there is no such flag",
                  StartsWith(path + "5: must be --FLAG=VALUE"), path + "6: --tested_number 4: there is no such flag",
                  StartsWith(path + "7: must be --FLAG=VALUE")));
}

TEST_F(ReadFlagsTest, BytesThatAreNoTextAreNoPartOfAValue) {
  EXPECT_THAT(ReadFile("--tested_text=a\r--tested_number=1\r"),
              ElementsAre(HasSubstr("flags:1: must be --FLAG=VALUE")));
  EXPECT_THAT(ReadFile(std::string("--tested_text=a\0b\n", 18)), ElementsAre(HasSubstr("flags:1: must be")));
  EXPECT_THAT(ReadFile(std::string("\xFF\xFE-\0-\0", 6)), ElementsAre(HasSubstr("flags:1: must be"))) << "UTF-16";
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_text), "");
}

TEST_F(ReadFlagsTest, AFileNamesNoOtherFileAndSoNotItself) {
  const std::string path = folder_ + "/flags";
  EXPECT_THAT(ReadFile("--flagfile=" + path + "\n"), ElementsAre(StartsWith(path + ":1: --flagfile: ")));
  EXPECT_THAT(ReadFile("--help\n"), ElementsAre(path + ":1: --help: there is no such flag"));
}

TEST_F(ReadFlagsTest, AQuestionIsAnsweredWhereThereIsNoMistake) {
  EXPECT_EXIT(Read({"--tested_number=1", "--version"}), testing::ExitedWithCode(0), "");
  EXPECT_THAT(Read({"--version", "--flagfile=" + File("--tested_number=many\n")}),
              ElementsAre(HasSubstr("must be a whole number")));
}

TEST_F(ReadFlagsTest, LaterSettingsWin) {
  const std::string path = File("--tested_number=1\n");
  EXPECT_THAT(Read({"--tested_number=2", "--flagfile", path}), IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_number), 1);
  EXPECT_THAT(Read({"--flagfile=" + path + "," + path, "--tested_number=2"}), IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_tested_number), 2);
}

TEST_F(ReadFlagsTest, WhatIsNoFileOfThisUserIsRefused) {
  EXPECT_THAT(Read({"--flagfile=" + folder_ + "/none"}), ElementsAre(StartsWith("--flagfile: " + folder_ + "/none: ")));
  EXPECT_THAT(Read({"--flagfile=" + folder_}), ElementsAre(StartsWith("--flagfile: " + folder_ + ": ")));
  EXPECT_THAT(Read({"--flagfile="}), ElementsAre(StartsWith("--flagfile: ")));
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), S_IRUSR | S_IWUSR), 0);
  EXPECT_THAT(Read({"--flagfile=" + pipe}), ElementsAre("--flagfile: " + pipe + ": is not a regular file"));
  const std::string open = File("--tested_number=1\n");
  std::filesystem::permissions(open, std::filesystem::perms::all);
  EXPECT_THAT(Read({"--flagfile=" + open}), ElementsAre("--flagfile: " + open + ": is writable by group or others"));
  EXPECT_THAT(ReadFile(std::string((size_t{1} << 20) + 1, '#')),
              ElementsAre(HasSubstr("is longer than 1048576 bytes")));
}

}  // namespace
}  // namespace rnicd
