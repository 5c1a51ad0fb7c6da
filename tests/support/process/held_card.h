#pragma once

#include <string>
#include <vector>

// A daemon with these flags carries out registrations, or lets the bytes of reads land, only while no test of this
// program holds them. So a test acts while a request is under way, for as long as it needs, and then lets it go.
namespace rnicd::test {

// For every kind of card: registrations of memory and initializations of fast-register regions, the health probe's too.
std::string HoldableRegistrationsFlag();
// None if !CanHoldReads().
std::vector<std::string> HoldableReadsFlags();
// False if the card under test decides alone when a read is over. What holds for any duration is tested anyway; a test
// that needs a read under way is listed in tests/vm/not_on_verbs.txt.
bool CanHoldReads();

// Registrations or reads are held from the constructor until LetGo or the destructor. One at a time of each kind.
class Held {
 public:
  ~Held() { LetGo(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void LetGo();

 protected:
  explicit Held(std::string path);

 private:
  const std::string path_;
};

class HeldRegistrations final : public Held {
 public:
  HeldRegistrations();
};

class HeldReads final : public Held {
 public:
  HeldReads();
};

}  // namespace rnicd::test
