"""The rules of the repository as data. check.py reads them; check_test.py proves that each one is enforced."""

# --- Arrows ---------------------------------------------------------------------------------------------------------
# A folder may include itself and the folders named here, and nothing else of ours; "folder/" names it with its rooms. "grpc" allows gRPC's headers and the
# generated service code, "proto" the generated messages. A folder that is not listed may not exist.
ARROWS = {
    "base": [],
    # NDK's own types.
    "base/ndk": ["base"],
    "base/secrets": ["base"],
    # Below here the system is asked.
    "base/files": ["base"],
    "base/system": ["base/files", "base"],
    # Flags of the daemon and of the device plugin.
    "base/flags": ["base/files", "base/system", "base"],
    "proto": [],
    "wire": ["base/ndk", "base", "proto"],
    # What both ends of a gRPC connection share on nghttp2.
    "wire/http2": ["base/secrets", "base/system", "base"],
    # What a client and the daemon share in memory.
    "ring": ["base/ndk", "base/files", "base"],
    # Shared by the daemon and the device plugin, whose lines are read side by side.
    "log": ["base/system", "base"],
    "log/library_log": ["log", "base"],
    # The interface of the kernel's module; what implements it is kbuild's.
    "kernel/rnicd_fr": [],
    "provider/api": ["base/ndk", "base"],
    "provider/engine": ["provider/api", "base"],
    "provider/soft/memory": ["base"],
    "provider/soft/net": [
        "provider/engine", "provider/api", "base/ndk", "base/secrets", "base/files", "base/system", "base",
    ],
    "provider/soft": ["provider/soft/memory", "provider/soft/net", "provider/engine", "provider/api", "base/ndk", "base/secrets", "base"],
    # What the card and its kernel are asked; what is registered, and with whom; fast registrations; queue pairs; and the
    # provider.
    "provider/verbs/card": ["provider/engine", "provider/api", "kernel/rnicd_fr", "base/ndk", "base/secrets", "base/files", "base"],
    "provider/verbs/memory": ["provider/verbs/card", "provider/engine", "provider/api", "base/ndk", "base"],
    "provider/verbs/fast": [
        "provider/verbs/memory", "provider/verbs/card", "provider/engine", "provider/api", "base/ndk", "base",
    ],
    "provider/verbs/queue": [
        "provider/verbs/fast", "provider/verbs/memory", "provider/verbs/card", "provider/engine", "provider/api", "base",
    ],
    "provider/verbs/connection": [
        "provider/verbs/queue", "provider/verbs/card", "provider/engine", "provider/api", "base/ndk", "base/files", "base",
    ],
    # Tests only.
    "provider/verbs/fake": ["provider/verbs/", "provider/engine", "provider/api", "kernel/rnicd_fr", "base/"],
    "provider/verbs": [
        "provider/verbs/connection", "provider/verbs/queue", "provider/verbs/fast", "provider/verbs/memory", "provider/verbs/card", "provider/engine",
        "provider/api", "base/ndk", "base/secrets", "base/files", "base",
    ],
    # As those of verbs.
    "provider/networkdirect/card": ["provider/engine", "provider/api", "base/ndk", "base"],
    "provider/networkdirect/memory": [
        "provider/networkdirect/card", "provider/engine", "provider/api", "base/ndk", "base/secrets", "base",
    ],
    "provider/networkdirect/fast": [
        "provider/networkdirect/memory", "provider/networkdirect/card", "provider/engine", "provider/api", "base",
    ],
    "provider/networkdirect/queue": [
        "provider/networkdirect/fast", "provider/networkdirect/memory", "provider/networkdirect/card", "provider/engine",
        "provider/api", "base",
    ],
    "provider/networkdirect": [
        "provider/networkdirect/queue", "provider/networkdirect/fast", "provider/networkdirect/memory",
        "provider/networkdirect/card", "provider/engine", "provider/api", "base/secrets", "base",
    ],
    "provider/decorator": ["provider/api", "base"],
    # In rooms; it has no files of its own.
    "daemon/core": ["provider/api", "ring", "base"],
    "daemon/core/tenant": ["provider/api", "base/ndk", "base/secrets", "base/system", "base"],
    "daemon/core/request": ["daemon/core/tenant", "provider/api", "ring", "base/ndk", "base/secrets", "base/system", "base"],
    "daemon/core/memory": [
        "daemon/core/request", "daemon/core/tenant", "provider/api", "base/ndk", "base/secrets", "base/files",
        "base/system", "base",
    ],
    "daemon/core/region": [
        "daemon/core/memory", "daemon/core/request", "daemon/core/tenant", "provider/api", "base/ndk", "base/system",
        "base",
    ],
    "daemon/core/queue": [
        "daemon/core/region", "daemon/core/memory", "daemon/core/request", "daemon/core/tenant", "provider/api", "ring",
        "base/ndk", "base/files", "base/system", "base",
    ],
    "daemon/core/connection": [
        "daemon/core/queue", "daemon/core/region", "daemon/core/request", "daemon/core/tenant", "provider/api",
        "base/ndk", "base",
    ],
    "daemon/core/ring": [
        "daemon/core/memory", "daemon/core/request", "daemon/core/tenant", "ring", "base/files", "base/system", "base",
    ],
    "daemon/core/session": [
        "daemon/core/connection", "daemon/core/ring", "daemon/core/queue", "daemon/core/region", "daemon/core/memory", "daemon/core/request",
        "daemon/core/tenant", "provider/api", "ring", "base/files", "base",
    ],
    "daemon/core/generation": ["daemon/core/session", "daemon/core/request", "daemon/core/tenant", "base"],
    "daemon/rings": ["daemon/core/", "ring", "base/ndk", "base/files", "base"],
    "daemon/health": ["provider/api", "base/ndk", "base/system", "base"],
    "daemon/audit": ["daemon/core/", "log", "base/files", "base/system", "base"],
    "daemon/metrics": ["daemon/core/", "provider/api", "base/files", "base/system", "base"],
    "daemon/policy": ["daemon/core/", "base/files", "base", "proto"],
    "daemon/status_page": ["daemon/core/", "provider/api", "base/system", "base"],
    "daemon/sandbox": ["kernel/rnicd_fr", "base/files", "base"],
    # One thread's sockets and timers; what is charged, counted and dropped; connections and calls.
    "daemon/rpc/socket": ["base/secrets", "base/files", "base/system", "base"],
    "daemon/rpc/bounds": ["base"],
    "daemon/rpc": [
        "daemon/rpc/bounds", "daemon/rpc/socket", "wire/http2", "base/secrets", "base/files", "base/system", "base",
    ],
    "daemon/gate": ["daemon/core/", "log", "base", "proto"],
    # The handlers: conversions and checks that several share, the methods of memory and of operators, and the others.
    "daemon/service/messages": ["daemon/gate", "daemon/core/", "wire", "base", "proto"],
    "daemon/service/memory": ["daemon/service/messages", "daemon/gate", "daemon/core/", "wire", "base", "proto"],
    "daemon/service/admin": [
        "daemon/service/messages", "daemon/gate", "daemon/core/", "daemon/health", "daemon/policy", "wire",
        "base/secrets", "base/system", "base", "proto",
    ],
    "daemon/service": [
        "daemon/service/admin", "daemon/service/memory", "daemon/service/messages", "daemon/gate", "daemon/core/",
        "daemon/health", "wire", "provider/api", "base", "proto",
    ],
    "daemon/door": ["daemon/core/", "log", "base/secrets", "base/files", "base/system", "base"],
    "daemon/pipes": [
        "daemon/door", "daemon/core/", "log", "wire", "base/secrets", "base/files", "base/system", "base", "proto",
    ],
    # Identity of callers.
    "daemon/transport/identity": ["daemon/core/", "base/files", "base"],
    "daemon/transport": [
        "daemon/transport/identity", "daemon/door", "daemon/core/", "log", "wire", "base/files", "base/system", "base", "proto",
    ],
    "daemon/handover": ["daemon/transport", "daemon/core/", "log", "base/files", "base/system", "base", "proto"],
    "daemon/server": ["daemon/rpc/", "daemon/gate", "daemon/door", "wire", "daemon/core/", "log", "base", "proto"],
    # The program: flags and the cards they name, what each system has of its own, what watches the daemon, and the program
    # that joins all.
    "daemon/app/config": [
        "daemon/door", "daemon/policy", "daemon/core/", "daemon/rings", "daemon/metrics", "daemon/sandbox", "daemon/pipes",
        "log", "provider/verbs/", "provider/networkdirect/", "provider/soft", "provider/decorator", "provider/api", "base/ndk",
        "base/secrets", "base/files", "base/system", "base/flags", "base",
    ],
    "daemon/app/host": [
        "daemon/app/config", "daemon/handover", "daemon/transport", "daemon/pipes", "daemon/door", "daemon/sandbox", "daemon/health",
        "daemon/core/", "log", "provider/soft/net", "provider/verbs/card", "base/secrets", "base/files", "base/system", "base",
    ],
    "daemon/app/observing": [
        "daemon/app/host", "daemon/rpc/", "daemon/rings", "daemon/metrics", "daemon/status_page", "daemon/audit",
        "daemon/health", "daemon/core/", "log", "provider/api", "base/system", "base",
    ],
    "daemon/app/generation": [
        "daemon/app/host", "daemon/app/config", "daemon/handover", "daemon/transport", "daemon/service/", "daemon/policy",
        "daemon/core/", "log", "base/secrets", "base/files", "base/system", "base", "proto",
    ],
    "daemon/app": [
        "daemon/app/generation", "daemon/app/observing", "daemon/app/host", "daemon/app/config", "daemon/server", "daemon/service/", "daemon/gate",
        "daemon/door", "daemon/metrics", "daemon/audit", "daemon/policy", "daemon/core/", "daemon/health", "daemon/rings",
        "log", "log/library_log", "provider/api", "base/secrets", "base/files", "base/system", "base/flags", "base",
    ],
    # librnicd: the interface, which is installed; below it what fills it. The rooms may include the interface.
    "client/cpp": ["base/ndk", "base"],
    "client/cpp/channel": [
        "client/cpp", "wire/http2", "wire", "base/files", "base/system", "base", "proto",
    ],
    "client/cpp/rings": [
        "client/cpp/channel", "client/cpp", "wire", "ring", "base/ndk", "base/files", "base/system", "base", "proto",
    ],
    "client/cpp/session": [
        "client/cpp/rings", "client/cpp/channel", "client/cpp", "base/files", "base/system", "base", "proto",
    ],
    "client/cpp/objects": [
        "client/cpp/session", "client/cpp/rings", "client/cpp/channel", "client/cpp", "wire", "ring", "base/ndk",
        "base/system", "base", "proto",
    ],
    # Its C interface.
    "client/c": ["client/cpp", "base/ndk", "base/system", "base"],
    # What only librnicd.so has.
    "client/c/shared": [],
    # The provider for libfabric, which uses the C interface alone.
    "client/libfabric/info": ["client/libfabric", "client/libfabric/connection", "base/files"],
    "client/libfabric/connection": ["client/libfabric", "base/files", "base"],
    "client/libfabric": ["client/libfabric/info", "client/libfabric/connection", "client/c", "base/files", "base"],
    "client/admin": ["client/cpp/channel", "client/cpp", "base/ndk", "base", "proto"],
    # rnicctl: what is typed, what is printed, what selftest and the demos do, one file a command, and the tool.
    "client/ctl/line": ["client/admin", "client/cpp", "base/ndk", "base/files", "base"],
    "client/ctl/output": ["client/ctl/line", "client/cpp", "base/files", "base", "proto"],
    "client/ctl/trials": ["client/ctl/output", "client/ctl/line", "client/cpp", "base/secrets", "base/system", "base"],
    "client/ctl/commands": [
        "client/ctl/trials", "client/ctl/output", "client/ctl/line", "client/admin", "client/cpp/channel", "client/cpp",
        "base/secrets", "base/files", "base/system", "base", "proto",
    ],
    "client/ctl": ["client/ctl/commands", "client/ctl/output", "client/ctl/line", "client/cpp", "base/system"],
    # The device plugin: devices as numbers, what the node says of its pods, grants for them, the kubelet's calls, and what
    # joins them.
    "client/kubernetes/resources": ["client/admin", "base"],
    "client/kubernetes/node": ["client/kubernetes/kubelet", "client/kubernetes/resources", "base/files", "base", "proto", "grpc"],
    "client/kubernetes/grants": [
        "client/kubernetes/node", "client/kubernetes/resources", "client/admin", "client/cpp", "log", "base/secrets",
        "base", "proto",
    ],
    "client/kubernetes/kubelet": ["client/kubernetes/resources", "log", "base/files", "base", "grpc"],
    "client/kubernetes": [
        "client/kubernetes/kubelet", "client/kubernetes/grants", "client/kubernetes/node", "client/kubernetes/resources",
        "client/admin", "client/cpp", "log", "log/library_log", "base/secrets", "base/files", "base/system", "base/flags", "base",
        "proto", "grpc",
    ],
}
# Folders in rooms whose tests share fixtures, and may include all rooms.
SHARED_FIXTURES = ["base", "daemon/core", "daemon/rpc", "daemon/service", "provider/verbs"]
# Trees that no arrow may join, in either direction: they are programs of their own and meet on the wire.
SEPARATE = [("client", "daemon")]
# Folders that may include everything. Nothing but these may include tests/.
FREE_FOLDERS = ["tests", "examples"]
# A test beside the code may also use these: real providers instead of mocks.
UNIT_TEST_ARROWS = ["provider/api", "provider/soft", "provider/decorator", "base/"]
# Folders that may see only some of the generated headers.
PROTO_SUBSETS = {
    "daemon/transport": ["rnicd/v1/fd_channel.pb.h", "rnicd/v1/error.pb.h"],
    "daemon/handover": ["rnicd/v1/handover.pb.h"],
    "daemon/pipes": ["rnicd/v1/pipe_channel.pb.h", "rnicd/v1/error.pb.h"],
}

