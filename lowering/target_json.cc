// Targets as JSON files. The JSON is nlohmann's; since its documents drop places and repeated keys,
// its events are gathered into a small tree that has both.
#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/text_places.h"
#include "lowering/target.h"

namespace mulgrad {
namespace {

enum class Kind : std::uint8_t { object, list, string, number, boolean, null };

std::string_view to_string(Kind kind) {
  constexpr std::string_view kNames[] = {"an object", "a list",        "a string",
                                         "a number",  "true or false", "null"};
  return kNames[static_cast<int>(kind)];
}

// A JSON value with its place.
struct Json {
  struct Key {
    std::string text;
    std::size_t offset;
  };
  Kind kind = Kind::null;
  std::size_t offset = 0;
  std::string text;         // of a string
  std::vector<Key> keys;    // of an object
  std::vector<Json> items;  // of a list; of an object, the values
};

// Where things are in the file, for errors.
class Places {
 public:
  Places(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  std::string_view text() const { return text_; }
  [[noreturn]] void fail(Category category, std::size_t offset, const std::string& message) const {
    throw Error(category, message, {},
                std::string(file_) + ":" + place_in(text_, std::min(offset, text_.size())));
  }

 private:
  std::string_view text_;
  std::string_view file_;
};

// Reads characters and counts them where the count survives copies.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* count_;
};

// Takes the parser's events. An event comes when its token has just been read, so the token begins
// where the one before ended, less what stands between tokens.
class TreeBuilder {
 public:
  explicit TreeBuilder(const Places& places) : places_(places) {}

  Json build() {
    const char* const begin = places_.text().data();
    const char* const end = begin + places_.text().size();
    nlohmann::json::sax_parse(CountingIterator(begin, &read_), CountingIterator(end, &read_), this);
    return std::move(root_);
  }

  bool null() { return leaf(Kind::null); }
  bool boolean(bool) { return leaf(Kind::boolean); }
  bool number_integer(std::int64_t) { return number(); }
  bool number_unsigned(std::uint64_t) { return number(); }
  bool number_float(double, const std::string&) { return number(); }
  bool binary(nlohmann::json::binary_t&) { return leaf(Kind::null); }  // no token of JSON
  bool string(std::string& text) {
    add(Kind::string).text = std::move(text);
    return true;
  }
  bool start_object(std::size_t) { return open(Kind::object); }
  bool start_array(std::size_t) { return open(Kind::list); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& text) {
    const std::size_t offset = next_token();
    std::vector<Json::Key>& keys = open_.back()->keys;
    const auto same = [&](const Json::Key& key) { return key.text == text; };
    if (std::any_of(keys.begin(), keys.end(), same)) {
      places_.fail(Category::parse_error, offset, "found the key \"" + text + "\" twice");
    }
    keys.push_back({std::move(text), offset});
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& why) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    std::string_view text = why.what();
    for (const std::string_view before : {"] ", "syntax error "}) {
      const std::size_t found = text.find(before);
      if (found != std::string_view::npos) text.remove_prefix(found + before.size());
    }
    places_.fail(Category::parse_error, position == 0 ? 0 : position - 1,
                 "malformed JSON: " + std::string(text));
  }

 private:
  // A description is an object of objects of objects of lists of strings.
  static constexpr std::size_t kMaxDepth = 4;

  std::size_t next_token() {
    const std::size_t start = places_.text().find_first_not_of(" \t\r\n,:", end_);
    end_ = read_;
    return start;
  }
  Json& add(Kind kind) {
    Json& value = open_.empty() ? root_ : open_.back()->items.emplace_back();
    value.kind = kind;
    value.offset = next_token();
    return value;
  }
  bool leaf(Kind kind) {
    add(kind);
    return true;
  }
  // A number ends where another character is read.
  bool number() {
    add(Kind::number);
    --end_;
    return true;
  }
  bool open(Kind kind) {
    Json& value = add(kind);
    if (open_.size() == kMaxDepth) {
      places_.fail(Category::parse_error, value.offset,
                   "found " + std::string(to_string(kind)) + " at depth " +
                       std::to_string(kMaxDepth + 1) + ", expected no more than " +
                       std::to_string(kMaxDepth));
    }
    open_.push_back(&value);  // the items of its parent do not move before it is closed
    return true;
  }
  bool close() {
    next_token();
    open_.pop_back();
    return true;
  }

  const Places& places_;
  std::size_t read_ = 0;  // characters, by the parser
  std::size_t end_ = 0;   // of the token before
  std::vector<Json*> open_;
  Json root_;
};

// "exponential" for stablehlo.exponential. Constants of equal elements have the text name of
// others.
std::string json_name(const OpInfo& op) {
  if (op.kind == OpKind::Fill) return "fill";
  return std::string(op.text_name.substr(op.text_name.find('.') + 1));
}

// What the rows of a description may say, checked word by word.
class DescriptionReader {
 public:
  explicit DescriptionReader(const Places& places) : places_(places) {}

