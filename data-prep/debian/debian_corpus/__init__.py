"""Text corpora from Debian's package descriptions and their translations.

The order of work, one module a step:

    indices   apt -> Packages, Translation-en, Translation-XX, checked against the Release file
    entries   the indices' stanzas -> one Entry per distinct description, with its package families
    segment   a description -> blocks (paragraphs, list items) -> sentences
    clean     what counts as usable text, and as a usable pair
    units     entries -> bitext pairs, monolingual sentences, description/synopsis pairs
    neardup   which texts are near-duplicates of which others
    split     train / valid / test by package family, near-duplicates taken out
    output    the corpus folder: texts, counts, checksums; written whole or not at all

and for more_text.py, which adds monolingual text to such a corpus:

    debs        the table of packages; their files, read without unpacking or installing anything
    roff, markup, catalogs    manual pages, HTML and Mallard, message catalogs -> paragraphs
    documents   a package -> paragraphs of each language -> sentences
    language    which language a sentence is in
    more        what is new in them, with everything near held-out text taken out
"""
