#include "daemon/status_page/assets.h"

#include <array>

#include "daemon/status_page/embedded.h"

namespace rnicd::status_page {
namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kCss = "text/css; charset=utf-8";
constexpr std::string_view kScript = "text/javascript; charset=utf-8";
constexpr std::string_view kSvg = "image/svg+xml";

}  // namespace

std::span<const Asset> Assets() {
  // The scripts import each other by these paths.
  static const std::array kAssets = {
      Asset{"/", kHtml, Embedded("index.html")},
      Asset{"/status.css", kCss, Embedded("style.css")},
      Asset{"/status.svg", kSvg, Embedded("icon.svg")},
      Asset{"/status.js", kScript, Embedded("page.js")},
      Asset{"/status-text.js", kScript, Embedded("text.js")},
      Asset{"/status-table.js", kScript, Embedded("table.js")},
      Asset{"/status-held.js", kScript, Embedded("held.js")},
      Asset{"/status-tables.js", kScript, Embedded("tables.js")},
      Asset{"/status-cards.js", kScript, Embedded("cards.js")},
      Asset{"/status-keys.js", kScript, Embedded("keys.js")},
  };
  return kAssets;
}

}  // namespace rnicd::status_page