  const Json& expect(const Json& value, Kind kind, const std::string& what) const {
    if (value.kind != kind) {
      wrong_syntax(value.offset, "found " + std::string(to_string(value.kind)) + " for " + what +
                                     ", expected " + std::string(to_string(kind)));
    }
    return value;
  }

  // The value of a key, or null.
  static const Json* find(const Json& object, std::string_view key) {
    for (std::size_t i = 0; i < object.keys.size(); ++i) {
      if (object.keys[i].text == key) return &object.items[i];
    }
    return nullptr;
  }

  void expect_keys(const Json& object, std::initializer_list<std::string_view> known,
                   const std::string& what) const {
    for (const Json::Key& key : object.keys) {
      if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
      std::string names;
      for (const std::string_view name : known) {
        names += (names.empty() ? "" : ", ") + std::string(name);
      }
      wrong(key.offset,
            "found the key \"" + key.text + "\" in " + what + ", expected one of " + names);
    }
  }

  const std::string& name(const Json& root) const {
    const Json* value = find(root, "name");
    if (value == nullptr) {
      wrong(root.offset, "found no \"name\", expected the name of the target");
    }
    const std::string& name = expect(*value, Kind::string, "\"name\"").text;
    const auto is_control = [](unsigned char c) { return c < ' '; };
    if (name.empty() || std::any_of(name.begin(), name.end(), is_control)) {
      wrong(value->offset, "found an empty name or one with control characters");
    }
    return name;
  }

  std::optional<Target> base(const Json& root) const {
    const Json* value = find(root, "base");
    if (value == nullptr) return std::nullopt;
    const std::string& name = expect(*value, Kind::string, "\"base\"").text;
    std::string known;
    for (Target& target : built_in_targets()) {
      if (target.name() == name) return std::move(target);
      known += (known.empty() ? "" : ", ") + target.name();
    }
    wrong(value->offset, "found the base \"" + name + "\", expected one of " + known);
  }

  // The dtypes under a key, or nothing without it.
  std::optional<DTypeSet> dtypes(const Json& object, const std::string& key) const {
    const Json* value = find(object, key);
    if (value == nullptr) return std::nullopt;
    DTypeSet result;
    for (const Json& item : expect(*value, Kind::list, "\"" + key + "\"").items) {
      const std::string& text = expect(item, Kind::string, "a dtype").text;
      const std::optional<DType> dtype = dtype_from_string(text);
      if (!dtype) {
        wrong(item.offset,
              "found the dtype \"" + text + "\", expected one of " + DTypeSet::all().to_string());
      }
      result = result | DTypeSet{*dtype};
    }
    return result;
  }

  OpKind op(const std::string& name, std::size_t offset) const {
    for (const OpInfo& op : all_ops()) {
      if (op.kind != OpKind::Custom && json_name(op) == name) return op.kind;
    }
    wrong(offset, "found the op \"" + name +
                      "\", expected the name of one as programs spell it, less its dialect: "
                      "\"exponential\"");
  }

  std::vector<OpKind> without(const Json& root, const std::map<OpKind, OpSupport>& ops) const {
    std::vector<OpKind> result;
    const Json* value = find(root, "without");
    if (value == nullptr) return result;
    for (const Json& item : expect(*value, Kind::list, "\"without\"").items) {
      result.push_back(op(expect(item, Kind::string, "an op").text, item.offset));
      if (ops.count(result.back()) == 0) {
        wrong(item.offset,
              "found \"" + item.text + "\" in \"without\", expected an op that the base has");
      }
    }
    return result;
  }

  // Changes what the row says and leaves the rest.
  void read_row(const Json& row, const OpInfo& op, OpSupport& support) const {
    expect(row, Kind::object, "the op \"" + json_name(op) + "\"");
    expect_keys(row, {"dtypes", "results", "from_inputs", "operands", "product"},
                "the op \"" + json_name(op) + "\"");
    if (const auto found = dtypes(row, "dtypes")) {
      if (op.arity == 0) {
        wrong(find(row, "dtypes")->offset, "found \"dtypes\" of " + json_name(op) +
                                               ", which has no operands: expected \"results\"");
      }
      support.operands = *found;
    }
    if (const auto found = dtypes(row, "results")) support.results = *found;
    if (const auto found = dtypes(row, "from_inputs")) support.from_inputs = *found;
    if (const Json* form = find(row, "operands")) {
      if (op.op_class != OpClass::elementwise) {
        wrong(form->offset, "found \"operands\" of " + json_name(op) +
                                ", expected it with elementwise ops alone");
      }
      support.operand_form = choice<OperandForm>(
          *form, "operands", {{"plain", OperandForm::plain}, {"any", OperandForm::any}});
    }
    if (const Json* form = find(row, "product")) {
      if (op.kind != OpKind::DotGeneral) {
        wrong(form->offset,
              "found \"product\" of " + json_name(op) + ", expected it with dot_general alone");
      }
      support.product_form = choice<ProductForm>(*form, "product",
                                                 {{"plain", ProductForm::plain},
                                                  {"batched", ProductForm::batched},
                                                  {"any", ProductForm::any}});
    }
  }

