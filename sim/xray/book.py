"""The idea of a sparse index as a book, in sections that can be folded.

Left out: numbers; those of a directory are in its X-ray.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BOOK"]

BOOK: Final = (
    {
        "title": "A log is a diary in volumes",
        "text": "Every entry gets the next number and is written behind the last one; nothing is "
        "ever squeezed in between. A volume is a segment. The number of its first entry "
        "stands on its back: that is the file's name.",
    },
    {
        "title": "Finding a number without leafing",
        "text": "Who wants entry 680 takes the volume whose number is the last one not above 680. "
        "In front of it lies a short list: entry 500 is on page 41, entry 750 on page 62. The list "
        "does not name every entry, so it stays small enough to be held in one hand. Open it in "
        "the middle, see whether 680 comes before or behind, and halve again. It ends at entry "
        "500. Turn to page 41 and read the numbers in the margin until 680 comes.",
    },
    {
        "title": "Why the list has gaps",
        "text": "A line in the list for every entry would be nearly as long as the diary. A line "
        "for every few pages costs a short walk at the end of each search. "
        "index.interval.bytes says how long that walk may be.",
    },
    {
        "title": "Finding a day",
        "text": "A second list says: up to entry 500, nothing is later than Tuesday noon. So who "
        "looks for Tuesday evening begins behind 500. The clock on the wall may have been set "
        "back, so this list only says where to begin; the dates in the diary decide.",
    },
    {
        "title": "The desk and the shelf",
        "text": "New pages lie on the desk first: the page cache. Whoever asks for them gets them "
        "from there at once. They are safe only on the shelf, the disk, and an fsync is the walk "
        "to it. If the writer faints, the desk stays as it is. If the house loses power, the "
        "desk is swept clean. So a copy in another house is worth more than a walk to the shelf: "
        "this is what replication is for.",
    },
    {
        "title": "Handing pages out",
        "text": "Copying a page by hand in order to give the copy away is slow. The page that lies "
        "on the desk can be put into the envelope as it is: that is sendfile. A letter that must "
        "be sealed with a cipher (TLS) has to be written out by hand all the same.",
    },
)
"""Title and text of each section."""
