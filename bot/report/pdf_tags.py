"""Joins what assistive software reads of the parts of a PDF, their structure trees, to one tree over all pages.

Source: ISO 32000-2:2020, 14.7 (logical structure): each page names its row of the parent tree by `/StructParents`, each
link by `/StructParent`; the rows of the later parts are numbered on from those of the earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    PdfObject,
)

_PARENTS, _PARENT = "/StructParents", "/StructParent"


class Tags:
    """The structure of a document that grows part by part."""

    def __init__(self, writer: PdfWriter) -> None:
        self._writer = writer
        self._next = 0
        self._rows = ArrayObject()
        self._children = ArrayObject()
        self._tree = DictionaryObject({NameObject("/Type"): NameObject("/StructTreeRoot")})
        self._document = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/StructElem"),
                NameObject("/S"): NameObject("/Document"),
            }
        )
        # There is no public door for a new object of its own.
        self._tree_ref = writer._add_object(self._tree)  # noqa: SLF001
        self._document_ref = writer._add_object(self._document)  # noqa: SLF001

    def add(self, reader: PdfReader, pages: Sequence[PageObject]) -> None:
        """Takes over the structure of a part whose pages were just appended as `pages`."""
        root = reader.trailer["/Root"].get_object()
        if not isinstance(root, DictionaryObject) or "/StructTreeRoot" not in root:
            return
        tree = root.raw_get("/StructTreeRoot").clone(self._writer).get_object()
        last = -1
        for key, parents in _numbered(tree["/ParentTree"].get_object()):
            self._rows += [NumberObject(self._next + key), parents]
            last = max(last, key)
        for top in tree["/K"]:
            for child in top.get_object()["/K"]:
                child.get_object()[NameObject("/P")] = self._document_ref
                self._children.append(child)
            if "/NS" in top.get_object():
                self._document[NameObject("/NS")] = top.get_object().raw_get("/NS")
        if "/Namespaces" in tree and "/Namespaces" not in self._tree:
            self._tree[NameObject("/Namespaces")] = tree["/Namespaces"]
        for source, page in zip(reader.pages, pages, strict=True):
            self._renumber(source, page, _PARENTS)
            for link in page.get("/Annots") or ():
                self._renumber(link.get_object(), link.get_object(), _PARENT)
        self._next += last + 1

    def _renumber(self, source: DictionaryObject, target: DictionaryObject, name: str) -> None:
        """Gives the page or link its row in the joined tree; a copied page has lost the one that it had."""
        if name in source:
            own = int(str(source[name]))
            target[NameObject(name)] = NumberObject(self._next + own)

    def finish(self) -> None:
        """Hangs the tree into the document; without a tagged part there is none."""
        if not self._children:
            return
        self._document[NameObject("/P")] = self._tree_ref
        self._document[NameObject("/K")] = self._children
        rows = DictionaryObject({NameObject("/Nums"): self._rows})
        self._tree[NameObject("/K")] = ArrayObject([self._document_ref])
        self._tree[NameObject("/ParentTree")] = self._writer._add_object(rows)  # noqa: SLF001
        self._tree[NameObject("/ParentTreeNextKey")] = NumberObject(self._next)
        root = self._writer.root_object
        root[NameObject("/StructTreeRoot")] = self._tree_ref
        root[NameObject("/MarkInfo")] = DictionaryObject(
            {NameObject("/Marked"): BooleanObject(True)}
        )


def _numbered(tree: DictionaryObject) -> Iterator[tuple[int, PdfObject]]:
    rows = tree["/Nums"]
    if not isinstance(rows, ArrayObject):
        return
    for place in range(0, len(rows), 2):
        yield int(rows[place]), rows[place + 1]
