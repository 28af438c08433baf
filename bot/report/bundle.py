"""Packs a report and the files beside it into one archive, the same bytes for the same report."""

from __future__ import annotations

import io
import zipfile

from bot.exporter import Export

# Zip knows no time before this one; the report's own times are inside it.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def bundle(export: Export) -> bytes:
    """A zip archive of all files of `export` under their own paths, the report first."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(export.files, key=lambda name: (name != export.main, name)):
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, export.files[name])
    return packed.getvalue()
