#!/bin/sh
# Install each wheel that fits, then the sdist, into a clean environment without extras, and use tightrope from outside the repository.
#
#   try_dist.sh FOLDER      the folder with wheels and one sdist of tightrope, and of its campaigns
#
# Without the campaigns `tightrope bench` says how to get them; with them it runs. A wheel with kernels must compile none.

set -eu
python=${PYTHON:-python3}
smoke=$(cd "$(dirname "$0")" && pwd)/smoke.py
stored=$(dirname "$smoke")/../tests/stored/slab-before.cert
folder=$(cd "$1" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp "$smoke" "$place/smoke.py"
cd "$place"
unset PYTHONPATH NUMBA_CACHE_DIR PYTHONDONTWRITEBYTECODE
echo "== the checker alone"
"$python" -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check "$folder"/tightrope_check-*.whl
venv/bin/tightrope-check "$stored"
version=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
for file in "$folder"/tightrope-*-"$version"-*.whl "$folder"/tightrope-*-any.whl "$folder"/tightrope-*.tar.gz; do
    [ -e "$file" ] || continue
    case "$file" in *.whl) campaigns=$(ls "$folder"/tightrope_campaigns-*.whl) ;; *) campaigns=$(ls "$folder"/tightrope_campaigns-*.tar.gz) ;; esac
    echo "== $(basename "$file")"
    rm -rf venv && "$python" -m venv venv  # the campaigns bring packages that stay
    venv/bin/python -m pip install --quiet --disable-pip-version-check "$file"
    rm -rf cache && mkdir -m 700 cache
    XDG_CACHE_HOME="$place/cache" venv/bin/python smoke.py
    compiled=$(find cache -name '*.nbc' | wc -l)
    echo "kernels compiled: $compiled"
    case "$file" in *"$version"*) [ "$compiled" -eq 0 ] || { echo "a wheel with kernels compiled some" >&2; find cache -name '*.nbc' >&2; exit 1; } ;; esac
    if venv/bin/tightrope bench --help >/dev/null 2>&1; then
        echo "bench runs without the campaigns" >&2
        exit 1
    fi
    venv/bin/python -m pip install --quiet --disable-pip-version-check "$campaigns"
    venv/bin/tightrope bench --help >/dev/null
done
