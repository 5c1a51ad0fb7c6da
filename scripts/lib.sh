# shellcheck shell=bash
# Sourced by the scripts beside it: where the repository is, and how to say what is going on.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$REPO" || exit 1

# Debian's name of the release that this machine has.
# shellcheck disable=SC2034  # used by the scripts that source this file
RELEASE=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)

# Tools that setup unpacks here instead of installing them.
TOOLS=$REPO/.cache/tools
PATH=$TOOLS/usr/bin:$PATH

# Compiled objects survive a deleted build folder, and every clone of this user has them.
export CCACHE_DIR=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/rnicd/ccache}
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$REPO}
export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
# Three builds for this machine and three for others; less, and each throws out what the next one needs.
export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-10G}

# Exit status when a download of npm failed and nothing else.
# shellcheck disable=SC2034  # used by scripts/lint too
NOT_DOWNLOADED=75
# Exit status of a script that did nothing and has said why. CTest does not count it as a failure.
# shellcheck disable=SC2034  # used by the scripts that source this file
STATUS_LEFT_OUT=77

BOLD='' DIM='' RED='' GREEN='' PLAIN=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  # shellcheck disable=SC2034  # used by the scripts that source this file
  BOLD=$'\e[1m' DIM=$'\e[2m' RED=$'\e[31m' GREEN=$'\e[32m' PLAIN=$'\e[0m'
fi

say() { printf '%s\n' "$*"; }
heading() { printf '\n%s== %s%s\n' "$BOLD" "$*" "$PLAIN"; }
fail() {
  printf '%s%s: %s%s\n' "$RED" "$(basename "$0")" "$*" "$PLAIN" >&2
  exit 1
}

# The comment block at the top of the calling script is its help.
show_help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    # Without a terminal sudo must not wait for a password that nobody can type.
    if [[ -t 0 ]]; then sudo "$@"; else sudo -n "$@"; fi
  else
    fail "this needs root, and there is no sudo: $*"
  fi
}

# debian_archives TYPE RELEASE: lines for apt of type deb or deb-src, with the archives from which this machine has its
# release.
debian_archives() {
  # shellcheck disable=SC2016  # apt expands it
  apt-get indextargets --format '$(REPO_URI) $(CODENAME)' "Created-By: Packages" "Component: main" |
    sed -n "s#^#$1 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] #; s# $RELEASE# $2#p" |
    sed 's#$# main#' | sort -u
}

# make_source_apt FOLDER [RELEASE]: a private apt for source packages, because few machines have them in their lists.
make_source_apt() {
  mkdir -p "$1"/{lists/partial,cache/archives/partial}
  debian_archives deb-src "${2:-$RELEASE}" >"$1/sources.list"
  cat >"$1/apt.conf" <<EOT
Dir::Etc::sourcelist "$1/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$1/lists";
Dir::Cache "$1/cache";
APT::Sandbox::User "root";
EOT
  APT_CONFIG=$1/apt.conf apt-get -qq update
}

# unpack_source APT FOLDER SOURCE VERSION: the source package, with Debian's changes, as FOLDER/source. APT is the folder of
# the private apt, which is made if it is not there.
unpack_source() {
  if [[ ! -f $1/apt.conf ]]; then make_source_apt "$1"; fi
  (cd "$2" && APT_CONFIG=$1/apt.conf apt-get -qq --download-only --only-source source "$3=$4") &&
    dpkg-source --no-check -x "$2"/*.dsc "$2/source" >"$2/unpack.log"
}

# install_tools PACKAGE...: those that are not installed. For scripts that need more than scripts/setup gives. Where apt
# does not have one of them, the script is left out.
install_tools() {
  local package missing=()
  local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  for package in "$@"; do
    if [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then return 0; fi
  say "installing: ${missing[*]}"
  as_root "${apt[@]}" update
  if ! "${apt[@]}" --simulate install "${missing[@]}" >/dev/null 2>&1; then
    say "$(basename "$0") is left out: apt does not have all of: ${missing[*]}"
    exit "$STATUS_LEFT_OUT"
  fi
  as_root "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

# Tools that are npm packages, as package-lock.json names them; install scripts of packages are never run. Tools that are
# installed already are used without a download.
install_npm_tools() {
  if npm ls --depth=0 >/dev/null 2>&1; then return 0; fi
  say "installing the tools of package.json"
  mkdir -p build
  if ! npm ci --ignore-scripts --no-fund --no-audit --loglevel=error >build/npm.log 2>&1; then
    say "npm could not download the tools of package.json ($(npm_tools)), so this step did not run; npm's log is in" \
      "build/npm.log"
    return "$NOT_DOWNLOADED"
  fi
}

npm_tools() { sed -n '/"devDependencies"/,/}/s/^ *"\([^"]*\)": ".*/\1/p' package.json | xargs | sed 's/ /, /g'; }

# condense DROP KEEP: copies a tool's output, but of the lines that match KEEP (progress) only one every ten seconds,
# and none of those that match DROP. After 30 silent seconds it says where things stand, so that a log never looks dead.
condense() {
  local drop=$1 keep=$2 line='' part='' last='' shown=0 began=$SECONDS status
  shown=$SECONDS
  while true; do
    status=0
    IFS= read -r -t 30 part || status=$?
    line+=$part
    if ((status > 128)); then
      say "   ... $((SECONDS - began)) s, at: ${last:-start}"
      shown=$SECONDS
      continue
    fi
    if ((status != 0)) && [[ -z $line ]]; then break; fi
    if [[ $line =~ $drop ]]; then
      last=$line
    elif [[ $line =~ $keep ]]; then
      last=$line
      if ((SECONDS - shown >= 10)); then
        say "$line"
        shown=$SECONDS
      fi
    else
      say "$line"
    fi
    line=''
    ((status == 0)) || break
  done
}

# configure PRESET [OPTION...], build PRESET [TARGET...]: quiet where nobody watches, ninja's own line on a terminal. A
# build ends with status 124 after BUILD_SECONDS, where that is set.
configure() { cmake --preset "$@" 2>&1 | condense '^(-- |Preset CMake|  [A-Z_]+(:[A-Z]+)?="|$)' '^never$'; }
build() {
  local preset=$1
  shift
  local -a command=(cmake --build "build/$preset" --parallel "$(nproc)")
  if [[ -n ${BUILD_SECONDS:-} ]]; then command=(timeout "$BUILD_SECONDS" "${command[@]}"); fi
  if (($# > 0)); then command+=(--target "$@"); fi
  if [[ -t 1 ]]; then
    "${command[@]}"
  else
    "${command[@]}" 2>&1 | condense '^$' '^\[[0-9]+/[0-9]+\]'
  fi
}
