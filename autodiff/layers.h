// All layers.
#pragma once

#include "autodiff/activations.h"
#include "autodiff/attention.h"
#include "autodiff/dense.h"
#include "autodiff/dropout.h"
#include "autodiff/embedding.h"
#include "autodiff/layer.h"
#include "autodiff/normalization.h"
#include "autodiff/transformer.h"
