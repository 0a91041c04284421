"""What a curator may have done to the sample catalogue."""

import json
from typing import Any

from tests.support.server import Server

WORKING_MEMORY = "trm_606958d85e21c"
RETIRED_NAME, MERGED_NAME = "short memory buffer", "WM store"


def apply_sample_edits(server: Server) -> None:
    """Edit a definition, map, retire and merge."""
    token = server.create_token("curator")
    path = f"concept/{WORKING_MEMORY}"
    record = server.get(f"/api/v1/{path}").json
    definition = record["definition_text"].replace(".", " for a short while.", 1)
    aliases = [*record["aliases"], {"text": "memoria de trabajo", "lang": "es"}]
    _write(server, token, "PATCH", path, {"definition_text": f"{definition}\n\nIt is limited.", "aliases": aliases})
    for relation, target in (("exactMatch", "https://www.wikidata.org/entity/Q899961"), ("closeMatch", "MESH:D008570")):
        _write(server, token, "PUT", f"{path}/relations", {"relation": relation, "target": target})
    retired_id, merged_id = (
        _write(server, token, "POST", "concept", {"name": name})["id"] for name in (RETIRED_NAME, MERGED_NAME)
    )
    _write(server, token, "DELETE", f"concept/{retired_id}?replaced_by={WORKING_MEMORY}")
    _write(server, token, "POST", f"concept/{merged_id}/merge", {"into": WORKING_MEMORY})


def _write(server: Server, token: str, method: str, path: str, body: object = None) -> Any:
    headers = {"Authorization": f"Bearer {token}", "If-Match": "*", "Content-Type": "application/json"}
    response = server.request(method, f"/api/v1/{path}", headers, None if body is None else json.dumps(body))
    assert response.status < 300, response.body
    return response.json
