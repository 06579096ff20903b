"""HTML and Mallard (GNOME's help format) -> the text of their blocks."""

from __future__ import annotations

import re

from lxml import etree, html  # type: ignore[import-untyped]

# What stands within a line of text; every other element begins and ends a block.
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite dfn del em font i img ins kbd label mark q s samp small span strong sub sup "
    "time tt u var wbr "  # HTML
    "app cmd file gui guiseq input key keyseq link output sys code".split()  # Mallard; code is in both
)
_LEFT_OUT = frozenset("head script style pre nav noscript svg math object select textarea button screen info".split())


_DECLARATION = re.compile(rb"(charset|encoding)\s*=", re.IGNORECASE)
_DECLARED_WITHIN = 1024  # bytes, as browsers look for it


def html_blocks(data: bytes | str) -> list[str]:
    """The blocks of an HTML page; none of an empty one.

    Raises:
        ValueError: bytes that do not say in which encoding they are, and are not UTF-8.
    """
    if isinstance(data, bytes) and not _DECLARATION.search(data[:_DECLARED_WITHIN]):
        data = data.decode("utf-8")  # lxml would take it for Latin-1
    try:
        return _blocks(html.document_fromstring(data))
    except etree.ParserError:  # lxml's word for a page without any element or text
        return []


def html_texts(data: bytes, names: re.Pattern[str]) -> dict[str, str]:
    """The text of every element of an HTML page whose id matches, by id; of an id that stands twice, neither."""
    try:
        root = html.document_fromstring(data.decode("utf-8"))
    except etree.ParserError:
        return {}
    for other in root.xpath("//*[@hidden][not(starts-with(@id, 'default'))]"):
        other.drop_tree()  # what a key is called on another system stands beside the usual name, and is not shown
    found: dict[str, str] = {}
    twice: set[str] = set()
    for element in root.iter("p", "h1", "h2", "h3", "h4", "h5", "h6"):
        name = element.get("id", "")
        if names.fullmatch(name):
            if name in found:
                twice.add(name)
            found[name] = " ".join(_blocks(element))
    return {name: text for name, text in found.items() if text and name not in twice}


def mallard_blocks(data: bytes) -> list[str]:
    """The blocks of a Mallard page.

    Raises:
        ValueError: not well-formed XML.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return _blocks(etree.fromstring(data, parser))
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from error


def _blocks(root: etree._Element) -> list[str]:
    found: list[str] = []
    run: list[str] = []

    def flush() -> None:
        text = " ".join("".join(run).split())
        run.clear()
        if text:
            found.append(text)

    # iterwalk rather than recursion: pages may be nested as deep as they like
    walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        is_element = isinstance(element.tag, str)  # else a comment, or an entity that nothing defines
        if is_element and etree.QName(element).localname not in _INLINE:
            flush()
        if event != "start":
            run.append((element.tail or "") if element is not root else "")
        elif is_element and etree.QName(element).localname in _LEFT_OUT:
            walk.skip_subtree()
        elif is_element:
            run.append(element.text or "")
    flush()
    return [text for text in found if re.search(r"\w", text)]
