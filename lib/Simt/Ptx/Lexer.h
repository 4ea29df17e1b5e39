//===- Lexer.h - PTX text to tokens ---------------------------------------===//
//
// Owns the spelling of PTX: words, numbers, strings, comments. Knows nothing of
// instructions or directives.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_PTX_LEXER_H
#define KPERFIR_SIMT_PTX_LEXER_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kperfir::simt::ptx {

enum class TokenKind : uint8_t {
  Word, // identifier, register, directive or mnemonic, dots and `::` included
  Integer, // value in bits
  Float32, // 0f........: bit pattern in bits
  Float64, // 0d................ or decimal: bit pattern in bits
  String,  // text without the quotes
  Punct,   // one character
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  /// Between LLVM's "begin inline asm" and "end inline asm" comments.
  bool inlineAsm = false;
  uint32_t line = 0;
  std::string_view text; // into the source
  uint64_t bits = 0;

  bool is(char punct) const {
    return kind == TokenKind::Punct && text[0] == punct;
  }
  bool isWord(std::string_view word) const {
    return kind == TokenKind::Word && text == word;
  }
};

/// All tokens of `source`, which must outlive them; the last one is End.
/// Throws simt::Error (Parse) on a character or literal that is not PTX.
std::vector<Token> tokenize(std::string_view source);

} // namespace kperfir::simt::ptx

#endif // KPERFIR_SIMT_PTX_LEXER_H
