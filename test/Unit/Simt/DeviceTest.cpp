//===- DeviceTest.cpp - Whole launches, for the sanitizers ----------------===//
//
// What the device computes is tested through Python; these launches touch every
// part of the engine in a build that watches its memory.
//
//===----------------------------------------------------------------------===//

#include "Simt/Device.h"

#include "TestChip.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace kperfir::simt;
using testing::HasSubstr;

namespace {
std::string kernel(const std::string &body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".extern .shared .align 16 .b8 smem[];\n"
         ".visible .entry kernel(.param .u64 a0, .param .u64 a1)\n{\n"
         ".reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .f32 %f<16>;\n"
         ".reg .b64 %rd<16>;\n"
         "ld.param.u64 %rd0, [a0];\nld.param.u64 %rd1, [a1];\n"
         "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n" +
         body + "\nret;\n}\n";
}

/// Two arrays of words, and a device that knows them.
struct Lab {
  Device device;
  std::vector<uint32_t> input, output;

  Lab(size_t words, unsigned threads, uint64_t seed = 0)
      : device({.chip = test::chipText(), .threads = threads, .seed = seed}),
        input(words), output(words) {
    std::iota(input.begin(), input.end(), 1u);
    device.memory().map(reinterpret_cast<uint64_t>(input.data()), words * 4,
                        "input", false);
    device.memory().map(reinterpret_cast<uint64_t>(output.data()), words * 4,
                        "output", true);
  }

  LaunchResult launch(const std::string &body, uint32_t ctas, uint32_t threads,
                      uint32_t shared = 0) {
    LaunchRequest request;
    request.grid = {ctas, 1, 1};
    request.block = {threads, 1, 1};
    request.dynamicSharedBytes = shared;
    request.log = true;
    for (const auto *array : {&input, &output}) {
      auto address = reinterpret_cast<uint64_t>(array->data());
      request.params.emplace_back(reinterpret_cast<const char *>(&address), 8);
    }
    return device.launch(loadProgram(kernel(body)), request);
  }
};

// Thread t of CTA c owns word 128 c + t: %rd2 in the input, %rd3 in the output,
// %r3 in shared memory.
const char *const kAddresses = R"(
  mad.lo.u32 %r2, %r1, 128, %r0;
  mul.wide.u32 %rd4, %r2, 4;
  add.s64 %rd2, %rd0, %rd4;
  add.s64 %rd3, %rd1, %rd4;
  mov.u32 %r4, smem;
  shl.b32 %r5, %r0, 2;
  add.u32 %r3, %r4, %r5;
)";
} // namespace

TEST(Device, CopiesThroughSharedMemoryOnManySms) {
  constexpr uint32_t kCtas = 300, kThreads = 128;
  std::string body = std::string(kAddresses) + R"(
    cp.async.ca.shared.global [%r3], [%rd2], 4;
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    xor.b32 %r6, %r5, 508;
    add.u32 %r6, %r4, %r6;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%rd3], %r7;
  )";
  EventLog first;
  for (unsigned threads : {1u, 3u}) {
    Lab lab(kCtas * kThreads, threads);
    LaunchResult result = lab.launch(body, kCtas, kThreads, kThreads * 4);
    for (uint32_t cta = 0; cta < kCtas; ++cta)
      for (uint32_t thread = 0; thread < kThreads; ++thread)
        ASSERT_EQ(lab.output[cta * kThreads + thread],
                  lab.input[cta * kThreads + kThreads - 1 - thread]);
    if (threads == 1)
      first = result.log;
    EXPECT_EQ(result.log.issue, first.issue);
    EXPECT_EQ(result.log.complete, first.complete);
  }
}

TEST(Device, DivergesAtomicallyUnderAnySeed) {
  std::string body = std::string(kAddresses) + R"(
    and.b32 %r6, %r0, 7;
    mov.u32 %r7, 0;
  LOOP:
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p1, %r7, %r6;
    @%p1 bra LOOP;
    st.shared.u32 [%r3], %r7;
    atom.shared.add.u32 %r8, [%r3], 1;
    atom.global.add.u32 %r9, [%rd1], %r8;
    red.global.max.u32 [%rd1+4], %r7;
  )";
  for (uint64_t seed : {0u, 1u, 2u}) {
    Lab lab(50 * 128, 2, seed);
    lab.launch(body, 50, 128, 512);
    EXPECT_EQ(lab.output[0], 50u * 16 * (1 + 1 + 2 + 3 + 4 + 5 + 6 + 7));
    EXPECT_EQ(lab.output[1], 7u);
  }
}

TEST(Device, MultipliesMatricesFromSharedMemory) {
  std::string body = std::string(kAddresses) + R"(
    mov.b32 %r6, 0x3C003C00;
    mul.lo.u32 %r7, %r0, 16;
    add.u32 %r7, %r4, %r7;
    st.shared.v4.b32 [%r7], {%r6, %r6, %r6, %r6};
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%r7];
    mov.f32 %f1, 0f00000000;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5},
      {%r8, %r9, %r10, %r11}, {%r8, %r9}, {%f1, %f1, %f1, %f1};
    cvt.rzi.u32.f32 %r12, %f2;
    st.global.u32 [%rd3], %r12;
  )";
  Lab lab(128, 1);
  lab.launch(body, 1, 128, 128 * 16);
  EXPECT_THAT(lab.output, testing::Each(16u));
}

TEST(Device, StaysUsableAfterEveryKindOfError) {
  Lab lab(128, 2);
  struct Case {
    const char *body;
    ErrorKind kind;
  };
  const Case cases[] = {
      {"ld.global.u32 %r5, [%rd0+512];", ErrorKind::OutOfBounds},
      {"st.global.u32 [%rd0], %r0;", ErrorKind::OutOfBounds},
      {"ld.global.u32 %r5, [%rd0+2];", ErrorKind::Misaligned},
      {"mov.u32 %r5, smem; ld.shared.u32 %r6, [%r5];",
       ErrorKind::Uninitialised},
      {"mov.u32 %r5, smem; ld.shared.u32 %r6, [%r5+512];",
       ErrorKind::OutOfBounds},
      {"setp.lt.u32 %p1, %r0, 64; @%p1 bra L; bar.sync 1; L: bar.sync 2;",
       ErrorKind::Deadlock},
      {"trap;", ErrorKind::Trap},
  };
  for (const Case &c : cases) {
    try {
      lab.launch(c.body, 20, 128, 512);
      ADD_FAILURE() << "no error from " << c.body;
    } catch (const Error &error) {
      EXPECT_EQ(error.kind, c.kind) << error.what();
    }
  }
  lab.device.options().instructionLimit = 10000;
  EXPECT_THROW(lab.launch("L: bra L;", 2, 64), Error);
  lab.launch(std::string(kAddresses) + "st.global.u32 [%rd3], 7;", 1, 128);
  EXPECT_THAT(lab.output, testing::Each(7u));
}
