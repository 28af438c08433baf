#!/bin/sh
# For a machine that has a GPU and reaches no registry: `sh tests/gpu/on_device.sh pack` where there is one puts the
# agent alone and pytest into build/gpu-site (under 64 MiB); `sh tests/gpu/on_device.sh` on the device runs the check.
set -eu
cd "$(dirname "$0")/../.."
site=build/gpu-site
python=${PYTHON:-python3}
if [ "${1:-}" = pack ]; then
  rm -rf "$site"
  "$python" -m pip install --quiet --target "$site" --no-compile ".[agent]" pytest
  rm -rf "$site"/bot "$site"/commands "$site"/rca_bot-*.dist-info
  du -sm "$site"
  exit 0
fi
export PYTHONPATH="$site:."
# No settings of the project: they ask for plug-ins that are not carried.
exec timeout 300 "$python" -m pytest -c /dev/null --rootdir . --confcutdir tests/gpu -p no:cacheprovider \
  --import-mode=importlib -q -s tests/gpu
