"""Has clientele understand the description: prepare.py FROM TO.

It takes all members of an object for required where none is: one that there is not tells it
otherwise. Answers that are a text it does not know: those operations are left to client.request.
An answer to all other statuses it does not know, either: it raises HTTPStatusError for a refusal,
whose body is a schemas.Problem."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    described = json.load(file)
for schema in described["components"]["schemas"].values():
    if schema.get("required") == []:
        schema["required"] = ["_"]
for methods in described["paths"].values():
    for method, operation in list(methods.items()):
        del operation["responses"]["default"]
        for answer in operation["responses"].values():
            if "application/json" not in answer.get("content", {"application/json": 0}):
                methods.pop(method, None)
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump(described, file)
