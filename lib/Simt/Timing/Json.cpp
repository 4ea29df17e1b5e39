//===- Json.cpp -----------------------------------------------------------===//

#include "Simt/Timing/Json.h"

#include <cctype>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace kperfir::simt::json {

namespace {
class Parser {
public:
  explicit Parser(const std::string &text) : text(text) {}

  Value document() {
    Value value = parseValue(0);
    skipSpace();
    if (position != text.size())
      fail("text after the end of the value");
    return value;
  }

private:
  static constexpr unsigned kMaxDepth = 32;

  [[noreturn]] void fail(const std::string &what) const {
    size_t line = 1;
    for (size_t i = 0; i < position && i < text.size(); ++i)
      line += text[i] == '\n';
    throw std::invalid_argument("JSON line " + std::to_string(line) + ": " +
                                what);
  }

  void skipSpace() {
    while (position < text.size() &&
           std::isspace(static_cast<unsigned char>(text[position])))
      ++position;
  }

  char peek() {
    skipSpace();
    if (position == text.size())
      fail("unexpected end");
    return text[position];
  }

  void expect(char wanted) {
    if (peek() != wanted)
      fail(std::string("expected '") + wanted + "', found '" + text[position] +
           "'");
    ++position;
  }

  bool accept(char wanted) {
    if (peek() != wanted)
      return false;
    ++position;
    return true;
  }

  Value parseValue(unsigned depth) {
    if (depth > kMaxDepth)
      fail("nested too deeply");
    switch (peek()) {
    case '{':
      return parseObject(depth);
    case '[':
      return parseArray(depth);
    case '"': {
      Value value;
      value.kind = Value::Kind::String;
      value.string = parseString();
      return value;
    }
    case 't':
    case 'f':
    case 'n':
      return parseWord();
    default:
      return parseNumber();
    }
  }

  Value parseObject(unsigned depth) {
    Value value;
    value.kind = Value::Kind::Object;
    expect('{');
    if (accept('}'))
      return value;
    do {
      if (peek() != '"')
        fail("expected a member name");
      std::string key = parseString();
      if (value.find(key))
        fail("duplicate member \"" + key + "\"");
      expect(':');
      value.object.push_back({std::move(key), parseValue(depth + 1)});
    } while (accept(','));
    expect('}');
    return value;
  }

  Value parseArray(unsigned depth) {
    Value value;
    value.kind = Value::Kind::Array;
    expect('[');
    if (accept(']'))
      return value;
    do
      value.array.push_back(parseValue(depth + 1));
    while (accept(','));
    expect(']');
    return value;
  }

  std::string parseString() {
    expect('"');
    std::string result;
    while (position < text.size() && text[position] != '"') {
      char c = text[position++];
      if (c != '\\') {
        result += c;
        continue;
      }
      if (position == text.size())
        break;
      c = text[position++];
      switch (c) {
      case 'n':
        result += '\n';
        break;
      case 't':
        result += '\t';
        break;
      case '"':
      case '\\':
      case '/':
        result += c;
        break;
      default:
        fail("escape is not supported here");
      }
    }
    if (position == text.size())
      fail("unterminated string");
    ++position;
    return result;
  }

  Value parseWord() {
    Value value;
    for (const char *word : {"true", "false", "null"}) {
      if (text.compare(position, std::char_traits<char>::length(word), word) !=
          0)
        continue;
      position += std::char_traits<char>::length(word);
      value.kind = *word == 'n' ? Value::Kind::Null : Value::Kind::Bool;
      value.boolean = *word == 't';
      return value;
    }
    fail("unknown word");
  }

  Value parseNumber() {
    const char *begin = text.c_str() + position;
    char *end = nullptr;
    Value value;
    value.kind = Value::Kind::Number;
    value.number = std::strtod(begin, &end);
    if (end == begin)
      fail("expected a value");
    position += static_cast<size_t>(end - begin);
    return value;
  }

  const std::string &text;
  size_t position = 0;
};
} // namespace

const Value *Value::find(const std::string &key) const {
  for (const Member &member : object)
    if (member.name == key)
      return &member.value;
  return nullptr;
}

Value parse(const std::string &text) { return Parser(text).document(); }

} // namespace kperfir::simt::json
