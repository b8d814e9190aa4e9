#!/bin/sh
# Install the wheel, then the sdist, into a clean environment without extras, and use tightrope from outside the repository.
#
#   try_dist.sh FOLDER      the folder with one wheel and one sdist of tightrope, and of its campaigns
#
# Without the campaigns `tightrope bench` says how to get them; with them it runs.

set -eu
python=${PYTHON:-python3}
smoke=$(cd "$(dirname "$0")" && pwd)/smoke.py
folder=$(cd "$1" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp "$smoke" "$place/smoke.py"
"$python" -m venv "$place/venv"
cd "$place"
unset PYTHONPATH
for end in .whl .tar.gz; do
    file=$(ls "$folder"/tightrope-*"$end")
    campaigns=$(ls "$folder"/tightrope_campaigns-*"$end")
    echo "== $(basename "$file")"
    venv/bin/python -m pip install --quiet --disable-pip-version-check "$file"
    venv/bin/python smoke.py
    if venv/bin/tightrope bench --help >/dev/null 2>&1; then
        echo "bench runs without the campaigns" >&2
        exit 1
    fi
    venv/bin/python -m pip install --quiet --disable-pip-version-check "$campaigns"
    venv/bin/tightrope bench --help >/dev/null
    venv/bin/python -m pip uninstall --quiet --yes tightrope tightrope-campaigns
done
