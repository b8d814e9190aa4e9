"""A headless Chromium for the tests of pages, driven over a pipe in its own protocol (DevTools).

`make system-deps` installs Debian's package `chromium` where none is found. Without a browser the tests that
need one fail and say so; `make test` leaves them out, runs the others and says so in the end.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60.0


class NoBrowser(Exception):
    """There is no browser to test with."""


def find_browser() -> str:
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise NoBrowser("no Chromium is installed, and pages are tested in one: run 'make system-deps'")


class Browser:
    """One tab. `events` are all that the browser reported: requests, console messages, exceptions."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int):
        self.process, self.to, self.back = process, to, back
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._rest = b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.tab(f"{domain}.enable")

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
        raise AssertionError("the browser went away")

    def tab(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.call(method, self.session, **parameters)

    def _messages(self) -> Iterator[dict[str, Any]]:
        """What the browser says, one message after the other; events are kept on the way."""
        while True:
            while b"\0" not in self._rest:
                block = os.read(self.back, 1 << 16)
                if not block:
                    return
                self._rest += block
            text, _, self._rest = self._rest.partition(b"\0")
            message = json.loads(text)
            if "method" in message:
                self.events.append(message)
            yield message

    def open(self, page: Path, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Load a page as a screen of that size shows it, with a light or a dark scheme."""
        self.show(width, height, scheme)
        self.events.clear()
        self.tab("Page.navigate", url=page.resolve().as_uri())
        self.wait(
            lambda: self.evaluate("document.readyState") == "complete" and self.saw("Page.loadEventFired")
        )

    def show(self, width: int, height: int, scheme: str) -> None:
        """From now on as a screen of that size shows pages; the one that is open is laid out anew."""
        self.tab(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.tab("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, "the page did not get there in time"
            time.sleep(0.02)

    def saw(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event["method"] == method]

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression in the page, or what it promises."""
        answer = self.tab("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def point_at(self, selector: str) -> None:
        """Move the pointer to the middle of an element, once what is there is drawn."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(
            f"{element}.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            " new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"
        )
        x, y = self.evaluate(
            f"(() => {{ const b = {element}.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.tab("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def problems(self) -> list[str]:
        """Everything that went wrong since the page was opened: console, exceptions, refused loads."""
        logged = [entry["entry"]["text"] for entry in self.saw("Log.entryAdded")]
        called = [str(call["args"]) for call in self.saw("Runtime.consoleAPICalled")]
        thrown = [str(thrown["exceptionDetails"]) for thrown in self.saw("Runtime.exceptionThrown")]
        return logged + called + thrown

    def requests(self) -> list[str]:
        """The addresses of everything that was asked for since the page was opened."""
        return [event["request"]["url"] for event in self.saw("Network.requestWillBeSent")]

    def screenshot(self, file: Path) -> None:
        """The whole page as a picture."""
        shown = self.tab("Page.captureScreenshot", captureBeyondViewport=True, clip=self._whole())
        file.write_bytes(base64.b64decode(shown["data"]))

    def _whole(self) -> dict[str, float]:
        size = self.tab("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}


@contextmanager
def browser(*more: str) -> Iterator[Browser]:
    """A browser that is closed in the end, with a profile of its own; `more` are further flags."""
    path = find_browser()
    theirs_in, to = os.pipe()
    back, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = (
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars",
            "--remote-debugging-pipe", f"--user-data-dir={profile}",
        )  # fmt: skip

        def use_pipes() -> None:
            # The protocol reads from descriptor 3 and writes to 4. Copies first: ours may have these numbers.
            read, write = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(read, 3)
            os.dup2(write, 4)

        process = subprocess.Popen(
            [path, *flags, *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=use_pipes,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            started = Browser(process, to, back)
            yield started
            started.call("Browser.close")
        finally:
            os.close(to)
            os.close(back)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
