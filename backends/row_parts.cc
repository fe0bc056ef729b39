#include "backends/row_parts.h"

#include <string>
#include <utility>

#include "backends/dataset.h"

namespace mulgrad {

void expect_below(const Tensor& values, std::int64_t bound, const char* what) {
  const auto fits = [bound](std::int64_t value) { return value >= 0 && value < bound; };
  // Every step comes here, so what data sets hold is looked at without a detour.
  if (values.dtype() == DType::i32 && std::ranges::all_of(values.data<std::int32_t>(), fits))
    return;
  for (std::int64_t i = 0; i < values.elements(); ++i) {
    const std::int64_t value = values.element(i).as_int();
    if (fits(value)) continue;
    const std::int64_t per_row = values.rank() == 0 ? 1 : values.elements() / values.sizes()[0];
    std::string place = "row " + std::to_string(i / per_row);
    if (values.rank() > 1) place += ", position " + std::to_string(i % per_row);
    throw Error(Category::invalid_data, place + ": found the " + what + " " +
                                            std::to_string(value) + ", expected one in [0, " +
                                            std::to_string(bound) + ")");
  }
}

void expect_ids(const Tensor& inputs, std::optional<std::int64_t> ids) {
  if (ids && !is_float(inputs.dtype())) expect_below(inputs, *ids, "id");
}

Tensor predict_in_parts(CpuFunction& function, std::vector<Tensor> parameters,
                        const Tensor& inputs) {
  if (inputs.rank() == 0) {
    throw Error(Category::shape_mismatch,
                "found a tensor of rank 0, expected a first axis of rows");
  }
  std::vector<Tensor> arguments = std::move(parameters);
  arguments.emplace_back();
  std::vector<Tensor> parts;
  in_parts(inputs.sizes()[0], kRowsPerRun, [&](std::span<const std::int64_t> rows) {
    arguments.back() = take_rows(inputs, rows);
    parts.push_back(std::move(function.run(arguments)[0]));
  });
  if (parts.size() == 1) return std::move(parts[0]);
  std::vector<std::int64_t> sizes(parts[0].sizes().begin(), parts[0].sizes().end());
  sizes[0] = inputs.sizes()[0];
  Tensor result(parts[0].dtype(), std::move(sizes));
  auto out = result.bytes().begin();
  for (const Tensor& part : parts) out = std::ranges::copy(part.bytes(), out).out;
  return result;
}

}  // namespace mulgrad
