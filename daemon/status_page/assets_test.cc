#include "daemon/status_page/assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

namespace rnicd::status_page {
namespace {

using ::testing::StartsWith;

std::string BodyOf(std::string_view path) {
  for (const Asset& asset : Assets()) {
    if (asset.path == path) {
      return std::string(asset.body);
    }
  }
  ADD_FAILURE() << "no asset " << path;
  return {};
}

bool Has(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern, std::regex::icase));
}

TEST(Assets, AllAreThereWhole) {
  for (const Asset& asset : Assets()) {
    EXPECT_FALSE(asset.body.empty()) << asset.path;
    EXPECT_EQ(asset.body.back(), '\n') << asset.path;
  }
  EXPECT_THAT(BodyOf("/"), StartsWith("<!doctype html>"));
}

// The SVG namespace is a name, not an address that is loaded.
TEST(Assets, LoadNothingFromOtherServers) {
  for (const Asset& asset : Assets()) {
    std::string text(asset.body);
    const std::string name = "http://www.w3.org/2000/svg";
    if (const size_t at = text.find(name); at != std::string::npos) {
      text.erase(at, name.size());
    }
    EXPECT_FALSE(Has(text, "(https?|wss?|ftp):|url\\(|[\"'(]//|@import")) << asset.path;
  }
}

TEST(Assets, NothingStandsInlineThatTheContentPolicyForbids) {
  const std::string html = BodyOf("/");
  EXPECT_FALSE(Has(html, "<style|\\sstyle=|\\son[a-z]+=|javascript:"));
  EXPECT_FALSE(Has(html, "<script(?![^>]* src=)"));
}

TEST(Assets, ScriptsMakeNoHtmlOutOfText) {
  for (const Asset& asset : Assets()) {
    EXPECT_FALSE(Has(std::string(asset.body),
                     "innerHTML|outerHTML|insertAdjacentHTML|document\\.write|\\beval\\b|"
                     "new Function|setAttribute\\(\"style"))
        << asset.path;
  }
}

TEST(Assets, WhatOneNamesIsThere) {
  std::set<std::string> paths = {"/status.json"};
  for (const Asset& asset : Assets()) {
    EXPECT_TRUE(paths.emplace(asset.path).second) << asset.path << " is there twice";
  }
  const std::regex named("[\"']\\.?(/status[\\w.-]*)[\"']");
  for (const Asset& asset : Assets()) {
    const std::string text(asset.body);
    for (std::sregex_iterator found(text.begin(), text.end(), named), end; found != end; ++found) {
      EXPECT_TRUE(paths.contains((*found)[1])) << asset.path << " names " << (*found)[1];
    }
  }
}

}  // namespace
}  // namespace rnicd::status_page
