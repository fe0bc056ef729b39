// Every op case against tests/goldens/ops.json, which tests/goldens/make_op_goldens.py computes
// with NumPy and mpmath from a description of the cases. To make it again:
//   build/dev/tests/core_op_golden_test --describe | python3 tests/goldens/make_op_goldens.py
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/interpreter.h"
#include "tests/support/op_cases.h"

namespace mulgrad::testing {
namespace {

using Json = nlohmann::json;

// "f32[2,3]:0000803f..." with the elements' bytes in hex, little-endian.
std::string encode(const Tensor& value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(to_string(value.dtype()));
  text += '[';
  for (std::int64_t axis = 0; axis < value.rank(); ++axis) {
    text += (axis > 0 ? "," : "") + std::to_string(value.sizes()[static_cast<std::size_t>(axis)]);
  }
  text += "]:";
  for (const std::byte byte : value.bytes()) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

Tensor decode(const std::string& text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find("]:");
  std::vector<std::int64_t> sizes;
  std::istringstream list(text.substr(open + 1, close - open - 1));
  for (std::string size; std::getline(list, size, ',');) sizes.push_back(std::stoll(size));
  Tensor value(dtype_from_string(text.substr(0, open)).value(), sizes);
  const std::string hex = text.substr(close + 2);
  INTERNAL_CHECK(hex.size() == 2 * value.bytes().size());
  for (std::size_t i = 0; i < value.bytes().size(); ++i) {
    value.bytes()[i] = static_cast<std::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return value;
}

Json attributes(const Op& op) {
  return std::visit(
      [&]<class T>(const T& a) -> Json {
        if constexpr (std::is_same_v<T, Fill>) {
          return {{"value", encode(Tensor::filled(a.value, {}))}};
        } else if constexpr (std::is_same_v<T, Constant>) {
          return {{"value", encode(*a.value)}};
        } else if constexpr (std::is_same_v<T, Iota> || std::is_same_v<T, Concatenate>) {
          return {{"dimension", a.dimension}};
        } else if constexpr (std::is_same_v<T, Compare>) {
          return {{"direction", std::string(to_string(a.direction))}};
        } else if constexpr (std::is_same_v<T, BroadcastInDim>) {
          return {{"dims", a.dims}};
        } else if constexpr (std::is_same_v<T, Transpose>) {
          return {{"permutation", a.permutation}};
        } else if constexpr (std::is_same_v<T, Slice>) {
          return {{"start", a.start}, {"limit", Shape(a.limit).sizes()}, {"stride", a.stride}};
        } else if constexpr (std::is_same_v<T, Pad>) {
          return {{"low", a.low}, {"high", a.high}, {"interior", a.interior}};
        } else if constexpr (std::is_same_v<T, Reduce>) {
          return {{"kind", std::string(to_string(a.kind))}, {"axes", a.axes}};
        } else if constexpr (std::is_same_v<T, Mean>) {
          return {{"axes", a.axes}};
        } else if constexpr (std::is_same_v<T, DotGeneral>) {
          return {{"batch", {a.lhs_batch, a.rhs_batch}},
                  {"contracting", {a.lhs_contracting, a.rhs_contracting}}};
        } else if constexpr (std::is_same_v<T, Custom>) {
          return {{"name", a.name()}};
        } else {
          return Json::object();  // Convert's dtype and Reshape's shape are the result's
        }
      },
      op);
}

// The description that the generator reads.
void describe(std::ostream& out) {
  Json cases = Json::array();
  for (const OpCase& op_case : op_cases()) {
    const Tensor zero(program_of(op_case).nodes()[0].type.dtype,
                      program_of(op_case).nodes()[0].type.shape.sizes());
    const std::string type = encode(zero);
    Json operands = Json::array();
    std::size_t input = 0;
    const std::vector<Tensor> inputs = inputs_of(op_case);
    for (const auto& operand : op_case.operands) {
      if (const auto* literal = std::get_if<Literal>(&operand)) {
        operands.push_back({{"literal", encode(Tensor::filled(*literal, {}))}});
      } else {
        operands.push_back({{"input", encode(inputs[input++])}});
      }
    }
    cases.push_back({{"name", op_case.name},
                     {"op", std::string(info(op_case.op).name)},
                     {"attributes", attributes(op_case.op)},
                     {"operands", operands},
                     {"result", type.substr(0, type.find(':'))}});
  }
  out << cases.dump(1) << "\n";
}

const Json& goldens() {
  static const Json kGoldens = [] {
    std::ifstream file(MULGRAD_SOURCE_DIR "/tests/goldens/ops.json");
    return Json::parse(file);
  }();
  return kGoldens;
}

TEST(OpGoldens, Names_AreThoseOfTheTable) {
  std::set<std::string> expected;
  for (const OpCase& op_case : op_cases()) expected.insert(op_case.name);
  std::set<std::string> found;
  for (const auto& [name, golden] : goldens().at("cases").items()) found.insert(name);
  EXPECT_EQ(found, expected);
}

TEST(OpGoldens, Inputs_AreTheSameOnThisMachine) {
  for (const OpCase& op_case : op_cases()) {
    const Json& inputs = goldens().at("cases").at(op_case.name).at("inputs");
    const std::vector<Tensor> made = inputs_of(op_case);
    ASSERT_EQ(inputs.size(), made.size()) << op_case.name;
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(encode(made[i]), inputs[i].get<std::string>()) << op_case.name;
    }
  }
}

TEST(OpGoldens, Interpreter_GivesTheGoldenResult) {
  for (const OpCase& op_case : op_cases()) {
    const Json& golden = goldens().at("cases").at(op_case.name);
    std::vector<Tensor> inputs;
    for (const Json& input : golden.at("inputs")) inputs.push_back(decode(input));
    const Tensor got = interpret(program_of(op_case), inputs)[0];
    EXPECT_TRUE(near(got, decode(golden.at("output")), tolerance_of(op_case))) << op_case.name;
  }
}

}  // namespace
}  // namespace mulgrad::testing

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--describe") {
    mulgrad::testing::describe(std::cout);
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
