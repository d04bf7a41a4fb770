"""Fashion-MNIST: pictures of clothing, in MNIST's form (Xiao, Rasul, Vollgraf, 2017)."""

from __future__ import annotations

from radii.datasets._catalogue import Normalisation, Package, PublishedSet
from radii.datasets._layouts import Idx, idx_checksums, idx_remotes

PUBLISHED = PublishedSet(
    name="fashion-mnist",
    title="Fashion-MNIST, articles of clothing",
    home="https://github.com/zalandoresearch/fashion-mnist",
    shape=(1, 28, 28),
    counts={"train": 60000, "test": 10000},
    classes=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    layouts=(Idx(),),
    stored=Idx(),
    archives=("dataset-fashion-mnist_*.deb",),
    package=Package("apt-get", "dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist"),
    remotes=idx_remotes(
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        (
            "sha256:3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "sha256:a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "sha256:346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "sha256:67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
    files=idx_checksums(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    normalisations=(Normalisation("Fashion-MNIST's mean and deviation", (0.286,), (0.353,)),),
)
