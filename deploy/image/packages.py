"""Debian packages of files, and the list of them in CycloneDX format (a "software bill of materials")."""

import datetime
import subprocess
import urllib.parse

# Only headers of these packages are used; no file in the image reveals them.
COMPILED_IN = ("nlohmann-json3-dev",)
FIELDS = ("Package", "Version", "Architecture", "source:Package", "source:Version")


class Unknown(Exception):
    """No package owns the file."""


def _options(root):
    """Of dpkg and dpkg-query, for the packages below root."""
    return [f"--admindir={root}/var/lib/dpkg"]


def owners(paths, root="/"):
    """The names of the packages that the files come from. dpkg knows files of /usr/lib also as /lib."""
    names = sorted({name for path in paths for name in (path, path.removeprefix("/usr"))})
    told = subprocess.run(["dpkg-query", *_options(root), "--search", *names], capture_output=True, text=True, check=False).stdout
    # "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6"
    found = {path: who.split(":")[0] for who, path in (line.rsplit(": ", 1) for line in told.splitlines())}
    strangers = [path for path in paths if path not in found and path.removeprefix("/usr") not in found]
    if strangers:
        raise Unknown(f"of no package: {', '.join(strangers)}")
    return set(found.values())


def facts(package, root="/"):
    """{field: value} of an installed package, from dpkg."""
    form = "\n".join(f"${{{field}}}" for field in FIELDS) + "\n"
    told = subprocess.run(["dpkg-query", *_options(root), "--show", f"--showformat={form}", package], check=True, capture_output=True,
                          text=True).stdout
    return dict(zip(FIELDS, told.splitlines()))


def purl(known):
    """The package's URL in the form of https://github.com/package-url/purl-spec: a plus sign is escaped."""
    name, version = (urllib.parse.quote(known[field], safe="~.-_") for field in ("Package", "Version"))
    return f"pkg:deb/debian/{name}@{version}?arch={known['Architecture']}&distro=debian-12"


def _component(known):
    source = f"{known['source:Package']} {known['source:Version']}"
    return {"type": "library", "bom-ref": purl(known), "name": known["Package"], "version": known["Version"],
            "purl": purl(known), "properties": [{"name": "debian:source", "value": source}]}


def bill(version, packages, epoch):
    """The CycloneDX document. `packages` are results of facts(); their order does not matter."""
    components = sorted((_component(known) for known in packages), key=lambda component: component["purl"])
    rnicd = {"type": "application", "bom-ref": "rnicd", "name": "rnicd", "version": version,
             "purl": f"pkg:generic/rnicd@{urllib.parse.quote(version)}",
             "licenses": [{"license": {"id": "Apache-2.0"}}]}
    made = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"timestamp": made, "component": rnicd},
            "components": components,
            "dependencies": [{"ref": "rnicd", "dependsOn": [component["bom-ref"] for component in components]}]}
