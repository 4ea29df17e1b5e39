//===- ParserTest.cpp -----------------------------------------------------===//

#include "Simt/Ptx/Parser.h"

#include "Simt/Error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kperfir::simt;
using namespace kperfir::simt::ptx;
using testing::HasSubstr;

namespace {

constexpr const char *kHeader =
    ".version 8.8\n.target sm_80\n.address_size 64\n";

Module parseBody(const std::string &body) {
  return parse(std::string(kHeader) +
               ".visible .entry k(.param .u64 p) .reqntid 128\n{\n" + body +
               "\n}\n");
}

void expectError(const std::string &body, const std::string &message) {
  try {
    parseBody(body);
    ADD_FAILURE() << "parsed: " << body;
  } catch (const Error &error) {
    EXPECT_EQ(error.kind, ErrorKind::Parse);
    EXPECT_THAT(error.what(), HasSubstr(message));
    EXPECT_GT(error.site.ptxLine, 0u);
  }
}

TEST(Parser, ReadsTheHeader) {
  Module module = parse(".version 9.4 .target sm_90a, debug .address_size 64");
  EXPECT_EQ(module.version, "9.4");
  EXPECT_EQ(module.target, "sm_90a");
}

TEST(Parser, ReadsParametersAndAttributes) {
  Module module = parse(std::string(kHeader) +
                        ".entry k(.param .u64 .ptr .global .align 1 a, .param "
                        ".align 64 .b8 b[128])\n"
                        ".reqntid 64, 2, 1 .maxnreg 168 .minnctapersm 2 "
                        ".reqnctapercluster 2 { ret; }");
  const Function &entry = module.functions.at(0);
  ASSERT_EQ(entry.params.size(), 2u);
  EXPECT_EQ(module.variables[entry.params[0]].align,
            8u); // the pointee's alignment is not its own
  EXPECT_EQ(module.variables[entry.params[1]].bytes, 128u);
  EXPECT_EQ(module.variables[entry.params[1]].align, 64u);
  EXPECT_EQ(entry.reqntid, (std::array<uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(entry.minNctaPerSm, 2u);
  EXPECT_EQ(entry.clusterDim[0], 2u);
}

TEST(Parser, ResolvesRegisterRangesAndSingleRegisters) {
  Module module = parseBody(".reg .b32 %r<3>; .reg .b64 %SP; .reg .b32 a1<4>;\n"
                            "mov.b32 %r2, a12; mov.b64 %SP, 0;");
  const Function &entry = module.functions[0];
  EXPECT_EQ(entry.registers[entry.body[0].operands[0].id].name, "%r2");
  EXPECT_EQ(entry.registers[entry.body[0].operands[1].id].name, "a12");
}

TEST(Parser, RegisterBeyondItsRangeIsNoRegister) {
  Module module = parseBody(".reg .b32 %r<3>; mov.b32 %r2, %r3;");
  EXPECT_EQ(module.functions[0].body[0].operands[1].kind, OperandKind::Special);
}

TEST(Parser, KeepsScopesApart) {
  Module module = parseBody(R"(
    { .reg .pred complete; waitLoop: setp.eq.u32 complete, 0, 1; @!complete bra.uni waitLoop; }
    { .reg .pred complete; waitLoop: setp.eq.u32 complete, 0, 2; @!complete bra.uni waitLoop; }
  )");
  const Function &entry = module.functions[0];
  ASSERT_EQ(entry.body.size(), 4u);
  EXPECT_NE(entry.body[0].operands[0].id, entry.body[2].operands[0].id);
  EXPECT_EQ(entry.labels[entry.body[1].operands[0].id].statement, 0u);
  EXPECT_EQ(entry.labels[entry.body[3].operands[0].id].statement, 2u);
  EXPECT_TRUE(entry.body[1].guardNegated);
}

TEST(Parser, LetsAScopeJumpToALabelOutside) {
  Module module =
      parseBody("{ { bra done; } bra done; } bra done; ret; done: ret;");
  const Function &entry = module.functions[0];
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(entry.labels[entry.body[i].operands[0].id].statement, 4u);
}

TEST(Parser, InnerLabelHidesTheOuterOne) {
  Module module = parseBody("done: { bra done; ret; done: ret; } bra done;");
  const Function &entry = module.functions[0];
  EXPECT_EQ(entry.labels[entry.body[0].operands[0].id].statement, 2u);
  EXPECT_EQ(entry.labels[entry.body[3].operands[0].id].statement, 0u);
}

TEST(Parser, ReadsEveryKindOfOperand) {
  Module module = parseBody(R"(
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<2>;
    shfl.sync.bfly.b32 %r0|%p0, %r1, 16, /* clamp */ 31, // members
      -1;
    ld.global.v2.b32 {%r0, _}, [ %rd1 + -8 ];
    mov.b32 %r0, %tid.x;
    setp.eq.and.s32 %p0, %r0, 0f3F800000, !%p1;
  )");
  const auto &body = module.functions[0].body;
  EXPECT_EQ(body[0].operands[0].kind, OperandKind::Pair);
  EXPECT_EQ(body[0].operands[4].bits, ~uint64_t(0));
  EXPECT_EQ(body[0].text, "shfl.sync.bfly.b32 %r0|%p0, %r1, 16, 31, -1");
  EXPECT_EQ(body[1].operands[0].elements[1].kind, OperandKind::Sink);
  EXPECT_EQ(body[1].operands[1].offset, -8);
  EXPECT_EQ(body[2].operands[1].text, "%tid.x");
  EXPECT_EQ(body[3].operands[2].literal, Literal::Float32);
  EXPECT_TRUE(body[3].operands[3].negated);
}

TEST(Parser, ReadsInitialisedVariables) {
  Module module = parse(std::string(kHeader) + R"(
    .global .align 1 .b8 text[6] = {104, 105};
    .const .align 8 .u64 table[2] = {text, generic(text)+4};
    .global .f32 half = 0.5;
    .extern .shared .align 16 .b8 smem[];
    .shared .align 4 .u32 counter;)");
  const auto &variables = module.variables;
  EXPECT_EQ(variables[0].bytes, 6u);
  EXPECT_EQ(variables[0].initialiser, (std::vector<uint8_t>{104, 105}));
  ASSERT_EQ(variables[1].relocations.size(), 2u);
  EXPECT_EQ(variables[1].relocations[1].at, 8u);
  EXPECT_EQ(variables[1].relocations[1].addend, 4);
  EXPECT_EQ(variables[2].initialiser, (std::vector<uint8_t>{0, 0, 0, 0x3F}));
  EXPECT_TRUE(variables[3].isUnsized);
  EXPECT_EQ(variables[4].bytes, 4u);
}

TEST(Parser, KeepsSourceLocations) {
  Module module = parse(std::string(kHeader) + R"(.file 1 "a.py"
    .entry k() {
    .loc 1 10 3 // a.py:10:3
    bar.sync 0;
    // begin inline asm
    .loc 1 10 3
    bar.sync 1;
    .loc 1 11 3
    bar.sync 2;
    // end inline asm
    .loc 1 12 5, function_name $L__info, inlined_at 1 20 1
    bar.sync 3;
    .loc 1 0 5
    ret;
    })");
  const auto &body = module.functions[0].body;
  EXPECT_EQ(body[0].location.line, 10u);
  EXPECT_EQ(body[2].location.line, 10u); // LLVM counts lines inside the string
  EXPECT_EQ(body[3].location.line, 12u);
  EXPECT_EQ(body[4].location.line, 12u); // line 0: no better place is known
  EXPECT_EQ(module.files.at(1), "a.py");
}

TEST(Parser, SkipsDebugSections) {
  Module module = parse(std::string(kHeader) +
                        ".entry k() { ret; }\n.section .debug_abbrev\n{\n.b8 "
                        "1\n.b32 $L__end-$L__begin\n}\n"
                        ".section .debug_macinfo { }\n");
  EXPECT_EQ(module.functions.size(), 1u);
}

TEST(Parser, ReadsBranchTables) {
  Module module = parseBody(".reg .b32 %r<1>; ts: .branchtargets a, b; brx.idx "
                            "%r0, ts; a: ret; b: ret;");
  const Function &entry = module.functions[0];
  const Label &table = entry.labels[entry.body[0].operands[1].id];
  ASSERT_TRUE(table.isTable);
  ASSERT_EQ(table.branchTargets.size(), 2u);
  EXPECT_EQ(entry.labels[table.branchTargets[1]].statement, 2u);
}

TEST(Parser, ReadsCalls) {
  Module module = parse(std::string(kHeader) + R"(
    .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
    .func helper() { ret; }
    .entry k() {
      { .param .b64 p0; .param .b64 p1; .param .b32 ret0; call.uni (ret0), vprintf, (p0, p1); }
      call helper;
    })");
  const auto &body = module.functions[2].body;
  EXPECT_EQ(body[0].operands[1].text, "vprintf");
  EXPECT_EQ(body[0].operands[2].elements.size(), 2u);
  EXPECT_EQ(body[1].operands[1].text, "helper");
}

TEST(Parser, SaysWhatIsWrongAndWhere) {
  expectError("mov.b32 0", "expected ';'");
  expectError("bra nowhere;", "'nowhere' is not declared");
  expectError("a: a: ret;", "defined twice");
  expectError("@%p ret;", "guard '%p'");
  expectError(".reg .b32 %r<99999999999>;", "registers");
  expectError("ld.global.b32 [0;", "expected ']'");
  expectError(".nonsense;", "'.nonsense'");
}

TEST(Parser, SurvivesTruncationAnywhere) {
  std::string text = std::string(kHeader) + R"(
    .global .b8 s[2] = {1, 2};
    .entry k(.param .u64 p) .reqntid 32 {
      .reg .pred %p<2>; .reg .b32 %r<3>;
      .loc 1 2 3, function_name $L, inlined_at 1 2 3
      { .reg .pred q; x: @!q bra x; }
      shfl.sync.bfly.b32 %r0|%p1, %r1, 0x1f, 31, -1;
      call.uni (s), f, (s);
      ret;
    }
    .section .debug { .b8 1 })";
  for (size_t length = 0; length < text.size(); ++length) {
    try {
      parse(std::string_view(text).substr(0, length));
    } catch (const Error &) {
      continue;
    }
  }
}

} // namespace
