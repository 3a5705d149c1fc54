"""Has oapi-codegen understand the description: prepare.py FROM TO.

It makes a constant "<nil>" of a null among the values of a text. What may be null by its type is a
pointer all the same. A number is a float32 to it, and a whole one an int, which is short on small
machines: their formats tell it otherwise."""

import json
import sys


FORMATS = {"number": "double", "integer": "int64"}


def prepare(of):
    """Gives numbers formats, and leaves null out of the values of all that may be null by its type."""
    if isinstance(of, dict):
        for name, form in FORMATS.items():
            if name in of.get("type", []):
                of.setdefault("format", form)
        if isinstance(of.get("enum"), list) and "null" in of.get("type", []):
            of["enum"] = [value for value in of["enum"] if value is not None]
        of = of.values()
    if not isinstance(of, str) and hasattr(of, "__iter__"):
        for part in of:
            prepare(part)


with open(sys.argv[1], encoding="utf-8") as file:
    described = json.load(file)
prepare(described)
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump(described, file)
