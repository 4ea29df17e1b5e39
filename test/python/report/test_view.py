"""`kperfir view`: Perfetto's UI shows a capture, from this machine alone; and the server hands out nothing else."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from kperfir.cli.main import main
from kperfir.errors import UsageError
from kperfir.report.perfetto_ui import HOST, Server, find_ui, trace_of
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@contextmanager
def serving(trace: Path) -> Iterator[str]:
    """The address of a server that answers."""
    with Server(find_ui(), trace) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server.address
        finally:
            server.close()
            thread.join()


def get(address: str, path: str, host: str | None = None) -> tuple[int, bytes]:
    port = urlsplit(address).port
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    connection.request("GET", path, headers={"Host": host or f"{HOST}:{port}"})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content


def test_perfetto_shows_a_capture_and_asks_no_other_machine(browser: Browser, capture: Path) -> None:
    with trace_of(capture) as trace, serving(trace) as address:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        answered: list[str] = []
        page.on("response", lambda response: answered.append(response.url))
        refused: list[str | None] = []
        page.on("requestfailed", lambda request: refused.append(request.failure))
        page.goto(address)
        page.wait_for_selector("text=launch 1: matmul_kernel", timeout=120_000)
        here = address.partition("/#")[0]
        assert [url for url in answered if not url.startswith((here, "data:", "blob:"))] == []
        assert {why for why in refused if why != "net::ERR_ABORTED"} <= {"csp"}
        page.close()
    assert not trace.exists()


def test_server_hands_out_the_trace_and_the_ui_only(tmp_path: Path) -> None:
    trace = tmp_path / "x.pftrace"
    trace.write_bytes(b"trace")
    (tmp_path / "secret").write_text("secret")
    with serving(trace) as address:
        assert get(address, "/trace") == (200, b"trace")
        status, page = get(address, "/")
        assert (status, b"Perfetto" in page) == (200, True)
        for path in (
            "/../secret",
            "/%2e%2e/%2e%2e/__init__.py",
            f"/{tmp_path}/secret",
            "//etc/passwd",
            "/nothing",
            "/v",
            "/%00",
            f"/{'x' * 300}",
        ):
            assert get(address, path)[0] == 404
        assert get(address, "/trace", host="evil.example:80")[0] == 403
        assert get(address, "/trace", host="evil.example")[0] == 403
        for host in (HOST, "localhost", "localhost:80"):  # Browsers leave out port 80.
            assert get(address, "/trace", host=host)[0] == 200


def test_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(tmp_path / "no.pftrace"), "--no-browser"]) == 2
    assert "check the path" in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["view", str(tmp_path / "no.pftrace"), "--no-browser"]) == 2
    assert "pip install 'kperfir[view]'" in capsys.readouterr().err


def test_port_that_is_taken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "x.pftrace"
    trace.write_bytes(b"[]")
    with Server(find_ui(), trace) as server:
        port = str(urlsplit(server.address).port)
        assert main(["view", str(trace), "--port", port, "--no-browser"]) == 2
    assert "choose another --port" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", b"# Notes\n\nbuy milk\n"), ("x.pftrace", b""), ("x.json", b'{"name": "some-package"}'),
        ("x.csv", b"launch,kernel\n0,k\n"), ("lines.txt", b"\n\n\nhello"), ("x.bin", bytes(range(256))),
        ("x.so", b"\x7fELF\x02\x01\x01"),
    ],
)  # fmt: skip
def test_file_that_is_no_trace_is_refused(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match="not-a-trace"), trace_of(tmp_path / name):
        pytest.fail("it was served")
    monkeypatch.setattr(Server, "serve", lambda _: pytest.fail("it was served"))
    assert main(["view", str(tmp_path / name), "--no-browser"]) == 2
    assert "[not-a-trace]" in capsys.readouterr().err


@pytest.mark.parametrize("left_out", [1, 2, 500])
def test_trace_that_is_cut_off_is_said_to_be(tmp_path: Path, left_out: int) -> None:
    from kperfir.export import write_file
    from kperfir.timeline import load

    write_matmul_capture(tmp_path / "x.kpf", CaptureShape(ctas=1))
    file = tmp_path / "x.pftrace"
    write_file([load(tmp_path / "x.kpf")], file)
    whole = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-left_out])
    with pytest.raises(UsageError, match="cut-off-trace") as caught, trace_of(file):
        pytest.fail("it was served")
    assert f"{whole - left_out} bytes" in str(caught.value)


@pytest.mark.parametrize("format_name", ["pftrace", "json"])
def test_what_export_writes_is_a_trace(capture: Path, tmp_path: Path, format_name: str) -> None:
    from kperfir.export import write_file
    from kperfir.timeline import load

    file = tmp_path / "trace"
    write_file([load(capture)], file, format_name)
    with trace_of(file) as trace:
        assert trace == file


@pytest.mark.parametrize(
    "content", [b'[{"ph": "B"}]', b"\x1f\x8b\x08", b"# tracer: nop", b'\xef\xbb\xbf{"traceEvents": []}']
)
def test_traces_of_other_tools_are_served(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(content)
    with trace_of(tmp_path / "trace") as trace:
        assert trace.read_bytes() == content


def test_capture_of_another_name_is_known_by_its_bytes(capture: Path, tmp_path: Path) -> None:
    (tmp_path / "renamed").write_bytes(capture.read_bytes())
    with trace_of(tmp_path / "renamed") as trace:
        assert trace.suffix == ".pftrace"