# --- Headers and names of others ------------------------------------------------------------------------------------
# Where an include with this prefix is allowed; a folder covers its subfolders, a file only itself.
EXTERNAL_INCLUDES = {
    "provider/networkdirect/card/nd2.h": ["provider/networkdirect", "tests/networkdirect_model"],
    "provider/networkdirect/card/nd2_types.h": ["provider/networkdirect", "tests/networkdirect_model"],
    "infiniband/": ["provider/verbs", "tests/vm/foreign_peer", "tests/vm/bench", "tests/vm/fr"],
    "rdma/rdma_cma.h": ["provider/verbs/connection"],
    "grpc/grpc": ["client/kubernetes", "tests"],
    "grpc/support/": ["client/kubernetes", "tests"],
    "grpcpp/": ["client/kubernetes", "client/cpp/objects/fake_daemon_fixture.h", "client/cpp/objects/fake_daemon_fixture.cc", "tests"],
    "nghttp2/": ["wire/http2", "daemon/rpc", "client/cpp/channel", "tests/bench/http2_echo.cc"],
    "google/protobuf/stubs/": ["log/library_log", "daemon/server", "client/c/shared"],
    "openssl/": ["base/secrets/secret_linux.cc"],
    "seccomp.h": ["daemon/sandbox"],
    "sys/capability.h": ["daemon/sandbox"],
    "prometheus/": ["daemon/metrics"],
    "curl/": ["client/kubernetes/node/cluster.cc", "client/kubernetes/main.cc"],
    "CivetServer.h": ["daemon/metrics"],
    "absl/synchronization/": ["daemon/app/run.cc"],
    "mutex": ["base/mutex.h"],
    "shared_mutex": [],
    "condition_variable": ["base/mutex.h"],
}
# Folders whose code is for every system. What one system has is in a file that says so, `*_linux.cc`, behind a header that
# does not. Their tests may use Linux.
PORTABLE_FOLDERS = [
    "base/ndk", "base/flags", "wire", "ring", "provider/api", "provider/engine", "provider/soft", "daemon/core", "daemon/rings", "daemon/gate",
    "daemon/door", "daemon/health", "daemon/policy", "daemon/rpc", "daemon/service", "daemon/status_page", "daemon/server", "daemon/audit", "daemon/metrics", "daemon/app",
]
PORTABLE_SUFFIXES = ["_linux.cc", "_windows.cc", "_linux.h", "_windows.h"]
# Headers of a system: POSIX and Linux, and Windows.
SYSTEM_HEADERS = [
    "aio.h", "arpa/", "asm/", "dirent.h", "dlfcn.h", "endian.h", "fcntl.h", "ftw.h", "glob.h", "grp.h", "ifaddrs.h", "linux/",
    "malloc.h", "net/", "netdb.h", "netinet/", "poll.h", "pthread.h", "pwd.h", "sched.h", "semaphore.h", "spawn.h", "sys/",
    "syslog.h", "termios.h", "ucontext.h", "unistd.h", "windows.h", "winsock2.h", "ws2tcpip.h", "winternl.h",
]
# The same for names in C++ code, except in comments and strings.
NAMES = {
    r"std::(recursive_|timed_|shared_)*mutex\b": ["base/mutex.h"],
    r"std::condition_variable(_any)?\b": ["base/mutex.h"],
    r"absl::(Mutex|CondVar|Notification|BlockingCounter)\b": [],
    r"using\s+namespace\b": [],
}
NAME_REMEDIES = {
    "mutex": "use Mutex of base/mutex.h",
    "condition_variable": "use ConditionVariable of base/mutex.h",
    "Mutex": "use Mutex of base/mutex.h",
    "namespace": "name what you use: using rnicd::X",
}

