#!/bin/sh
# The tests with every Python from 3.11 to 3.13 that is found, each in an environment of its own under build/.
#
#   test_matrix.sh [ARGUMENTS OF PYTEST]      all tests, or those that are named
#   VERSIONS="3.12 3.13" test_matrix.sh …     with these versions only
#
# An interpreter is looked for as python3.x on the path, then among those of pyenv. What is not found is named.

set -u
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE
failed="" tried="" absent=""
for version in ${VERSIONS:-3.11 3.12 3.13}; do
    python=""
    for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
        if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null; then
            python=$candidate
            break
        fi
    done
    if [ -z "$python" ]; then
        absent="$absent $version"
        continue
    fi
    echo "== Python $version"
    tried="$tried $version"
    make --no-print-directory setup PYTHON="$python" VENV="build/venv-$version" &&
        "build/venv-$version/bin/python" -m pytest -q -n auto --maxprocesses 8 --dist worksteal \
            -m "$(sh tools/system_deps.sh markers)" "$@" || failed="$failed $version"
done
[ -z "$absent" ] || echo "not found on this machine:$absent"
[ -n "$tried" ] || exit 1
[ -z "$failed" ] || { echo "failed with Python:$failed" >&2; exit 1; }
echo "passed with Python:$tried"
