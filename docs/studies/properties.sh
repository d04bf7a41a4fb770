#!/usr/bin/env bash
# Trains, proves and attacks everything that docs/studies/properties.md shows. Run again = continue.
#   bash docs/studies/properties.sh ../shared/data/gtsrb_small.npz results
#   python docs/studies/properties.py results docs/studies/images
set -euo pipefail
source=$(realpath "$1")
mkdir -p "$2/nets" && cd "$2"
CLASSES=1,2,4,5,9,10,12,13,25,38 # ten classes with many images in the full set
FASHION_EPOCHS=15 GTSRB_EPOCHS=300
declare -A ATTACKED=([fashion]=50 [gtsrb]=20) # images a network and property

train() { # name, data, hidden units, epochs, regime
    radii train --data "$2:train" --arch "dense:$3-clamp" --regime "$5" --epochs "$4" --out "nets/$1"
    cp "nets/$1/network.onnx" "nets/$1.onnx"
}

images() { if [ "$1" = fashion ]; then echo "fashion-mnist:test[0:200]"; else echo "gtsrb10.npz:test[0:200]"; fi; }

networks() { # data, hidden units, regimes
    local data=$1 units=$2
    shift 2
    for regime in "$@"; do echo "--network nets/$data-$units-$regime.onnx"; done
}

[ -f gtsrb10.npz ] || radii data convert "$source" --grey --size 48 --classes $CLASSES --out gtsrb10.npz

# Table 1: 30 hidden units, eps = 0.1, delta = 10, L = 10.
for regime in standard scr sr lr; do
    train "fashion-30-$regime" fashion-mnist 30 $FASHION_EPOCHS $regime
    train "gtsrb-30-$regime" gtsrb10.npz 30 $GTSRB_EPOCHS $regime
done
for data in fashion gtsrb; do
    for property in cr sr:delta=10 lr:L=10; do
        radii run $(networks $data 30 standard scr sr lr) --data "$(images $data)" --domain 0:1 \
            --property $property --grid 0.1:0.11:0.1 --search binary --timeout 30 --out "proofs/$data-${property%%:*}"
    done
done

# Figures 2, 3, 5 and appendix C: 100 hidden units, seven regimes, attacks at every eps.
REGIMES="standard augmentation-uniform augmentation-fgsm pgd sr scr lr"
for regime in $REGIMES; do
    train "fashion-100-$regime" fashion-mnist 100 $FASHION_EPOCHS $regime
    case $regime in # at eps = 0.1, 800 dark images teach these two nothing but one constant answer
    pgd | augmentation-fgsm) train "gtsrb-100-$regime" gtsrb10.npz 100 $GTSRB_EPOCHS $regime:eps=0.03 ;;
    *) train "gtsrb-100-$regime" gtsrb10.npz 100 $GTSRB_EPOCHS $regime ;;
    esac
done
for data in fashion gtsrb; do
    for property in sr:delta=10 scr:eta=0.52 lr:L=10; do
        radii attack $(networks $data 100 $REGIMES) --data "$(images $data)[0:${ATTACKED[$data]}]" --domain 0:1 \
            --property $property --grid 0.002:0.302:0.002 --out "attacks/$data-${property%%:*}"
    done
done
