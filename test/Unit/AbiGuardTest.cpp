//===- AbiGuardTest.cpp - Build-ids are read, unaudited hosts refused -----===//

#include "Plugin/AbiGuard.h"

#include <gmock/gmock.h>

using testing::HasSubstr;
using testing::MatchesRegex;
namespace guard = kperfir::abi;

TEST(AbiGuard, ReadsTheBuildIdOfALoadedLibrary) {
  std::optional<std::string> found = guard::findBuildId("libc.so.6");
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(*found, MatchesRegex("[0-9a-f]{40}"));
}

TEST(AbiGuard, FindsNothingForALibraryThatIsNotLoaded) {
  EXPECT_EQ(guard::findBuildId("libabsent.so"), std::nullopt);
}

TEST(AbiGuard, AcceptsOnlyListedBuilds) {
  EXPECT_TRUE(guard::isAudited("47218ee08c2a8da7e08924daa17352fbce66759e"));
  EXPECT_FALSE(guard::isAudited("47218ee08c2a8da7e08924daa17352fbce66759f"));
  EXPECT_FALSE(guard::isAudited(""));
}

TEST(AbiGuard, SaysWhatWasFoundAndExpectedWhenTheHostIsUnknown) {
  // This test does not link libtriton, so there is no audited host.
  std::string text = guard::checkHost();
  EXPECT_THAT(text, HasSubstr("found build-id none"));
  EXPECT_THAT(text, HasSubstr("43074ed6f4e07da861b3e0db350b6b6639032e67"));
  EXPECT_THAT(text, HasSubstr("install triton==3.9.0"));
}
