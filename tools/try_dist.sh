#!/bin/sh
# Install the wheel, then the sdist, into a clean environment without extras, and use tightrope from outside the repository.
#
#   try_dist.sh FOLDER      the folder with one wheel and one sdist

set -eu
python=${PYTHON:-python3}
smoke=$(cd "$(dirname "$0")" && pwd)/smoke.py
wheel=$(cd "$1" && pwd)/$(cd "$1" && ls ./*.whl)
sdist=$(cd "$1" && pwd)/$(cd "$1" && ls ./*.tar.gz)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp "$smoke" "$place/smoke.py"
"$python" -m venv "$place/venv"
cd "$place"
unset PYTHONPATH
for file in "$wheel" "$sdist"; do
    echo "== $(basename "$file")"
    venv/bin/python -m pip install --quiet --disable-pip-version-check "$file"
    venv/bin/python smoke.py
    venv/bin/python -m pip uninstall --quiet --yes tightrope
done
