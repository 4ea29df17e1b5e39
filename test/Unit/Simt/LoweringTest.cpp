//===- LoweringTest.cpp - PTX text to a Program ---------------------------===//

#include "Simt/Error.h"
#include "Simt/Exec/Program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace kperfir::simt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr const char *kRegisters = R"(
  .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %rd<8>;
)";

std::shared_ptr<const Program> load(const std::string &body,
                                    const std::string &module = {}) {
  return loadProgram(".version 8.8\n.target sm_80\n.address_size 64\n" +
                     module +
                     "\n.visible .entry k(.param .u64 a, .param .u32 n)\n{" +
                     kRegisters + body + "\n}\n");
}

void expectError(ErrorKind kind, const std::string &body,
                 const std::string &message, const std::string &module = {}) {
  try {
    load(body, module);
    ADD_FAILURE() << "loaded: " << body;
  } catch (const Error &error) {
    EXPECT_EQ(error.kind, kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(message));
    EXPECT_THAT(error.what(), HasSubstr("kernel k"));
    EXPECT_GT(error.site.ptxLine, 0u);
  }
}

std::vector<Opcode> opcodes(const Program &program) {
  std::vector<Opcode> result;
  for (const MicroOp &op : program.ops)
    result.push_back(op.opcode);
  return result;
}

TEST(Lowering, LaysOutParameters) {
  auto program = load("ld.param.b64 %rd1, [a]; ld.param.b32 %r1, [n]; ret;");
  EXPECT_EQ(program->paramBytes, 12u);
  EXPECT_EQ(program->params[1].offset, 8u);
  EXPECT_EQ(program->params[0].type, "u64");
  EXPECT_EQ(program->ops[1].imm, 8);
}

TEST(Lowering, SharesEqualConstants) {
  auto program = load(
      "add.s32 %r1, %r2, 7; add.s32 %r3, %r1, 7; add.s64 %rd1, %rd2, 7; ret;");
  EXPECT_EQ(program->ops[0].src[1], program->ops[1].src[1]);
  EXPECT_NE(program->ops[0].src[1], program->ops[2].src[1]);
  EXPECT_GE(program->ops[0].src[1], kConstantBase);
  EXPECT_EQ(program->numConstantRows, 3u);
  const uint32_t *row =
      program->constants + (program->ops[2].src[1] - kConstantBase) * kWarpSize;
  EXPECT_EQ(row[2 * 31], 7u);
  EXPECT_EQ(row[2 * 31 + 1], 0u);
}

TEST(Lowering, PlacesSharedMemory) {
  auto program = load("mov.b32 %r1, dyn; mov.b32 %r2, b; ret;",
                      ".extern .shared .align 128 .b8 dyn[]; .shared .align 4 "
                      ".b8 c[6]; .shared .u64 b;");
  EXPECT_EQ(program->sharedBytes, 16u);
  EXPECT_EQ(program->dynamicSharedBegin, 128u);
  auto value = [&](unsigned pc) {
    return program
        ->constants[(program->ops[pc].src[0] - kConstantBase) * kWarpSize];
  };
  EXPECT_EQ(value(0), 128u);
  EXPECT_EQ(value(1), 8u);
}

TEST(Lowering, InitialisesGlobals) {
  auto program = load("mov.u64 %rd1, t; ret;",
                      ".global .b8 s[3] = {1, 2}; .const .u64 t[2] = {s, 5};");
  ASSERT_EQ(program->globals.size(), 2u);
  EXPECT_EQ(program->globals[0].data[1], 2);
  EXPECT_EQ(program->globals[0].data[2], 0);
  uint64_t pointer;
  std::copy_n(program->globals[1].data, 8,
              reinterpret_cast<uint8_t *>(&pointer));
  EXPECT_EQ(pointer, reinterpret_cast<uint64_t>(program->globals[0].data));
  EXPECT_FALSE(program->globals[1].writable);
}

TEST(Lowering, BranchesMeetAtThePostDominator) {
  auto program = load(R"(
    @%p1 bra then;
    mov.u32 %r1, 1;
    bra.uni done;
  then:
    mov.u32 %r1, 2;
  done:
    add.u32 %r2, %r1, 1;
    ret;)");
  EXPECT_EQ(program->ops[0].imm, 3);
  EXPECT_EQ(program->ops[0].reconvergence(), 4u);
  EXPECT_FALSE(program->ops[0].has(kUniform));
  EXPECT_TRUE(program->ops[2].has(kUniform));
}