 private:
  template <class T>
  T choice(const Json& value, const std::string& key,
           std::initializer_list<std::pair<std::string_view, T>> known) const {
    const std::string& text = expect(value, Kind::string, "\"" + key + "\"").text;
    std::string names;
    for (const auto& [name, result] : known) {
      if (name == text) return result;
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    wrong(value.offset, "found \"" + text + "\" for \"" + key + "\", expected one of " + names);
  }

  [[noreturn]] void wrong_syntax(std::size_t offset, const std::string& message) const {
    places_.fail(Category::parse_error, offset, message);
  }
  [[noreturn]] void wrong(std::size_t offset, const std::string& message) const {
    places_.fail(Category::invalid_target, offset, message);
  }

  const Places& places_;
};

// Leaves of a row what these dtypes allow, and tells whether that is anything.
bool cut(OpSupport& support, const DTypeSet& dtypes, const OpInfo& op) {
  support.operands = support.operands & dtypes;
  support.results = support.results & dtypes;
  support.from_inputs = support.from_inputs & dtypes;
  const bool reads = op.arity == 0 || (support.operands | support.from_inputs) != DTypeSet();
  return reads && support.results != DTypeSet();
}

nlohmann::ordered_json names_of(const DTypeSet& dtypes) {
  auto names = nlohmann::ordered_json::array();
#define X(name, storage) \
  if (dtypes.contains(DType::name)) names.push_back(#name);
  MULGRAD_DTYPES(X)
#undef X
  return names;
}

// What a row has to say beside what it starts with.
nlohmann::ordered_json row_of(const OpSupport& support, const OpSupport& start) {
  auto row = nlohmann::ordered_json::object();
  if (support.operands != start.operands) row["dtypes"] = names_of(support.operands);
  if (support.results != start.results) row["results"] = names_of(support.results);
  if (support.from_inputs != start.from_inputs) row["from_inputs"] = names_of(support.from_inputs);
  if (support.operand_form != start.operand_form) {
    row["operands"] = support.operand_form == OperandForm::plain ? "plain" : "any";
  }
  if (support.product_form != start.product_form) {
    constexpr const char* kForms[] = {"plain", "batched", "any"};
    row["product"] = kForms[static_cast<int>(support.product_form)];
  }
  return row;
}

}  // namespace

Target Target::from_json(std::string_view text, std::string_view file) {
  const Places places(text, file);
  const Json root = TreeBuilder(places).build();
  const DescriptionReader reader(places);
  reader.expect(root, Kind::object, "the description of a target");
  reader.expect_keys(root, {"name", "base", "interface", "dtypes", "without", "ops"}, "the target");
  Target target(reader.name(root), DTypeSet::all());
  if (std::optional<Target> base = reader.base(root)) {
    target.interface_ = base->interface_;
    target.ops_ = std::move(base->ops_);
  }
  for (const OpKind kind : reader.without(root, target.ops_)) target.ops_.erase(kind);
  if (const auto dtypes = reader.dtypes(root, "interface")) target.interface_ = *dtypes;
  if (const Json* ops = DescriptionReader::find(root, "ops")) {
    reader.expect(*ops, Kind::object, "\"ops\"");
    for (std::size_t i = 0; i < ops->keys.size(); ++i) {
      const OpKind kind = reader.op(ops->keys[i].text, ops->keys[i].offset);
      const auto row = target.ops_.emplace(kind, matmul_support(kind)).first;
      reader.read_row(ops->items[i], info(kind), row->second);
    }
  }
  if (const auto dtypes = reader.dtypes(root, "dtypes")) {
    target.interface_ = target.interface_ & *dtypes;
    for (auto row = target.ops_.begin(); row != target.ops_.end();) {
      row = cut(row->second, *dtypes, info(row->first)) ? std::next(row) : target.ops_.erase(row);
    }
  }
  return target;
}

Target Target::from_json_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // A folder can be opened, but not read; an empty file sets failbit alone.
  if (file.is_open() && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || text.bad()) {
    throw Error(Category::io_error, "cannot read the file", {}, path);
  }
  return from_json(text.str(), path);
}

std::string Target::to_json() const {
  using Text = nlohmann::ordered_json;
  const auto quoted = [](const std::string& text) {
    return Text(text).dump(-1, ' ', false, Text::error_handler_t::replace);
  };
  std::string text = "{\n  \"name\": " + quoted(name_) +
                     ",\n  \"interface\": " + names_of(interface_).dump() + ",\n  \"ops\": {";
  const char* before = "\n";
  for (const auto& [kind, support] : ops_) {
    if (kind == OpKind::Custom) continue;
    text += before + std::string("    ") + quoted(json_name(info(kind))) + ": " +
            row_of(support, matmul_support(kind)).dump();
    before = ",\n";
  }
  return text + "\n  }\n}\n";
}

}  // namespace mulgrad
