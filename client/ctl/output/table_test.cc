#include "client/ctl/output/table.h"

#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCellAndLinesEndClean) {
  Table table({{"NAME"}, {"SIZE", Align::kRight}, {"NOTE"}});
  table.AddRow({"a", "1024 MiB", ""});
  table.AddRow({"longer", "1 B", "x"});
  EXPECT_EQ(table.Text(),
            "NAME        SIZE  NOTE\n"
            "a       1024 MiB\n"
            "longer       1 B  x\n");
}

TEST(Table, WithoutRowsOnlyTheHeaderIsShown) { EXPECT_EQ(Table({{"A"}, {"B", Align::kRight}}).Text(), "A  B\n"); }

TEST(Table, KeyValueLinesAlignTheValues) {
  EXPECT_EQ(KeyValueLines({{"pid", "12"}, {"version", "0.1.0"}}), "pid      12\nversion  0.1.0\n");
}

}  // namespace
}  // namespace rnicd::ctl