TEST(Lowering, EarlyReturnsAndTrapsDoNotHoldABranchOpen) {
  auto program = load(R"(
    @%p1 bra go;
    @%p2 bra bad;
    ret;
  bad:
    trap;
  go:
    add.u32 %r2, %r1, 1;
    ret;)");
  EXPECT_EQ(program->ops[0].reconvergence(), 4u);
}

TEST(Lowering, LoopMeetsBehindIt) {
  auto program = load(R"(
    mov.u32 %r1, 0;
  loop:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 9;
    @%p1 bra loop;
    ret;)");
  EXPECT_EQ(program->ops[3].imm, 1);
  EXPECT_EQ(program->ops[3].reconvergence(), 4u);
  ASSERT_EQ(program->blocks.size(), 3u);
  EXPECT_THAT(program->blocks[1].successors, ElementsAre(1, 2));
}

TEST(Lowering, ReadsBranchTables) {
  auto program =
      load("ts: .branchtargets a, b; brx.idx %r0, ts; a: ret; b: trap;");
  EXPECT_EQ(program->ops[0].width, 2);
  EXPECT_EQ(program->branchTargets[program->ops[0].imm + 1], 2u);
}

TEST(Lowering, DestinationsAvoidSourcesOfOtherWidth) {
  auto program = load(R"(
    ld.param.b32 %r1, [n];
    cvt.u64.u32 %rd1, %r1;
    cvt.u32.u64 %r2, %rd1;
    add.u32 %r3, %r2, 1;
    st.shared.b32 [%r3], %r3;
    ret;)");
  const MicroOp &widen = program->ops[1];
  EXPECT_TRUE(widen.dst[0] > widen.src[0] || widen.dst[0] + 1 < widen.src[0]);
  const MicroOp &add = program->ops[3];
  EXPECT_EQ(add.dst[0], add.src[0]); // equal width, dead afterwards
}

TEST(Lowering, GuardedWriteKeepsTheOldValueAlive) {
  auto program = load(R"(
    ld.param.b32 %r1, [n];
    mov.u32 %r2, 5;
    mov.u32 %r3, 6;
    @%p1 mov.u32 %r2, %r1;
    st.shared.b32 [%r3], %r2;
    ret;)");
  EXPECT_EQ(program->ops[1].dst[0], program->ops[3].dst[0]);
  EXPECT_NE(program->ops[2].dst[0], program->ops[1].dst[0]);
}

TEST(Lowering, ValueLivesThroughALoop) {
  auto program = load(R"(
    ld.param.b32 %r1, [n];
    mov.u32 %r2, 0;
  loop:
    mov.u32 %r5, 3;
    add.u32 %r6, %r5, 1;
    add.u32 %r2, %r2, %r6;
    setp.lt.u32 %p1, %r2, 9;
    @%p1 bra loop;
    st.shared.b32 [%r1], %r2;
    ret;)");
  RowIndex kept = program->ops[0].dst[0];
  for (unsigned pc = 1; pc < 5; ++pc)
    EXPECT_NE(program->ops[pc].dst[0], kept) << pc;
}

TEST(Lowering, ReusesRowsOfDeadRegisters) {
  std::string body = "ld.param.b32 %r0, [n];";
  for (int i = 1; i < 40; ++i)
    body += "add.u32 %r" + std::to_string(i) + ", %r" + std::to_string(i - 1) +
            ", 1;";
  auto program = load(body + "st.shared.b32 [%r39], %r39; ret;");
  EXPECT_EQ(program->numRows, 1u);
}

TEST(Lowering, ScoreboardNamesRowsAndPredicates) {
  auto program = load(R"(
    ld.param.b64 %rd1, [a];
    setp.eq.u64 %p1, %rd1, 0;
    @%p1 st.global.b64 [%rd1], %rd1;
    ret;)");
  const Program &p = *program;
  EXPECT_EQ(p.writes(p.ops[0]).size(), 2u);
  EXPECT_THAT(p.reads(p.ops[1]), ElementsAre(p.ops[0].dst[0]));
  EXPECT_THAT(p.writes(p.ops[1]), ElementsAre(p.numRows + p.ops[1].dst[0]));
  EXPECT_THAT(p.reads(p.ops[2]),
              ElementsAre(p.ops[0].dst[0], p.numRows + p.ops[2].guard));
  EXPECT_EQ(p.numScoreboardSlots, p.numRows + p.numPredicates);
}

