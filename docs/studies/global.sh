#!/usr/bin/env bash
# Makes, measures and draws all that docs/studies/global.md shows. Run again = continue.
#   bash docs/studies/global.sh results [jobs]
set -euo pipefail
mkdir -p "$1" && cd "$1"
JOBS="${2:-2}"

# Estimates over the error that is stated, of a convolutional network, by attack and by proof.
radii train --data mnist:train --arch convSmall --regime crown-ibp:eps=0.1 --epochs 4 --out convolutional
radii global --network convolutional/network.onnx --data 'mnist:test[0:2000]' --domain 0:1 --eps 0.12 \
    --by both --samples 2000 --timeout 2 --jobs "$JOBS" --out convolutional-R
radii plot convolutional-R --kind convergence --eps 0.12 -o figures/convergence.png

for preset in mnist-small fashion-small; do
    radii study tradeoff --preset $preset --jobs "$JOBS" --out "$preset"
    radii study show "$preset" --csv "$preset.csv" --figures "figures/$preset-R"
    radii study show "$preset" --measure 1-D --figures "figures/$preset-D"
    radii study show "$preset" --measure "proven R" --figures "figures/$preset-proven"
    radii study show "$preset" --json > "$preset.json"
    radii study show "$preset" --least-accuracy 0.5 --json > "$preset-learned.json"
done
