"""Upload files to the import page over HTTP."""

from tests.support.browserless_client import BrowserlessClient
from tests.support.polling import wait_until
from tests.support.server import HttpResponse


def send_files(person: BrowserlessClient, files: list[tuple[str, bytes]], status: int = 200, **fields: str) -> str:
    """Upload files as a browser does and follow redirects."""
    parts = [f'--x\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n'.encode() for n, v in fields.items()]
    for name, content in files:
        head = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
        parts.append(head.encode() + b"Content-Type: application/octet-stream\r\n\r\n" + content + b"\r\n")
    response = post_upload(person, b"".join([*parts, b"--x--\r\n"]))
    if response.status == 303:
        return person.open(response.headers["location"], status)
    assert response.status == status, response.body
    return response.body.decode()


def post_upload(person: BrowserlessClient, body: bytes, site: str = "same-origin") -> HttpResponse:
    """Send the body of a form with files, from a page of this site or another."""
    cookie = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Accept": "text/html", "Cookie": cookie}
    return person.server.request("POST", "/import", {**headers, "Sec-Fetch-Site": site}, body)


def wait_for_upload(person: BrowserlessClient) -> str:
    """Wait until an upload is processed and return its page."""
    wait_until(lambda: "data-progress" not in person.open(person.path))
    return person.body
