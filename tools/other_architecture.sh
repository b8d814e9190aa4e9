#!/bin/sh
# Runs tests as the other architecture: x86-64 on an Arm machine, Arm on an x86-64 one, emulated by qemu-user.
#
#   other_architecture.sh [TEST…]     tests/checker/test_numbers.py and its neighbours where none is named
#
# Takes Debian's packages of a Python for that architecture and the wheels of our dependencies, all under
# build/other-architecture; nothing is installed but qemu-user, which has to be there (Debian, as root). Kernels
# run in Python (NUMBA_DISABLE_JIT): compiling under emulation takes minutes each.
set -eu
cd "$(dirname "$0")/.."
case "$(uname -m)" in
aarch64 | arm64) debian=amd64 wheels=x86_64 emulator=qemu-x86_64 triple=x86_64-linux-gnu ;;
*) debian=arm64 wheels=aarch64 emulator=qemu-aarch64 triple=aarch64-linux-gnu ;;
esac
place=$PWD/build/other-architecture
root=$place/root site=$place/site
command -v "$emulator" >/dev/null || {
    [ "$(id -u)" = 0 ] && apt-get update -q && apt-get install -q -y --no-install-recommends qemu-user
} || { echo "needs $emulator: install Debian's package qemu-user" >&2; exit 1; }

if [ ! -e "$place/.ready" ]; then
    rm -rf "$root" "$site" "$place/apt"
    mkdir -p "$root" "$site" "$place/apt/lists/partial" "$place/apt/cache/archives/partial" "$place/debs"
    : >"$place/apt/status"
    apt="apt-get -q -o APT::Architecture=$debian -o APT::Architectures=$debian -o Dir::State=$place/apt
         -o Dir::State::Lists=$place/apt/lists -o Dir::State::status=$place/apt/status -o Dir::Cache=$place/apt/cache"
    $apt update
    # shellcheck disable=SC2086  # several options
    names=$($apt install --no-install-recommends --print-uris -y python3 libstdc++6 | sed -n "s/^'\(.*\)' \([^ ]*\) .*/\2/p" |
        sed 's/_.*//' | grep -v -E '^(base-|dpkg|debconf|perl|media-types|tar|init-)')
    (cd "$place/debs" && $apt download $names)
    for deb in "$place"/debs/*.deb; do dpkg -x "$deb" "$root"; done
    find "$root" -type l -lname '/*' | while read -r link; do ln -sf "$root$(readlink "$link")" "$link"; done
    version=$(ls "$root/usr/bin" | sed -n 's/^python\(3\.[0-9]*\)$/\1/p' | head -1)
    tools=$(sed -n 's/^ *"\(\(pytest\|hypothesis\|python-flint\)==[^"]*\)",$/\1/p' pyproject.toml)
    # shellcheck disable=SC2086
    .venv/bin/python -m pip install -qq --disable-pip-version-check --target "$site" --only-binary=:all: --python-version "$version" \
        --implementation cp --platform "manylinux_2_28_$wheels" --platform "manylinux_2_27_$wheels" \
        --platform "manylinux_2_17_$wheels" --platform "manylinux2014_$wheels" \
        numpy scipy numba highspy clarabel lark lazy_loader typer rich matplotlib pyarrow msgspec jinja2 $tools
    echo "$version" >"$place/.ready"
fi
version=$(cat "$place/.ready")
[ $# -gt 0 ] || set -- tests/checker/test_numbers.py tests/adversary/test_lemmas.py tests/checker/test_statistics.py
echo "== as $wheels, Python $version"
NUMBA_DISABLE_JIT=1 PYTHONPATH="src:$site" QEMU_LD_PREFIX="$root" OPENBLAS_NUM_THREADS=1 PYTHONHOME="$root/usr" \
    exec "$emulator" -L "$root" -E LD_LIBRARY_PATH="$root/lib/$triple:$root/usr/lib/$triple" \
    "$root/usr/bin/python$version" -m pytest -q --assert=plain -p no:cacheprovider -p no:xdist "$@"
