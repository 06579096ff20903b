"""--tokenizer moses_monolingual: English stays English where the sides are called description and synopsis."""

from __future__ import annotations

from fairseq import options
from fairseq.data import encoders
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

SENTENCE = "So you've read <i>e-mail</i>, i.e. the \"user's\" 3,5 GB of it & more..."
FLAGS = ["--moses-no-dash-splits", "--moses-no-escape"]


def tokenizer(name: str, source: str, target: str, *flags: str):
    """What fairseq-interactive builds of these flags."""
    parser = options.get_interactive_generation_parser()
    words = ["data", "-s", source, "-t", target, "--path", "unused", "--tokenizer", name, *flags]
    args = options.parse_args_and_arch(parser, words)
    return encoders.build_tokenizer(convert_namespace_to_omegaconf(args).tokenizer)


def test_tokens_and_text_are_those_of_the_language_whatever_the_sides_are_called() -> None:
    for flags in ([], FLAGS):
        english = tokenizer("moses", "en", "en", *flags)
        ours = tokenizer("moses_monolingual", "description", "synopsis", "--moses-lang", "en", *flags)
        tokens = english.encode(SENTENCE)
        assert ours.encode(SENTENCE) == tokens
        assert ours.decode(tokens) == english.decode(tokens)


def test_fairseqs_own_takes_the_sides_names_for_languages() -> None:
    assert " 've " in tokenizer("moses_monolingual", "description", "synopsis", *FLAGS).encode(SENTENCE)
    theirs = tokenizer("moses", "description", "synopsis", *FLAGS)
    assert " ' ve " in theirs.encode(SENTENCE)
    assert theirs.decode("the user 's") == "the user 's"


def test_another_language_is_another_language() -> None:
    french = tokenizer("moses_monolingual", "article", "titre", "--moses-lang", "fr")
    assert french.encode("l'ami") == tokenizer("moses", "fr", "fr").encode("l'ami") != "l 'ami"
