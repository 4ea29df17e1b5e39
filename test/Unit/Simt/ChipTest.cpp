//===- ChipTest.cpp - Chip files ------------------------------------------===//

#include "TestChip.h"

#include <gmock/gmock.h>

using namespace kperfir::simt;
using testing::HasSubstr;

namespace {
std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string messageOf(const std::string &text) {
  try {
    Chip::parse(text);
  } catch (const std::invalid_argument &error) {
    return error.what();
  }
  return "";
}
} // namespace

TEST(Chip, A100HasItsFigures) {
  Chip chip = test::chip();
  EXPECT_EQ(chip.name, "a100");
  EXPECT_EQ(chip.smCount, 108u);
  EXPECT_EQ(chip.cost(LatencyClass::Sfu).latency, 23u);
  EXPECT_EQ(chip.cost(LatencyClass::Sfu).interval, 8u);
  EXPECT_EQ(chip.cyclesToNs(1410), 1000u);
}

TEST(Chip, MissingFigureIsNamed) {
  EXPECT_THAT(
      messageOf(replaced(test::chipText(), "\"l2_latency\"", "\"l2_latenci\"")),
      HasSubstr("\"figures.l2_latency\" is missing"));
}

TEST(Chip, UnknownFigureIsNamed) {
  EXPECT_THAT(
      messageOf(replaced(
          test::chipText(), "\"sm_count\"",
          "\"tables\": {\"value\": 1, \"source\": \"guide\"}, \"sm_count\"")),
      HasSubstr("\"figures.tables\" is not a figure"));
}

TEST(Chip, FigureWithoutSourceIsRefused) {
  EXPECT_THAT(messageOf(replaced(test::chipText(),
                                 "\"value\": 108, \"source\": \"whitepaper\"",
                                 "\"value\": 108, \"source\": \"hearsay\"")),
              HasSubstr("\"figures.sm_count\" has no \"source\""));
}

TEST(Chip, ZeroIsRefusedWhereItHasNoMeaning) {
  EXPECT_THAT(
      messageOf(replaced(test::chipText(), "\"value\": 108", "\"value\": 0")),
      HasSubstr("must not be 0"));
}

TEST(Chip, BrokenJsonNamesTheLine) {
  EXPECT_THAT(messageOf("{\"name\": \"x\",\n \"figures\": {,}}"),
              HasSubstr("line 2"));
  EXPECT_THAT(messageOf(""), HasSubstr("unexpected end"));
  EXPECT_THAT(messageOf(std::string(100, '[')), HasSubstr("too deeply"));
}