# --- Words that are not allowed anywhere ----------------------------------------------------------------------------
WORDS = {
    r"\b(TODO|FIXME|XXX|HACK)\b": "finish it, or open an issue and say the limit plainly",
    r"\bGTEST_SKIP\b": "a test either passes or does not exist",
    r"\bDISABLED_\w": "fix the test or delete it",
    r"(?<![\w.])/(work|home|farm)/\w": "no path of one machine: derive it",
}
# The rules and their own test must name what they forbid.
WORDS_ALLOWED_IN = ["tests/architecture/rules.py", "tests/architecture/check_test.py"]

# --- Folders and files ----------------------------------------------------------------------------------------------
IGNORED_FOLDERS = [".git", ".cache", "build", "node_modules", "__pycache__"]
CODE_SUFFIXES = [".cc", ".h", ".inc", ".proto", ".py", ".sh"]
# Folders that need a README.md though they hold no code.
ALSO_DOCUMENTED = ["deploy", "docs/adr", "docs/runbooks"]
# Folders that their parent's README.md documents.
DOCUMENTED_BY_PARENT = [
    "client/python/rnicd", "proto/rnicd", "proto/grpc", "proto/kubelet", "scripts/pages", "tests/support/", "tests/kubernetes/",
]
# Where a file may, and must, be executable: programs with a "#!" line.
EXECUTABLE = [r"^scripts/[a-z0-9-]+$", r"^\.ci/run$", r"^tests/vm/guest$"]

