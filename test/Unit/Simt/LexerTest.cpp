//===- LexerTest.cpp ------------------------------------------------------===//

#include "Simt/Ptx/Lexer.h"

#include "Simt/Error.h"

#include <gtest/gtest.h>

using namespace kperfir::simt;
using namespace kperfir::simt::ptx;

namespace {

Token only(std::string_view text) {
  std::vector<Token> tokens = tokenize(text);
  EXPECT_EQ(tokens.size(), 2u) << text;
  return tokens.front();
}

TEST(Lexer, KeepsDotsAndDoubleColonsInWords) {
  EXPECT_EQ(only("ld.global.L1::evict_last.v4.b32").text,
            "ld.global.L1::evict_last.v4.b32");
  EXPECT_EQ(only("%tid.x").text, "%tid.x");
  EXPECT_EQ(only("$L__BB0_3").text, "$L__BB0_3");
}

TEST(Lexer, EndsALabelAtItsColon) {
  std::vector<Token> tokens = tokenize("loop: bra loop;");
  EXPECT_EQ(tokens[0].text, "loop");
  EXPECT_TRUE(tokens[1].is(':'));
}

TEST(Lexer, ReadsIntegersOfEveryBase) {
  EXPECT_EQ(only("1073741824").bits, 1073741824u);
  EXPECT_EQ(only("0x10").bits, 16u);
  EXPECT_EQ(only("0b101").bits, 5u);
  EXPECT_EQ(only("017").bits, 15u);
  EXPECT_EQ(only("7U").bits, 7u);
  EXPECT_EQ(only("18446744073709551615").bits, ~uint64_t(0));
}

TEST(Lexer, ReadsFloatsAsBits) {
  EXPECT_EQ(only("0f3F800000").bits, 0x3F800000u);
  EXPECT_EQ(only("0f3F800000").kind, TokenKind::Float32);
  EXPECT_EQ(only("0d3FF0000000000000").bits, 0x3FF0000000000000u);
  EXPECT_EQ(only("1.5").bits, 0x3FF8000000000000u);
  EXPECT_EQ(only("1e3").bits, 0x408F400000000000u);
}

TEST(Lexer, SkipsCommentsAndCountsLines) {
  std::vector<Token> tokens = tokenize("a // b\n/* c\nd */ e");
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[1].text, "e");
  EXPECT_EQ(tokens[1].line, 3u);
}

TEST(Lexer, MarksInlineAssembly) {
  std::vector<Token> tokens =
      tokenize("a\n// begin inline asm\nb\n// end inline asm\nc");
  EXPECT_FALSE(tokens[0].inlineAsm);
  EXPECT_TRUE(tokens[1].inlineAsm);
  EXPECT_FALSE(tokens[2].inlineAsm);
}

TEST(Lexer, RejectsWhatIsNotPtx) {
  for (const char *text : {"#", "0x", "0f12", "\"open", "/* open", "12abc"}) {
    try {
      tokenize(text);
      ADD_FAILURE() << text;
    } catch (const Error &error) {
      EXPECT_EQ(error.kind, ErrorKind::Parse) << text;
      EXPECT_EQ(error.site.ptxLine, 1u) << text;
    }
  }
}

} // namespace
