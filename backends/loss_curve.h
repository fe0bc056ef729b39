// The reports of a run as a table and as a plot.
#pragma once

#include <span>
#include <string>

#include "backends/report.h"

namespace mulgrad {

// A line per epoch, under a header: epoch, loss, loss_low, loss_high, and the same for
// validation_loss and validation_accuracy. Numbers are the shortest that read back as the same;
// a field is empty where there is no value. The file is replaced as write_file does it; throws
// io_error.
void write_loss_curve_csv(const std::string& path, std::span<const EpochReport> reports);

// The losses over the epochs as an SVG picture of 640 by 400 with axes, a legend where there are
// two curves, and the intervals as bands. Values that are not finite are left out. Likewise.
void write_loss_curve_svg(const std::string& path, std::span<const EpochReport> reports);

}  // namespace mulgrad
