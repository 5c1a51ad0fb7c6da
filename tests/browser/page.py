"""One page of the browser, used as a person would: real mouse movements, real keys, and reading the page."""

import base64
import time

from devtools import TIMEOUT_S

# Key name: (code, virtual key, text that the key types).
_KEYS = {
    "Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), " ": ("Space", 32, " "),
    "/": ("Slash", 191, "/"), "?": ("Slash", 191, "?"),
}
_SHIFT = 8


class Page:
    def __init__(self, browser):
        self._browser = browser
        target = browser.command("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = browser.command("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._send(f"{domain}.enable")

    def _send(self, method, **params):
        return self._browser.command(method, params, self._session)

    def go(self, url):
        """Opens the page and waits until it is loaded."""
        before = self._loads()
        self._send("Page.navigate", url=url)
        deadline = time.monotonic() + TIMEOUT_S
        while self._loads() == before:
            if not self._browser.listen(deadline - time.monotonic()):
                raise AssertionError(f"{url} does not load")

    def _loads(self):
        return sum(event["method"] == "Page.loadEventFired" for event in self._browser.events)

    def size(self, width, height):
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """Emulates the system's scheme, "light" or "dark", with reduced motion, so that screenshots are stable."""
        self._send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def look(self, expression):
        """The value of a JavaScript expression. Only for reading: user actions go through keys and mouse."""
        answer = self._send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    def await_true(self, expression, why):
        deadline = time.monotonic() + TIMEOUT_S
        while not self.look(expression):
            if time.monotonic() > deadline:
                raise AssertionError(f"{why}: not within {TIMEOUT_S} s: {expression}")
            self._browser.listen(0.05)

    def click(self, finder):
        """Clicks the middle of the element that the expression returns."""
        box = self.look(f"(() => {{ const found = {finder}; found.scrollIntoView({{block: 'center'}});"
                        "const box = found.getBoundingClientRect();"
                        "return [box.x + box.width / 2, box.y + box.height / 2]; })()")
        at = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        self._send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
        self._send("Input.dispatchMouseEvent", type="mousePressed", **at)
        self._send("Input.dispatchMouseEvent", type="mouseReleased", **at)

    def press(self, key, shift=False):
        code, number, text = _KEYS.get(key) or (f"Key{key.upper()}", ord(key.upper()), key)
        params = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": _SHIFT if shift else 0}
        self._send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **params)
        self._send("Input.dispatchKeyEvent", type="keyUp", **params)

    def write(self, text):
        for letter in text:
            self.press(letter)

    def picture(self, path, height=None):
        """Screenshot of the page down to that height, or of the whole page, including the part below the window."""
        # Elements that stick to the top of the window belong at the top of the page.
        self.look("scrollTo({top: 0, behavior: 'instant'})")
        whole = self.look("Math.ceil(document.documentElement.scrollHeight)")
        height = min(height or whole, whole)
        width = self.look("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self._send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def requests(self):
        """The URLs that the page requested."""
        return [event["params"]["request"]["url"] for event in self._browser.events
                if event["method"] == "Network.requestWillBeSent"]

    def console_errors(self):
        """The browser's messages about the page: errors, warnings, exceptions, blocked content."""
        found = []
        for event in self._browser.events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(f"console: {params['args']}")
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        return found
