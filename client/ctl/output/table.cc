#include "client/ctl/output/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rnicd::ctl {

void Table::AddColumn(Column column, const std::vector<std::string>& cells) {
  columns_.push_back(std::move(column));
  for (size_t index = 0; index < rows_.size(); ++index) {
    rows_[index].push_back(cells[index]);
  }
}

std::string Table::Text() const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(column.title.size());
  }
  for (const std::vector<std::string>& row : rows_) {
    for (size_t index = 0; index < row.size(); ++index) {
      widths[index] = std::max(widths[index], row[index].size());
    }
  }
  std::string text = Line(titles, widths);
  for (const std::vector<std::string>& row : rows_) {
    text += Line(row, widths);
  }
  return text;
}

std::string Table::Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const {
  std::string line;
  for (size_t index = 0; index < cells.size(); ++index) {
    if (widths[index] == 0) {
      continue;
    }
    const std::string padding(widths[index] - cells[index].size(), ' ');
    line += line.empty() ? "" : "  ";
    line += columns_[index].align == Align::kRight ? padding + cells[index] : cells[index] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string KeyValueLines(const std::vector<std::pair<std::string, std::string>>& pairs) {
  size_t width = 0;
  for (const auto& [key, value] : pairs) {
    width = std::max(width, key.size());
  }
  std::string text;
  for (const auto& [key, value] : pairs) {
    absl::StrAppend(&text, key, std::string(width - key.size() + 2, ' '), value, "\n");
  }
  return text;
}

}  // namespace rnicd::ctl
