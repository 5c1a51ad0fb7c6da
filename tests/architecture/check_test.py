"""Proves that every rule is enforced: each made-up tree has one violation, which must be found; the good one none."""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True

import check
import check_methods
import check_sizes
import rules

# The smallest tree that keeps every rule.
GOOD = {
    "CMakeLists.txt":
        "add_subdirectory(base)\nadd_subdirectory(proto)\nadd_subdirectory(daemon)\nadd_subdirectory(tests)\n",
    ".dockerignore": "*\n!base\n!daemon\n!proto\n",
    "base/CMakeLists.txt": "rnicd_library(rnicd_base)\n",
    "base/README.md": "# base\n",
    "base/mutex.h": "#pragma once\n#include <mutex>\nstd::mutex m;\n",
    "base/error_reasons.inc": 'RNICD_REASON(LENGTH_ZERO, 41, kInvalidArgument, kInvalidParameter, "zero")\n',
    "proto/CMakeLists.txt": "add_library(rnicd_proto)\n",
    "proto/README.md": "# proto\n",
    "proto/rnicd/v1/error.proto":
        "// Why.\nenum ErrorReason {\n  ERROR_REASON_UNSPECIFIED = 0;\n  ERROR_REASON_LENGTH_ZERO = 41;\n}\n",
    "daemon/CMakeLists.txt": "add_subdirectory(core)\n",
    "daemon/README.md": "# daemon\n",
    "daemon/core/CMakeLists.txt": "rnicd_library(rnicd_core DEPS rnicd_base TEST_DEPS rnicd_soft)\n",
    "daemon/core/README.md": "# daemon/core\n",
    "daemon/core/region.h": '#pragma once\n#include <string>\n#include "base/mutex.h"\n',
    "daemon/core/region.cc": '#include "daemon/core/region.h"\n#include "provider/api/device.h"\n',
    "daemon/core/region_test.cc":
        '#include "provider/soft/soft_nic.h"\nTEST(A, B) { EXPECT(ErrorReason::LENGTH_ZERO); }\n',
    "tests/CMakeLists.txt": "",
    "tests/README.md": "# tests\n",
    "tests/architecture/words.txt": "# Words.\n100\n",
    "scripts/README.md": "# scripts\n",
    "scripts/test": "#!/usr/bin/env bash\n",
}


