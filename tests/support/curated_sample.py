"""Edit, retire and merge records of the sample catalogue."""

from tests.support.server import Server

WORKING_MEMORY = "trm_606958d85e21c"
RETIRED_NAME, MERGED_NAME = "short memory buffer", "WM store"


def apply_sample_edits(server: Server) -> None:
    """Edit a definition and aliases, add mappings, retire a record and merge another."""
    token = server.create_token("curator")
    path = f"concept/{WORKING_MEMORY}"
    record = server.get(f"/api/v1/{path}").json
    definition = record["definition_text"].replace(".", " for a short while.", 1)
    aliases = [*record["aliases"], {"text": "memoria de trabajo", "lang": "es"}]
    server.send_write(token, "PATCH", path, {"definition_text": f"{definition}\n\nIt is limited.", "aliases": aliases})
    for relation, target in (("exactMatch", "https://www.wikidata.org/entity/Q899961"), ("closeMatch", "MESH:D008570")):
        server.send_write(token, "PUT", f"{path}/relations", {"relation": relation, "target": target})
    retired_id, merged_id = (
        server.send_write(token, "POST", "concept", {"name": name})["id"] for name in (RETIRED_NAME, MERGED_NAME)
    )
    server.send_write(token, "DELETE", f"concept/{retired_id}?replaced_by={WORKING_MEMORY}")
    server.send_write(token, "POST", f"concept/{merged_id}/merge", {"into": WORKING_MEMORY})
