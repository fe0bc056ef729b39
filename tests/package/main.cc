#include <cstdio>

#include "backends/trainer.h"

using namespace mulgrad;

int main() {
  const Dataset data = make_dataset(Tensor::of<float>({4, 1}, {-1, 0, 1, 2}),
                                    Tensor::of<float>({4, 1}, {-2, 0, 2, 4}));
  Trainer trainer(Sequential{Linear(1, 1)}, mse, SGD({.rate = 0.2}), {.batch_size = 4});
  trainer.fit(data, {.epochs = 100});
  std::printf("weight %.3f\n", trainer.values()[0].element(0).as_double());
}