# --- Pages ----------------------------------------------------------------------------------------------------------
# They name pages that do not exist.
LINKS_NOT_CHECKED = ["tests/architecture/check_test.py", "tests/deploy/observability_check_test.py"]
# How many words all pages may have.
WORDS_RATCHET = "tests/architecture/words.txt"

# --- Sizes ----------------------------------------------------------------------------------------------------------
FILE_LINES_MAX = 500
# One header is the whole interface and its manual.
FILES_OF_ANY_LENGTH = ["client/c/rnicd.h"]
FUNCTION_LINES_MAX = 70
FOLDER_FILES_MAX = 40
FOLDERS_RATCHET = "tests/architecture/folders.txt"
SIZED_SUFFIXES = [".cc", ".h", ".proto", ".py", ".sh"]
RATCHET = "tests/architecture/sizes.txt"
# Public methods of a class in a header, overloads each; constructors, destructors and operators do not count.
PUBLIC_METHODS_MAX = 20
METHODS_RATCHET = "tests/architecture/methods.txt"
# Data members of a class in a header; those of a struct are its purpose.
DATA_MEMBERS_MAX = 15
DATA_RATCHET = "tests/architecture/members.txt"

# --- Comments -------------------------------------------------------------------------------------------------------
# A comment line that begins with one of these has a subject or a noun on another line, or none.
OPENINGS = ["Who", "Whoever", "Whom", "Likewise", "Of", "By"]
COMMENTED_SUFFIXES = [".cc", ".h", ".inc", ".proto", ".py", ".sh", ".cmake", "CMakeLists.txt"]

# --- Sleeps of tests ------------------------------------------------------------------------------------------------
SLEEPS_RATCHET = "tests/architecture/sleeps.txt"
# They measure, or make noise for a time.
SLEEPS_FREE = ["tests/bench", "tests/soak", "tests/jitter", "tests/architecture"]

# --- Calls that put a folder's tests into a target ----------------------------------------------------------------
TEST_TARGET_CALLS = ["rnicd_library", "rnicd_unit_tests", "rnicd_process_tests", "rnicd_test_library", "rnicd_test_program"]
TARGET_CALLS = TEST_TARGET_CALLS + ["add_executable", "add_library"]

# --- One list in two places -------------------------------------------------------------------------------------------
REASONS_LIST = "base/error_reasons.inc"
REASONS_PROTO = "proto/rnicd/v1/error.proto"
NTSTATUS_LIST = "base/ntstatus.h"
# The page that leads through a request: its functions are where it says, and its counts are right.
STATIONS_PAGE = "docs/ONE_REQUEST.md"
# Tests that walk the whole list; a reason named only there has no test.
REASONS_NOT_COUNTED = ["base/error_reason_test.cc", "tests/architecture"]
