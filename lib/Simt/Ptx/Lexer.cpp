//===- Lexer.cpp - PTX text to tokens -------------------------------------===//

#include "Simt/Ptx/Lexer.h"

#include "Simt/Error.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace kperfir::simt::ptx {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%' || c == '.';
}
bool isWordPart(char c) { return isWordStart(c) || isDigit(c); }
int hexValue(char c) {
  if (isDigit(c))
    return c - '0';
  char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

class Lexer {
public:
  explicit Lexer(std::string_view source) : source(source) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    tokens.reserve(source.size() / 5);
    for (;;) {
      skipBlanks();
      if (pos >= source.size())
        break;
      tokens.push_back(next());
    }
    Token end;
    end.line = line;
    tokens.push_back(end);
    return tokens;
  }

private:
  char at(size_t offset = 0) const {
    return pos + offset < source.size() ? source[pos + offset] : '\0';
  }

  [[noreturn]] void fail(const std::string &message) const {
    ErrorSite site;
    site.ptxLine = line;
    throw Error(ErrorKind::Parse, message, site);
  }

  void skipBlanks() {
    for (; pos < source.size(); ++pos) {
      char c = source[pos];
      if (c == '\n')
        ++line;
      else if (c == '/' && at(1) == '/')
        skipLineComment();
      else if (c == '/' && at(1) == '*')
        skipBlockComment();
      else if (c != ' ' && c != '\t' && c != '\r' && c != '\f' && c != '\v' &&
               c != '\0')
        return;
    }
  }

  /// Leaves `pos` before the newline.
  void skipLineComment() {
    size_t end = std::min(source.find('\n', pos), source.size());
    std::string_view comment = source.substr(pos, end - pos);
    if (comment.find("begin inline asm") != std::string_view::npos)
      inlineAsm = true;
    else if (comment.find("end inline asm") != std::string_view::npos)
      inlineAsm = false;
    pos = end - 1;
  }

  /// Leaves `pos` on the last character of the comment.
  void skipBlockComment() {
    size_t end = source.find("*/", pos + 2);
    if (end == std::string_view::npos)
      fail("comment opened with /* is never closed");
    for (size_t i = pos; i < end; ++i)
      line += source[i] == '\n';
    pos = end + 1;
  }

  Token next() {
    Token token;
    token.line = line;
    token.inlineAsm = inlineAsm;
    size_t begin = pos;
    char c = at();
    if (isDigit(c)) {
      number(token);
    } else if (isWordStart(c)) {
      token.kind = TokenKind::Word;
      word();
    } else if (c == '"') {
      string(token);
      return token;
    } else {
      if (std::string_view("{}[]()<>,;:=+-*/|&^~!@?").find(c) ==
          std::string_view::npos)
        fail(std::string("character '") + c + "' does not belong in PTX");
      token.kind = TokenKind::Punct;
      ++pos;
    }
    token.text = source.substr(begin, pos - begin);
    return token;
  }

  /// `a::b` is one word, `a:` is a word and a colon.
  void word() {
    while (isWordPart(at()) ||
           (at() == ':' && at(1) == ':' && isWordPart(at(2))))
      pos += at() == ':' ? 2 : 1;
  }

  void string(Token &token) {
    size_t begin = ++pos;
    while (at() != '"') {
      if (pos >= source.size() || at() == '\n')
        fail("string is not closed on its line");
      pos += at() == '\\' ? 2 : 1;
    }
    token.kind = TokenKind::String;
    token.text = source.substr(begin, pos - begin);
    ++pos;
  }

  void number(Token &token) {
    if (at() == '0' && (at(1) == 'f' || at(1) == 'F') && hexValue(at(2)) >= 0)
      return hexFloat(token, TokenKind::Float32, 8);
    if (at() == '0' && (at(1) == 'd' || at(1) == 'D') && hexValue(at(2)) >= 0)
      return hexFloat(token, TokenKind::Float64, 16);
    if (isDecimalFloat())
      return decimalFloat(token);
    token.kind = TokenKind::Integer;
    unsigned base = 10;
    if (at() == '0' && (at(1) | 0x20) == 'x')
      base = 16, pos += 2;
    else if (at() == '0' && (at(1) | 0x20) == 'b')
      base = 2, pos += 2;
    else if (at() == '0' && isDigit(at(1)))
      base = 8;
    size_t digits = 0;
    for (; hexValue(at()) >= 0 && hexValue(at()) < static_cast<int>(base);
         ++pos, ++digits)
      token.bits = token.bits * base + static_cast<unsigned>(hexValue(at()));
    if (digits == 0)
      fail("integer literal without digits");
    if (at() == 'U')
      ++pos;
    if (isWordStart(at()) && at() != '.')
      fail("integer literal is followed by a letter");
  }

  void hexFloat(Token &token, TokenKind kind, int digits) {
    token.kind = kind;
    pos += 2;
    for (int i = 0; i < digits; ++i, ++pos) {
      if (hexValue(at()) < 0)
        fail("hexadecimal float literal needs " + std::to_string(digits) +
             " digits");
      token.bits = token.bits << 4 | static_cast<unsigned>(hexValue(at()));
    }
  }

  bool isDecimalFloat() const {
    size_t i = 0;
    while (isDigit(at(i)))
      ++i;
    if (at(i) == '.')
      return true;
    return (at(i) | 0x20) == 'e' &&
           (isDigit(at(i + 1)) || at(i + 1) == '-' || at(i + 1) == '+');
  }

  void decimalFloat(Token &token) {
    double value = 0;
    auto [end, error] = std::from_chars(source.data() + pos,
                                        source.data() + source.size(), value);
    if (error != std::errc())
      fail("decimal float literal is out of range");
    token.kind = TokenKind::Float64;
    token.bits = std::bit_cast<uint64_t>(value);
    pos = static_cast<size_t>(end - source.data());
  }

  std::string_view source;
  size_t pos = 0;
  uint32_t line = 1;
  bool inlineAsm = false;
};

} // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

} // namespace kperfir::simt::ptx
