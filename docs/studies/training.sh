#!/usr/bin/env bash
# Trains, measures, compares and draws all that docs/studies/training.md shows. Run again = continue.
#   bash docs/studies/training.sh results
set -euo pipefail
mkdir -p "$1/nets" && cd "$1"
REGIMES="standard fgsm:eps=0.1 pgd:eps=0.1 crown-ibp:eps=0.1"

train() { # kind, architecture, epochs
    for regime in $REGIMES; do
        local name="mnist-$1-${regime%%:*}"
        radii train --data mnist:train --arch "$2" --regime "$regime" --epochs "$3" --out "nets/$name"
        cp "nets/$name/network.onnx" "nets/$name.onnx"
    done
}

measure() { # kind, images
    local networks=""
    for regime in $REGIMES; do networks="$networks --network nets/mnist-$1-${regime%%:*}.onnx"; done
    radii run $networks --data "mnist:test[0:$2]" --domain 0:1 --grid mnist --budget 10 --out "brackets/$1"
}

train dense relu_3_50 8
train conv convSmall 4
measure dense 40
measure conv 25
for kind in dense conv; do
    radii compare "brackets/$kind" --inputs all --eps 0.02,0.05,0.1
    radii show "brackets/$kind" --statistics
    radii plot "brackets/$kind" --kind ecdf -o "training-$kind.png"
    radii plot "brackets/$kind" --kind times -o "training-$kind-times.png"
done
