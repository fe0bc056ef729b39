#include "backends/loss_curve.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <vector>

#include "core/file.h"

namespace mulgrad {
namespace {

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end);
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

// What the plot knows of one epoch.
struct Point {
  double x;
  double y;
  Interval interval;
};

struct Curve {
  std::string name;
  std::string colour;
  std::vector<Point> points;
};

// A range with ticks at round numbers: 1, 2 or 5 times a power of ten.
struct Axis {
  double low;
  double high;
  double step;
  int digits;  // after the point

  static Axis of(double low, double high, double smallest_step) {
    constexpr double kTicks = 6;
    if (!(high > low)) high = low + std::max(std::fabs(low), 1.0);
    const double rough = (high - low) / kTicks;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0}) {
      if (factor * power >= rough) step = factor * power;
    }
    step = std::max(step, smallest_step);
    const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
    return {low, high, step, digits};
  }

  double place(double value, double begin, double end) const {
    return begin + (value - low) / (high - low) * (end - begin);
  }
};

constexpr double kWidth = 640, kHeight = 400;
constexpr double kLeft = 70, kRight = 620, kTop = 20, kBottom = 350;

class Plot {
 public:
  Plot(const Axis& x, const Axis& y) : x_(x), y_(y) {
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + fixed(kWidth, 0) +
            "\" height=\"" + fixed(kHeight, 0) + "\" viewBox=\"0 0 " + fixed(kWidth, 0) + " " +
            fixed(kHeight, 0) +
            "\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  }

  void axes(const std::string& x_name, const std::string& y_name) {
    for (double tick = std::ceil(x_.low / x_.step) * x_.step; tick <= x_.high + 1e-9 * x_.step;
         tick += x_.step) {
      const double at = x_.place(tick, kLeft, kRight);
      line(at, kBottom, at, kBottom + 5, "black");
      label(at, kBottom + 20, "middle", fixed(tick, x_.digits));
    }
    for (double tick = std::ceil(y_.low / y_.step) * y_.step; tick <= y_.high + 1e-9 * y_.step;
         tick += y_.step) {
      const double at = y_.place(tick, kBottom, kTop);
      line(kLeft, at, kRight, at, "#dddddd");
      label(kLeft - 8, at + 4, "end", fixed(tick, y_.digits));
    }
    line(kLeft, kBottom, kRight, kBottom, "black");
    line(kLeft, kTop, kLeft, kBottom, "black");
    label((kLeft + kRight) / 2, kHeight - 8, "middle", x_name);
    text_ += "<text transform=\"translate(16 " + fixed((kTop + kBottom) / 2, 0) +
             ") rotate(-90)\" text-anchor=\"middle\">" + y_name + "</text>\n";
  }

  void curve(const Curve& curve) {
    std::string upper;
    std::string lower;
    std::string middle;
    for (const Point& point : curve.points) {
      middle += at(point.x, point.y);
      if (!std::isfinite(point.interval.low) || !std::isfinite(point.interval.high)) continue;
      upper += at(point.x, point.interval.high);
      lower = at(point.x, point.interval.low) + lower;
    }
    if (!upper.empty()) {
      text_ += "<polygon points=\"" + upper + lower + "\" fill=\"" + curve.colour +
               "\" fill-opacity=\"0.15\"/>\n";
    }
    text_ += "<polyline points=\"" + middle + "\" fill=\"none\" stroke=\"" + curve.colour +
             "\" stroke-width=\"2\"/>\n";
    // A line of one point would not be seen.
    if (curve.points.size() == 1) {
      const Point& only = curve.points[0];
      text_ += "<circle cx=\"" + fixed(x_.place(only.x, kLeft, kRight), 1) + "\" cy=\"" +
               fixed(y_.place(only.y, kBottom, kTop), 1) + "\" r=\"3\" fill=\"" + curve.colour +
               "\"/>\n";
    }
  }

  void legend(int row, const Curve& curve) {
    const double y = kTop + 14 + 18 * row;
    line(kRight - 110, y - 4, kRight - 85, y - 4, curve.colour);
    label(kRight - 78, y, "start", curve.name);
  }

  std::string finish() { return text_ + "</svg>\n"; }

 private:
  // What lies outside of the axes is drawn at their edge.
  std::string at(double x, double y) const {
    return fixed(x_.place(x, kLeft, kRight), 1) + "," +
           fixed(std::clamp(y_.place(y, kBottom, kTop), kTop, kBottom), 1) + " ";
  }
  void line(double x1, double y1, double x2, double y2, const std::string& colour) {
    text_ += "<line x1=\"" + fixed(x1, 1) + "\" y1=\"" + fixed(y1, 1) + "\" x2=\"" + fixed(x2, 1) +
             "\" y2=\"" + fixed(y2, 1) + "\" stroke=\"" + colour + "\"/>\n";
  }
  void label(double x, double y, const std::string& anchor, const std::string& text) {
    text_ += "<text x=\"" + fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\" text-anchor=\"" + anchor +
             "\">" + text + "</text>\n";
  }

  Axis x_;
  Axis y_;
  std::string text_;
};

}  // namespace

void write_loss_curve_csv(const std::string& path, std::span<const EpochReport> reports) {
  std::string text = "epoch";
  for (const std::string name : {"loss", "validation_loss", "validation_accuracy"}) {
    text += "," + name + "," + name + "_low," + name + "_high";
  }
  text += "\n";
  const auto append = [&](const std::optional<double>& value,
                          const std::optional<Interval>& interval) {
    text += "," + (value ? shortest(*value) : "");
    text += "," + (interval ? shortest(interval->low) : "");
    text += "," + (interval ? shortest(interval->high) : "");
  };
  for (const EpochReport& report : reports) {
    text += std::to_string(report.epoch);
    append(report.loss, report.loss_interval);
    append(report.validation_loss, report.validation_loss_interval);
    append(report.validation_accuracy, report.validation_accuracy_interval);
    text += "\n";
  }
  write_file(path, text);
}

void write_loss_curve_svg(const std::string& path, std::span<const EpochReport> reports) {
  Curve training{"training", "#1f77b4", {}};
  Curve validation{"validation", "#d62728", {}};
  for (const EpochReport& report : reports) {
    const auto x = static_cast<double>(report.epoch);
    if (std::isfinite(report.loss))
      training.points.push_back({x, report.loss, report.loss_interval});
    if (report.validation_loss && std::isfinite(*report.validation_loss)) {
      validation.points.push_back(
          {x, *report.validation_loss, report.validation_loss_interval.value_or(Interval{})});
    }
  }
  double low = 0;  // a loss is seen against nothing
  double high = 0;
  for (const Curve* curve : {&training, &validation}) {
    for (const Point& point : curve->points) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
  }
  const double last = reports.empty() ? 1 : static_cast<double>(reports.back().epoch);
  const double first = reports.empty() ? 0 : static_cast<double>(reports.front().epoch);
  Plot plot(Axis::of(first, last, 1), Axis::of(low, high + 0.05 * (high - low), 0));
  plot.axes("epoch", "loss");
  plot.curve(training);
  if (!validation.points.empty()) {
    plot.curve(validation);
    plot.legend(0, training);
    plot.legend(1, validation);
  }
  write_file(path, plot.finish());
}

}  // namespace mulgrad