def findings_in(changes, executable=("scripts/test",)):
    """The findings in the good tree with some files changed; None deletes a file."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**GOOD, **changes}.items():
            if text is None:
                continue
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if name in executable else 0o644)
        return [str(violation) for violation in check.violations(folder)]


class ArchitectureTest(unittest.TestCase):
    def assert_violation(self, changes, where, what, **options):
        """Expects exactly one finding, which begins with `where` and contains `what`."""
        found = findings_in(changes, **options)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(where), found[0])
        self.assertIn(what, found[0])

    def test_good_tree_has_no_findings(self):
        self.assertEqual(findings_in({}), [])

    def test_include_against_the_arrow(self):
        self.assert_violation({"base/a.h": '#pragma once\n#include "daemon/core/region.h"\n'}, "base/a.h:2:",
                              "base may not")

    def test_core_sees_no_wire(self):
        self.assert_violation({"daemon/core/a.cc": '#include "rnicd/v1/types.pb.h"\n'}, "daemon/core/a.cc:1:",
                              "types.pb.h")

    def test_unit_test_keeps_the_other_arrows(self):
        self.assert_violation({"daemon/core/a_test.cc": '#include "daemon/gate/gate.h"\n'}, "daemon/core/a_test.cc:1:",
                              "may not")

    def test_only_tests_include_tests(self):
        self.assertEqual(findings_in({"daemon/core/a_fake.cc": '#include "daemon/core/a_fixture.h"\n'}), [])
        for name in ("a_test.h", "a_fake.h", "a_fixture.h"):
            self.assert_violation({"daemon/core/a.cc": f'#include "daemon/core/{name}"\n'}, "daemon/core/a.cc:1:",
                                  "only tests may")

    def test_nothing_includes_tests(self):
        self.assert_violation({"daemon/core/a_test.cc": '#include "tests/support/x.h"\n'}, "daemon/core/a_test.cc:1:",
                              "tests/")

    def test_client_and_daemon_are_separate(self):
        changes = {
            "CMakeLists.txt": GOOD["CMakeLists.txt"] + "add_subdirectory(client)\n",
            ".dockerignore": GOOD[".dockerignore"] + "!client\n",
            "client/CMakeLists.txt": "add_subdirectory(ctl)\n", "client/README.md": "# client\n",
            "client/ctl/CMakeLists.txt": "rnicd_library(rnicd_ctl)\n", "client/ctl/README.md": "# ctl\n",
            "client/ctl/a.cc": '#include "daemon/core/region.h"\n',
        }
        self.assert_violation(changes, "client/ctl/a.cc:1:", "client/ctl may not include")

    def test_no_arrow_between_client_and_daemon(self):
        for module, target in (("client/ctl", "daemon/core"), ("daemon/core", "client/cpp")):
            arrows = {module: [target, "base", "provider/api"]}
            with self.subTest(module), unittest.mock.patch.dict(rules.ARROWS, arrows):
                self.assert_violation({}, "tests/architecture/rules.py:1:", f"{module} may not have an arrow to")

    def test_folder_without_an_arrow(self):
        changes = {
            "extra/CMakeLists.txt": "rnicd_library(extra)\n", "extra/README.md": "# extra\n", "extra/a.cc": "\n",
            "CMakeLists.txt": GOOD["CMakeLists.txt"] + "add_subdirectory(extra)\n",
            ".dockerignore": GOOD[".dockerignore"] + "!extra\n",
        }
        self.assert_violation(changes, "extra/a.cc:1:", "without an arrow")

    def test_folder_that_the_image_lacks(self):
        self.assert_violation({".dockerignore": "*\n!base\n!proto\n"}, ".dockerignore:1:", "daemon/ is left out")

    def test_folder_with_too_many_files(self):
        many = {f"daemon/core/a{number}.h": "#pragma once\n" for number in range(38)}
        self.assert_violation(many, "daemon/core:1:", "has 41 files of code, the limit is 40")
        listed = {"tests/architecture/folders.txt": "41 daemon/core\n", "tests/architecture/README.md": "# x\n"}
        self.assertEqual(findings_in({**many, **listed}), [])

    def test_part_of_the_generated_headers(self):
        changes = {
            "daemon/CMakeLists.txt": "add_subdirectory(core)\nadd_subdirectory(transport)\n",
            "daemon/transport/CMakeLists.txt": "rnicd_library(rnicd_transport)\n",
            "daemon/transport/README.md": "# x\n",
            "daemon/transport/a.cc": '#include "rnicd/v1/error.pb.h"\n#include "rnicd/v1/memory_service.pb.h"\n',
        }
        self.assert_violation(changes, "daemon/transport/a.cc:2:", "only rnicd/v1/fd_channel.pb.h")

    def test_link_against_the_arrow(self):
        self.assert_violation({"base/CMakeLists.txt": "# why\nrnicd_library(rnicd_base DEPS rnicd_core)\n"},
                              "base/CMakeLists.txt:2:", "may not link rnicd_core")

    def test_room_has_its_own_arrow_and_the_target_of_its_folder(self):
        room = {"daemon/core/CMakeLists.txt": "rnicd_library(rnicd_core ROOMS inner DEPS rnicd_base)\n",
                "daemon/core/inner/README.md": "# inner\n"}
        core = [*rules.ARROWS["daemon/core"], "daemon/core/inner"]
        with unittest.mock.patch.dict(rules.ARROWS, {"daemon/core/inner": ["base"], "daemon/core": core}):
            self.assert_violation({**room, "daemon/core/inner/a.cc": '#include "daemon/core/region.h"\n'},
                                  "daemon/core/inner/a.cc:1:", "daemon/core/inner may not include")
            self.assert_violation({**room, "daemon/core/inner/a.cc": '#include "base/mutex.h"\n',
                                   "daemon/core/outer/a.cc": "\n", "daemon/core/outer/README.md": "# outer\n"},
                                  "daemon/core/outer/a.cc:1:", "no build reaches")

    def test_arrow_to_a_folder_and_its_rooms(self):
        tree = {
            "daemon/CMakeLists.txt": "add_subdirectory(core)\nadd_subdirectory(rings)\n",
            "daemon/core/CMakeLists.txt": "rnicd_library(rnicd_core ROOMS low high DEPS rnicd_base)\n",
            "daemon/core/low/README.md": "# low\n", "daemon/core/low/a.h": "#pragma once\n",
            "daemon/core/low/a_test.cc": '#include "daemon/core/high/b.h"\n',
            "daemon/core/high/README.md": "# high\n",
            "daemon/core/high/b.h": '#pragma once\n#include "daemon/core/low/a.h"\n',
            "daemon/rings/CMakeLists.txt": "rnicd_library(rnicd_rings DEPS rnicd_core)\n",
            "daemon/rings/README.md": "# rings\n", "daemon/rings/c.cc": '#include "daemon/core/high/b.h"\n',
        }
        rows = {"daemon/core/low": ["base"], "daemon/core/high": ["daemon/core/low"], "daemon/rings": ["daemon/core/"]}
        with unittest.mock.patch.dict(rules.ARROWS, rows):
            self.assertEqual(findings_in(tree), [])
            self.assert_violation({**tree, "daemon/core/low/a.h": '#pragma once\n#include "daemon/core/high/b.h"\n'},
                                  "daemon/core/low/a.h:2:", "daemon/core/low may not include")
        with unittest.mock.patch.dict(rules.ARROWS, {**rows, "daemon/rings": ["daemon/core"]}):
            self.assert_violation(tree, "daemon/rings/c.cc:1:", "daemon/rings may not include")

    def test_headers_of_others(self):
        for header in ("grpcpp/grpcpp.h", "infiniband/verbs.h", "prometheus/registry.h",
                       "shared_mutex", "absl/synchronization/mutex.h"):
            with self.subTest(header):
                self.assert_violation({"daemon/core/a.cc": f"#include <{header}>\n"}, "daemon/core/a.cc:1:", header)

    def test_system_headers(self):
        for header in ("unistd.h", "sys/mman.h", "windows.h"):
            with self.subTest(header):
                self.assert_violation({"daemon/core/a.cc": f"#include <{header}>\n"}, "daemon/core/a.cc:1:", header)
        for place in ("daemon/core/a_linux.cc", "daemon/core/a_test.cc", "daemon/core/a_fake.cc", "base/a.cc"):
            with self.subTest(place):
                self.assertEqual(findings_in({place: "#include <unistd.h>\n"}), [])

    def test_names_of_others(self):
        for line in ("std::mutex mutex_;", "std::condition_variable c;", "absl::Mutex mu;", "using namespace std;"):
            with self.subTest(line):
                self.assert_violation({"daemon/core/a.cc": f"// std::mutex is only named here.\n{line}\n"},
                                      "daemon/core/a.cc:2:", "is not used here")

    def test_words(self):
        for word in ("TODO", "FIXME", "XXX", "HACK", "GTEST_SKIP()", "DISABLED_Foo", "/work" + "/tree", "/home/me"):
            with self.subTest(word):
                self.assert_violation({"docs/a.md": f"text\n{word}\n"}, "docs/a.md:2:", "is not allowed here")

    def test_words_inside_words_are_fine(self):
        self.assertEqual(findings_in({"docs/a.md": "mktemp rnicd.XXXXXX, not-a/home/path, TODOS are kDISABLED\n"}), [])

    def test_folder_without_readme(self):
        self.assert_violation({"daemon/core/README.md": None}, "daemon/core/README.md:1:", "README.md")
        self.assert_violation({"daemon/README.md": None}, "daemon/README.md:1:", "README.md")
        self.assert_violation({"deploy/x.service": "[Unit]\n"}, "deploy/README.md:1:", "README.md")

    def test_test_in_no_target(self):
        self.assert_violation({"daemon/core/CMakeLists.txt": "add_library(rnicd_core region.cc)\n"},
                              "daemon/core/region_test.cc:1:", "no target")

    def test_folder_that_no_build_reaches(self):
        found = findings_in({"daemon/CMakeLists.txt": "#add_subdirectory(core)\n"})
        self.assertEqual(len(found), 2, found)
        self.assertIn("no build reaches", found[0])

    def test_header_without_guard(self):
        self.assert_violation({"base/a.h": "// #pragma once\n"}, "base/a.h:1:", "#pragma once")

    def test_executable_bits(self):
        self.assert_violation({"base/a.cc": "\n"}, "base/a.cc:1:", "executable",
                              executable=("scripts/test", "base/a.cc"))
        self.assert_violation({}, "scripts/test:1:", "cannot be run", executable=())

    def test_reason_missing_on_the_wire(self):
        more = GOOD["base/error_reasons.inc"] + 'RNICD_REASON(TOO_LONG, 42, kOutOfRange, kX, "long")\n'
        tested = {"daemon/core/b_test.cc": "ErrorReason::TOO_LONG;\n"}
        self.assert_violation({"base/error_reasons.inc": more, **tested}, "base/error_reasons.inc:2:",
                              "TOO_LONG is not in")

    def test_reason_missing_in_the_list(self):
        wire = GOOD["proto/rnicd/v1/error.proto"].replace("}", "  ERROR_REASON_TOO_LONG = 42;\n}")
        self.assert_violation({"proto/rnicd/v1/error.proto": wire}, "proto/rnicd/v1/error.proto:5:",
                              "TOO_LONG is not in")

    def test_reason_with_two_numbers(self):
        wire = GOOD["proto/rnicd/v1/error.proto"].replace("41", "40")
        self.assert_violation({"proto/rnicd/v1/error.proto": wire}, "base/error_reasons.inc:1:",
                              "is 41 here and 40 on the wire")

    def test_reason_without_a_test(self):
        self.assert_violation({"daemon/core/region_test.cc": "\n"}, "base/error_reasons.inc:1:",
                              "no test names LENGTH_ZERO")

    def test_page_of_a_requests_stations(self):
        page = "# x\n\n| 1 | `daemon/core/region.cc` | `Region::Do` | why |\n\n1 stations in 1 files.\n"
        code = {"daemon/core/region.cc": "void Region::Do(int x) {}\n"}
        self.assertEqual(findings_in({"docs/ONE_REQUEST.md": page, **code}), [])
        self.assert_violation({"docs/ONE_REQUEST.md": page.replace("Do`", "Did`"), **code}, "docs/ONE_REQUEST.md:3:",
                              "Region::Did is not in")
        self.assert_violation({"docs/ONE_REQUEST.md": page.replace("1 stations", "2 stations"), **code},
                              "docs/ONE_REQUEST.md:5:", "these are 1 stations in 1 files")

    def test_ntstatus_that_differs(self):
        listed = {"base/ntstatus.h": "#pragma once\n  kIoTimeout = 0xC00000B5,\n"}
        wire = GOOD["proto/rnicd/v1/error.proto"]
        self.assert_violation(listed, "base/ntstatus.h:2:", "IO_TIMEOUT is not in")
        self.assert_violation({**listed, "proto/rnicd/v1/error.proto": wire + "// 1\nNT_STATUS_IO_TIMEOUT = 1;\n"},
                              "base/ntstatus.h:2:", "IO_TIMEOUT is not in")
        self.assert_violation({"proto/rnicd/v1/error.proto": wire + "NT_STATUS_PENDING = 259;\n"},
                              "proto/rnicd/v1/error.proto:1:", "NT_STATUS_PENDING is not in")
        self.assertEqual(findings_in({**listed, "proto/rnicd/v1/error.proto":
                                      wire + "NT_STATUS_IO_TIMEOUT = -1073741643;\n"}), [])

    def test_field_without_comment(self):
        self.assert_violation({"proto/rnicd/v1/a.proto": "message A {\n  uint64 size = 1;\n}\n"},
                              "proto/rnicd/v1/a.proto:2:", "size")

    def test_call_without_comment(self):
        text = "// All.\nservice S {\n  // First.\n  rpc A(X) returns (Y);\n  rpc B(X) returns (Y);\n}\n"
        self.assertEqual(findings_in({"proto/rnicd/v1/a.proto": text}), [])
        self.assert_violation({"proto/rnicd/v1/a.proto": text.replace("  rpc B", "\n  rpc B")},
                              "proto/rnicd/v1/a.proto:6:", "B has no")


class SizesTest(unittest.TestCase):
    LONG = "namespace a {\nvoid Long(int x) {\n" + "  x++;\n" * 70 + "}\n}\n"

    def findings(self, text, ratchet=""):
        folder = {"tests/architecture/sizes.txt": ratchet, "tests/architecture/README.md": "# x\n"}
        return findings_in({"daemon/core/a.cc": text, **folder})

    def assert_finding(self, found, what):
        self.assertEqual(len(found), 1, found)
        self.assertIn(what, found[0])

    def test_file_over_the_limit(self):
        self.assert_finding(self.findings("// line\n" * 501), "501 lines, the limit is 500")

    def test_function_over_the_limit(self):
        self.assert_finding(self.findings(self.LONG), "Long has 72 lines")

    def test_ratchet_holds_growth_and_wants_the_new_number(self):
        key = "daemon/core/a.cc Long"
        self.assertEqual(self.findings(self.LONG, f"72 {key}\n"), [])
        self.assert_finding(self.findings(self.LONG, f"71 {key}\n"), "grew from 71 to 72")
        self.assert_finding(self.findings(self.LONG, f"80 {key}\n"), "has shrunk to 72")
        self.assert_finding(self.findings("\n", f"80 {key}\n"), "within the limit or gone")

    def test_functions_are_recognised(self):
        text = (
            "namespace {\nclass A : public B<int(int)> {\n public:\n  A(int x) : a_{x},\n b_{x} {\n  }\n"
            "  int f() const {\n    if (a) {\n    }\n  }\n};\n"
            'constexpr Row kTable[] = {\n  {1, "}"},\n};\n'
            '// {\nTEST(Suite, Name) {\n  auto l = [] { return \'{\'; };\n}\n}\n')
        found = {name: lines for name, _, lines in check_sizes.cpp_functions(text)}
        self.assertEqual(found["f"], 4)
        self.assertEqual(found["TEST(Suite, Name)"], 3)
        self.assertNotIn("kTable", found)
        self.assertEqual(set(found), {"A", "f", "TEST(Suite, Name)"})


class MethodsTest(unittest.TestCase):
    # 21 public methods; each line that follows them would be one more if it were taken for a method.
    WIDE = "#pragma once\nnamespace a {\nclass Wide {\n public:\n" + "".join(
        f"  int f{number}() const;\n" for number in range(21)) + "\n private:\n  int g();\n};\n}\n"

    def findings(self, text, ratchet=""):
        folder = {"tests/architecture/methods.txt": ratchet, "tests/architecture/README.md": "# x\n"}
        return findings_in({"daemon/core/a.h": text, **folder})

    def assert_finding(self, found, what):
        self.assertEqual(len(found), 1, found)
        self.assertIn(what, found[0])

    def counts(self, text):
        return {name: methods for name, _, methods, _ in check_methods.classes(text)}

    def test_class_over_the_limit(self):
        self.assert_finding(self.findings(self.WIDE),
                            "daemon/core/a.h:3: daemon/core/a.h Wide has 21 public methods, the limit is 20")
        self.assertEqual(self.findings(self.WIDE.replace("  int f7() const;\n", "")), [])

    def test_ratchet_holds_growth_and_wants_the_new_number(self):
        key = "daemon/core/a.h Wide"
        self.assertEqual(self.findings(self.WIDE, f"21 {key}\n"), [])
        self.assert_finding(self.findings(self.WIDE, f"20 {key}\n"), "grew from 20 to 21 public methods")
        self.assert_finding(self.findings(self.WIDE, f"30 {key}\n"), "has shrunk to 21 public methods")
        self.assert_finding(self.findings("#pragma once\n", f"30 {key}\n"), "within the limit or gone")

    def test_methods_are_recognised(self):
        text = (
            "class A final : public B<int(int)> {\n public:\n  static absl::StatusOr<std::unique_ptr<A>> Create();\n"
            "  int inline_body() const { return f(1) + g(2); }\n  void Longer(std::function<void(int)> done,\n"
            "              int count = 3) RNICD_REQUIRES(mutex_);\n  virtual bool Pure() const = 0;\n"
            "  template <typename T>\n  T Get(const T& value) {\n    if (value < 3) {\n    }\n    return value;\n  }\n"
            "  void Overloaded(int a);\n  void Overloaded(char a);\n  A& Set(Options options = {});\n"
            "  void Trailing(); int Second();\n};\n")
        self.assertEqual(self.counts(text), {"A": 10})

    def test_what_is_no_method_does_not_count(self):
        text = (
            "class A {\n  int Private();\n\n public:\n  using Done = std::function<void(int)>;\n  A();\n"
            "  explicit A(int x) : a_{x}, b_(x) {}\n  ~A() override;\n  A(const A&) = delete;\n"
            "  A& operator=(const A&) = delete;\n  explicit operator bool() const { return true; }\n"
            "  friend bool operator<(const A& a, const A& b);\n  friend void Free(A& a);\n"
            "  enum class State : uint8_t { kOne, kTwo };\n  static_assert(sizeof(int) == 4);\n"
            "  static constexpr size_t kSize = Rounded(7);\n"
            "  std::function<void(const A&)> on_event = [](const A&) {};\n"
            "  std::atomic<bool> flag{false};\n  int guarded RNICD_GUARDED_BY(mutex_) = 0;\n  void (*pointer)(int);\n"
            "  // int Commented();\n\n protected:\n  int Protected();\n};\n")
        self.assertEqual(self.counts(text), {"A": 0})

    def test_types_inside_types_count_for_themselves(self):
        text = (
            "namespace a {\nnamespace {\nstruct Outer {\n  struct Inner {\n    int f();\n    int g();\n  };\n"
            "  int h();\n\n private:\n  class Hidden {\n   public:\n    int i() { return 1; }\n  };\n};\n}\n}\n"
            "template <typename T>\nclass RNICD_CAPABILITY(\"mutex\") Late {\n public:\n  int j();\n};\n"
            "class Forward;\n")
        self.assertEqual(self.counts(text), {"Outer": 1, "Outer::Inner": 2, "Outer::Hidden": 1, "Late": 1})


class DataMembersTest(unittest.TestCase):
    WIDE = "#pragma once\nclass Wide {\n" + "".join(f"  int a{number}_ = 0;\n" for number in range(16)) + "};\n"

    def findings(self, path, text):
        return findings_in({path: text, "tests/architecture/README.md": "# x\n"})

    def test_class_over_the_limit(self):
        found = self.findings("daemon/core/a.h", self.WIDE)
        self.assertEqual(len(found), 1, found)
        self.assertIn("daemon/core/a.h:2: daemon/core/a.h Wide has 16 data members, the limit is 15", found[0])
        self.assertEqual(self.findings("daemon/core/a.h", self.WIDE.replace("  int a7_ = 0;\n", "")), [])

    def test_structs_and_tests_may(self):
        self.assertEqual(self.findings("daemon/core/a.h", self.WIDE.replace("class", "struct")), [])
        self.assertEqual(self.findings("daemon/core/a_fixture.h", self.WIDE), [])

    def test_members_are_recognised(self):
        text = (
            "class A {\n public:\n  A();\n  int Method() const;\n  using B = int;\n  struct Inner { int x; int y; };\n"
            "  enum class State { kOne };\n\n private:\n  friend class C;\n  static constexpr int kMax = 3;\n"
            "  class Forward;\n  std::function<void(int)> done_;\n  std::atomic<bool> flag_{false};\n"
            "  const std::map<int, std::vector<int>> map_ RNICD_GUARDED_BY(mutex_);\n"
            "  Charge a_ = Charge(1);\n  int plain_;\n  Os& os_;\n  uint8_t* bytes_ = nullptr;\n};\n")
        self.assertEqual({name: data for name, _, _, data in check_methods.classes(text)}, {"A": 7, "A::Inner": 0})


class OpeningsTest(unittest.TestCase):
    LINES = {
        "daemon/core/a.cc": "int x;  // Of a pair, behind code.\n  // Of a pair.\n",
        "scripts/test": "#!/usr/bin/env bash\n# Whoever runs it.\n",
        "base/CMakeLists.txt": "# By hand.\nrnicd_library(rnicd_base)\n",
    }

    def test_lines_are_found_in_every_kind_of_file(self):
        found = findings_in(self.LINES)
        self.assertEqual([finding.split(": ")[0] for finding in sorted(found)],
                         ["base/CMakeLists.txt:1", "daemon/core/a.cc:2", "scripts/test:2"])

    def test_each_word_counts_and_longer_ones_do_not(self):
        self.assertEqual(len(findings_in({"base/a.inc": "// Who\n// Whom\n// Likewise,\n/// Of:\n"})), 4)
        self.assertEqual(findings_in({"base/a.inc": "// Often\n// Bytes\n// Whole\n// of\n// whom\n"}), [])

    def test_text_and_code_are_not_counted(self):
        self.assertEqual(findings_in({"docs/a.md": "# Of mice\n", "base/a.inc": "Of\nBy(x)\n"}), [])


class SleepsTest(unittest.TestCase):
    SLEEPS = {"daemon/core/region_test.cc": "TEST(A, B) { EXPECT(ErrorReason::LENGTH_ZERO); sleep_for(1ms);\nusleep(1); }\n"}

    def findings(self, changes, allowed=""):
        return findings_in({**changes, "tests/architecture/sleeps.txt": allowed, "tests/architecture/README.md": "# x\n"})

    def assert_finding(self, found, *parts):
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_tests_do_not_sleep(self):
        self.assert_finding(self.findings(self.SLEEPS), "daemon/core/region_test.cc:2:", "2 sleeps, the limit is 0")
        for path in ("tests/x.py", "base/a_fake.h", "base/a_fixture.h"):
            self.assertEqual(len(self.findings({path: "#pragma once\nnanosleep(1)\n"})), 1)
        self.assertEqual(len(self.findings({"tests/x.py": "time.sleep(1)\nawait asyncio.sleep(0)\n"})), 1)

    def test_other_code_and_benchmarks_may(self):
        self.assertEqual(self.findings({"daemon/core/region.cc": "sleep_for(1ms);\n"}), [])
        self.assertEqual(self.findings({"tests/bench/x.py": "time.sleep(1)\n", "tests/bench/README.md": "# x\n"}), [])

    def test_exceptions_may_only_shrink(self):
        self.assertEqual(self.findings(self.SLEEPS, "2 daemon/core/region_test.cc\n"), [])
        self.assert_finding(self.findings(self.SLEEPS, "1 daemon/core/region_test.cc\n"), "grew from 1 to 2")
        self.assert_finding(self.findings(self.SLEEPS, "3 daemon/core/region_test.cc\n"), "shrunk to 2")


class MarkdownTest(unittest.TestCase):
    PAGE = "# Use it: `a_b` from [C++](b.md)\n\n[1](b.md) [2](b.md#two-words) [3](#use-it-a_b-from-c) [4](../base) [5](https://x/y)\n"
    PAGES = {"docs/a.md": PAGE, "docs/b.md": "# Two words\n\n```\n# Not one\n[6](no.md)\n```\n\n`[7](no.md)`\n"}

    def assert_dead(self, page, what, path="docs/a.md"):
        found = findings_in({**self.PAGES, path: page})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{path}:"), found[0])
        self.assertIn(what, found[0])

    def test_links_that_resolve(self):
        self.assertEqual(findings_in(self.PAGES), [])

    def test_dead_links(self):
        self.assert_dead(self.PAGE.replace("(b.md#", "(c.md#"), "a dead link: docs/c.md does not exist")
        self.assert_dead(self.PAGE.replace("#two-words", "#three-words"), "docs/b.md has no heading #three-words")
        self.assert_dead(self.PAGE.replace("#two-words", "#not-one"), "docs/b.md has no heading #not-one")
        self.assert_dead(self.PAGE.replace("(#use", "(#misuse"), "docs/a.md has no heading #misuse-it-a_b-from-c")
        self.assert_dead(self.PAGE.replace("../base", "../bass"), "bass does not exist")

    def test_headings_of_the_same_name_are_numbered(self):
        self.assertEqual(findings_in({"docs/a.md": "# A\n\n# A\n\n[1](#a) [2](#a-1)\n"}), [])
        self.assert_dead("# A\n\n# A\n\n[1](#a) [2](#a-2)\n", "has no heading #a-2")

    def test_pages_that_sources_name(self):
        for path in ("base/a.inc", "scripts/a.yaml", "proto/rnicd/v1/a.proto", "base/a.8"):
            self.assertEqual(findings_in({**self.PAGES, path: "// See docs/b.md#two-words, /usr/share/doc/rnicd/docs/a.md.\n"}), [])
            self.assert_dead("// See docs/c.md.\n", "docs/c.md does not exist", path)
            self.assert_dead("// /usr/share/doc/rnicd/docs/c.md\n", "docs/c.md does not exist", path)
            self.assert_dead("// docs/b.md#x\n", "docs/b.md has no heading #x", path)

    def test_words_of_all_pages(self):
        words = sum(len(text.split()) for path, text in GOOD.items() if path.endswith(".md"))
        pages = {"docs/a.md": "word " * (100 - words)}
        self.assertEqual(findings_in(pages), [])
        pages["docs/b.md"] = "word"
        self.assertIn("all pages have 101 words, the limit is 100", findings_in(pages)[0])
        for text in (None, "", "many\n", "1\n2\n"):
            self.assertIn("has one number", findings_in({"tests/architecture/words.txt": text})[0])


if __name__ == "__main__":
    unittest.main()
