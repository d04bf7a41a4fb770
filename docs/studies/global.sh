#!/usr/bin/env bash
# Makes, measures and draws all that docs/studies/global.md shows. Run again = continue.
#   bash docs/studies/global.sh results [jobs]
set -euo pipefail
mkdir -p "$1" && cd "$1"
JOBS="${2:-2}"

for preset in mnist-small fashion-small; do
    radii study tradeoff --preset $preset --jobs "$JOBS" --out "$preset"
    radii study show "$preset" --csv "$preset.csv" --figures "figures/$preset-R"
    radii study show "$preset" --measure 1-D --figures "figures/$preset-D"
    radii study show "$preset" --measure "proven R" --figures "figures/$preset-proven"
    radii study show "$preset" --json > "$preset.json"
done