TEST(Lowering, InlinesCalls) {
  auto program = load(R"(
    { .param .b32 p0; .param .b32 r0;
      st.param.b32 [p0], 4; call.uni (r0), twice, (p0); ld.param.b32 %r1, [r0]; }
    { .param .b32 p0; .param .b32 r0;
      st.param.b32 [p0], %r1; call.uni (r0), twice, (p0); ld.param.b32 %r2, [r0]; }
    st.shared.b32 [%r2], %r1; ret;)",
                      R"(.func (.param .b32 out) twice(.param .b32 in) {
      .reg .b32 %r<3>; .reg .pred %p<2>;
      ld.param.b32 %r1, [in];
      setp.eq.u32 %p1, %r1, 0;
      @%p1 ret;
      add.u32 %r2, %r1, %r1;
      st.param.b32 [out], %r2;
      ret;
    })");
  std::vector<Opcode> found = opcodes(*program);
  EXPECT_EQ(std::count(found.begin(), found.end(), Opcode::Add), 2);
  EXPECT_EQ(std::count(found.begin(), found.end(), Opcode::Ret), 1);
  EXPECT_EQ(std::count(found.begin(), found.end(), Opcode::Bra), 2);
}

TEST(Lowering, RejectsRecursion) {
  expectError(ErrorKind::Unsupported, "call f; ret;", "recursive call of 'f'",
              ".func f() { call f; ret; }");
}

TEST(Lowering, LowersPrintfAndAssert) {
  auto program = load(
      R"(
    { .param .b64 p0; .param .b64 p1; .param .b32 r0; st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2;
      call.uni (r0), vprintf, (p0, p1); ld.param.b32 %r1, [r0]; }
    ret;)",
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);");
  std::vector<Opcode> found = opcodes(*program);
  EXPECT_EQ(std::count(found.begin(), found.end(), Opcode::Printf), 1);
}

TEST(Lowering, DropsUnreachableCode) {
  auto program = load("bra end; wgmma.fence.sync.aligned; end: ret;");
  EXPECT_THAT(opcodes(*program), ElementsAre(Opcode::Bra, Opcode::Ret));
}

TEST(Lowering, NamesWhatIsNotSupported) {
  expectError(ErrorKind::Unsupported, "tcgen05.shift.cta_group::1.down; ret;",
              "'tcgen05.shift.cta_group::1.down'");
  expectError(ErrorKind::Unsupported, "mov.u32 %r1, %pm0; ret;", "%pm0");
  expectError(ErrorKind::Unsupported, "tcgen05.wait::ld.sync.aligned; ret;",
              "tcgen05.wait::ld.sync.aligned");
  expectError(ErrorKind::Unsupported, "ld.global.strange.b32 %r1, [%rd1]; ret;",
              "strange");
  expectError(ErrorKind::Unsupported, "call (p), malloc, (p); ret;", "malloc",
              ".global .b64 p; .extern .func malloc();");
}

TEST(Lowering, ChecksOperands) {
  expectError(ErrorKind::Parse, "add.s32 %r1, %r2; ret;", "operands");
  expectError(ErrorKind::Parse, "add.s32 %rd1, %r2, %r3; ret;",
              "destination '%rd1' is .b64");
  expectError(ErrorKind::Parse, "add.s64 %rd1, %r2, %rd3; ret;",
              "'%r2' is .b32");
  expectError(ErrorKind::Parse, "selp.b32 %r1, %r2, %r3, %r4; ret;",
              "expected a predicate");
  expectError(ErrorKind::Parse, "mov.b32 5, %r1; ret;", "destination");
  expectError(ErrorKind::Parse, "mov.b32 %r1, %q; ret;",
              "'%q' is not declared");
  expectError(ErrorKind::Parse, "ld.global.v2.b32 {%r1}, [%rd1]; ret;",
              "destinations");
  expectError(ErrorKind::Parse, "ld.param.b64 %rd1, [n]; ret;",
              "outside parameter");
  expectError(ErrorKind::Parse,
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2}, "
              "{%r1,%r2,%r3,%r4}, "
              "{%r1,%r2}, {%r1,%r2,%r3,%r4}; ret;",
              "matrix D has 2 registers, expected 4");
}

