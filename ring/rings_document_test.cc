// The tables of docs/RINGS.md, from which clients are written, against layout.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "ring/layout.h"

namespace rnicd::ring {
namespace {

using Row = std::vector<std::string>;

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" `");
  const size_t end = text.find_last_not_of(" `");
  return begin == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

Row CellsOf(const std::string& line) {
  Row cells;
  std::stringstream rest(line.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) {
    cells.push_back(Trimmed(cell));
  }
  return cells;
}

// Rows of the table behind a comment like <!-- layout: RingHeader -->, without its head.
std::vector<Row> TableOf(const std::string& comment) {
  std::ifstream page(std::string(RNICD_SOURCE_DIR) + "/docs/RINGS.md");
  std::string line;
  while (std::getline(page, line) && line != "<!-- " + comment + " -->") {
  }
  while (std::getline(page, line) && line.empty()) {
  }
  std::vector<Row> rows;
  for (; line.starts_with("|"); std::getline(page, line)) {
    rows.push_back(CellsOf(line));
  }
  EXPECT_GT(rows.size(), 2u) << "docs/RINGS.md has no table behind " << comment;
  return rows.size() > 2 ? std::vector<Row>(rows.begin() + 2, rows.end()) : std::vector<Row>();
}

struct Field {
  size_t offset;
  size_t size;
  std::string name;
  friend bool operator==(const Field&, const Field&) = default;
  friend void PrintTo(const Field& field, std::ostream* to) {
    *to << field.offset << "+" << field.size << " " << field.name;
  }
};

std::vector<Field> DocumentedFields(const std::string& type) {
  std::vector<Field> fields;
  for (const Row& row : TableOf("layout: " + type)) {
    fields.push_back({std::stoul(row[0]), std::stoul(row[1]), row[2]});
  }
  return fields;
}

#define FIELD(type, name) \
  Field { offsetof(type, name), sizeof(type::name), #name }

// Every byte of a type has its row.
void ExpectNoGap(const std::vector<Field>& fields, size_t bytes) {
  size_t end = 0;
  for (const Field& field : fields) {
    EXPECT_EQ(field.offset, end) << field.name;
    end = field.offset + field.size;
  }
  EXPECT_EQ(end, bytes);
}

TEST(RingsDocument, DescriptionIsAsInTheCode) {
  const std::vector<Field> fields = DocumentedFields("Description");
  EXPECT_THAT(fields, testing::ElementsAre(FIELD(Description, magic), FIELD(Description, version),
                                           FIELD(Description, header_bytes), FIELD(Description, submission_offset),
                                           FIELD(Description, completion_offset), FIELD(Description, entries),
                                           FIELD(Description, payload_offset), FIELD(Description, payload_bytes),
                                           FIELD(Description, reserved)));
  ExpectNoGap(fields, sizeof(Description));
}

TEST(RingsDocument, HeaderOfARingIsAsInTheCode) {
  EXPECT_THAT(DocumentedFields("RingHeader"),
              testing::ElementsAre(FIELD(RingHeader, description), FIELD(RingHeader, submission_tail),
                                   FIELD(RingHeader, client_cpu), FIELD(RingHeader, submission_head),
                                   FIELD(RingHeader, submission_wakeup), FIELD(RingHeader, daemon_cpu),
                                   FIELD(RingHeader, end_reason), FIELD(RingHeader, completion_tail),
                                   FIELD(RingHeader, completion_wakes), FIELD(RingHeader, completion_head),
                                   FIELD(RingHeader, completion_wakeup)));
}

TEST(RingsDocument, HeaderOfAQueueIsAsInTheCode) {
  EXPECT_THAT(DocumentedFields("QueueHeader"),
              testing::ElementsAre(
                  FIELD(QueueHeader, description), FIELD(QueueHeader, tail), FIELD(QueueHeader, notifications),
                  FIELD(QueueHeader, status), FIELD(QueueHeader, wakes), FIELD(QueueHeader, notification_wakes),
                  FIELD(QueueHeader, head), FIELD(QueueHeader, wakeup), FIELD(QueueHeader, notification_wakeup)));
}

TEST(RingsDocument, SubmissionIsAsInTheCode) {
  const std::vector<Field> fields = DocumentedFields("Submission");
  EXPECT_THAT(fields,
              testing::ElementsAre(FIELD(Submission, user_data), FIELD(Submission, opcode), FIELD(Submission, flags),
                                   FIELD(Submission, count), FIELD(Submission, object), FIELD(Submission, length),
                                   FIELD(Submission, argument), FIELD(Submission, payload_offset),
                                   FIELD(Submission, payload_bytes), FIELD(Submission, result_offset),
                                   FIELD(Submission, result_bytes), FIELD(Submission, reserved)));
  ExpectNoGap(fields, sizeof(Submission));
}

TEST(RingsDocument, OutcomeIsAsInTheCode) {
  const std::vector<Field> fields = DocumentedFields("Outcome");
  EXPECT_THAT(fields,
              testing::ElementsAre(FIELD(Outcome, user_data), FIELD(Outcome, status), FIELD(Outcome, reason),
                                   FIELD(Outcome, opcode), FIELD(Outcome, reserved), FIELD(Outcome, field_bytes),
                                   FIELD(Outcome, posted), FIELD(Outcome, local_token), FIELD(Outcome, remote_token),
                                   FIELD(Outcome, reserved2), FIELD(Outcome, base_or_limit),
                                   FIELD(Outcome, length_or_used), FIELD(Outcome, requested)));
  ExpectNoGap(fields, sizeof(Outcome));
}

TEST(RingsDocument, QueueResultIsAsInTheCode) {
  const std::vector<Field> fields = DocumentedFields("QueueResult");
  EXPECT_THAT(fields,
              testing::ElementsAre(FIELD(QueueResult, status), FIELD(QueueResult, reason), FIELD(QueueResult, type),
                                   FIELD(QueueResult, reserved), FIELD(QueueResult, bytes),
                                   FIELD(QueueResult, qp_context), FIELD(QueueResult, request_context),
                                   FIELD(QueueResult, invalidated_token), FIELD(QueueResult, request_number),
                                   FIELD(QueueResult, qp_id), FIELD(QueueResult, reserved2)));
  ExpectNoGap(fields, sizeof(QueueResult));
}

TEST(RingsDocument, RecordsAreAsInTheCode) {
  const std::vector<Field> request = DocumentedFields("RequestRecord");
  EXPECT_THAT(request, testing::ElementsAre(FIELD(RequestRecord, request_context), FIELD(RequestRecord, flags),
                                            FIELD(RequestRecord, operation), FIELD(RequestRecord, reserved),
                                            FIELD(RequestRecord, count), FIELD(RequestRecord, object),
                                            FIELD(RequestRecord, window), FIELD(RequestRecord, address),
                                            FIELD(RequestRecord, length), FIELD(RequestRecord, token),
                                            FIELD(RequestRecord, fbo), FIELD(RequestRecord, reserved2)));
  ExpectNoGap(request, sizeof(RequestRecord));
  const std::vector<Field> sge = DocumentedFields("SgeRecord");
  EXPECT_THAT(sge, testing::ElementsAre(FIELD(SgeRecord, address), FIELD(SgeRecord, length), FIELD(SgeRecord, token)));
  ExpectNoGap(sge, sizeof(SgeRecord));
  const std::vector<Field> mdl = DocumentedFields("MdlRecord");
  EXPECT_THAT(mdl, testing::ElementsAre(FIELD(MdlRecord, memory_id), FIELD(MdlRecord, byte_offset),
                                        FIELD(MdlRecord, byte_count), FIELD(MdlRecord, virtual_address)));
  ExpectNoGap(mdl, sizeof(MdlRecord));
}

// --- Numbers ---

// The compiler checks that every value of the enumeration is here: a missing one is a warning, and so an error.
std::string NameOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kNop:
      return "Nop";
    case Opcode::kPost:
      return "Post";
    case Opcode::kRegisterMr:
      return "RegisterMr";
    case Opcode::kDeregisterMr:
      return "DeregisterMr";
    case Opcode::kGetRemoteToken:
      return "GetRemoteToken";
    case Opcode::kArmCq:
      return "ArmCq";
  }
  return "";
}

