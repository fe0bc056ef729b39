#include "core/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace mulgrad {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void cannot_write(const std::string& path, const char* what) {
  throw Error(Category::io_error,
              "cannot write the file \"" + path + "\": " + what + ": " + std::strerror(errno));
}

// The call, again for as long as a signal interrupts it.
template <class F>
auto uninterrupted(F call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Says whether the locked file is still the one of that name: the writer that was waited for has
// renamed it.
bool is_named(int descriptor, const std::string& name) {
  struct stat open_file {};
  struct stat named_file {};
  return ::fstat(descriptor, &open_file) == 0 && ::lstat(name.c_str(), &named_file) == 0 &&
         open_file.st_dev == named_file.st_dev && open_file.st_ino == named_file.st_ino;
}

void write_all(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(descriptor, bytes.data(), bytes.size()); });
    if (written < 0) cannot_write(path, "write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Writes and renames; false when another writer has renamed the file that this one waited for.
bool replace_file(const std::string& path, const std::string& temporary, std::string_view bytes) {
  const Descriptor file(uninterrupted([&] {
    return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  }));
  if (file.get() < 0) cannot_write(path, "open");
  if (uninterrupted([&] { return ::flock(file.get(), LOCK_EX); }) < 0) cannot_write(path, "lock");
  if (!is_named(file.get(), temporary)) return false;
  try {
    if (::ftruncate(file.get(), 0) < 0) cannot_write(path, "truncate");
    write_all(file.get(), bytes, path);
    if (uninterrupted([&] { return ::fsync(file.get()); }) < 0) cannot_write(path, "fsync");
    if (::rename(temporary.c_str(), path.c_str()) < 0) cannot_write(path, "rename");
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
  return true;
}

// Without this the rename itself may be lost with the power.
void flush_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor descriptor(
      uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (descriptor.get() < 0) cannot_write(path, "open the folder");
  // Some file systems know no fsync of a folder.
  if (uninterrupted([&] { return ::fsync(descriptor.get()); }) < 0 && errno != EINVAL) {
    cannot_write(path, "fsync the folder");
  }
}

void reverse_each(std::byte* bytes, std::size_t count, std::size_t size) {
  for (std::size_t first = 0; first < count; first += size) {
    std::reverse(bytes + first, bytes + first + size);
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.peek();  // a first read: that of a folder fails
  std::ostringstream text;
  if (file.good()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || text.fail()) {
    throw Error(Category::io_error, "cannot read the file \"" + path + "\"");
  }
  return std::move(text).str();
}

void write_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".tmp";
  while (!replace_file(path, temporary, bytes)) {
  }
  flush_folder_of(path);
}

Tensor decode_tensor(DType dtype, std::vector<std::int64_t> sizes, std::string_view bytes,
                     std::endian order) {
  const std::int64_t size = byte_size(dtype);
  std::int64_t expected = size;
  bool fits = true;
  for (const std::int64_t each : sizes) {
    // A zero does not excuse the other sizes: a product that overflows is refused in any order.
    fits = fits && each >= 0 &&
           !__builtin_mul_overflow(expected, std::max<std::int64_t>(each, 1), &expected);
  }
  if (!fits) {
    throw Error(Category::invalid_data,
                "found sizes that are negative or whose product does not fit 63 bits");
  }
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) expected = 0;
  if (std::cmp_not_equal(bytes.size(), expected)) {
    throw Error(Category::invalid_data,
                "found " + std::to_string(bytes.size()) + " bytes of elements, expected the " +
                    std::to_string(expected) + " of " + Type{dtype, Shape::of(sizes)}.to_string());
  }
  if (dtype == DType::i1) {
    const auto bad = std::ranges::find_if(bytes, [](char byte) { return byte != 0 && byte != 1; });
    if (bad != bytes.end()) {
      throw Error(Category::invalid_data, "found the byte " +
                                              std::to_string(static_cast<unsigned char>(*bad)) +
                                              " as element " + std::to_string(bad - bytes.begin()) +
                                              ", expected 0 or 1 for i1");
    }
  }
  Tensor result(dtype, std::move(sizes));
  if (!bytes.empty()) std::memcpy(result.bytes().data(), bytes.data(), bytes.size());
  if (order != std::endian::native) {
    reverse_each(result.bytes().data(), bytes.size(), static_cast<std::size_t>(size));
  }
  return result;
}

std::string encode_tensor(const Tensor& tensor, std::endian order) {
  const std::span<const std::byte> bytes = tensor.bytes();
  std::string result(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order != std::endian::native) {
    reverse_each(reinterpret_cast<std::byte*>(result.data()), result.size(),
                 static_cast<std::size_t>(byte_size(tensor.dtype())));
  }
  return result;
}

}  // namespace mulgrad