TEST(Lowering, GivesEveryOpItsInstruction) {
  auto program = load("add.u32 %r1, %tid.x, 1; ret;");
  ASSERT_EQ(program->ops.size(), 3u);
  EXPECT_TRUE(program->ops[0].has(kSynthetic));
  EXPECT_EQ(program->instructionOf[0], program->instructionOf[1]);
  EXPECT_EQ(program->instructionAt(1).text, "add.u32 %r1, %tid.x, 1");
}

TEST(Lowering, MarksClockReads) {
  auto program = load("mov.u32 %r1, %clock; mov.u64 %rd1, %globaltimer; "
                      "mov.u32 %r2, %smid; ret;");
  EXPECT_TRUE(program->ops[0].has(kReadsClock));
  EXPECT_TRUE(program->ops[1].has(kReadsClock));
  EXPECT_FALSE(program->ops[2].has(kReadsClock));
}

TEST(Lowering, SameTextGivesTheSameProgram) {
  std::string body = "ld.param.b64 %rd1, [a]; ld.global.v2.b32 {%r1, %r2}, "
                     "[%rd1+8]; add.u32 %r3, %r1, %r2; ret;";
  auto a = load(body), b = load(body);
  EXPECT_EQ(a->scoreboard, b->scoreboard);
  EXPECT_EQ(a->pool, b->pool);
}

// --- registers taken apart only to be joined again ---------------------------

constexpr const char *kHalvesInALoop = R"(
    mov.b32 {%h1, %h2}, %r1;
  loop:
    mov.b32 %r2, {%h1, %h2};
    add.u32 %r3, %r2, %r3;
    ld.shared.u32 %r4, [%r5];
    mov.b32 {%h1, %h2}, %r4;
    @%p1 bra loop;
    ret;)";

TEST(JoinHalves, WholeStaysInOneRegisterOverALoop) {
  auto program = load(kHalvesInALoop);
  EXPECT_THAT(opcodes(*program),
              ElementsAre(Opcode::Mov, Opcode::Add, Opcode::Ld, Opcode::Bra,
                          Opcode::Ret));
  EXPECT_EQ(program->ops[1].src[0], program->ops[0].dst[0]);
  EXPECT_EQ(program->ops[2].dst[0], program->ops[0].dst[0]);
  EXPECT_EQ(program->ops[3].imm, 1);
}

TEST(JoinHalves, BothSizes) {
  auto program = load("mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd2, {%r1, %r2}; "
                      "add.u64 %rd3, %rd2, %rd1; ret;");
  EXPECT_THAT(opcodes(*program), ElementsAre(Opcode::Add, Opcode::Ret));
  EXPECT_EQ(program->ops[0].src[0], program->ops[0].src[1]);
}

TEST(JoinHalves, LeavesHalvesThatAreUsedOtherwise) {
  std::vector<std::string> others = {
      "mov.b32 %r2, {%h2, %h1};",                        // swapped
      "mov.b32 %r2, {%h1, %h2}; add.u16 %h3, %h1, %h2;", // read
      "mov.b32 %r2, {%h1, %h3};",                        // with another
      "mov.u16 %h1, 7; mov.b32 %r2, {%h1, %h2};",        // written
      "@%p1 mov.b32 %r2, {%h1, %h2};",                   // guarded
  };
  for (const std::string &other : others) {
    auto program = load("mov.b32 {%h1, %h2}, %r1; " + other + " ret;");
    EXPECT_EQ(program->ops[0].opcode, Opcode::Unpack) << other;
  }
}

TEST(JoinHalves, KeepsAMoveWhoseValueMustOutliveItsSource) {
  // The second unpack replaces the whole while %r2 is still to be read.
  auto program = load(R"(
    mov.b32 {%h1, %h2}, %r1;
    mov.b32 %r2, {%h1, %h2};
    mov.b32 {%h1, %h2}, %r3;
    mov.b32 %r4, {%h1, %h2};
    add.u32 %r5, %r2, %r4;
    add.u32 %r6, %r1, %r3;
    ret;)");
  auto found = opcodes(*program);
  EXPECT_EQ(std::count(found.begin(), found.end(), Opcode::Mov), 3);
}

} // namespace