std::string NameOf(Operation operation) {
  switch (operation) {
    case Operation::kSend:
      return "Send";
    case Operation::kSendAndInvalidate:
      return "SendAndInvalidate";
    case Operation::kReceive:
      return "Receive";
    case Operation::kRead:
      return "Read";
    case Operation::kWrite:
      return "Write";
    case Operation::kFastRegister:
      return "FastRegister";
    case Operation::kInvalidateRegion:
      return "InvalidateRegion";
    case Operation::kInvalidateWindow:
      return "InvalidateWindow";
    case Operation::kBind:
      return "Bind";
  }
  return "";
}

std::string NameOf(Wakeup wakeup) {
  switch (wakeup) {
    case Wakeup::kNone:
      return "None";
    case Wakeup::kFutex:
      return "Futex";
    case Wakeup::kPipe:
      return "Pipe";
  }
  return "";
}

template <typename Enum>
void ExpectNumbers(const std::string& type, size_t count) {
  const std::vector<Row> rows = TableOf("numbers: " + type);
  EXPECT_EQ(rows.size(), count) << type;
  for (const Row& row : rows) {
    EXPECT_EQ(row[1], NameOf(static_cast<Enum>(std::stoul(row[0])))) << type;
  }
}

TEST(RingsDocument, NumbersAreThoseOfTheCode) {
  ExpectNumbers<Opcode>("Opcode", 6);
  ExpectNumbers<Operation>("Operation", 9);
  ExpectNumbers<Wakeup>("Wakeup", 3);
}

TEST(RingsDocument, MagicsAreTheLettersOfThePage) {
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(&kRingMagic), sizeof(kRingMagic)), "RNIDRING");
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(&kQueueMagic), sizeof(kQueueMagic)), "RNIDCOM ");
  EXPECT_EQ(TableOf("layout: Description")[1][3], std::to_string(kVersion));
}

}  // namespace
}  // namespace rnicd::ring
