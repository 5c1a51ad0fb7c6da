#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace rnicd::ctl {

enum class Align { kLeft, kRight };

// Formats text in columns for people: a header line, two spaces between columns, no trailing spaces. A column without
// a title and any text is left out.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // A column to the right of all others, with a cell for each row.
  void AddColumn(Column column, const std::vector<std::string>& cells);
  // Each line ends with a newline.
  std::string Text() const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "name   value" lines, the values in one column.
std::string KeyValueLines(const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace rnicd::ctl
