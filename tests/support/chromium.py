"""Drives a headless Chromium over its debugging pipe, with nothing but the standard library: NUL-separated JSON both ways."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = "no Chromium was found: install one (Debian: apt-get install chromium) or set CHROMIUM to its path"
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Tab": 9}
KEYS |= {"Enter": 13, " ": 32}
PATIENCE = 30  # seconds
EXPLORER = "document.documentElement?.hasAttribute('data-ready')"


def find():
    """The program, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One browser; `open` gives pages."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.come, to_write = os.pipe()
        options = (
            "--headless=new --remote-debugging-pipe --no-sandbox --disable-gpu --no-first-run --disable-extensions"
        )
        options += " --disable-background-networking --disable-dev-shm-usage --hide-scrollbars"
        options += " --renderer-process-limit=1"
        line = f'exec "$0" {options} --user-data-dir="$1" about:blank 3<&{to_read} 4>&{to_write}'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", line, program, self.folder.name],
            pass_fds=(to_read, to_write),
            **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL),
        )
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.events = b"", 0, []

    def call(self, method, session=None, **params):
        """Send one command and return its result; events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _receive(self):
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.come], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self.come, 1 << 16)
            assert piece, "the browser has gone"
            self.rest += piece
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def open(self, path, *, width=1280, height=900, dark=False, ready=EXPLORER):
        """Open a file from disk, with the network off, and wait until the expression `ready` is true."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1
        )
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        calm = {"name": "prefers-reduced-motion", "value": "reduce"}
        page.call("Emulation.setEmulatedMedia", features=[scheme, calm])
        page.call("Page.navigate", url=path.absolute().as_uri())
        page.wait(ready)
        return page

    def close(self):
        """End the browser."""
        try:
            self.call("Browser.close")
            self.process.wait(PATIENCE)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.come)
        self.folder.cleanup()


class Page:
    """One page: evaluate, press, click, and what went wrong."""

    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def get(self, expression):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector):
        return self.get(f"document.querySelector({json.dumps(selector)}).textContent")

    def texts(self, selector):
        return self.get(f"[...document.querySelectorAll({json.dumps(selector)})].map((x) => x.textContent)")

    def wait(self, condition):
        until = time.monotonic() + PATIENCE
        while not self.get(condition):
            assert time.monotonic() < until, f"{condition} does not come true"
            time.sleep(0.02)

    def focus(self, selector):
        self.get(f"document.querySelector({json.dumps(selector)}).focus({{preventScroll: true}})")

    def press(self, key, times=1):
        """Press a key as a person would, wherever the focus is."""
        text = {"Enter": "\r", " ": " "}.get(key)
        for _ in range(times):
            down = {"text": text} if text else {}
            self.call(
                "Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=KEYS[key], **down
            )
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=KEYS[key])

    def press_at(self, selector, key, times=1):
        self.focus(selector)
        self.press(key, times)

    def click(self, selector, x=0.5, y=0.5):
        """Press the mouse at a place inside an element, given as shares of its width and height."""
        box = self.get(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}}); "
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        )
        at = {"x": box[0] + x * box[2], "y": box[1] + y * box[3], "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=at["x"], y=at["y"])
        self.call("Input.dispatchMouseEvent", type="mousePressed", **at)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **at)

    def troubles(self):
        """Errors on the console, uncaught exceptions, and requests for anything but the page itself."""
        self.get("1")  # whatever happened before has been told by now
        problems, files = [], set()
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            kind, details = event["method"], event["params"]
            if kind == "Runtime.exceptionThrown" or (
                kind == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert")
            ):
                problems.append(str(details))
            elif kind == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
                problems.append(details["entry"]["text"])
            elif kind == "Page.javascriptDialogOpening":
                problems.append(f"dialog: {details['message']}")
            elif kind == "Network.requestWillBeSent" and not details["request"]["url"].startswith("data:"):
                files.add(details["request"]["url"])
        alone = len(files) == 1 and all(url.startswith("file:") for url in files)
        return problems if alone else [*problems, f"requests: {sorted(files)}"]

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
